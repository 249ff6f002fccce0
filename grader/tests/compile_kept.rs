use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use super::*;

const SMALL: Room = Room { folder: "small", most: 4096 };

struct Place {
    cache: tempfile::TempDir,
    shelf: Shelf,
}

impl Place {
    fn new() -> Self {
        let cache = tempfile::tempdir().unwrap();
        let shelf = Shelf::within(cache.path(), SMALL);
        Self { cache, shelf }
    }

    fn folder(&self) -> PathBuf {
        self.cache.path().join(SMALL.folder)
    }

    fn get(&self, key: &Key) -> Option<Vec<u8>> {
        self.shelf.get(key)
    }
}

fn key(part: &str) -> Key {
    Key::new("test").with(part)
}

#[test]
fn what_was_put_is_found_by_the_same_key_alone_in_a_folder_of_this_user() {
    let place = Place::new();
    assert_eq!(place.get(&key("a")), None);
    place.shelf.put(&key("a"), &vec![1_u8, 2]);
    assert_eq!(place.get(&key("a")), Some(vec![1, 2]));
    assert_eq!(place.get(&key("b")), None);
    assert_ne!(name(&Key::default().with("a").with("bc")), name(&Key::default().with("ab").with("c")));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&place.folder()), mode(&place.folder().join(name(&key("a"))))), (0o700, 0o600));
    assert_eq!(fs::read_dir(place.folder()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_damaged_half_or_exchanged_entry_is_a_miss_and_made_anew() {
    let place = Place::new();
    let (one, other) = (place.folder().join(name(&key("a"))), place.folder().join(name(&key("b"))));
    place.shelf.put(&key("b"), &vec![9_u8; 100]);
    for damage in ["empty", "half", "a bit", "another's", "link", "folder"] {
        place.shelf.put(&key("a"), &vec![1_u8; 100]);
        let mut whole = fs::read(&one).unwrap();
        match damage {
            "empty" => fs::write(&one, b"").unwrap(),
            "half" => fs::write(&one, &whole[..whole.len() / 2]).unwrap(),
            "a bit" => {
                *whole.last_mut().unwrap() ^= 1;
                fs::write(&one, whole).unwrap();
            }
            "another's" => fs::copy(&other, &one).map(|_| ()).unwrap(),
            "link" => {
                fs::rename(&one, place.cache.path().join("elsewhere")).unwrap();
                symlink(place.cache.path().join("elsewhere"), &one).unwrap();
            }
            _ => {
                fs::remove_file(&one).unwrap();
                fs::create_dir(&one).unwrap();
            }
        }
        assert_eq!(place.get(&key("a")), None, "{damage}");
    }
    fs::remove_dir(&one).unwrap();
    place.shelf.put(&key("a"), &vec![4_u8]);
    assert_eq!(place.get(&key("a")), Some(vec![4]));
}

#[test]
fn a_value_of_another_type_is_a_miss() {
    let place = Place::new();
    place.shelf.put(&key("a"), &7_u8);
    assert_eq!(place.shelf.get::<String>(&key("a")), None);
}

#[test]
fn a_folder_that_others_can_write_to_is_neither_read_nor_written() {
    let place = Place::new();
    place.shelf.put(&key("a"), &vec![1_u8]);
    fs::set_permissions(place.folder(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(place.get(&key("a")), None);
    place.shelf.put(&key("b"), &vec![1_u8]);
    assert_eq!(fs::read_dir(place.folder()).unwrap().count(), 1);
    let moved = place.cache.path().join("moved");
    fs::rename(place.folder(), &moved).unwrap();
    fs::set_permissions(&moved, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&moved, place.folder()).unwrap();
    assert_eq!(place.get(&key("a")), None, "through a link");
}

#[test]
fn a_cache_that_cannot_be_written_to_is_no_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for shelf in [Shelf::within(file.path(), SMALL), Shelf::nowhere()] {
        shelf.put(&key("a"), &vec![5_u8]);
        assert_eq!((shelf.get::<Vec<u8>>(&key("a")), shelf.bytes()), (None, 0));
    }
}

#[test]
fn what_nobody_used_for_longest_goes_first_and_the_bound_holds() {
    let place = Place::new();
    let aged = |part: &str, age: u64| {
        let file = File::open(place.folder().join(name(&key(part)))).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    };
    for made in 0..8 {
        place.shelf.put(&key(&made.to_string()), &vec![0_u8; 400]);
        aged(&made.to_string(), 100 - made);
    }
    assert!(place.get(&key("0")).is_some(), "used, so young again");
    for made in 8..10 {
        place.shelf.put(&key(&made.to_string()), &vec![0_u8; 400]);
    }
    assert!(place.shelf.bytes() <= SMALL.most);
    assert_eq!((place.get(&key("1")), place.get(&key("0")).is_some()), (None, true));
    place.shelf.put(&key("large"), &vec![0_u8; 2000]);
    assert_eq!(place.get(&key("large")), None, "one entry never takes the room of many");
}

#[test]
fn graders_that_keep_the_same_at_once_leave_one_whole_entry() {
    let place = Place::new();
    let seen = std::thread::scope(|scope| {
        let work = |_| {
            scope.spawn(|| {
                for _ in 0..50 {
                    place.shelf.put(&key("a"), &vec![3_u8; 300]);
                    if place.get(&key("a")) != Some(vec![3; 300]) {
                        return false;
                    }
                }
                true
            })
        };
        (0..4).map(work).collect::<Vec<_>>().into_iter().all(|thread| thread.join().unwrap())
    });
    assert!(seen);
    assert_eq!(fs::read_dir(place.folder()).unwrap().count(), 1);
}

#[test]
fn a_file_that_changed_or_went_no_longer_holds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("header.h");
    fs::write(&file, "a").unwrap();
    let stamp = Stamp::of(&file);
    assert!(stamp.holds());
    fs::write(&file, "ab").unwrap();
    assert!(!stamp.holds());
    let absent = Stamp::of(&folder.path().join("absent"));
    assert!(absent.holds() && Key::default().with_file(&file).digest() != Key::default().digest());
}
