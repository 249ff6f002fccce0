//! Resuming, sharing and breaking down, with a grade that is made up.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::find::find;
use super::key::Parts;
use super::lanes::Share;
use super::out::Out;
use super::summary::{Facts, Summary};
use super::work::{Batch, Choices, Item, Means};
use crate::exercise::Exercise;
use crate::exit_code::ExitCode;
use crate::grade::{Graded, Read};
use crate::judge::plan::Scope;
use crate::outbox;
use crate::report::{self, Report};
use crate::verdict::{Check, CheckId, Status, Verdict};

/// A class on disk, and the folder of its results.
struct School {
    folder: tempfile::TempDir,
    /// What a grade follows from besides the submission.
    compiler: &'static str,
    choices: Choices,
    /// After how many grades an interrupt comes.
    patience: usize,
}

impl School {
    fn of(submissions: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let school = Self {
            folder,
            compiler: "nvcc 13.0",
            choices: Choices { force: false, retry_ungraded: false, lanes: 2, cores: 2 },
            patience: usize::MAX,
        };
        submissions.iter().for_each(|(learner, text)| school.hand_in(learner, text));
        school
    }

    fn class(&self) -> PathBuf {
        self.folder.path().join("class")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn hand_in(&self, learner: &str, text: &str) {
        let folder = self.class().join(learner);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("heat.cu"), text).unwrap();
    }

    fn answer(&self, learner: &str, text: &str) {
        std::fs::write(self.class().join(learner).join("answer.md"), text).unwrap();
    }

    /// Grades the class: who was really graded, in order, the exit code and the summary.
    fn batch(&self) -> (Vec<String>, ExitCode, Summary) {
        let class = find(&self.class(), &self.out()).unwrap().unwrap();
        let out = Out::open(&self.out()).unwrap().unwrap();
        let seed = out.seed(None).unwrap();
        let means = Means { seed, common: Parts::default().with(self.compiler) };
        let batch = Batch::new(class.submissions, out, means, self.choices, true);
        let plan = batch.plan();
        let graded = Mutex::new(Vec::new());
        let begun = AtomicUsize::new(0);
        let stopping = || begun.load(Ordering::SeqCst) >= self.patience;
        outbox::guarded(|| {
            batch.run(&plan, &Exercise::shipped()?, &stopping, &|item, read, share| {
                begun.fetch_add(1, Ordering::SeqCst);
                graded.lock().unwrap().push(item.handed.learner.clone());
                made_up(item, read, share)
            });
            Ok(())
        })
        .unwrap();
        let facts = Facts { folder: "class".into(), scope: Scope::Full, strict: false, ignored: Vec::new() };
        let (summary, products) = batch.finish(&facts);
        products.unwrap();
        let code = batch.exit_code(&summary);
        let mut graded = graded.into_inner().unwrap();
        graded.sort();
        (graded, code, summary)
    }

    fn report(&self, learner: &str) -> String {
        std::fs::read_to_string(self.out().join("reports").join(format!("{learner}.json"))).unwrap()
    }
}

/// The text says what becomes of it.
fn made_up(item: &Item, read: &Read, _: Share) -> anyhow::Result<Graded> {
    let read = match read() {
        Ok(read) => read,
        Err(fault) => {
            let check = Check::new(CheckId::Source, Status::Fail, fault.to_string());
            return Ok(Graded::without_source(Report::blank().with_checks(vec![check])));
        }
    };
    if read.text.contains("crash") {
        panic!("the grader broke down");
    }
    anyhow::ensure!(!read.text.contains("no disk"), "no space left in /tmp/secret/x");
    let status = |id: CheckId| match id {
        CheckId::Values if read.text.contains("wrong") => Status::Fail,
        CheckId::Values if read.text.contains("assembly") => Status::Skip,
        _ => Status::Pass,
    };
    let checks = CheckId::ALL.into_iter().map(|id| Check::new(id, status(id), "made up")).collect();
    let submission = report::Submission {
        path: item.handed.path.display().to_string(),
        name: read.name.clone(),
        sha256: Some(read.sha256.clone()),
        ..report::Submission::default()
    };
    let report = Report { seed: Some(item.seed), submission: Some(submission), ..Report::blank() }.with_checks(checks);
    Ok(Graded::without_source(report))
}

fn verdicts(summary: &Summary) -> Vec<(&str, Option<Verdict>)> {
    summary.submissions.iter().map(|row| (row.learner.as_str(), row.verdict)).collect()
}

#[test]
fn a_second_run_grades_only_what_is_new_or_changed() {
    let school = School::of(&[("ann", "right"), ("bob", "wrong"), ("cy", "right too")]);
    let (graded, code, _) = school.batch();
    assert_eq!((graded.join(" "), code), ("ann bob cy".to_owned(), ExitCode::Passed));
    assert_eq!(school.batch().0.len(), 0);
    let before = school.report("ann");
    school.hand_in("bob", "right now");
    school.hand_in("dot", "new");
    let (graded, _, summary) = school.batch();
    assert_eq!(graded, ["bob", "dot"]);
    assert_eq!(summary.counts.pass, 4);
    assert_eq!(school.report("ann"), before);
    school.answer("cy", "rows:");
    assert_eq!(school.batch().0, ["cy"]);
}

#[test]
fn another_compiler_or_force_grades_everything() {
    let mut school = School::of(&[("ann", "right"), ("bob", "wrong")]);
    school.batch();
    school.compiler = "nvcc 13.1";
    assert_eq!(school.batch().0, ["ann", "bob"]);
    assert_eq!(school.batch().0.len(), 0);
    school.choices.force = true;
    assert_eq!(school.batch().0, ["ann", "bob"]);
}

#[test]
fn a_report_that_was_edited_or_torn_is_made_again() {
    let school = School::of(&[("ann", "wrong"), ("bob", "right")]);
    school.batch();
    let before = school.report("ann");
    std::fs::write(school.out().join("reports/ann.json"), before.replace("\"fail\"", "\"pass\"")).unwrap();
    assert_eq!(school.batch().0, ["ann"]);
    assert_eq!(school.report("ann"), before);
}

#[test]
fn one_that_breaks_down_is_ungraded_and_stops_nobody() {
    let school = School::of(&[("ann", "right"), ("bob", "crash"), ("cy", "no disk"), ("dot", "wrong")]);
    let (_, code, summary) = school.batch();
    assert_eq!(code, ExitCode::Ungraded);
    let (pass, fail, ungraded) = (Some(Verdict::Pass), Some(Verdict::Fail), Some(Verdict::Ungraded));
    assert_eq!(verdicts(&summary), [("ann", pass), ("bob", ungraded), ("cy", ungraded), ("dot", fail)]);
    let reason = |at: usize| summary.submissions[at].reason.clone().unwrap();
    assert!(reason(1).contains("the grader broke down"), "{}", reason(1));
    assert!(reason(2).contains("no space left") && !reason(2).contains("secret"), "{}", reason(2));
    assert!(school.report("bob").contains("class/bob"));
}

#[test]
fn what_is_ungraded_stays_so_until_it_is_to_be_tried_again() {
    let mut school = School::of(&[("ann", "right"), ("bob", "assembly")]);
    assert_eq!(school.batch().1, ExitCode::Ungraded);
    let (graded, code, _) = school.batch();
    assert_eq!((graded.len(), code), (0, ExitCode::Ungraded));
    school.choices.retry_ungraded = true;
    assert_eq!(school.batch().0, ["bob"]);
}

#[test]
fn grading_again_to_no_end_keeps_the_verdict_and_says_so() {
    let school = School::of(&[("ann", "right")]);
    school.batch();
    let before = school.report("ann");
    // The same content under another key: as after an upgrade on a machine that then breaks down.
    let class = find(&school.class(), &school.out()).unwrap().unwrap();
    let out = Out::open(&school.out()).unwrap().unwrap();
    let means = Means { seed: out.seed(None).unwrap(), common: Parts::default().with("other") };
    let batch = Batch::new(class.submissions, out, means, school.choices, true);
    batch.run(&batch.plan(), &Exercise::shipped().unwrap(), &|| false, &|_, _, _| anyhow::bail!("no memory"));
    let facts = Facts { folder: "class".into(), scope: Scope::Full, strict: false, ignored: Vec::new() };
    let (summary, products) = batch.finish(&facts);
    products.unwrap();
    assert_eq!(school.report("ann"), before);
    assert_eq!(batch.exit_code(&summary), ExitCode::Ungraded);
    let row = &summary.submissions[0];
    assert_eq!(row.verdict, Some(Verdict::Pass));
    assert!(row.note.as_ref().is_some_and(|note| note.contains("no memory")), "{row:?}");
}

#[test]
fn an_interrupted_batch_sums_up_what_is_done_and_goes_on_later() {
    let mut school = School::of(&[("ann", "a"), ("bob", "wrong"), ("cy", "c"), ("dot", "d")]);
    school.choices.lanes = 1;
    school.patience = 2;
    let (graded, code, summary) = school.batch();
    assert_eq!((graded.join(" "), code), ("ann bob".to_owned(), ExitCode::Interrupted));
    assert_eq!((summary.counts.not_graded, summary.complete), (2, false));
    let written = std::fs::read_to_string(school.out().join("summary.csv")).unwrap();
    assert!(written.contains("cy,not graded") && written.contains("bob,fail"), "{written}");
    school.patience = usize::MAX;
    let (graded, code, summary) = school.batch();
    assert_eq!((graded.join(" "), code), ("cy dot".to_owned(), ExitCode::Passed));
    assert!(summary.complete);
    // The same as without an interrupt.
    let reports: Vec<String> = ["ann", "bob", "cy", "dot"].iter().map(|learner| school.report(learner)).collect();
    school.choices.force = true;
    school.batch();
    assert_eq!(["ann", "bob", "cy", "dot"].map(|learner| school.report(learner)).to_vec(), reports);
}

#[test]
fn a_program_handed_in_twice_is_graded_once_and_each_keeps_an_answer() {
    let mut school = School::of(&[("ann", "same"), ("bob", "same"), ("cy", "other")]);
    school.answer("bob", "rows:\nheatTwoStep 0.844\nship: when it is large\n");
    let (graded, _, summary) = school.batch();
    assert_eq!(graded.len(), 2);
    assert_eq!((summary.counts.pass, summary.groups.len()), (3, 1));
    assert_eq!(summary.groups[0].learners, ["ann", "bob"]);
    assert_eq!((summary.submissions[1].same_bytes, summary.submissions[2].same_bytes), (Some(1), None));
    let report = |school: &School, learner: &str| serde_json::from_str::<Report>(&school.report(learner)).unwrap();
    let (ann, bob) = (report(&school, "ann"), report(&school, "bob"));
    assert_eq!((ann.seed, ann.verdict), (bob.seed, bob.verdict));
    assert!(bob.submission.as_ref().is_some_and(|s| s.path.ends_with("class/bob") && s.name == "bob"));
    assert_eq!(bob.answer.map(|answer| answer.ship), Some("when it is large".to_owned()));
    assert_eq!(ann.answer, None);
    assert_ne!(ann.checks.last(), bob.checks.last());
    // A third one later costs no grade either.
    school.hand_in("dot", "same");
    school.choices.lanes = 1;
    assert_eq!(school.batch().0.len(), 0);
    assert_eq!(report(&school, "dot").verdict, Verdict::Pass);
}

#[test]
fn a_folder_with_nothing_in_it_fails_at_source() {
    let school = School::of(&[("ann", "right")]);
    std::fs::create_dir(school.class().join("bob")).unwrap();
    let (_, code, summary) = school.batch();
    assert_eq!(code, ExitCode::Passed);
    assert_eq!(summary.submissions[1].failing_check, Some(CheckId::Source));
    let reason = summary.submissions[1].reason.clone().unwrap();
    assert!(reason.contains("no heat.cu"), "{reason}");
    assert!(Path::new(&school.out()).join("reports/bob.json").exists());
}

#[test]
fn without_room_for_a_report_nothing_more_is_begun_and_nothing_is_lost() {
    let mut school = School::of(&[("ann", "a"), ("bob", "b"), ("cy", "c"), ("dot", "d")]);
    school.choices.lanes = 1;
    std::fs::create_dir_all(school.out().join("ledger")).unwrap();
    // A device that is always full.
    let ledger = school.out().join("ledger/bob.json");
    std::os::unix::fs::symlink("/dev/full", &ledger).unwrap();
    let (graded, code, summary) = school.batch();
    assert_eq!((graded.join(" "), code), ("ann bob".to_owned(), ExitCode::Ungraded));
    assert_eq!((summary.counts.pass, summary.counts.ungraded, summary.counts.not_graded), (1, 1, 2));
    let reason = summary.submissions[1].reason.clone().unwrap();
    assert!(
        reason.ends_with("could not be written: ledger/bob.json: the disk is full")
            || reason.ends_with("bob.json: the disk is full"),
        "{reason}"
    );
    std::fs::remove_file(&ledger).unwrap();
    let (graded, code, summary) = school.batch();
    assert_eq!((graded.join(" "), code), ("bob cy dot".to_owned(), ExitCode::Passed));
    assert_eq!(summary.counts.pass, 4);
}
