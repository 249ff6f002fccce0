//! One learner's section: the verdict, the checks in their words, figures, the error map, the answer, the source.

use base64::Engine as _;
use maud::{Markup, html};

use super::excerpt::excerpt;
use super::loads;
use super::words::{self, figure};
use super::{BASE64, Listed, safe};
use crate::execute::Actor;
use crate::exercise::Exercise;
use crate::judge::{actor_words, grouped};
use crate::report::{ErrorMap, FirstMismatch, Real, Report, picture, trade};
use crate::verdict::{Check, CheckId, Verdict};

/// Lines shown of what a submission printed.
const PRINTED: usize = 12;

/// The section of the learner at that place in the list.
pub fn section(listed: &[Listed], at: usize) -> Markup {
    let one = &listed[at];
    let (report, id) = (one.report(), one.id);
    let (class, sign) = words::verdict_sign(report.verdict);
    let beside = |at: Option<usize>| at.and_then(|at| listed.get(at));
    html! {
        section.learner id=(id) aria-labelledby={ (id) "--name" } {
            nav aria-label="Learners" {
                a.back href="#class" { "← Class" }
                span.spacer {}
                @if let Some(before) = beside(at.checked_sub(1)) { a rel="prev" href={ "#" (before.id) } { "← " bdi { (safe(&before.entry.learner)) } } }
                @if let Some(after) = beside(at.checked_add(1)) { a rel="next" href={ "#" (after.id) } { bdi { (safe(&after.entry.learner)) } " →" } }
            }
            header {
                h1 id={ (id) "--name" } tabindex="-1" { bdi { (safe(&one.entry.learner)) } }
                p.verdict {
                    span class={ "badge " (class) } { span.sign aria-hidden="true" { (sign) } " " (words::verdict(report.verdict)) }
                    " "
                    @if let Some(failing) = report.failing_check { "at " code { (failing.name()) } ": " }
                    (words::reason(report)) "."
                    @if report.verdict == Verdict::Ungraded { " This does not count against the learner." }
                }
                p.muted { (circumstances(report)) }
                p.muted { "handed in as " code { (safe(&one.entry.path)) } }
            }
            div.columns {
                div {
                    (cause(report))
                    (checks(report, id))
                    (answer(report))
                    (timing(report))
                }
                div {
                    (error_map(report))
                    (loads::apron(report))
                    (loads::reads_map(report))
                    (source(one))
                    (sanitizer(report))
                    (printed(&report.output))
                }
            }
        }
    }
}

/// Engine, scope, seed, kernel, launch, hash.
fn circumstances(report: &Report) -> Markup {
    let gpu = report.environment.gpu.as_ref().map_or_else(String::new, |gpu| format!(" on {}", safe(gpu)));
    let engine = report.engine.as_ref().map(|engine| html! { "engine " (safe(engine)) (gpu) });
    let scope = report.scope.map(|scope| html! { (scope.name()) });
    let seed = report.seed.map(|seed| html! { "seed " (seed) });
    let sha256 = report.submission.as_ref().and_then(|submission| submission.sha256.as_ref()).map(
        |sha256| html! { "sha256 " code title=(safe(sha256)) { (safe(sha256).chars().take(12).collect::<String>()) "…" } },
    );
    html! {
        @for (at, part) in [engine, scope, seed, sha256].into_iter().flatten().enumerate() {
            @if at > 0 { " · " }
            (part)
        }
    }
}

/// The likeliest cause, with what shows it.
fn cause(report: &Report) -> Markup {
    let Some(cause) = report.causes.first() else { return html! {} };
    html! {
        section.card {
            h2 { "Cause" }
            p { (safe(&cause.sentence)) }
            @for evidence in &cause.evidence { p.detail { (safe(evidence)) } }
            p.muted { code { (safe(&cause.explain)) } " tells more." }
        }
    }
}

fn checks(report: &Report, id: &str) -> Markup {
    html! {
        @if !report.checks.is_empty() {
            section.card {
                h2 { "Checks" }
                ol.verdicts { @for check in &report.checks { (check_item(check, report, id)) } }
            }
        }
    }
}

fn check_item(check: &Check, report: &Report, id: &str) -> Markup {
    let (class, sign) = words::status_sign(check.status);
    html! {
        li class=(class) {
            span.sign role="img" aria-label=(words::status(check.status)) { (sign) }
            code { (check.id.name()) }
            div {
                p { (safe(&check.summary)) }
                // The answer's remarks stand beside the answer.
                @if check.id != CheckId::Answer {
                    @for detail in &check.details { p.detail { (safe(detail)) } }
                }
                @if let Some(place) = check.place {
                    p.detail { a href={ "#" (id) "--L" (place.line) } { "heat.cu:" (place.line) } }
                }
                @if check.id == CheckId::Compile {
                    @for said in &report.diagnostics {
                        p.detail.said {
                            @if let Some(line) = said.line { "heat.cu:" (line) ": " }
                            (safe(&said.severity)) ": " (safe(&said.message))
                        }
                    }
                }
            }
        }
    }
}

/// The rows and the sentence, with what was measured beside them.
fn answer(report: &Report) -> Markup {
    let check = words::check(report, CheckId::Answer);
    if report.answer.is_none() && check.is_none() {
        return html! {};
    }
    html! {
        section.card {
            h2 { "Answer" }
            div.beside {
                div {
                    h3 { "The learner wrote" }
                    @match &report.answer {
                        Some(answer) => {
                            @if answer.rows.is_empty() { p.muted { "no result rows" } }
                            @else { blockquote { @for row in &answer.rows { pre { (safe(row)) } } } }
                            @if answer.ship.trim().is_empty() { p.muted { "no sentence" } }
                            @else { blockquote { p { (safe(&answer.ship)) } } }
                        }
                        None => p.muted { "nothing" },
                    }
                }
                div {
                    h3 { "Measured" }
                    (measured(report))
                }
            }
            @if let Some(check) = check {
                @for detail in &check.details { p.detail { (safe(detail)) } }
            }
        }
    }
}

fn measured(report: &Report) -> Markup {
    let row = report.timing.as_ref().and_then(|timing| Some((timing, timing.rows.last()?)));
    html! {
        @match &report.reads {
            Some(reads) => p {
                b { (figure(reads.per_cell_step)) } " words read per cell-step, budget " (reads.budget)
                br; span.muted { (grouped(reads.words)) " words, " (grouped(reads.cells)) " cells, " (reads.timesteps) " timesteps a launch" }
            },
            None => p.muted { "no words were counted" },
        }
        @match row {
            Some((timing, row)) => p {
                b { (format!("{:.5}", row.ms)) } " ms a timestep, " b { (figure(timing.ratio)) } " times heatStepTiled's"
                br; span.muted { "95% interval " (figure(timing.interval[0])) " to " (figure(timing.interval[1])) }
            },
            None => p.muted { "not timed" },
        }
        @let told = trade::sentences(report);
        @if !told.is_empty() { p.detail { (told.join(" ")) } }
    }
}

/// The lesson's table.
fn timing(report: &Report) -> Markup {
    let Some(timing) = &report.timing else { return html! {} };
    html! {
        section.card {
            h2 { "Time" }
            @if let Some(reason) = &timing.unreliable { p.warn { "Not to be relied on: " (safe(reason)) } }
            div.scroll tabindex="0" role="region" aria-label="Times of each kernel" {
                table.plain {
                    thead { tr { th scope="col" { "kernel" } @for name in ["ms a timestep", "GB/s", "% of copy", "reads"] { th.number scope="col" { (name) } } } }
                    tbody {
                        @for row in &timing.rows {
                            tr {
                                th scope="row" { code { (safe(&row.kernel)) } }
                                td.number { (format!("{:.5}", row.ms)) }
                                td.number { (format!("{:.1}", row.gb_per_s)) }
                                td.number { (format!("{:.1}", row.percent_of_copy)) }
                                td.number { @if let Some(reads) = row.reads { (figure(reads)) } @else { "–" } }
                            }
                        }
                    }
                }
            }
            p.muted { "Medians of " (timing.rounds) " rounds; reads per cell-step." }
        }
    }
}

fn error_map(report: &Report) -> Markup {
    let (Some(map), Some(png)) = (&report.error_map, picture::error_map(report)) else { return html! {} };
    let side = 300.0;
    // The picture has a margin around its bins; the axes are the bins'.
    let pixel = side / (f64::from(picture::side(map)) - 2.0 * picture::MARGIN as f64);
    let margin = pixel * picture::MARGIN as f64;
    let (left, top) = (58.0, 24.0);
    let data = format!("data:image/png;base64,{}", BASE64.encode(png));
    let label = format!("{} of {} cells are wrong.", grouped(map.wrong_cells), grouped(u64::from(map.n).pow(2)));
    let text = |x: f64, y: f64, anchor: &str, words: String| {
        html! {
            text.tick x=(x) y=(y) text-anchor=(anchor) { (words) }
        }
    };
    html! {
        figure.card.map {
            figcaption { h2 { "Where it is wrong" } p { (caption(map, report)) } }
            svg viewBox="0 0 400 392" role="img" aria-label=(label) {
                image x=(format!("{:.2}", left - margin)) y=(format!("{:.2}", top - margin))
                    width=(format!("{:.2}", side + 2.0 * margin)) height=(format!("{:.2}", side + 2.0 * margin)) href=(data) {}
                (text(left, top - 8.0, "start", "column 0".to_owned()))
                (text(left + side, top - 8.0, "end", (map.n.saturating_sub(1)).to_string()))
                (text(left - 6.0, top + 10.0, "end", "row 0".to_owned()))
                (text(left - 6.0, top + side, "end", (map.n.saturating_sub(1)).to_string()))
                @for (at, [red, green, blue]) in picture::SHADES.iter().enumerate() {
                    rect.swatch x=(left + 37.5 * at as f64) y=(top + side + 14.0) width="37.5" height="12" fill=(format!("#{red:02x}{green:02x}{blue:02x}")) {}
                }
                @for (at, exponent) in (-6..=0).enumerate() {
                    (text(left + 37.5 * (at + 1) as f64, top + side + 40.0, "middle", if exponent == 0 { "1".to_owned() } else { format!("1e{exponent}") }))
                }
                (text(left + side / 2.0, top + side + 58.0, "middle", "largest error in a bin, over the hottest cell".to_owned()))
            }
            p.muted { "A square's area is the share of its bin's cells that are wrong; a cross is NaN or infinite." }
        }
    }
}

fn caption(map: &ErrorMap, report: &Report) -> Markup {
    html! {
        (grouped(map.wrong_cells)) " of " (map.n) " x " (map.n) " cells"
        @if let Some(first) = &report.first_mismatch { " after launch " (first.launch) }
        ", in bins of " (map.bin) " x " (map.bin) "."
        @if let Some(first) = &report.first_mismatch { " " (mismatch(first)) }
        @if let Some(tile) = tile(report) { " " (tile) }
    }
}

fn mismatch(first: &FirstMismatch) -> String {
    let by = first.block.zip(first.thread).map(|(block, thread)| actor_words(&Actor { block, thread }));
    let by = by.map_or_else(String::new, |actor| format!(", written by {actor}"));
    format!(
        "In the frame: row {}, column {}, expected {}, got {}{by}.",
        first.row,
        first.column,
        number(first.expected),
        number(first.got)
    )
}

/// As checks spell it.
fn number(real: Real) -> String {
    if real.0.is_nan() { "NaN".to_owned() } else { real.to_string() }
}

/// The cells that fall to each block, where the launch covers the exercise's interior once.
fn tile(report: &Report) -> Option<String> {
    let launch = report.submission.as_ref()?.launch.as_ref()?;
    let n = Exercise::shipped().ok()?.exercise.n;
    let [columns, rows, _] = launch.grid;
    let interior = n.checked_sub(2)?;
    let cells = |blocks: u32| (blocks > 0).then(|| interior.div_ceil(blocks));
    let (across, down) = (cells(columns)?, cells(rows)?);
    Some(format!("{columns} x {rows} blocks share n = {n}: {across} x {down} cells each."))
}

/// The kernel and every line in question.
fn source(one: &Listed) -> Markup {
    let Some(text) = one.entry.source.as_deref() else { return html! {} };
    let runs = excerpt(text, one.report());
    if runs.is_empty() {
        return html! {};
    }
    html! {
        section.card {
            h2 { "heat.cu" }
            div.source tabindex="0" role="region" aria-label="Source of the kernel" {
                @for (at, run) in runs.iter().enumerate() {
                    @if at > 0 { hr; }
                    @for line in run {
                        @if line.notes.is_empty() {
                            div.line data-line=(line.number) { (line.text) }
                        } @else {
                            div.line.marked id={ (one.id) "--L" (line.number) } data-line=(line.number) { (line.text) }
                            @for note in &line.notes { div.note { (note) } }
                        }
                    }
                }
            }
        }
    }
}

fn sanitizer(report: &Report) -> Markup {
    let ran = report.sanitizer.as_deref().unwrap_or_default();
    html! {
        @if !ran.is_empty() {
            section.card {
                h2 { "compute-sanitizer, on small grids" }
                ul { @for tool in ran {
                    li { code { (tool.tool.name()) } ": " @if tool.errors == Some(0) { "nothing found" } @else { (safe(&tool.message)) } }
                } }
            }
        }
    }
}

fn printed(output: &str) -> Markup {
    let lines: Vec<&str> = output.lines().collect();
    html! {
        @if !lines.is_empty() {
            section.card {
                h2 { "The submission printed" }
                blockquote { pre { @for line in lines.iter().take(PRINTED) { (safe(&line.replace('\t', "    "))) "\n" } } }
                @if lines.len() > PRINTED { p.muted { (lines.len() - PRINTED) " more lines in the JSON report" } }
            }
        }
    }
}
