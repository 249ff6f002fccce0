//! Archives as they are handed in, right ones and hostile ones, each with the sentence it gets.

use std::fs;
use std::io::{Cursor, Write};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::archive::{self, Kind, Limits};
use super::source::{ReadError, SOURCE_CAP};
use super::{Submission, find_answer, read};

const PROGRAM: &[u8] = b"__global__ void k(const float*, float*, int, float) {}\n";

/// Name and bytes of each entry; a name that ends with `/` is a folder.
type Entries<'e> = &'e [(&'e str, &'e [u8])];

pub fn zip_of(entries: Entries) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        writer.start_file(*name, options).expect("an entry");
        writer.write_all(bytes).expect("bytes");
    }
    writer.finish().expect("a zip").into_inner()
}

/// One entry whose name and kind are written as they are, whatever they are.
fn tar_entry(name: &str, kind: EntryType, bytes: &[u8], link: &str) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut entry = header.as_bytes().to_vec();
    entry.extend(bytes);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

pub fn tar_of(entries: Entries) -> Vec<u8> {
    let kind = |name: &str| if name.ends_with('/') { EntryType::Directory } else { EntryType::Regular };
    let mut tar: Vec<u8> = entries.iter().flat_map(|(name, bytes)| tar_entry(name, kind(name), bytes, "")).collect();
    tar.extend([0; 1024]);
    tar
}

pub fn gz_of(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("bytes");
    encoder.finish().expect("a gz")
}

fn handed_in(name: &str, bytes: &[u8]) -> Result<Submission, ReadError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("a file");
    read(&path)
}

fn refused(name: &str, bytes: &[u8]) -> String {
    match handed_in(name, bytes) {
        Err(ReadError::Source(fault)) => fault.to_string(),
        other => panic!("{name}: expected a source fault, got {other:?}"),
    }
}

#[test]
fn heat_cu_and_the_answer_beside_it_are_found_at_the_root_or_in_a_folder() {
    let answer: &[u8] = b"rows:\nreads 0.843\nship: never\n";
    let layouts: [Entries; 5] = [
        &[("heat.cu", PROGRAM), ("answer.md", answer)],
        &[("hw/", b""), ("hw/heat.cu", PROGRAM), ("hw/answer.md", answer), ("answer.md", b"rows: 9")],
        &[("./heat.cu", PROGRAM), ("./answer.md", answer)],
        &[
            ("a/b/heat.cu", PROGRAM),
            ("a/b/answer.md", answer),
            ("__MACOSX/a/b/._heat.cu", b"\0"),
            ("a/.DS_Store", b"\0"),
            ("__MACOSX/heat.cu", b"\0"),
        ],
        &[("hw\\heat.cu", PROGRAM), ("hw\\answer.md", answer), ("inner.zip", b"PK\x03\x04")],
    ];
    for entries in layouts {
        let tar = tar_of(entries);
        let archives =
            [("Zoë's.hw.zip", zip_of(entries)), ("Zoë's.hw.tar", tar.clone()), ("Zoë's.hw.tgz", gz_of(&tar))];
        // Browsers unpack a tar.gz by themselves and leave its name.
        for (name, bytes) in archives.into_iter().chain([("Zoë's.hw.TAR.GZ", tar)]) {
            let submission = handed_in(name, &bytes).unwrap_or_else(|error| panic!("{name} {entries:?}: {error}"));
            assert_eq!(submission.text.as_bytes(), PROGRAM);
            assert_eq!(submission.name, "Zoë's.hw");
            assert_eq!(submission.sha256, Submission::from_text("", &submission.text).sha256);
            assert_eq!(find_answer(&submission).map(|answer| answer.rows.len()), Some(1), "{name} {entries:?}");
        }
    }
}

#[test]
fn what_is_odd_is_refused_in_one_sentence() {
    let many: Vec<String> = (0..2001).map(|index| format!("f{index}")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let large = vec![b' '; SOURCE_CAP as usize + 1];
    let cases: [(Entries, &str); 14] = [
        (&[], "has no heat.cu; hand in heat.cu"),
        (&[("hw/main.cu", PROGRAM), ("x.txt", b"")], "has no heat.cu (it has hw/main.cu, x.txt)"),
        (&[("ann_1_heat.cu", PROGRAM), ("bob_2_heat.cu", PROGRAM)], "looks like a class"),
        (&[("Heat.cu", PROGRAM)], "has no heat.cu (it has Heat.cu)"),
        (&[("b/heat.cu", PROGRAM), ("a/heat.cu", PROGRAM)], "several programs: a/heat.cu, b/heat.cu"),
        (&[("heat.cu", PROGRAM), ("a/heat.cu", PROGRAM)], "several programs: a/heat.cu, heat.cu"),
        (&[("heat.cu", PROGRAM), ("../evil.cu", PROGRAM)], "holds ../evil.cu, a name that leads out"),
        (&[("a/../../heat.cu", PROGRAM)], "holds a/../../heat.cu, a name that leads out"),
        (&[("/etc/heat.cu", PROGRAM)], "holds /etc/heat.cu, a name that leads out"),
        (&[("C:\\heat.cu", PROGRAM)], "a name that leads out"),
        (&[("a\u{1b}[31m/../heat.cu", PROGRAM)], "holds a?[31m/../heat.cu"),
        (&many, "more than 2000 entries"),
        (&[("heat.cu", b"")], "heat.cu is empty"),
        (&[("heat.cu", b"int\0a")], "byte 3 is NUL"),
    ];
    for (entries, expected) in cases {
        let tar = tar_of(entries);
        for (name, bytes) in [("hw.zip", zip_of(entries)), ("hw.tar", tar.clone()), ("hw.tar.gz", gz_of(&tar))] {
            let said = refused(name, &bytes);
            assert!(said.contains(expected), "{name}: {said}, not {expected}");
            assert!(!said.contains('\n') && said.len() < 300, "{said}");
        }
    }
    let said = refused("hw.zip", &zip_of(&[("heat.cu", &large)]));
    assert!(said.contains("heat.cu is larger than"), "{said}");
}

#[test]
fn links_devices_and_pipes_are_refused() {
    let kinds = [
        (EntryType::Symlink, "a link"),
        (EntryType::Link, "a link"),
        (EntryType::Char, "a device"),
        (EntryType::Block, "a device"),
        (EntryType::Fifo, "a device"),
    ];
    for (kind, expected) in kinds {
        for name in ["heat.cu", "other"] {
            let mut tar = tar_entry(name, kind, b"", "/etc/passwd");
            tar.extend(tar_of(&[("heat.cu", PROGRAM)]));
            let said = refused("hw.tar", &tar);
            assert!(said.contains(&format!("holds {name}, which is {expected}")), "{said}");
        }
    }
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("heat.cu", "/etc/passwd", SimpleFileOptions::default()).expect("a link");
    let said = refused("hw.zip", &writer.finish().expect("a zip").into_inner());
    assert!(said.contains("holds heat.cu, which is a link"), "{said}");
}

#[test]
fn one_path_twice_is_refused() {
    let twice: Entries = &[("heat.cu", PROGRAM), ("./heat.cu", b"int other;")];
    for (name, bytes) in [("hw.zip", zip_of(twice)), ("hw.tar", tar_of(twice))] {
        assert!(refused(name, &bytes).contains("holds heat.cu twice"));
    }
    let twice: Entries = &[("heat.cu", PROGRAM), ("heat.cv", b"int other;")];
    let mut bytes = zip_of(twice);
    while let Some(at) = bytes.windows(7).position(|window| window == b"heat.cv") {
        bytes[at + 6] = b'u';
    }
    assert!(refused("hw.zip", &bytes).contains("twice"));
}

#[test]
fn locked_and_oddly_packed_zips_are_refused() {
    let zip = zip_of(&[("heat.cu", PROGRAM)]);
    let central = zip.windows(4).position(|window| window == b"PK\x01\x02").expect("a header");
    let mut locked = zip.clone();
    locked[6] |= 1;
    locked[central + 8] |= 1;
    assert!(refused("hw.zip", &locked).contains("locked with a password"));
    let mut odd = zip.clone();
    (odd[8], odd[central + 10]) = (12, 12);
    assert!(refused("hw.zip", &odd).contains("packs heat.cu in a way that is not read here"));
}

#[test]
fn damaged_archives_are_refused_wherever_they_are_cut() {
    let entries: Entries = &[("hw/notes.txt", &[b'x'; 3000]), ("hw/heat.cu", PROGRAM)];
    let tar = tar_of(entries);
    for (name, bytes) in [("hw.zip", zip_of(entries)), ("hw.tgz", gz_of(&tar))] {
        for end in 0..bytes.len() {
            let said = refused(name, &bytes[..end]);
            assert!(said.contains("damaged, cut short or no archive") || said.contains("no heat.cu"), "{end}: {said}");
        }
    }
    for end in (1..tar.len() - 1024 - 512).step_by(97) {
        refused("hw.tar", &tar[..end]);
    }
    let mut wrong = gz_of(&tar);
    let checksum = wrong.len() - 6;
    wrong[checksum] ^= 1;
    assert!(refused("hw.tgz", &wrong).contains("damaged"));
    let mut wrong = zip_of(entries);
    let central = wrong.windows(4).rposition(|window| window == b"PK\x01\x02").expect("a header");
    wrong[central + 16] ^= 1;
    assert!(refused("hw.zip", &wrong).contains("damaged"));
    assert!(refused("hw.zip", b"int main() {}").contains("damaged, cut short or no archive"));
}

#[test]
fn bombs_cost_little() {
    let began = Instant::now();
    let zeros = vec![0; 8 << 20];
    let bomb = zip_of(&[("heat.cu", &zeros)]);
    assert!(bomb.len() < 100_000);
    assert!(refused("hw.zip", &bomb).contains("heat.cu is larger than 1048576 bytes"));
    // What is not read costs nothing in a zip.
    assert!(handed_in("hw.zip", &zip_of(&[("heat.cu", PROGRAM), ("big.bin", &zeros)])).is_ok());
    // In a tar.gz it does: 96 MiB here, and a size that only the header claims.
    let mut tar = tar_of(&[("heat.cu", PROGRAM)]);
    tar.truncate(tar.len() - 1024);
    tar.extend((0..12).flat_map(|_| tar_entry("big.bin", EntryType::Regular, &zeros, "")));
    assert!(refused("hw.tgz", &gz_of(&tar)).contains("unpacks to more than 67108864 bytes"));
    let mut claimed = tar_entry("heat.cu", EntryType::Regular, PROGRAM, "");
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..7].copy_from_slice(b"heat.cu");
    header.set_size(u64::from(u32::MAX));
    header.set_cksum();
    claimed[..512].copy_from_slice(header.as_bytes());
    assert!(refused("hw.tar", &claimed).contains("damaged"));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn a_reader_of_whole_classes_takes_archives_within_archives() {
    let inner = zip_of(&[("heat.cu", PROGRAM)]);
    let outer = zip_of(&[("ann/hw.zip", &inner), ("bob/heat.cu", PROGRAM), ("notes.txt", b"x")]);
    let wanted = |path: &str| (!path.ends_with(".txt")).then_some(1 << 20);
    let files = archive::files(&outer, Kind::Zip, Limits::default(), &wanted).expect("files");
    let whole = |bytes: &[u8]| archive::Content::Whole(bytes.to_vec());
    assert_eq!(files.iter().map(|file| &*file.path).collect::<Vec<_>>(), ["ann/hw.zip", "bob/heat.cu", "notes.txt"]);
    assert_eq!(files[0].content, whole(&inner));
    assert_eq!(files[2].content, archive::Content::Unread);
}
