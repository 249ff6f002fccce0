//! A page a fault: what happens, how to see it, where the lesson tells more. The pages are the Markdown files beside this
//! one; a terminal shows them as plain text, and a course site takes all of them as one page.

use crate::judge::diagnosis::Code;

/// The page's file.
fn source(code: Code) -> &'static str {
    match code {
        Code::GridNotAdvanced => include_str!("grid-not-advanced.md"),
        Code::OnlyOneStep => include_str!("only-one-step.md"),
        Code::TooManySteps => include_str!("too-many-steps.md"),
        Code::HaloTooSmall => include_str!("halo-too-small.md"),
        Code::RingAdvancedInFirstStep => include_str!("ring-advanced-in-first-step.md"),
        Code::OutsideTakenAsCold => include_str!("outside-taken-as-cold.md"),
        Code::MissingBarrier => include_str!("missing-barrier.md"),
        Code::BarrierNotReachedByAll => include_str!("barrier-not-reached-by-all.md"),
        Code::InPlaceUpdate => include_str!("in-place-update.md"),
        Code::BlocksExchange => include_str!("blocks-exchange.md"),
        Code::TwoWriters => include_str!("two-writers.md"),
        Code::SharedNotFilled => include_str!("shared-not-filled.md"),
        Code::RingLost => include_str!("ring-lost.md"),
        Code::NeighboursSwapped => include_str!("neighbours-swapped.md"),
        Code::WrongStencil => include_str!("wrong-stencil.md"),
        Code::OldValuesInSecondStep => include_str!("old-values-in-second-step.md"),
        Code::GridTooSmall => include_str!("grid-too-small.md"),
        Code::CellsWithoutAThread => include_str!("cells-without-a-thread.md"),
        Code::OffByOne => include_str!("off-by-one.md"),
        Code::WrongR => include_str!("wrong-r.md"),
        Code::UnstableR => include_str!("unstable-r.md"),
        Code::HardCodedN => include_str!("hard-coded-n.md"),
        Code::FilledByHost => include_str!("filled-by-host.md"),
        Code::IndexOutOfRange => include_str!("index-out-of-range.md"),
        Code::ReadsTooMany => include_str!("reads-too-many.md"),
        Code::TileTooSmall => include_str!("tile-too-small.md"),
        Code::OneBufferUnfilled => include_str!("one-buffer-unfilled.md"),
        Code::CopyEveryStep => include_str!("copy-every-step.md"),
        Code::SettingsLeftOver => include_str!("settings-left-over.md"),
        Code::LaunchUnlike => include_str!("launch-unlike.md"),
        Code::BankConflicts => include_str!("bank-conflicts.md"),
        Code::PaddingUnused => include_str!("padding-unused.md"),
        Code::LowOccupancy => include_str!("low-occupancy.md"),
        Code::RegisterSpills => include_str!("register-spills.md"),
    }
}

/// The first line of a page, which is its heading: `# only-one-step: the second timestep is missing`.
fn title(code: Code) -> &'static str {
    let heading = source(code).lines().next().unwrap_or_default();
    heading.split_once(": ").map_or(heading, |(_, title)| title)
}

/// The heading of a page's last part, which says which way to go: the second stage of help, shown to those who ask for it.
const HINT: &str = "## A hint\n";

/// A page without its hint, and the hint.
fn parts(code: Code) -> (&'static str, &'static str) {
    source(code).split_once(HINT).unwrap_or((source(code), ""))
}

/// Which way to go, in whole sentences on one line.
pub fn hint(code: Code) -> String {
    parts(code).1.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One page as plain text, ending with a line end. Without its hint it says how to get that.
pub fn page(code: Code, hinted: bool) -> String {
    let source = if hinted { source(code) } else { parts(code).0.trim_end() };
    let mut text = format!("{}\n  {}\n", code.name(), title(code));
    let mut drawing = false;
    for line in source.lines().skip(1) {
        if line.starts_with("```") {
            drawing = !drawing;
            continue;
        }
        match line.strip_prefix("## ") {
            Some(heading) if !drawing => text.push_str(&format!("{heading}\n")),
            _ if line.is_empty() => text.push('\n'),
            // A drawing keeps its own margin.
            _ if drawing => text.push_str(&format!("    {line}\n")),
            _ => text.push_str(&format!("  {line}\n")),
        }
    }
    if !hinted {
        text.push_str(&format!("\n`heat-grader explain {} --hint` says which way to go.\n", code.name()));
    }
    text
}

/// Every code with its title.
pub fn list() -> String {
    let width = Code::ALL.into_iter().map(|code| code.name().len()).max().unwrap_or_default();
    let line = |code: Code| format!("  {:width$}  {}\n", code.name(), title(code));
    let lines: String = Code::ALL.into_iter().map(line).collect();
    format!(
        "{lines}\n`heat-grader explain CODE` tells more of one, `heat-grader explain --all` prints all as Markdown.\n"
    )
}

/// All pages as one Markdown page, an anchor a code.
pub fn markdown() -> String {
    let mut page = String::from("# What goes wrong in a two-timestep kernel\n\n");
    for code in Code::ALL {
        page.push_str(&format!("- [{}](#{}): {}\n", code.name(), code.name(), title(code)));
    }
    for code in Code::ALL {
        let mut drawing = false;
        page.push_str(&format!("\n<a id=\"{}\"></a>\n\n", code.name()));
        for line in source(code).lines() {
            drawing ^= line.starts_with("```");
            let deeper = if line.starts_with('#') && !drawing { "#" } else { "" };
            page.push_str(&format!("{deeper}{line}\n"));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of a line of a page.
    const WIDTH: usize = 76;

    #[test]
    fn every_page_has_its_parts_in_lines_that_fit() {
        for code in Code::ALL {
            let source = source(code);
            let heading = source.lines().next().unwrap();
            assert!(heading.starts_with(&format!("# {}: ", code.name())), "{heading}");
            let headings: Vec<&str> = source.lines().filter(|line| line.starts_with("## ")).collect();
            assert_eq!(
                headings,
                ["## What happens", "## How to see it", "## In the lesson", "## A hint"],
                "{}",
                code.name()
            );
            assert_eq!(source.matches("```").count(), 2, "{} has one drawing", code.name());
            let long = source.lines().find(|line| line.chars().count() > WIDTH);
            assert_eq!(long, None, "{}", code.name());
            assert!(source.is_ascii(), "{}", code.name());
        }
    }

    #[test]
    fn no_page_has_code_of_a_solution() {
        for code in Code::ALL {
            for word in ["__global__", "__shared__ float", "for (", "tile[", "in[", "out["] {
                assert!(!source(code).contains(word), "{}: {word}", code.name());
            }
        }
    }

    #[test]
    fn a_page_in_the_terminal_has_no_markup() {
        let page = page(Code::HaloTooSmall, true);
        assert!(page.starts_with("halo-too-small\n  "), "{page}");
        assert!(!page.contains("```") && !page.contains("## "), "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    }

    #[test]
    fn the_hint_is_for_those_who_ask() {
        for code in Code::ALL {
            let hint = hint(code);
            assert!(hint.len() > 60 && hint.ends_with('.') && hint.len() < 400, "{}: {hint}", code.name());
            let first = |page: &str| page.split_whitespace().collect::<Vec<_>>().join(" ").contains(&hint);
            assert!(first(&page(code, true)) && !first(&page(code, false)), "{}", code.name());
        }
        let page = page(Code::HaloTooSmall, false);
        assert!(page.ends_with("\n\n`heat-grader explain halo-too-small --hint` says which way to go.\n"), "{page}");
    }

    #[test]
    fn the_course_page_links_to_every_fault() {
        let all = markdown();
        for code in Code::ALL {
            let name = code.name();
            assert!(
                all.contains(&format!("](#{name})")) && all.contains(&format!("<a id=\"{name}\"></a>\n\n## {name}: "))
            );
            assert!(list().contains(name));
        }
    }
}
