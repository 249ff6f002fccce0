//! Classes to make pages of: real reports (`check --seed 1` and a made-up time), and what learners might try.

use heat_grader::judge::timing::{Row, Timing};
use heat_grader::report::html::{Class, Entry};
use heat_grader::report::{Answer, Cause, Code, Report};
use heat_grader::verdict::Verdict;

macro_rules! real {
    ($name:literal, $source:literal) => {
        ($name, include_str!(concat!("reports/", $name, ".json")), include_str!($source))
    };
}

/// Name, report, heat.cu.
const REAL: [(&str, &str, &str); 8] = [
    real!("amara", "../../../submissions/amara/heat.cu"),
    real!("bjorn", "../../../submissions/bjorn/heat.cu"),
    real!("chiara", "../../../submissions/chiara/heat.cu"),
    real!("deniz", "../../../submissions/deniz/heat.cu"),
    real!("emeka", "../../../submissions/emeka/heat.cu"),
    real!("halo_one_cell", "../../../fixtures/wrong/halo_one_cell/heat.cu"),
    real!("shared_one_past", "../../../fixtures/wrong/shared_one_past/heat.cu"),
    real!("last_column_missing", "../../../fixtures/wrong/last_column_missing/heat.cu"),
];

/// The real reports, as they are.
pub fn real_entries() -> Vec<Entry> {
    let entry = |(name, report, source): (&str, &str, &str)| Entry {
        learner: name.to_owned(),
        path: format!("class/{name}"),
        report: serde_json::from_str(report).expect("a report"),
        source: Some(source.to_owned()),
    };
    REAL.map(entry).into()
}

/// A class of those and of one that could not be graded.
pub fn small() -> Class {
    let mut entries = real_entries();
    let error = Report::of_error("no space left on device", heat_grader::exit_code::ExitCode::Ungraded);
    entries.push(Entry { learner: "farah".to_owned(), path: "class/farah".to_owned(), report: error, source: None });
    let groups = vec![vec!["amara".to_owned(), "bjorn".to_owned()], vec!["left-alone".to_owned()]];
    Class {
        title: "Heat, autumn".to_owned(),
        made_at: "30 November 2026, 12:00 UTC".to_owned(),
        entries,
        groups,
        ..Class::default()
    }
}

/// A name as long as one can be, without a place to break it.
pub const LONG: &str = "Hubert_Blaine_Wolfeschlegelsteinhausenbergerdorff_12345_67890_assignment_nine_final_version_really_final_2026_november";

/// `size` learners with reports like the real ones, most of them timed.
pub fn large(size: usize) -> Class {
    let names = ["Zoë Ångström", "Chukwuemeka", "李小龍", "O'Brien & Søn", "Nour", "van den Berg", "Ólafur", "Anh"];
    let real = real_entries();
    let mut entries: Vec<Entry> = Vec::new();
    for at in 0..size {
        // Half of a class passes.
        let mut entry = real[[0, 1, 2, 0, 3, 1, 4, 5, 0, 1, 6, 7][at % 12]].clone();
        entry.learner = format!("{} {at:03}", names[at % names.len()]);
        let drift = (at * 37 % 101) as f64 / 101.0;
        if let Some(reads) = &mut entry.report.reads {
            reads.per_cell_step *= 0.85 + 0.3 * drift;
            if entry.report.verdict != Verdict::Fail {
                let ratio = 0.72 + 0.5 * ((at * 53 % 97) as f64 / 97.0) + 0.1 * drift;
                entry.report.timing = Some(timing(ratio, reads.per_cell_step));
            } else {
                entry.report.timing = Some(timing(0.6 + 0.2 * drift, reads.per_cell_step));
            }
        }
        if at % 61 == 7 {
            entry.report = Report::of_error("nvcc: the disk is full", heat_grader::exit_code::ExitCode::Ungraded);
        }
        entries.push(entry);
    }
    let groups = vec![names_of(&entries, &[0, 12]), names_of(&entries, &[3, 8, 20])];
    Class {
        title: "CUDA course, week 9".to_owned(),
        made_at: "30 November 2026, 12:00 UTC".to_owned(),
        entries,
        groups,
        waiting: vec!["Late Comer".to_owned(), LONG.to_owned()],
        remarks: vec![("learner-000".to_owned(), "its earlier verdict stays".to_owned())],
        ignored: vec!["notes.txt".to_owned()],
    }
}

fn names_of(entries: &[Entry], places: &[usize]) -> Vec<String> {
    places.iter().filter_map(|at| entries.get(*at)).map(|entry| entry.learner.clone()).collect()
}

/// The times of an H200, and a kernel that takes `ratio` times heatStepTiled's.
pub fn timing(ratio: f64, reads: f64) -> Timing {
    let row = |kernel: &str, ms: f64, steps: f64, reads| Row {
        kernel: kernel.to_owned(),
        ms,
        gb_per_s: 8.0 * 2048.0 * 2048.0 / (ms * steps) / 1e6,
        percent_of_copy: 100.0 * 0.01216 / ms,
        reads,
    };
    Timing {
        rows: vec![
            row("copyGrid", 0.01216, 1.0, None),
            row("heatStepGlobal", 0.01265, 1.0, Some(5.0)),
            row("heatStepTiled", 0.0213, 1.0, Some(1.32846)),
            row("heatTwoStep", 0.0213 * ratio, 2.0, Some(reads)),
        ],
        ratio,
        interval: [ratio - 0.002, ratio + 0.003],
        rounds: 40,
        copies: 1.001,
        unreliable: None,
    }
}

/// What a learner's text might hold to get out of its place on a page.
pub const HOSTILE: [&str; 6] = [
    "</script><script>window.stolen=1</script>",
    "<img src=x onerror=window.stolen=1>",
    "\"><svg onload=window.stolen=1>",
    "' onmouseover='window.stolen=1",
    "</style><b>PASSED</b><!--",
    "\u{202e}DESSAP\u{202c}\u{1b}[32m\u{0}\u{2028}",
];

/// A class in which every text of a learner's is hostile.
pub fn hostile() -> Class {
    let entries = HOSTILE.map(|text| {
        let mut entry = real_entries().swap_remove(6);
        entry.learner = text.to_owned();
        let report = &mut entry.report;
        if let Some(submission) = &mut report.submission {
            submission.name = text.to_owned();
            submission.path = text.to_owned();
            submission.kernel = Some(text.to_owned());
            submission.sha256 = Some(text.to_owned());
        }
        for check in &mut report.checks {
            check.summary = text.to_owned();
            check.details = vec![text.to_owned()];
        }
        let explain = text.to_owned();
        let (sentence, evidence) = (text.to_owned(), vec![text.to_owned()]);
        report.causes = vec![Cause { code: Code::TwoWriters, sentence, evidence, explain }];
        report.hazards.iter_mut().for_each(|hazard| hazard.message = text.to_owned());
        report.answer = Some(Answer { rows: vec![text.to_owned()], ship: text.to_owned() });
        report.output = text.to_owned();
        report.error = Some(text.to_owned());
        report.engine = Some(text.to_owned());
        report.environment.gpu = Some(text.to_owned());
        let mut timing = timing(0.8, 0.843);
        timing.rows[3].kernel = text.to_owned();
        timing.unreliable = Some(text.to_owned());
        report.timing = Some(timing);
        entry.source = entry.source.map(|source| source.lines().map(|line| format!("{line}{text}\n")).collect());
        entry
    });
    let groups = vec![HOSTILE.map(str::to_owned).into()];
    let remarks = HOSTILE.map(|text| (text.to_owned(), text.to_owned())).into();
    let ignored = HOSTILE.map(str::to_owned).into();
    Class {
        title: HOSTILE[0].to_owned(),
        made_at: HOSTILE[1].to_owned(),
        entries: entries.into(),
        waiting: HOSTILE.map(str::to_owned).into(),
        groups,
        remarks,
        ignored,
    }
}
