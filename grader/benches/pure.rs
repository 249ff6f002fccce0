//! Time of what neither compiles nor runs anything: `cargo bench --bench pure`.
//!
//! Two grids of 2048 x 2048 cells are compared and mapped beside a plain read of the same bytes, in the same run: their ratio
//! is the figure, not the gigabytes. PTX is counted by the megabyte, reports by the thousand.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use heat_grader::compile::ptx::count_reads;
use heat_grader::grid::Grid;
use heat_grader::judge::cells::compare;
use heat_grader::judge::error_map::ErrorMap;
use heat_grader::report::html::{self, Class, Entry};
use heat_grader::report::{Report, json, text};

const N: usize = 2048;
/// What two launches may differ by.
const TOLERANCE: f64 = 1.9e-6;
const LEARNERS: usize = 1000;

/// Sums all bits, in sums that do not wait for each other: what reading costs at least.
fn read(grid: &Grid) -> u32 {
    let (chunks, rest) = grid.cells().as_chunks::<64>();
    let mut sums = [0; 64];
    for chunk in chunks {
        for (sum, cell) in sums.iter_mut().zip(chunk) {
            *sum ^= cell.to_bits();
        }
    }
    sums.into_iter().chain(rest.iter().map(|cell| cell.to_bits())).fold(0, |sum, bits| sum ^ bits)
}

fn grids(criterion: &mut Criterion) {
    let right = Grid::initial(N, 7);
    let nearly = changed(&right, |_, value| value + 1e-7);
    let wrong = changed(&right, |at, value| if at % 32 == 5 { value + 0.5 } else { value });
    let mut group = criterion.benchmark_group("grids");
    group.throughput(Throughput::Bytes((2 * N * N * size_of::<f32>()) as u64));
    group.bench_function("plain read", |bencher| bencher.iter(|| read(black_box(&right)) ^ read(black_box(&nearly))));
    for (name, got) in [("same", &right), ("within tolerance", &nearly), ("one in 32 wrong", &wrong)] {
        group.bench_function(format!("compare/{name}"), |bencher| {
            bencher.iter(|| compare(black_box(&right), black_box(got), TOLERANCE));
        });
    }
    group.bench_function("map/one in 32 wrong", |bencher| {
        bencher.iter(|| ErrorMap::between(black_box(&right), black_box(&wrong), TOLERANCE));
    });
    group.finish();
}

/// The grid with every interior cell changed.
fn changed(grid: &Grid, change: impl Fn(usize, f32) -> f32) -> Grid {
    let of = |(at, value): (usize, &f32)| {
        if grid.on_ring(at / N, at % N) { *value } else { change(at, *value) }
    };
    Grid::from_cells(N, grid.cells().iter().enumerate().map(of).collect()).expect("the same size")
}

fn ptx(criterion: &mut Criterion) {
    const PTX: &str = include_str!("../tests/heat_sm75.ptx");
    let mut group = criterion.benchmark_group("ptx");
    group.throughput(Throughput::Bytes(PTX.len() as u64));
    group.bench_function("count reads", |bencher| bencher.iter(|| count_reads(black_box(PTX), "hg_0123456789abcdef")));
    group.finish();
}

fn reports(criterion: &mut Criterion) {
    const REAL: [(&str, &str); 4] = [
        (include_str!("../tests/html/reports/amara.json"), include_str!("../../submissions/amara/heat.cu")),
        (include_str!("../tests/html/reports/bjorn.json"), include_str!("../../submissions/bjorn/heat.cu")),
        (include_str!("../tests/html/reports/chiara.json"), include_str!("../../submissions/chiara/heat.cu")),
        (
            include_str!("../tests/html/reports/halo_one_cell.json"),
            include_str!("../../fixtures/wrong/halo_one_cell/heat.cu"),
        ),
    ];
    let real = REAL.map(|(report, source)| (serde_json::from_str::<Report>(report).expect("a report"), source));
    let entry = |at: usize| {
        let (report, source) = &real[at % real.len()];
        Entry {
            learner: format!("learner {at}"),
            path: format!("class/{at}"),
            report: report.clone(),
            source: Some((*source).to_owned()),
        }
    };
    let class = Class { title: "Heat".to_owned(), entries: (0..LEARNERS).map(entry).collect(), ..Class::default() };
    let mut group = criterion.benchmark_group(format!("{LEARNERS} reports"));
    let each = |render: &dyn Fn(&Entry) -> usize| class.entries.iter().map(render).sum::<usize>();
    group.bench_function("json", |bencher| {
        bencher.iter(|| each(&|entry| json::render(&entry.report).expect("it is written").len()));
    });
    group.bench_function("text", |bencher| {
        bencher.iter(|| each(&|entry| text::render(&entry.report, entry.source.as_deref()).len()));
    });
    group.bench_function("html", |bencher| bencher.iter(|| html::page(black_box(&class)).len()));
    group.finish();
}

criterion_group! {
    name = pure;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(3));
    targets = grids, ptx, reports
}
criterion_main!(pure);
