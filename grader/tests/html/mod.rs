//! The class page: what it says is what the reports say, and nothing that learners write gets out of its place.

mod browser;
mod cdp;
mod classes;

use classes::{HOSTILE, hostile, large, real_entries, small};
use heat_grader::report::html::{Class, Entry, page};
use heat_grader::report::{Cause, Code};
use heat_grader::verdict::{CheckId, Verdict};
use regex::Regex;

/// The section of one learner.
fn section<'p>(page: &'p str, id: &str) -> &'p str {
    let from = page.find(&format!("<section class=\"learner\" id=\"{id}\"")).expect("a section");
    let end = page[from..].find("</header>").expect("its header");
    let rest = &page[from + end..];
    let next = rest.find("<section class=\"learner\"").unwrap_or(rest.len());
    &page[from..from + end + next]
}

/// A table row by its learner's id.
fn row<'p>(page: &'p str, id: &str) -> &'p str {
    let table = &page[page.find("<tbody>").expect("a table")..];
    let link = format!("<a href=\"#{id}\">");
    let row = table.split("<tr ").find(|row| row.contains(&link)).expect("a row");
    &row[..row.find("</tr>").expect("its end")]
}

/// Text without its tags, entities read.
fn text(html: &str) -> String {
    let bare = Regex::new("<[^>]*>").unwrap().replace_all(html, "").into_owned();
    bare.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[test]
fn the_page_says_what_the_reports_say() {
    let class = large(24);
    let page = page(&class);
    for (at, entry) in class.entries.iter().enumerate() {
        let id =
            Regex::new(&format!("id=\"(learner-[a-z0-9-]*{at:03})\"")).unwrap().captures(&page).unwrap()[1].to_owned();
        let (section, report) = (section(&page, &id), &entry.report);
        let said = text(section);
        assert!(said.contains(&entry.learner), "{said}");
        if let Some(error) = &report.error {
            assert!(said.contains(error.as_str()) && said.contains("does not count against"), "{said}");
            continue;
        }
        for check in &report.checks {
            assert!(said.contains(&check.summary), "{id}: {}", check.summary);
            assert!(check.details.iter().all(|detail| said.contains(detail.as_str())), "{id}: {check:?}");
        }
        let row = row(&page, &id);
        let cells = text(row);
        assert_eq!(cells.contains("passed"), report.verdict == Verdict::Pass, "{cells}");
        if let Some(reads) = &report.reads {
            assert!(
                row.contains(&format!("data-value=\"{}\">{:.3}<", reads.per_cell_step, reads.per_cell_step)),
                "{row}"
            );
            assert!(said.contains(&format!("{:.3} words read per cell-step, budget 1.5", reads.per_cell_step)));
        }
        if let Some(timing) = &report.timing {
            assert!(row.contains(&format!("data-value=\"{}\">{:.3}<", timing.ratio, timing.ratio)), "{row}");
            for row in &timing.rows {
                assert!(said.contains(&format!("{:.5}", row.ms)) && said.contains(&format!("{:.1}", row.gb_per_s)));
            }
        }
        if let Some(answer) = &report.answer {
            assert!(answer.rows.iter().all(|row| said.contains(row.as_str())) && said.contains(&answer.ship), "{said}");
        }
        if let Some(first) = &report.first_mismatch {
            let got = first.got.to_string().replace("nan", "NaN");
            let words = format!("row {}, column {}, expected {}, got {got}", first.row, first.column, first.expected);
            assert!(said.contains(&words), "{words}");
        }
    }
}

#[test]
fn totals_count_every_entry_and_the_ungraded_stand_apart() {
    let class = large(300);
    let page = page(&class);
    let count = |verdict| class.entries.iter().filter(|entry| entry.report.verdict == verdict).count();
    for (verdict, word) in [(Verdict::Pass, "passed"), (Verdict::Fail, "failed"), (Verdict::Ungraded, "ungraded")] {
        let total = Regex::new(&format!(" {word}</dt><dd>{}</dd>", count(verdict))).unwrap();
        assert!(total.is_match(&page), "{word}");
    }
    assert!(page.contains(&format!("Ungraded: {}<", count(Verdict::Ungraded))));
    for told in ["its earlier verdict stays", "Nobody's submission: 1<", "notes.txt"] {
        assert!(page.contains(told), "{told}");
    }
    // Nobody is left out of the table, graded or not.
    let waiting = class.waiting.len();
    assert_eq!(page.matches("<tr data-verdict=").count(), 300 + waiting);
    assert!(page.contains("302 of 302 shown") && page.contains("302 submissions"));
    assert_eq!(page.matches("<tr data-verdict=\"ungraded\"").count(), count(Verdict::Ungraded));
    assert_eq!(page.matches("<tr data-verdict=\"not graded yet\"").count(), waiting);
    for verdict in ["passed", "failed", "ungraded", "not graded yet"] {
        assert!(page.contains(&format!("<option value=\"{verdict}\">")), "{verdict}");
    }
    assert!(page.contains(&format!(" not graded yet</dt><dd>{waiting}</dd>")));
    assert!(!heat_grader::report::html::page(&small()).contains("<option value=\"not graded yet\">"));
    assert_eq!(page.matches("<section class=\"learner\"").count(), 300);
}

#[test]
fn the_bars_of_the_histogram_add_up_and_the_budget_parts_them() {
    let class = large(120);
    let page = page(&class);
    let counted: Vec<f64> =
        class.entries.iter().filter_map(|entry| Some(entry.report.reads.as_ref()?.per_cell_step)).collect();
    let from = page.find("<h2>Words read per cell-step").unwrap();
    let figure = &page[from..from + page[from..].find("</figure>").unwrap()];
    let sum = |class: &str| -> usize {
        let bar = Regex::new(&format!(r#"<rect class="{class}"[^>]*><title>(\d+):"#)).unwrap();
        bar.captures_iter(figure).map(|bar| bar[1].parse::<usize>().unwrap()).sum()
    };
    let within = counted.iter().filter(|reads| **reads <= 1.5).count();
    assert!(within > 0 && within < counted.len());
    assert_eq!((sum("within"), sum("over")), (within, counted.len() - within));
    for label in ["two-step 0.84", "tiled 1.33", "global 5", "budget 1.5"] {
        assert!(figure.contains(&format!(">{label}</text>")), "{label}");
    }
}

#[test]
fn failing_checks_are_counted_and_name_themselves_to_the_filter() {
    let class = large(60);
    let page = page(&class);
    let failed = class.entries.iter().filter(|entry| entry.report.failing_check == Some(CheckId::Values)).count();
    assert!(page.contains("data-check=\"values\""));
    let button = &page[page.find("data-check=\"values\"").unwrap()..];
    assert!(text(&button[..button.find("</button>").unwrap()]).contains(&format!("{failed} failed")));
}

#[test]
fn no_times_no_ratios() {
    let page = page(&small());
    assert!(!page.contains("Reads against time") && page.contains("No kernel was timed"));
}

#[test]
fn groups_name_their_learners_and_a_group_of_one_is_none() {
    let page = page(&small());
    assert!(text(&page).contains("amara = bjorn"));
    assert!(!page.contains("left-alone"));
}

#[test]
fn a_wrong_grid_is_drawn_and_its_line_is_marked() {
    let page = page(&small());
    let halo = section(&page, "learner-halo-one-cell");
    assert!(halo.contains("href=\"data:image/png;base64,iVBOR"));
    assert!(text(halo).contains("2,796 of 100 x 100 cells after launch 1, in bins of 2 x 2."));
    assert!(text(halo).contains("64 x 256 blocks share n = 2048: 32 x 8 cells each."));
    assert!(!section(&page, "learner-amara").contains("data:image"), "nothing to draw");
    let apron = &halo[halo.find("What one block reads").expect("the apron")..];
    assert!(apron.contains("<svg class=\"apron\"") && apron.matches("<text class=\"reads\"").count() == 10);
    let said = text(apron);
    assert!(said.contains("Block (1, 6) at n = 100 reads 340 words from 340 cells, each once"), "{said}");
    assert!(said.contains("By the first launch at n = 100, at most 4 times."), "{said}");
    let past = section(&page, "learner-shared-one-past");
    let marked =
        Regex::new(r#"<div class="line marked" id="learner-shared-one-past--L(\d+)" data-line="(\d+)">([^<]*)<"#);
    let marked = marked.unwrap().captures(past).expect("a marked line");
    assert_eq!((&marked[1], &marked[2]), ("33", "33"));
    assert!(marked[3].contains("sides[s] = start[s - 1] + start[s + 1];"));
    assert!(past.contains("href=\"#learner-shared-one-past--L33\""));
}

#[test]
fn a_learners_section_shows_the_first_cause_only() {
    let mut class = small();
    let cause = |code, sentence: &str| Cause {
        code,
        sentence: sentence.to_owned(),
        evidence: vec!["So it was seen.".to_owned()],
        explain: "heat-grader explain ring-lost".to_owned(),
    };
    let first = &mut class.entries[0];
    let learner = first.learner.clone();
    first.report.causes = vec![cause(Code::RingLost, "The first."), cause(Code::WrongR, "The second.")];
    let page = page(&class);
    let said = text(&page);
    assert!(
        said.contains(&learner) && said.contains("The first.So it was seen.heat-grader explain ring-lost tells more.")
    );
    assert!(!said.contains("The second."));
    assert_eq!(said.matches("tells more.").count(), 1);
}

#[test]
fn nothing_that_a_learner_writes_gets_out_of_its_place() {
    let page = page(&hostile());
    let tags = |page: &str| {
        let body = &page[page.find("<body>").unwrap()..];
        let names = Regex::new(r"<([a-z0-9]+)((?:\s[^<>]*)?)>").unwrap();
        let attributes = Regex::new(r#"\s([a-z-]+)="#).unwrap();
        let quoted = Regex::new(r#""[^"]*""#).unwrap();
        let mut found = std::collections::BTreeSet::new();
        for tag in names.captures_iter(body) {
            found.insert(tag[1].to_owned());
            let bare = quoted.replace_all(&tag[2], "\"\"").into_owned();
            found.extend(attributes.captures_iter(&bare).map(|attribute| format!("{}=", &attribute[1])));
        }
        found
    };
    let found = tags(&page);
    for name in ["img", "b=", "onerror=", "onload=", "onmouseover=", "style=", "iframe"] {
        assert!(!found.contains(name), "{name}");
    }
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("</script").count(), 1);
    assert_eq!(page.matches("<style").count(), 1);
    assert!(!page.contains("<img") && !page.contains("<!--") && !page.contains("<svg onload"));
    for forbidden in ['\u{202e}', '\u{202c}', '\u{1b}', '\0', '\u{2028}'] {
        assert!(!page.contains(forbidden), "{forbidden:?}");
    }
    assert!(page.contains("\\u{202e}DESSAP"), "spelled out, not left out");
    assert!(page.matches("&lt;/script&gt;").count() > 10);
    // Quotation marks of one kind are harmless where all attributes are in those of the other.
    let quotes_only = |text: &&&str| !text.contains('<') && text.starts_with('\'');
    assert!(
        HOSTILE.iter().filter(|text| !quotes_only(text)).all(|text| !page.contains(text)),
        "never as it was written"
    );
    assert!(
        !Regex::new("<[^<>\"]*=[^<>\"]")
            .unwrap()
            .is_match(&page[page.find("<body>").unwrap()..page.find("<script>").unwrap()])
    );
}

#[test]
fn the_policy_names_the_hashes_of_what_the_page_holds() {
    use base64::Engine as _;
    use sha2::Digest;
    let page = page(&hostile());
    let policy =
        Regex::new(r#"Content-Security-Policy" content="([^"]*)""#).unwrap().captures(&page).unwrap()[1].to_owned();
    assert!(policy.starts_with("default-src 'none'; img-src data:; "), "{policy}");
    assert!(!policy.contains("unsafe"));
    for tag in ["script", "style"] {
        let from = page.find(&format!("<{tag}>")).unwrap() + tag.len() + 2;
        let held = &page[from..from + page[from..].find(&format!("</{tag}>")).unwrap()];
        let hash = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(held.as_bytes()));
        assert!(policy.contains(&format!("{tag}-src 'sha256-{hash}'")), "{tag}");
    }
    assert!(policy.find("script-src").is_some() && page.find("Content-Security-Policy") < page.find("<style>"));
}

#[test]
fn three_hundred_learners_fit_a_page_and_an_empty_class_has_one() {
    let bytes = page(&large(300)).len();
    assert!(bytes < 4_000_000, "{bytes}");
    let empty = Class {
        title: "Nobody".to_owned(),
        made_at: "today".to_owned(),
        entries: Vec::new(),
        groups: Vec::new(),
        ..Class::default()
    };
    assert!(page(&empty).contains("0 submissions"));
}

#[test]
fn the_same_class_gives_the_same_page() {
    assert_eq!(page(&large(20)), page(&large(20)));
}

#[test]
fn every_kind_of_grade_has_a_section() {
    let entries: Vec<Entry> = super::samples()
        .into_iter()
        .map(|(name, graded)| Entry {
            learner: name.to_owned(),
            path: format!("class/{name}"),
            report: graded.report,
            source: graded.source,
        })
        .collect();
    let class = Class {
        title: "Kinds".to_owned(),
        made_at: "today".to_owned(),
        entries,
        groups: Vec::new(),
        ..Class::default()
    };
    let page = page(&class);
    assert!(section(&page, "learner-wrong").contains("data:image/png"), "a grade draws its map");
    assert!(text(section(&page, "learner-nan")).contains("got NaN"));
    assert!(text(section(&page, "learner-wrong")).contains("handed in as class/wrong"));
    assert!(text(section(&page, "learner-chatty")).contains("\\u{1b}[32mPASSED"));
    let compile = section(&page, "learner-no-compile");
    assert!(compile.contains("data-line=\"57\"") && text(compile).contains("identifier \"x\" is undefined"));
}

#[test]
fn the_kept_reports_are_of_this_grader() {
    for entry in real_entries() {
        let wrong = entry.report.first_mismatch.is_some();
        assert_eq!(entry.report.error_map.is_some(), wrong, "{}: grade it anew", entry.learner);
    }
}
