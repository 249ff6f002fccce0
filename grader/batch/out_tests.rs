use super::*;
use crate::exit_code::ExitCode;

fn out() -> (tempfile::TempDir, Out) {
    let folder = tempfile::tempdir().unwrap();
    let out = Out::open(&folder.path().join("out")).unwrap().unwrap();
    (folder, out)
}

fn report(verdict: Verdict) -> Report {
    Report { verdict, ..Report::of_error("x", ExitCode::Ungraded) }
}

#[test]
fn a_report_is_believed_until_it_is_torn_or_edited() {
    let (_folder, out) = out();
    assert!(out.put("ann", "k", "c", &report(Verdict::Pass)).unwrap());
    assert_eq!(out.kept("ann").unwrap().entry.key, "k");
    let path = out.folder.join("reports/ann.json");
    let whole = fs::read_to_string(&path).unwrap();
    for damage in [whole.replace("pass", "fail"), whole[..whole.len() / 2].to_owned(), String::new()] {
        fs::write(&path, damage).unwrap();
        assert!(out.kept("ann").is_none());
    }
    fs::write(&path, &whole).unwrap();
    assert!(out.kept("ann").is_some());
    fs::write(out.folder.join("ledger/ann.json"), "{").unwrap();
    assert!(out.kept("ann").is_none() && out.kept("nobody").is_none());
}

#[test]
fn nothing_that_decides_nothing_destroys_a_verdict() {
    let (_folder, out) = out();
    out.put("ann", "k1", "c1", &report(Verdict::Pass)).unwrap();
    assert!(!out.put("ann", "k2", "c1", &report(Verdict::Ungraded)).unwrap());
    assert_eq!(out.kept("ann").unwrap().report.verdict, Verdict::Pass);
    assert!(out.put("ann", "k3", "c2", &report(Verdict::Ungraded)).unwrap());
    assert_eq!(out.kept("ann").unwrap().report.verdict, Verdict::Ungraded);
    assert!(fs::read_to_string(out.folder.join("earlier/ann.json")).unwrap().contains("\"pass\""));
    assert!(out.put("ann", "k3", "c2", &report(Verdict::Fail)).unwrap());
}

#[test]
fn who_left_the_class_makes_way_and_comes_back_to_the_same_report() {
    let (_folder, out) = out();
    let learners = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    for (learner, verdict) in [("ann", Verdict::Pass), ("bob", Verdict::Fail), ("cy", Verdict::Ungraded)] {
        out.put(learner, "k", "c", &report(verdict)).unwrap();
    }
    fs::write(out.folder.join("reports/dot.json"), "torn").unwrap();
    let read = |name: &str| fs::read_to_string(out.folder.join(name)).unwrap();
    let (bob, cy) = (read("reports/bob.json"), read("reports/cy.json"));
    assert_eq!(out.retain(&learners(&["ann"])).unwrap(), ["bob", "cy", "dot"]);
    assert_eq!(out.retain(&learners(&["ann"])).unwrap().len(), 0);
    assert!(out.kept("ann").is_some() && out.kept("bob").is_none());
    assert_eq!((read("earlier/bob.json"), read("earlier/cy.json"), read("earlier/dot.json")), (bob, cy, "torn".into()));
    // A class that was mistyped costs nothing; what is torn or was edited does not come back.
    fs::write(out.folder.join("earlier/cy.json"), "edited").unwrap();
    out.recall(["ann", "bob", "cy", "dot", "eve"].into_iter()).unwrap();
    assert_eq!(out.kept("bob").unwrap().report.verdict, Verdict::Fail);
    assert!(out.kept("cy").is_none() && out.kept("dot").is_none() && out.folder.join("earlier/dot.json").exists());
    // Nothing that lies there is written over.
    out.put("cy", "k", "c", &report(Verdict::Pass)).unwrap();
    out.retain(&learners(&["ann", "bob"])).unwrap();
    assert_eq!(read("earlier/cy.2.json"), "edited");
    assert!(read("earlier/cy.json").contains("\"pass\""));
}

#[test]
fn the_seed_is_drawn_once() {
    let (_folder, out) = out();
    let seed = out.seed(None).unwrap();
    assert_eq!(out.seed(None).unwrap(), seed);
    assert_eq!((out.seed(Some(7)).unwrap(), out.seed(None).unwrap()), (7, 7));
    fs::write(out.folder.join(BATCH), "{}").unwrap();
    assert!(out.seed(None).is_err() && out.seed(Some(7)).is_ok());
}

#[test]
fn two_batches_never_write_to_one_folder_and_leavings_are_swept() {
    let (folder, out) = out();
    let path = folder.path().join("out");
    assert!(Out::open(&path).unwrap().unwrap_err().contains("another batch"));
    fs::write(path.join("reports/.heat-grader-abc"), "half").unwrap();
    drop(out);
    Out::open(&path).unwrap().unwrap();
    assert!(!path.join("reports/.heat-grader-abc").exists());
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(Out::open(&folder.path().join("file")).unwrap().unwrap_err().contains("is a file"));
}
