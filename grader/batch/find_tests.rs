//! Layouts that instructors have, and what hostile names and archives make of them.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::find::{Class, Handed, find};
use crate::submission::ReadError;

const PROGRAM: &str = "__global__ void k(const float* in, float* out, int n, float r) {}\n";

/// A folder with these files; names that end in `/` are folders.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fill(root.path(), files);
    root
}

fn fill(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in files {
        if name.ends_with('/') {
            zip.add_directory(*name, options).unwrap();
        } else {
            zip.start_file(*name, options).unwrap();
            zip.write_all(bytes).unwrap();
        }
    }
    zip.finish().unwrap().into_inner()
}

fn found(root: &Path) -> Class {
    find(root, &root.join("out")).unwrap().unwrap()
}

/// The text and the answer, or why there is none.
type Outcome = Result<(String, Option<String>), String>;

/// Each learner with what can be read.
fn read(class: &Class) -> Vec<(String, Outcome)> {
    let one = |handed: &Handed| match handed.read() {
        Ok(read) => Ok((read.text, read.answer_md)),
        Err(ReadError::Source(fault)) => Err(fault.to_string()),
        Err(other) => panic!("{other}"),
    };
    class.submissions.iter().map(|handed| (handed.learner.clone(), one(handed))).collect()
}

fn learners(class: &Class) -> Vec<&str> {
    class.submissions.iter().map(|handed| handed.learner.as_str()).collect()
}

fn right(text: &str, answer: Option<&str>) -> Outcome {
    Ok((text.to_owned(), answer.map(str::to_owned)))
}

#[test]
fn a_folder_a_learner() {
    let root = folder(&[
        ("ann/heat.cu", "a"),
        ("ann/answer.md", "rows"),
        ("ann/old/heat.cu", "never looked at"),
        ("bob/hw3/heat.cu", "b"),
        ("bob/hw3/answer.md", "bobs"),
        ("cy/", ""),
        ("dot/mine.cu", "d"),
        ("eve/one/heat.cu", "1"),
        ("eve/two/heat.cu", "2"),
        ("flo/flo_1_heat.cu", "f"),
        (".git/heat.cu", "no"),
        ("README.md", "read me"),
        ("__MACOSX/ann/._heat.cu", "no"),
    ]);
    let class = found(root.path());
    let read = read(&class);
    assert_eq!(learners(&class), ["ann", "bob", "cy", "dot", "eve", "flo"]);
    assert_eq!(read[0].1, right("a", Some("rows")));
    assert_eq!(read[1].1, right("b", Some("bobs")));
    let fault = |at: usize| read[at].1.clone().unwrap_err();
    assert!(fault(2).contains("the folder has no heat.cu; hand in heat.cu"), "{}", fault(2));
    assert!(fault(3).contains("no heat.cu (it has mine.cu)"), "{}", fault(3));
    assert!(fault(4).contains("several programs: one/heat.cu, two/heat.cu"), "{}", fault(4));
    assert_eq!(read[5].1, right("f", None));
    assert_eq!(class.ignored, [".git", "README.md", "__MACOSX"]);
}

#[test]
fn flat_files_with_answers_by_name_or_by_number() {
    let root = folder(&[
        ("ann_12345_heat.cu", "a"),
        ("ann_12345_answer.md", "anns"),
        ("smithbob_7_901_heat.cu", "b"),
        ("smithbob_7_902_answer.md", "bobs"),
        ("cy.cu", "c"),
        ("notes.txt", ""),
        ("zed_answer.md", "an answer and no program"),
    ]);
    let class = found(root.path());
    assert_eq!(learners(&class), ["ann_12345", "cy", "smithbob_7_901", "zed"]);
    let read = read(&class);
    assert_eq!(read[0].1, right("a", Some("anns")));
    assert_eq!((&read[1].1, &read[2].1), (&right("c", None), &right("b", Some("bobs"))));
    assert_eq!(class.ignored, ["notes.txt"]);
}

#[test]
fn a_learners_own_archive_on_disk_and_in_the_archive_of_the_class() {
    let own = zip(&[("hw/heat.cu", b"z"), ("hw/answer.md", b"mine")]);
    let root = tempfile::tempdir().unwrap();
    fill(root.path(), &[("ann/heat.cu", "a"), ("bob/", ""), ("flat/", "")]);
    fs::write(root.path().join("bob/homework.zip"), &own).unwrap();
    fs::write(root.path().join("cy_9_heat.zip"), &own).unwrap();
    let class = found(root.path());
    assert_eq!(learners(&class), ["ann", "bob", "cy_9", "flat"]);
    let from_disk = read(&class);
    assert_eq!((&from_disk[1].1, &from_disk[2].1), (&right("z", Some("mine")), &right("z", Some("mine"))));

    let packed = zip(&[
        ("class/ann/heat.cu", b"a"),
        ("class/ann/answer.md", b"anns"),
        ("class/ann/old/heat.cu", b"never looked at"),
        ("class/bob/homework.zip", &own),
        ("class/cy_9_heat.zip", &own),
        ("class/dot/deep/heat.cu", b"d"),
        ("class/eve/", b""),
        ("class/flo/flo.cu", b"f"),
        ("class/gil/broken.zip", b"PK\x03\x04"),
        ("class/hal_1_heat.cu", b"h"),
        ("class/hal_1_answer.md", b"hals"),
        ("class/.DS_Store", b"x"),
        ("__MACOSX/class/._ann", b"x"),
    ]);
    let file = root.path().join("class.zip");
    fs::write(&file, packed).unwrap();
    let class = found(&file);
    assert_eq!(learners(&class), ["ann", "bob", "cy_9", "dot", "eve", "flo", "gil", "hal_1"]);
    let read = read(&class);
    assert_eq!(read[0].1, right("a", Some("anns")));
    assert_eq!((&read[1].1, &read[2].1), (&right("z", Some("mine")), &right("z", Some("mine"))));
    assert_eq!(read[3].1, right("d", None));
    assert!(read[4].1.clone().unwrap_err().contains("the folder has no heat.cu"));
    assert!(read[5].1.clone().unwrap_err().contains("it has flo.cu"));
    assert!(read[6].1.clone().unwrap_err().contains("broken.zip is damaged"));
    assert_eq!(read[7].1, right("h", Some("hals")));
    assert_eq!(class.ignored, [".DS_Store"]);
    assert!(class.submissions[1].path.ends_with("class.zip/class/bob"));
}

#[test]
fn the_archive_of_a_flat_class_and_one_in_a_folder_of_its_own() {
    let packed = zip(&[("ann_heat.cu", b"a"), ("bob_heat.cu", b"b"), ("bob_answer.md", b"bobs")]);
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("download.zip"), packed).unwrap();
    for place in [root.path().join("download.zip"), root.path().to_owned()] {
        let class = found(&place);
        assert_eq!(learners(&class), ["ann", "bob"]);
        assert_eq!(read(&class)[1].1, right("b", Some("bobs")));
    }
    let lone = folder(&[]);
    fs::write(lone.path().join("ann.zip"), zip(&[("hw/heat.cu", b"a")])).unwrap();
    assert_eq!(learners(&found(lone.path())), ["ann"]);
}

#[test]
fn a_tar_with_a_link_in_it_spoils_one_submission_only() {
    let mut tar = tar::Builder::new(Vec::new());
    let mut file = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes).unwrap();
    };
    file("ann/heat.cu", b"a");
    file("cy/heat.cu", b"c");
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "bob/heat.cu", "/etc/passwd").unwrap();
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("class.tar");
    fs::write(&file, tar.into_inner().unwrap()).unwrap();
    let class = found(&file);
    let read = read(&class);
    assert_eq!(learners(&class), ["ann", "bob", "cy"]);
    assert!(read[1].1.clone().unwrap_err().contains("a link"), "{:?}", read[1]);
    assert_eq!((&read[0].1, &read[2].1), (&right("a", None), &right("c", None)));
}

#[test]
fn no_link_is_followed() {
    let root = folder(&[("ann/heat.cu", "a"), ("real/heat.cu", "r")]);
    let secret = folder(&[("heat.cu", "secret"), ("x.cu", "secret")]);
    let link =
        |to: &str, name: &str| std::os::unix::fs::symlink(secret.path().join(to), root.path().join(name)).unwrap();
    link("", "bob");
    link("x.cu", "cy.cu");
    fs::create_dir(root.path().join("dot")).unwrap();
    link("heat.cu", "dot/heat.cu");
    let class = found(root.path());
    let read = read(&class);
    assert_eq!(learners(&class), ["ann", "cy", "dot", "real"]);
    assert!(read[1].1.clone().unwrap_err().contains("a link") && read[2].1.clone().unwrap_err().contains("a link"));
    assert_eq!(class.ignored, ["bob (a link)"]);
}

#[test]
fn hostile_names_become_plain_and_differ() {
    let root = folder(&[
        ("=cmd|calc/heat.cu", "1"),
        ("cmd calc/heat.cu", "2"),
        ("--force/heat.cu", "3"),
        ("\u{1b}[31mred/heat.cu", "4"),
        ("Ann/heat.cu", "5"),
        ("ann.cu", "6"),
        ("ann_heat.cu", "7"),
    ]);
    let class = found(root.path());
    let mut names: Vec<String> = learners(&class).iter().map(|name| name.to_lowercase()).collect();
    assert_eq!(names.len(), 7);
    for name in &names {
        assert!(
            name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) && !name.starts_with(['-', '.']),
            "{name}"
        );
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 7, "{names:?}");
    let again = found(root.path());
    assert_eq!(learners(&class), learners(&again));
}

#[test]
fn results_are_nobodys_submission() {
    let root = folder(&[("ann/heat.cu", "a"), ("bob/heat.cu", "b"), ("out/", ""), ("old/batch.json", "{}")]);
    fs::create_dir(root.path().join("old/reports")).unwrap();
    let class = found(root.path());
    assert_eq!(learners(&class), ["ann", "bob"]);
    assert_eq!(class.ignored, ["old (results of a batch)", "out (results of a batch)"]);
    // Who graded at home and handed in everything has handed something in.
    fs::write(root.path().join("old/heat.cu"), "c").unwrap();
    assert_eq!(learners(&found(root.path())), ["ann", "bob", "old"]);
}

#[test]
fn results_do_not_go_among_the_submissions() {
    let root = folder(&[("ann/heat.cu", "a")]);
    let reason = find(root.path(), root.path()).unwrap().unwrap_err();
    assert!(reason.contains("--out has to be another folder"), "{reason}");
}

#[test]
fn one_submission_by_itself_is_a_class_of_one() {
    let root = folder(&[("amara/heat.cu", PROGRAM), ("amara/answer.md", "rows")]);
    let class = found(&root.path().join("amara"));
    assert_eq!(learners(&class), ["amara"]);
    assert_eq!(read(&class)[0].1, right(PROGRAM, Some("rows")));
}

#[test]
fn what_is_no_class_is_said_in_a_sentence() {
    let root = folder(&[("empty/notes.txt", ""), ("x.cu", "x"), ("notes.txt", "x")]);
    let said = |path: &Path| find(path, Path::new("out")).unwrap().unwrap_err();
    assert!(said(&root.path().join("nowhere")).contains("does not exist"));
    assert!(said(&root.path().join("empty")).contains("no submission was found"));
    assert!(
        said(&root.path().join("x.cu"))
            .ends_with("no folder and no archive of submissions; `grade` takes one submission")
    );
    assert!(said(&root.path().join("notes.txt")).ends_with("no folder and no archive of submissions"));
    let broken = root.path().join("broken.zip");
    fs::write(&broken, b"PK\x03\x04").unwrap();
    assert!(said(&broken).ends_with("broken.zip is damaged, cut short or no archive; fetch the class's archive again"));
}

#[test]
fn a_folder_with_more_than_anybody_hands_in_fails_by_itself() {
    let root = folder(&[("ann/heat.cu", "a"), ("bob/", "")]);
    for at in 0..=crate::submission::handed::ENTRIES {
        fs::write(root.path().join(format!("bob/{at}")), "").unwrap();
    }
    let class = found(root.path());
    let read = read(&class);
    assert_eq!(read[0].1, right("a", None));
    assert!(read[1].1.clone().unwrap_err().contains("more than 2000 entries"), "{:?}", read[1]);
}

#[test]
fn whoever_handed_in_only_what_no_grader_reads_is_in_the_class_and_fails() {
    let root = folder(&[
        ("ann_12345_heat.cu", "a"),
        ("ann_12345_report.docx", "beside a program"),
        ("bob_22_heat.cpp", "b"),
        ("smithcy_7_901_solution.7z", "c"),
        ("smithcy_7_902_report.docx", "c too"),
        ("hw9_dot_attempt_2026-11-30-12-00-00_heat.rar", "d"),
        ("ann_777_notes.docx", "another Ann"),
        ("eve/solution.7z", "e"),
        ("eve/text/report.docx", "e too"),
        ("eve/.DS_Store", ""),
        ("flo/heat.cu.txt", "f"),
        ("grades_2026_final.csv", ""),
        ("cheat.pdf", ""),
        ("README.md", ""),
    ]);
    let class = found(root.path());
    let expected =
        ["ann_12345", "ann_777", "bob_22", "eve", "flo", "hw9_dot_attempt_2026-11-30-12-00-00", "smithcy_7_901"];
    assert_eq!(learners(&class), expected);
    let read = read(&class);
    assert_eq!(read[0].1, right("a", None));
    let fault = |at: usize| read[at].1.clone().unwrap_err();
    assert_eq!(
        fault(2),
        "bob_22_heat.cpp cannot be read by this grader; hand in heat.cu, by itself or in a .zip, .tar or .tar.gz"
    );
    assert!(fault(6).starts_with("smithcy_7_901_solution.7z, smithcy_7_902_report.docx cannot"), "{}", fault(6));
    assert!(fault(3).contains("no heat.cu (it has solution.7z, text/report.docx); hand in heat.cu"), "{}", fault(3));
    assert!(fault(4).contains("it has heat.cu.txt"), "{}", fault(4));
    assert_eq!(class.ignored, ["README.md", "ann_12345_report.docx", "cheat.pdf", "grades_2026_final.csv"]);
    // A class in which nobody handed in what can be read is one all the same.
    let none = folder(&[("bob_22_heat.cpp", "b")]);
    assert_eq!(learners(&found(none.path())), ["bob_22"]);
}

#[test]
fn what_batch_says_of_a_learners_folder_is_what_grade_says_of_it() {
    let root = folder(&[
        ("ann/hw/heat.cu", "a"),
        ("ann/hw/answer.md", "rows"),
        ("bob/solution.7z", ""),
        ("cy/", ""),
        ("dot/mine.cu", "d"),
        ("eve/one/heat.cu", "1"),
        ("eve/two/heat.cu", "2"),
        ("flo/flo_1_heat.cu", "f"),
        ("gil/1/2/3/4/5/6/7/8/9/heat.cu", "g"),
    ]);
    fs::write(root.path().join("cy/hw.zip"), zip(&[("x/heat.cu", b"c")])).unwrap();
    let class = found(root.path());
    assert_eq!(learners(&class), ["ann", "bob", "cy", "dot", "eve", "flo", "gil"]);
    for handed in &class.submissions {
        let (batch, grade) = (handed.read(), crate::submission::read(&root.path().join(&handed.learner)));
        match (batch, grade) {
            (Ok(batch), Ok(grade)) => {
                assert_eq!(
                    (&batch.text, &batch.answer_md, &batch.inside),
                    (&grade.text, &grade.answer_md, &grade.inside)
                );
                assert_eq!((&batch.name, &grade.name), (&handed.learner, &handed.learner));
                assert!(batch.inside.is_some());
            }
            (Err(batch), Err(grade)) => assert_eq!(batch.to_string(), grade.to_string()),
            (batch, grade) => panic!("{}: {batch:?}, {grade:?}", handed.learner),
        }
    }
}

#[test]
fn names_that_differ_only_where_they_are_no_unicode_stay_apart() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let root = tempfile::tempdir().unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in
        [(&b"ann\xff"[..], "1"), (b"ann\xfe", "2"), (b"flat\xff_heat.cu", "3"), (b"flat\xfe_heat.cu", "4")]
    {
        let path = Path::new(OsStr::from_bytes(name));
        let path = if name.starts_with(b"ann") { path.join("heat.cu") } else { path.to_owned() };
        fs::create_dir_all(root.path().join("class").join(&path).parent().unwrap()).unwrap();
        fs::write(root.path().join("class").join(&path), text).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        header.set_mode(0o644);
        tar.append_data(&mut header, Path::new("class").join(&path), text.as_bytes()).unwrap();
    }
    fs::write(root.path().join("class.tar"), tar.into_inner().unwrap()).unwrap();
    for place in ["class", "class.tar"] {
        let class = found(&root.path().join(place));
        assert_eq!(learners(&class), ["ann_FE", "ann_FF", "flat_FE", "flat_FF"], "{place}");
        let texts: Vec<String> = read(&class).into_iter().map(|(_, outcome)| outcome.unwrap().0).collect();
        assert_eq!(texts, ["2", "1", "4", "3"], "{place}");
    }
    // Whoever is left keeps the name.
    fs::remove_dir_all(root.path().join("class").join(OsStr::from_bytes(b"ann\xfe"))).unwrap();
    assert_eq!(learners(&found(&root.path().join("class")))[0], "ann_FF");
}

#[test]
fn a_line_end_in_a_flat_name_does_not_hide_whose_it_is() {
    let root = folder(&[("ann\nlee_12345_heat.cu", "a"), ("bob_heat.cu", "b")]);
    assert_eq!(learners(&found(root.path())), ["ann_lee_12345", "bob"]);
}
