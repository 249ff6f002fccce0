//! What learners are called: from what a folder or file is called to a name that a file can have. Pure.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Most bytes of a learner's name: a file's may have 255, and endings come after it.
const MOST: usize = 120;
/// Names that Windows keeps for devices, whatever the ending.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com1", "lpt1"];

/// A name that any file system takes, and any terminal shows: letters and digits of whatever script, `-`, `_` and `.`.
pub fn safe(name: &str) -> String {
    // What Moodle puts behind every learner's name.
    let name = name.trim_end_matches('_').trim_end_matches("_assignsubmission_file");
    let mut safe = String::new();
    for c in name.trim().chars() {
        let c = if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
        if safe.len() + c.len_utf8() > MOST {
            break;
        }
        if c != '_' || !safe.ends_with('_') {
            safe.push(c);
        }
    }
    // No dot file, no option, no `..`.
    let safe = safe.trim_start_matches(['.', '-', '_']).trim_end_matches(['.', '_']);
    let device = safe.split('.').next().is_some_and(|stem| DEVICES.contains(&&*stem.to_lowercase()));
    match safe {
        "" => "submission".to_owned(),
        safe if device => format!("_{safe}"),
        safe => safe.to_owned(),
    }
}

/// Whether this can be one of [`safe`]'s and [`unique`]'s names: it is about to become a file's.
pub fn names_a_file(learner: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !learner.is_empty() && !learner.starts_with(['.', '-']) && learner.len() < 2 * MOST && learner.chars().all(plain)
}

/// Makes names differ, by case too: those that do not get a piece of the digest of where each was found, so that a learner
/// keeps the name as long as the others do.
pub fn unique(names: &[(String, String)]) -> Vec<String> {
    let mut bearers: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in names {
        *bearers.entry(name.to_lowercase()).or_default() += 1;
    }
    let mut taken: BTreeSet<String> =
        bearers.iter().filter(|(_, bearers)| **bearers == 1).map(|(name, _)| name.clone()).collect();
    let given = names.iter().map(|(name, found_at)| {
        if bearers.get(&name.to_lowercase()) == Some(&1) {
            return name.clone();
        }
        let digest = HEXLOWER.encode(&Sha256::digest(found_at)[..4]);
        let mut longer = format!("{name}-{digest}");
        // Two of one place: names that are not Unicode look alike. In the order given, then.
        for count in 2.. {
            if taken.insert(longer.to_lowercase()) {
                break;
            }
            longer = format!("{name}-{digest}-{count}");
        }
        longer
    });
    given.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_becomes_a_plain_one() {
        assert_eq!(safe("../../etc/passwd"), "etc_passwd");
        assert_eq!(safe("=cmd|' /C calc'!A0"), "cmd_C_calc_A0");
        assert_eq!(safe("\u{1b}[31mann\u{202e}\n"), "31mann");
        assert_eq!(
            (safe(".."), safe(""), safe("-rf"), safe("nul.txt")),
            ("submission".into(), "submission".into(), "rf".into(), "_nul.txt".into())
        );
        assert_eq!(safe("Zoë 温度"), "Zoë_温度");
        assert_eq!(safe("Ann Smith_12345_assignsubmission_file_"), "Ann_Smith_12345");
        assert!(safe(&"ä".repeat(500)).len() <= MOST);
        for name in ["Zoë 温度", "nul.txt", "..", "-rf", "../../etc/passwd", "Ann Smith"] {
            assert!(names_a_file(&safe(name)), "{name}");
        }
        for name in ["..", "a/b", "", ".a", "-rf", "a\n", "a\0"] {
            assert!(!names_a_file(name), "{name:?}");
        }
    }

    #[test]
    fn names_that_collide_are_told_apart_the_same_way_each_time() {
        let of = |names: &[(&str, &str)]| {
            let owned: Vec<_> = names.iter().map(|(name, at)| ((*name).to_owned(), (*at).to_owned())).collect();
            unique(&owned)
        };
        let given = of(&[("ann", "ann"), ("Ann", "Ann.cu"), ("bob", "bob")]);
        assert!(given[0].starts_with("ann-") && given[1].starts_with("Ann-") && given[2] == "bob", "{given:?}");
        let other_order = of(&[("bob", "bob"), ("Ann", "Ann.cu"), ("ann", "ann")]);
        assert_eq!((&given[0], &given[1]), (&other_order[2], &other_order[1]));
        let same_place = of(&[("x", "x"), ("x", "x")]);
        assert_ne!(same_place[0], same_place[1]);
    }
}
