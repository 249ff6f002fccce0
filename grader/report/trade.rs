//! The lesson's trade-off in this submission's own figures: what two timesteps a launch cost on the way in.

use super::Report;
use crate::judge::grouped;
use crate::judge::loads::Apron;

/// The trade-off in whole sentences; nothing until the words were counted, which they are only where every cell is right.
pub fn sentences(report: &Report) -> Vec<String> {
    let Some(reads) = &report.reads else { return Vec::new() };
    let mut said = Vec::new();
    match report.apron.as_ref().and_then(|apron| Some((apron, apron.words_a_cell()?))) {
        Some((apron, a_cell)) => {
            said.push(format!(
                "A block reads {} words for {} cells: {a_cell:.2} a cell and launch, {:.2} a cell-step.",
                grouped(apron.words),
                grouped(apron.cells_written),
                a_cell / f64::from(reads.timesteps.max(1)),
            ));
            said.extend(steps(apron));
            said.push(match apron.shared {
                0 => "It uses no shared memory.".to_owned(),
                bytes => format!("It takes {} bytes of shared memory.", grouped(bytes)),
            });
        }
        None => said.push(format!(
            "A launch reads {:.2} words a cell, {:.2} a cell-step.",
            reads.per_cell_step * f64::from(reads.timesteps),
            reads.per_cell_step
        )),
    }
    said.push(match &report.timing {
        Some(timing) if timing.unreliable.is_some() => "Its time could not be relied on.".to_owned(),
        Some(timing) => format!("Its time a timestep is {:.3} times heatStepTiled's.", timing.ratio),
        None => "Whether that pays is a measurement, which needs a GPU.".to_owned(),
    });
    said
}

/// The cells that each of the two timesteps updates, where the tile tells.
fn steps(apron: &Apron) -> Option<String> {
    let ([across, down], [columns, rows]) = (apron.first_step()?, apron.tile?);
    let cells = |across: u32, down: u32| grouped(u64::from(across) * u64::from(down));
    Some(format!(
        "For that its first timestep has to update {across} x {down} = {} cells, its second {columns} x {rows} = {}.",
        cells(across, down),
        cells(columns, rows)
    ))
}

/// When the learner would ship the kernel, where they said so: their words, for reading.
pub fn ship(report: &Report) -> Option<&str> {
    report.answer.as_ref().map(|answer| answer.ship.trim()).filter(|ship| !ship.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Reads;

    fn lesson() -> Report {
        let reads = Reads { words: 7_056_400, cells: 4_186_116, timesteps: 2, per_cell_step: 0.84283, budget: 1.5 };
        let apron = Apron {
            n: 260,
            block: [4, 16, 0],
            row: 127,
            column: 127,
            rows: 12,
            columns: 36,
            words: 432,
            cells_read: 432,
            cells_written: 256,
            tile: Some([32, 8]),
            shared: 3088,
            by_line: Vec::new(),
            elsewhere: Vec::new(),
            reads: Vec::new(),
            written: Vec::new(),
        };
        Report { reads: Some(reads), apron: Some(apron), ..Report::blank() }
    }

    #[test]
    fn the_lessons_tile_is_told_in_the_lessons_figures() {
        let expected = [
            "A block reads 432 words for 256 cells: 1.69 a cell and launch, 0.84 a cell-step.",
            "For that its first timestep has to update 34 x 10 = 340 cells, its second 32 x 8 = 256.",
            "It takes 3,088 bytes of shared memory.",
            "Whether that pays is a measurement, which needs a GPU.",
        ];
        assert_eq!(sentences(&lesson()), expected);
    }

    #[test]
    fn what_was_not_seen_is_not_told() {
        let unwatched = Report { apron: None, ..lesson() };
        assert_eq!(sentences(&unwatched)[0], "A launch reads 1.69 words a cell, 0.84 a cell-step.");
        assert!(sentences(&Report { reads: None, ..lesson() }).is_empty(), "not before the cells are right");
        let mut scattered = lesson();
        scattered.apron.iter_mut().for_each(|apron| apron.tile = None);
        assert!(!sentences(&scattered).iter().any(|said| said.contains("timestep has to")));
    }
}
