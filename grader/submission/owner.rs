//! Whose a flat file is, by its name alone, as course systems make them: `ann_12345_heat.cu`,
//! `smithann_7_901_solution.docx`, `hw9_asmith_attempt_2026-11-30-12-00-00_heat.cu`. Pure.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::source::has_cu_extension;

/// `ann_12345` of `ann_12345_heat`, `ann_12345_heat-2` or `ann_12345_heat (1)`.
static PROGRAM: LazyLock<Regex> = LazyLock::new(|| ending("heat"));
/// The same for `ann_12345_answer`.
static ANSWER: LazyLock<Regex> = LazyLock::new(|| ending("answer"));
/// What a course system puts in front of whatever a learner's file is called: the name and a number or two of Canvas and
/// Moodle, or Blackboard's attempt.
static PREFIX: LazyLock<Regex> = LazyLock::new(|| well_formed(r"(?is)^(.+?_(?:attempt_[0-9-]+|[0-9]+(?:_[0-9]+)?))_."));

fn ending(word: &str) -> Regex {
    well_formed(&format!(r"(?is)^(.*?)[\s_.-]*{word}(?:[ _-]?\(?[0-9]{{1,2}}\)?)?$"))
}

fn well_formed(pattern: &str) -> Regex {
    Regex::new(pattern).expect("it is well formed")
}

/// Whose a flat program is by its name without `.cu`; nothing when it is not called heat.
pub fn owner_of_program(stem: &str) -> Option<&str> {
    Some(PROGRAM.captures(stem)?.get(1)?.as_str())
}

/// Whether a file name is that of a program as a course system renames it.
pub fn is_renamed_program(name: &str) -> bool {
    has_cu_extension(Path::new(name)) && owner_of_program(stem(name)).is_some()
}

/// Whose a flat answer is by its name without `.md`; nothing when it is not called answer.
pub fn owner_of_answer(stem: &str) -> Option<&str> {
    Some(ANSWER.captures(stem)?.get(1)?.as_str())
}

/// Whose a flat file of any kind is by its name without its ending; nothing when it names nobody.
pub fn owner_of_file(stem: &str) -> Option<&str> {
    let prefix = || Some(PREFIX.captures(stem)?.get(1)?.as_str());
    // A cheat sheet is nobody's program.
    let apart = |owner: &&str| !owner.is_empty() && stem[owner.len()..].starts_with([' ', '_', '.', '-', '\n', '\t']);
    owner_of_program(stem).or_else(|| owner_of_answer(stem)).filter(apart).or_else(prefix)
}

/// The name without the number at its end: Canvas numbers each file of a learner.
pub fn without_number(name: &str) -> &str {
    name.rsplit_once('_')
        .filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(name, |(n, _)| n)
}

/// The learner of an owner: of two numbers the second is the file's.
pub fn learner(owner: &str) -> &str {
    let shorter = without_number(owner);
    if without_number(shorter) == shorter { owner } else { shorter }
}

/// A file's name without its ending.
pub fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_of_flat_files() {
        assert_eq!(owner_of_program("ann_12345_heat"), Some("ann_12345"));
        assert_eq!(owner_of_program("smithann_1_22_heat-2"), Some("smithann_1_22"));
        assert_eq!(owner_of_program("Ann Smith - Heat (1)"), Some("Ann Smith"));
        assert_eq!((owner_of_program("heat"), owner_of_program("ann")), (Some(""), None));
        assert_eq!(owner_of_answer("ann_12345_answer"), Some("ann_12345"));
        assert_eq!((without_number("ann_1_22"), without_number("ann")), ("ann_1", "ann"));
    }

    #[test]
    fn a_line_end_in_a_name_is_white_space() {
        assert_eq!(owner_of_program("ann\nlee_12345_heat"), Some("ann\nlee_12345"));
        assert_eq!(owner_of_program("ann\n_heat"), Some("ann"));
        assert_eq!(owner_of_program("ann_heat\n"), None);
    }

    #[test]
    fn files_of_any_kind_have_the_owner_that_a_course_system_wrote_into_their_names() {
        for (stem, owner) in [
            ("ann_12345_heat", "ann_12345"),
            ("bob_answer", "bob"),
            ("smithann_7_901_my solution", "smithann_7_901"),
            ("smithann_LATE_7_901_report", "smithann_LATE_7_901"),
            ("Ann Smith_12345_assignsubmission_file_report", "Ann Smith_12345"),
            ("hw9_asmith_attempt_2026-11-30-12-00-00_report", "hw9_asmith_attempt_2026-11-30-12-00-00"),
        ] {
            assert_eq!(owner_of_file(stem), Some(owner), "{stem}");
        }
        for nobodys in ["notes", "README", "heat", "answer", "grades_2026", "ann", "cheat"] {
            assert_eq!(owner_of_file(nobodys), None, "{nobodys}");
        }
        assert_eq!(
            (learner("smithann_7_901"), learner("ann_12345"), learner("ann")),
            ("smithann_7", "ann_12345", "ann")
        );
    }
}
