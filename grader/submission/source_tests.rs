//! Folders and bare files as they are handed in.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

fn folder_with(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).expect("a file");
    }
    folder
}

fn fault(path: &Path) -> SourceFault {
    match read(path) {
        Err(ReadError::Source(fault)) => fault,
        other => panic!("expected a source fault, got {other:?}"),
    }
}

#[test]
fn a_folder_gives_its_text_name_hash_and_answer() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("Zoë \"the\" first's");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("heat.cu"), b"\xEF\xBB\xBFint a;\r\nint b;\r\n").expect("a file");
    fs::write(folder.join("answer.md"), "rows: 1").expect("a file");
    let submission = read(&folder).expect("a submission");
    assert_eq!(submission.text, "int a;\nint b;\n");
    assert_eq!(submission.name, "Zoë \"the\" first's");
    assert_eq!(submission.sha256.len(), 64);
    assert_eq!(submission.answer_md.as_deref(), Some("rows: 1"));
}

#[test]
fn a_bare_file_leaves_the_answer_beside_it_alone() {
    let folder = folder_with(&[("mine.cu", b"int a; // \xE9"), ("answer.md", b"rows: 1")]);
    let submission = read(&folder.path().join("mine.cu")).expect("a submission");
    assert_eq!((submission.name.as_str(), submission.answer_md), ("mine", None));
    assert!(submission.text.ends_with('\u{FFFD}'));
}

#[test]
fn what_was_typed_wrong_is_a_usage_error() {
    let folder = folder_with(&[("notes.txt", b"x")]);
    for path in ["nothing", "notes.txt", "nothing.cu"] {
        let result = read(&folder.path().join(path));
        assert!(matches!(result, Err(ReadError::Usage(_))), "{path}: {result:?}");
    }
}

#[test]
fn a_file_of_two_bytes_a_character_is_told_how_to_be_saved() {
    let text = "__global__ void two(const float* in, float* out, int n, float r) {}";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let marked = [&[0xff, 0xfe][..], &little].concat();
    for bytes in [&little, &big, &marked] {
        let folder = folder_with(&[("heat.cu", bytes)]);
        assert_eq!(
            fault(folder.path()).to_string(),
            "heat.cu is saved as UTF-16; save it as UTF-8 and hand it in again"
        );
    }
}

#[test]
fn files_that_are_no_source_fail_at_source() {
    let large = vec![b' '; SOURCE_CAP as usize + 1];
    let cases: [(&[u8], &str); 4] =
        [(b"", "empty"), (b" \n\t", "empty"), (b"int\0a", "byte 3 is NUL"), (&large, "larger than")];
    for (bytes, expected) in cases {
        let folder = folder_with(&[("heat.cu", bytes)]);
        assert!(fault(folder.path()).to_string().contains(expected), "{expected}");
    }
    let folder = folder_with(&[("main.cu", b"int a;")]);
    assert!(fault(folder.path()).to_string().contains("it has main.cu"));
}

#[test]
fn links_pipes_and_folders_are_refused_without_waiting() {
    let folder = folder_with(&[("real.cu", b"int a;")]);
    let heat = folder.path().join("heat.cu");
    symlink(folder.path().join("real.cu"), &heat).expect("a link");
    assert!(fault(folder.path()).to_string().contains("a link"));
    for target in ["/etc/passwd", "nowhere", "heat.cu", "/dev/zero", "."] {
        fs::remove_file(&heat).expect("removed");
        symlink(target, &heat).expect("a link");
        assert!(fault(folder.path()).to_string().starts_with("heat.cu is a link;"), "{target}");
        assert!(fault(&heat).to_string().starts_with("heat.cu is a link;"), "{target}");
    }
    fs::remove_file(&heat).expect("removed");
    fs::create_dir(&heat).expect("a folder");
    assert!(fault(folder.path()).to_string().contains("a folder"));
    fs::remove_dir(&heat).expect("removed");
    let made = std::process::Command::new("mkfifo").arg(&heat).status();
    if made.is_ok_and(|status| status.success()) {
        assert!(fault(folder.path()).to_string().contains("a pipe"));
    }
}

#[test]
fn an_unreadable_file_is_the_submissions_fault() {
    let folder = folder_with(&[("heat.cu", b"int a;")]);
    let heat = folder.path().join("heat.cu");
    fs::set_permissions(&heat, fs::Permissions::from_mode(0o0)).expect("permissions");
    if File::open(&heat).is_err() {
        assert!(matches!(fault(folder.path()), SourceFault::Unreadable { .. }));
    }
}

#[test]
fn a_bad_answer_is_noted_and_left_out() {
    let folder = folder_with(&[("heat.cu", b"int a;"), ("answer.md", b"\0")]);
    let submission = read(folder.path()).expect("a submission");
    assert_eq!(submission.answer_md, None);
    assert!(submission.answer_note.is_some_and(|note| note.contains("answer.md")));
}

#[test]
fn a_linked_answer_is_left_out_with_a_note() {
    let folder = folder_with(&[("heat.cu", b"int a;")]);
    symlink("/etc/passwd", folder.path().join("answer.md")).expect("a link");
    let submission = read(folder.path()).expect("a submission");
    assert_eq!(submission.answer_md, None);
    assert!(submission.answer_note.is_some_and(|note| note.contains("a link")));
}

#[test]
fn a_linked_archive_is_refused() {
    let folder = folder_with(&[("heat.cu", b"int a;")]);
    for target in ["nowhere", "heat.cu"] {
        let link = folder.path().join("hw.zip");
        symlink(target, &link).expect("a link");
        assert!(fault(&link).to_string().starts_with("hw.zip is a link;"), "{target}");
        fs::remove_file(&link).expect("removed");
    }
}
