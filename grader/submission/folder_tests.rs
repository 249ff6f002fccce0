//! One learner's folder as `check` and `grade` are given it.

use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn fault(files: &[(&str, &str)]) -> String {
    source::read(folder(files).path()).unwrap_err().to_string()
}

#[test]
fn the_one_program_further_down_is_taken_and_told() {
    let root = folder(&[("hw/3/heat.cu", "a"), ("hw/3/answer.md", "rows"), ("notes/x.txt", "")]);
    let read = source::read(root.path()).unwrap();
    assert_eq!(
        (&*read.text, read.answer_md.as_deref(), read.inside.as_deref()),
        ("a", Some("rows"), Some("hw/3/heat.cu"))
    );
    assert_eq!((read.path.as_path(), read.name), (root.path(), folder_name(root.path())));
    let top = folder(&[("heat.cu", "top"), ("old/heat.cu", "never looked at")]);
    let read = source::read(top.path()).unwrap();
    assert_eq!((&*read.text, read.inside), ("top", None));
}

#[test]
fn a_class_is_told_from_a_submission_in_one_sentence() {
    for class in [
        [("ann/heat.cu", "a"), ("bob/heat.cu", "b")],
        [("ann_1_heat.cu", "a"), ("bob_2_heat.cu", "b")],
        [("ann/hw.zip", "a"), ("bob/hw.zip", "b")],
        [("ann/heat.cu", "a"), ("bob_2_heat.cu", "b")],
    ] {
        let said = fault(&class);
        assert!(said.starts_with("the folder looks like a class, with several programs: ann"), "{said}");
        assert!(said.contains("`heat-grader batch` grades a class") && !said.contains(". "), "{said}");
    }
}

#[test]
fn what_lies_there_instead_is_named_and_how_much_more() {
    let said = fault(&[("a.7z", ""), ("b.docx", ""), ("c/d.rar", ""), ("e.txt", ""), ("f.pdf", ""), (".hidden", "")]);
    assert_eq!(
        said,
        "the folder has no heat.cu (it has a.7z, b.docx, c/d.rar, e.txt, 1 more); hand in heat.cu, by itself or in a .zip, .tar or .tar.gz"
    );
    assert!(fault(&[("a.txt", ""), ("z.cu", "")]).ends_with("(it has z.cu, a.txt); name the program heat.cu"));
}

#[test]
fn folders_that_are_too_deep_to_be_looked_into_are_told() {
    let root = folder(&[("1/2/3/4/5/6/7/8/heat.cu", "a")]);
    assert_eq!(source::read(root.path()).unwrap().text, "a");
    let said = fault(&[("1/2/3/4/5/6/7/8/9/heat.cu", "a")]);
    assert_eq!(said, "the folder has no heat.cu (looked 8 folders deep); put it further up");
}

#[test]
fn as_deep_in_an_archive_as_on_a_disk() {
    let packed = |path: &str| {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        tar.append_data(&mut header, path, &b"a"[..]).unwrap();
        let nodes = super::super::handed::of_archive(&tar.into_inner().unwrap(), archive::Kind::Tar).unwrap();
        find(&nodes[0]).read()
    };
    assert_eq!(packed("ann/1/2/3/4/5/6/7/8/heat.cu").unwrap().text, "a");
    let far = (1..40).map(|at| format!("{at}/")).collect::<String>();
    for path in ["ann/1/2/3/4/5/6/7/8/9/heat.cu", &format!("ann/{far}heat.cu")] {
        assert!(packed(path).unwrap_err().to_string().contains("looked 8 folders deep"), "{path}");
    }
}

#[test]
fn a_heat_cu_that_is_a_folder_is_none() {
    assert!(fault(&[("heat.cu/heat.cu", "a")]).contains("heat.cu is a folder"));
    let nested = folder(&[("hw/heat.cu/x", "a")]);
    assert!(source::read(nested.path()).unwrap_err().to_string().contains("is a folder"));
}
