//! The table of all submissions, graded or not. It is complete without the script, which sorts and filters it.

use maud::{Markup, html};

use super::words::{self, figure};
use super::{Listed, long, safe};
use crate::verdict::{CheckId, Status, Verdict};

/// A column: its heading, what it sorts by, and a class that narrow screens hide it by.
struct Column {
    heading: &'static str,
    key: &'static str,
    class: &'static str,
}

const COLUMNS: [Column; 7] = [
    Column { heading: "Learner", key: "learner", class: "" },
    Column { heading: "Verdict", key: "verdict", class: "" },
    Column { heading: "Failed at", key: "check", class: "" },
    Column { heading: "Reads", key: "reads", class: "number" },
    Column { heading: "Time", key: "time", class: "number" },
    Column { heading: "Answer", key: "answer", class: "minor" },
    Column { heading: "What decided", key: "reason", class: "minor" },
];

/// The table with its filters; nothing for nobody. Those not graded yet stand at its end.
pub fn table(listed: &[Listed], waiting: &[String]) -> Markup {
    let all = listed.len() + waiting.len();
    if all == 0 {
        return html! {};
    }
    let is_there = |verdict: &Option<Verdict>| match verdict {
        Some(Verdict::Ungraded) => listed.iter().any(|one| one.report().verdict == Verdict::Ungraded),
        Some(_) => true,
        None => !waiting.is_empty(),
    };
    let verdicts = [Some(Verdict::Pass), Some(Verdict::Fail), Some(Verdict::Ungraded), None];
    html! {
        section.card.wide #table aria-labelledby="table-heading" {
            div.bar {
                h2 #table-heading { "Submissions" }
                div.filters role="search" hidden {
                    label { span { "Find" } input #find type="search" autocomplete="off" placeholder="name, kernel, message"; }
                    label { span { "Verdict" } select #verdict {
                        option value="" { "all" }
                        @for verdict in verdicts.into_iter().filter(is_there) {
                            option value=(words::verdict(verdict)) { (words::verdict(verdict)) }
                        }
                    } }
                    label { span { "Fails or warns at" } select #check {
                        option value="" { "any" }
                        @for id in CheckId::ALL { option value=(id.name()) { (id.name()) } }
                    } }
                }
                p #shown.muted role="status" { (all) " of " (all) " shown" }
            }
            div.scroll role="region" aria-labelledby="table-heading" tabindex="0" {
                table {
                    thead { tr {
                        @for column in &COLUMNS {
                            th scope="col" class=(column.class) data-key=(column.key) {
                                button type="button" disabled { (column.heading) span.arrow aria-hidden="true" {} }
                            }
                        }
                    } }
                    tbody {
                        @for one in listed { (row(one)) }
                        @for learner in waiting { (waiting_row(learner)) }
                    }
                }
            }
            p.muted { "Reads: words from global memory per cell-step. Time: a timestep's over heatStepTiled's, below 1 is faster." }
        }
    }
}

fn row(one: &Listed) -> Markup {
    let report = one.report();
    let (class, sign) = words::verdict_sign(report.verdict);
    let troubled = |status| report.checks.iter().filter(move |check| check.status == status);
    let ids: Vec<&str> = troubled(Status::Fail).chain(troubled(Status::Warn)).map(|check| check.id.name()).collect();
    let submission = report.submission.as_ref();
    let kernel = submission.and_then(|submission| submission.kernel.as_deref()).unwrap_or_default();
    let (reads, ratio) = (words::reads(report), words::ratio(report));
    let unreliable = report.timing.as_ref().is_some_and(|timing| timing.unreliable.is_some());
    let answer = words::check(report, CheckId::Answer).map(|check| check.status);
    html! {
        tr data-verdict=(words::verdict(report.verdict)) data-checks=(ids.join(" ")) data-kernel=(safe(kernel)) {
            th scope="row" { (one.link()) }
            td { span class={ "badge " (class) } { span.sign aria-hidden="true" { (sign) } span.word { " " (words::verdict(report.verdict)) } } }
            td { @if let Some(id) = report.failing_check { code { (id.name()) } } }
            td.number data-value=[reads] { @if let Some(reads) = reads { (figure(reads)) } @else { span.muted { "–" } } }
            td.number data-value=[ratio] {
                @match ratio {
                    Some(ratio) => { (figure(ratio)) @if unreliable { span.warn title="not to be relied on" { " !" } } }
                    None => span.muted { "–" },
                }
            }
            td.minor { @if let Some(status) = answer { (answer_word(status, report.answer.is_some())) } }
            td.minor.reason { (words::reason(report)) }
        }
    }
}

fn waiting_row(learner: &str) -> Markup {
    let (class, sign) = words::verdict_sign(None);
    html! {
        tr data-verdict=(words::verdict(None)) data-checks="" data-kernel="" {
            th scope="row" title=[long(learner)] { bdi { (safe(learner)) } }
            td { span class={ "badge " (class) } { span.sign aria-hidden="true" { (sign) } span.word { " " (words::verdict(None)) } } }
            td {}
            td.number { span.muted { "–" } }
            td.number { span.muted { "–" } }
            td.minor {}
            td.minor.reason {}
        }
    }
}

/// What the check on the answer came to, for somebody who looks for answers to read.
fn answer_word(status: Status, given: bool) -> &'static str {
    match status {
        Status::Pass => "agrees",
        Status::Warn | Status::Fail if given => "look at it",
        Status::Warn | Status::Fail => "none",
        Status::Skip => "not compared",
    }
}
