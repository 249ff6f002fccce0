use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::batch::summary::Facts;
use crate::judge::plan::Scope;
use crate::verdict::{Check, CheckId, Status};

/// Folders of results, made up.
struct Shards(tempfile::TempDir);

fn facts() -> Facts {
    Facts { folder: "class".into(), scope: Scope::Full, strict: false, ignored: vec!["README.md".into()] }
}

fn report(verdict: Verdict, seconds: f64) -> Report {
    let status = |id: CheckId| match verdict {
        Verdict::Fail if id == CheckId::Values => Status::Fail,
        Verdict::Ungraded if id == CheckId::Values => Status::Skip,
        _ => Status::Pass,
    };
    let checks = CheckId::ALL.into_iter().map(|id| Check::new(id, status(id), "made up")).collect();
    let durations = Durations { total: seconds, ..Durations::default() };
    let report = Report { durations, ..Report::blank() }.with_checks(checks);
    assert_eq!(report.verdict, verdict);
    report
}

const CLASS_OF: [&str; 4] = ["ann", "bob", "cy", "dot"];

impl Shards {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A shard with these reports: learner, content and report.
    fn shard(&self, name: &str, seed: u64, reports: &[(&str, &str, Report)]) {
        let out = Out::open(&self.path(name)).unwrap().unwrap();
        out.seed(Some(seed)).unwrap();
        for (learner, content, report) in reports {
            assert!(out.put(learner, "key", content, report).unwrap());
        }
        let own = |learner: &str| {
            let (_, content, _) = reports.iter().find(|(own, ..)| *own == learner)?;
            Some(Own { content: (*content).to_owned(), bytes: Some((*content).to_owned()), kernel: None, note: None })
        };
        let listed =
            |learner: &str| Listed { learner: learner.into(), path: format!("class/{learner}"), own: own(learner) };
        let roster = Roster::of(&facts(), CLASS_OF.into_iter().map(listed).collect());
        out.write(CLASS, Roster { shard: Some(name.into()), ..roster }.render().unwrap().as_bytes()).unwrap();
    }

    fn merge(&self, folders: &[&str]) -> Summary {
        self.merged(folders).summary
    }

    fn merged(&self, folders: &[&str]) -> Merged {
        let folders: Vec<PathBuf> = folders.iter().map(|name| self.path(name)).collect();
        let (sources, seed) = look(&folders).unwrap();
        assert_eq!(occupied(&self.path("out")), None);
        let out = Out::open(&self.path("out")).unwrap().unwrap();
        out.seed(Some(seed)).unwrap();
        merge(&sources, &Known::default(), &out).unwrap()
    }
}

/// Learners with their verdicts.
fn verdicts(summary: &Summary) -> Vec<(&str, Option<Verdict>)> {
    summary.submissions.iter().map(|row| (row.learner.as_str(), row.verdict)).collect()
}

/// Every file below a folder with its bytes, but for the page, which has the time of day in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if !path.ends_with("index.html") {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

const PASS: Option<Verdict> = Some(Verdict::Pass);
const FAIL: Option<Verdict> = Some(Verdict::Fail);

#[test]
fn shards_become_one_class_and_whoever_is_missing_is_told() {
    let shards = Shards::new();
    shards.shard("a", 7, &[("ann", "1", report(Verdict::Pass, 1.0)), ("cy", "3", report(Verdict::Fail, 1.0))]);
    shards.shard("b", 7, &[("bob", "1", report(Verdict::Pass, 1.0))]);
    let inputs = (files(&shards.path("a")), files(&shards.path("b")));
    let merged = shards.merged(&["a", "b"]);
    assert_eq!(merged.exit_code(), ExitCode::Ungraded);
    let summary = merged.summary;
    assert_eq!(verdicts(&summary), [("ann", PASS), ("bob", PASS), ("cy", FAIL), ("dot", None)]);
    assert_eq!((summary.counts.not_graded, summary.complete), (1, false));
    assert_eq!(summary.submissions[3].path, "class/dot");
    assert_eq!(summary.ignored, ["README.md"]);
    // The same file in two shards is a group all the same.
    assert_eq!(summary.groups[0].learners, ["ann", "bob"]);
    let out = shards.path("out");
    for name in ["summary.json", "summary.csv", "junit.xml", "index.html", "batch.json", "reports/ann.json"] {
        assert!(out.join(name).is_file(), "{name}");
    }
    assert_eq!(fs::read(out.join("reports/cy.json")).unwrap(), fs::read(shards.path("a/reports/cy.json")).unwrap());

    let before = files(&out);
    shards.merge(&["a", "b"]);
    assert_eq!(files(&out), before, "merging again changes something");
    // The result can be merged in its turn, and no input has changed.
    shards.shard("c", 7, &[("dot", "4", report(Verdict::Fail, 1.0))]);
    fs::rename(&out, shards.path("ab")).unwrap();
    let merged = shards.merged(&["c", "ab"]);
    assert_eq!(verdicts(&merged.summary), [("ann", PASS), ("bob", PASS), ("cy", FAIL), ("dot", FAIL)]);
    assert_eq!((merged.exit_code(), merged.summary.groups.len()), (ExitCode::Passed, 1));
    assert_eq!((files(&shards.path("a")), files(&shards.path("b"))), inputs);
}

#[test]
fn of_two_reports_a_verdict_counts_then_the_folder_named_first() {
    let shards = Shards::new();
    let (pass, fail, ungraded) =
        (report(Verdict::Pass, 1.0), report(Verdict::Fail, 1.0), report(Verdict::Ungraded, 1.0));
    let again = report(Verdict::Pass, 2.0);
    shards.shard("a", 7, &[("ann", "1", pass.clone()), ("bob", "2", ungraded), ("cy", "3", pass), ("dot", "4", again)]);
    let other = report(Verdict::Pass, 3.0);
    shards.shard(
        "b",
        7,
        &[("ann", "1", fail.clone()), ("bob", "2", fail.clone()), ("cy", "5", fail), ("dot", "4", other)],
    );
    let summary = shards.merge(&["a", "b"]);
    assert_eq!(verdicts(&summary), [("ann", PASS), ("bob", FAIL), ("cy", PASS), ("dot", PASS)]);
    let note = |summary: &Summary, at: usize| summary.submissions[at].note.clone().unwrap_or_default();
    assert!(note(&summary, 0).contains("b has a different report (fail at values); the one in "), "{summary:?}");
    assert!(note(&summary, 1).contains("a has a different report (ungraded)"));
    assert!(note(&summary, 2).contains("about another version"));
    // Durations are no difference.
    assert_eq!(note(&summary, 3), "");
    let summary = shards.merge(&["b", "a"]);
    assert_eq!(verdicts(&summary), [("ann", FAIL), ("bob", FAIL), ("cy", FAIL), ("dot", PASS)]);
}

#[test]
fn a_report_that_is_not_as_it_was_written_is_not_taken_and_an_earlier_result_is_put_aside() {
    let shards = Shards::new();
    shards.shard("a", 7, &[("ann", "1", report(Verdict::Fail, 1.0)), ("bob", "2", report(Verdict::Pass, 1.0))]);
    shards.merge(&["a"]);
    let path = shards.path("a/reports/ann.json");
    let whole = fs::read_to_string(&path).unwrap();
    for damage in [whole.replace("\"fail\"", "\"pass\""), whole[..whole.len() / 2].to_owned()] {
        fs::write(&path, damage).unwrap();
        let summary = shards.merge(&["a"]);
        assert_eq!(verdicts(&summary)[..2], [("ann", None), ("bob", PASS)]);
        let note = summary.submissions[0].note.clone().unwrap();
        assert!(note.contains("not as it was written") && note.contains("/a "), "{note}");
        assert!(!shards.path("out/reports/ann.json").exists() && !shards.path("out/ledger/ann.json").exists());
        assert_eq!(fs::read_to_string(shards.path("out/earlier/ann.json")).unwrap(), whole);
    }
    // Another folder has a whole one.
    shards.shard("b", 7, &[("ann", "1", report(Verdict::Fail, 1.0))]);
    let summary = shards.merge(&["a", "b"]);
    assert_eq!(verdicts(&summary)[0], ("ann", FAIL));
    assert!(summary.submissions[0].note.as_ref().is_some_and(|note| note.contains("not as it was written")));
}

#[test]
fn folders_that_do_not_belong_together_are_refused_by_name() {
    let shards = Shards::new();
    shards.shard("a", 7, &[("ann", "1", report(Verdict::Pass, 1.0))]);
    shards.shard("other_seed", 8, &[("bob", "1", report(Verdict::Pass, 1.0))]);
    shards.shard("strict", 7, &[]);
    let strict = Roster { strict: true, ..Roster::read(&shards.path("strict")).unwrap().unwrap() };
    fs::write(shards.path("strict/class.json"), strict.render().unwrap()).unwrap();
    shards.shard("torn", 7, &[]);
    fs::write(shards.path("torn/class.json"), "{").unwrap();
    fs::create_dir(shards.path("empty")).unwrap();
    crate::batch::out::prepare(&shards.path("waiting"), 7).unwrap();
    let refused = |names: &[&str]| look(&names.iter().map(|name| shards.path(name)).collect::<Vec<_>>()).unwrap_err();
    for (name, why) in [
        ("other_seed", "another seed"),
        ("strict", "other options"),
        ("torn", "torn"),
        ("empty", "no folder of results"),
        ("nowhere", "is no folder"),
    ] {
        let said = refused(&["a", name]);
        assert!(said.contains(why) && said.contains(name), "{said}");
    }
    assert!(refused(&["waiting"]).contains("nothing was graded"));
    // One that has not begun is no hindrance, and one named twice is one.
    assert_eq!(shards.merge(&["a", "waiting", "a"]).submissions[0].note, None);
    assert!(occupied(&shards.path("a")).unwrap().contains("own results"));
    assert!(occupied(&shards.path("out")).is_none() && occupied(&shards.path("nowhere")).is_none());
}

#[test]
fn of_a_class_that_is_known_nothing_older_is_taken_and_what_is_lost_has_its_reason() {
    let shards = Shards::new();
    let pass = report(Verdict::Pass, 1.0);
    shards.shard("a", 7, &[("ann", "1", pass.clone()), ("bob", "2", pass.clone()), ("cy", "3", pass)]);
    let (sources, _) = look(&[shards.path("a")]).unwrap();
    let listed = |learner: &str, content: &str| {
        let own = Own { content: content.into(), bytes: Some("digest".into()), kernel: None, note: None };
        Listed { learner: learner.into(), path: format!("class/{learner}.cu"), own: Some(own) }
    };
    // Bob has handed in anew, cy has left, dot's node was lost.
    let class = Roster::of(&facts(), vec![listed("ann", "1"), listed("bob", "22"), listed("dot", "4")]);
    let why = "its shard did not come back: /tmp/secret/x".to_owned();
    let lost = BTreeMap::from([("dot".to_owned(), why)]);
    let out = Out::open(&shards.path("out")).unwrap().unwrap();
    let doubts =
        BTreeMap::from([("ann", "perhaps"), ("dot", "perhaps")].map(|(one, why)| (one.to_owned(), why.to_owned())));
    let summary = merge(&sources, &Known { class: Some(class), lost, doubts }, &out).unwrap().summary;
    assert_eq!([0, 2].map(|at| summary.submissions[at].note.as_deref()), [Some("perhaps"), None]);
    assert_eq!(verdicts(&summary), [("ann", PASS), ("bob", None), ("dot", Some(Verdict::Ungraded))]);
    assert!(summary.submissions[1].note.as_ref().is_some_and(|note| note.contains("earlier version")));
    let reason = summary.submissions[2].reason.clone().unwrap();
    assert!(reason.contains("did not come back") && !reason.contains("secret"), "{reason}");
    let written: Report = serde_json::from_slice(&fs::read(shards.path("out/reports/dot.json")).unwrap()).unwrap();
    let submission = written.submission.unwrap();
    assert_eq!((submission.name.as_str(), submission.sha256.as_deref()), ("dot.cu", Some("digest")));
}

#[test]
fn a_shards_note_on_a_report_comes_along_and_so_does_its_exit_code() {
    let shards = Shards::new();
    let all = CLASS_OF.map(|learner| (learner, learner, report(Verdict::Pass, 1.0)));
    shards.shard("a", 7, &all);
    let before = shards.merged(&["a"]);
    assert_eq!(before.exit_code(), ExitCode::Passed);
    let mut summary = before.summary;
    summary.submissions[1].note = Some("graded again to no end".to_owned());
    let mut roster = Roster::read(&shards.path("a")).unwrap().unwrap();
    assert!(roster.note(&summary) && !roster.note(&summary));
    fs::write(shards.path("a/class.json"), roster.render().unwrap()).unwrap();
    let merged = shards.merged(&["a"]);
    // As the shard itself ended: nobody may take the earlier verdict for a new one unseen.
    assert_eq!((merged.exit_code(), merged.summary.counts.pass), (ExitCode::Ungraded, 4));
    assert_eq!(merged.summary.submissions[1].note.as_deref(), Some("graded again to no end"));
    assert_eq!(merged.summary.submissions[0].note, None);
    // And through a second merge.
    fs::rename(shards.path("out"), shards.path("a2")).unwrap();
    assert_eq!(shards.merged(&["a2"]).exit_code(), ExitCode::Ungraded);
}
