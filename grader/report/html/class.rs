//! The class at a glance: totals, figures, failing checks, the table, what was not graded, what is the same.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::words::{self, counted};
use super::{Class, Listed, charts, safe, table};
use crate::exercise::Exercise;
use crate::judge::plan::Scope;
use crate::verdict::{CheckId, Status, Verdict};

/// The budget where no report names one and the shipped exercise cannot be read.
const BUDGET: f64 = 1.5;

/// Everything before the learners' sections.
pub fn overview(class: &Class, title: &str, listed: &[Listed]) -> Markup {
    let of = |verdict| listed.iter().filter(move |one| one.report().verdict == verdict);
    let (graded, ungraded): (Vec<Listed>, Vec<Listed>) =
        listed.iter().partition(|one| one.report().verdict != Verdict::Ungraded);
    let budget = budget(listed);
    let verdicts = [Verdict::Pass, Verdict::Fail, Verdict::Ungraded];
    let mut totalled: Vec<(Option<Verdict>, usize)> =
        verdicts.map(|verdict| (Some(verdict), of(verdict).count())).into();
    totalled.extend((!class.waiting.is_empty()).then_some((None, class.waiting.len())));
    html! {
        main #class {
            header.top {
                div {
                    h1 { (title) }
                    p.muted { (made(class, listed)) }
                }
                (totals(&totalled))
            }
            @if !graded.is_empty() {
                div.cards {
                    (charts::reads_against_time(&graded, budget))
                    (charts::reads(&graded, budget))
                    (charts::ratios(&graded))
                    (failing_checks(&graded))
                    (causes(&graded))
                    (groups(class, listed))
                    @if none_timed(&graded) {
                        p.card.note { "No kernel was timed: engine cpu has no GPU to time on, so there are no ratios to heatStepTiled." }
                    }
                }
            } @else {
                (groups(class, listed))
            }
            (not_graded(&ungraded))
            (remarks(class, listed))
            (ignored(class))
            (table::table(listed, &class.waiting))
            footer.muted { "Rows and columns count from 0 with the ring included; lines and launches count from 1. "
                "What learners wrote stands in quotation bars or in monospaced type." }
        }
    }
}

fn none_timed(graded: &[Listed]) -> bool {
    graded.iter().all(|one| one.report().timing.is_none())
}

fn budget(listed: &[Listed]) -> f64 {
    let reported = listed.iter().find_map(|one| one.report().reads.as_ref().map(|reads| reads.budget));
    let shipped = || Exercise::shipped().map(|exercise| exercise.exercise.budget);
    reported.or_else(|| shipped().ok()).filter(|budget| *budget > 0.0).unwrap_or(BUDGET)
}

/// How many, when, on what.
fn made(class: &Class, listed: &[Listed]) -> Markup {
    let engines: BTreeSet<&str> = listed.iter().filter_map(|one| one.report().engine.as_deref()).collect();
    let gpus: BTreeSet<&str> = listed.iter().filter_map(|one| one.report().environment.gpu.as_deref()).collect();
    let quick = listed.iter().filter(|one| one.report().scope == Some(Scope::Quick)).count();
    html! {
        (counted(listed.len() + class.waiting.len(), "submission", "submissions"))
        @for engine in &engines { " · engine " (safe(engine)) }
        @for gpu in &gpus { " · " (safe(gpu)) }
        @if quick > 0 { " · " (counted(quick, "report", "reports")) " quick: the thousand timesteps at n = 512" }
        " · " (safe(&class.made_at))
    }
}

/// The totals, without a verdict of those not graded yet, and a bar of their shares.
fn totals(totals: &[(Option<Verdict>, usize)]) -> Markup {
    let all = totals.iter().map(|(_, count)| count).sum::<usize>().max(1);
    let share = |count: usize| 300.0 * count as f64 / all as f64;
    let mut left = 0.0;
    let mut parts = Vec::new();
    for (verdict, count) in totals {
        parts.push((words::verdict_sign(*verdict).0, left, share(*count)));
        left += share(*count);
    }
    html! {
        div.totals {
            dl {
                @for (verdict, count) in totals {
                    @let (class, sign) = words::verdict_sign(*verdict);
                    div class=(class) {
                        dt { span.sign aria-hidden="true" { (sign) } " " (words::verdict(*verdict)) }
                        dd { (count) }
                    }
                }
            }
            svg.share viewBox="0 0 300 6" preserveAspectRatio="none" aria-hidden="true" {
                @for (class, left, width) in parts { rect class=(class) x=(format!("{left:.2}")) y="0" width=(format!("{width:.2}")) height="6" {} }
            }
        }
    }
}

/// The checks by how many submissions fail them; a check is a button that narrows the table.
/// The likeliest cause of each that failed, the most frequent first; nothing where none was named.
fn causes(graded: &[Listed]) -> Markup {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for cause in graded.iter().filter_map(|one| one.report().causes.first()) {
        *counts.entry(cause.code.name()).or_default() += 1;
    }
    let mut rows: Vec<(&str, usize)> = counts.into_iter().collect();
    rows.sort_by_key(|&(code, count)| (std::cmp::Reverse(count), code));
    html! {
        @if !rows.is_empty() {
            section.card {
                h2 { "Why they fail" }
                p { "The likeliest cause of each submission that has one; " code { "heat-grader explain" } " has a page on it." }
                ul.causes {
                    @for (code, count) in rows { li { code { (code) } " " b { (counted(count, "submission", "submissions")) } } }
                }
            }
        }
    }
}

fn failing_checks(graded: &[Listed]) -> Markup {
    let count = |id: CheckId, status: Status| {
        graded.iter().filter(|one| words::check(one.report(), id).is_some_and(|check| check.status == status)).count()
    };
    let mut rows: Vec<(CheckId, usize, usize)> =
        CheckId::ALL.into_iter().map(|id| (id, count(id, Status::Fail), count(id, Status::Warn))).collect();
    rows.retain(|(_, failed, warned)| failed + warned > 0);
    rows.sort_by_key(|(id, failed, warned)| (std::cmp::Reverse((*failed, *warned)), *id));
    let most = rows.iter().map(|(_, failed, _)| *failed).max().unwrap_or(1).max(1);
    let length = |count: usize| format!("{:.2}", 100.0 * count as f64 / most as f64);
    html! {
        section.card {
            h2 { "Checks that fail most" }
            p { "A submission counts at every check that it fails; what lies behind the first failure may not have been reached." }
            @if rows.is_empty() { p { "None failed, none warned." } }
            ol.checks {
                @for (id, failed, warned) in &rows {
                    li {
                        button type="button" data-check=(id.name()) disabled {
                            code { (id.name()) }
                            svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                                rect.fail x="0" y="0" height="10" width=(length(*failed)) {}
                            }
                            span.figures {
                                b { (failed) } " failed"
                                @if *warned > 0 { ", " (warned) " warned" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Submissions that are the same, for the instructor to look at.
fn groups(class: &Class, listed: &[Listed]) -> Markup {
    let groups: Vec<&Vec<String>> = class.groups.iter().filter(|group| group.len() > 1).collect();
    if groups.is_empty() {
        return html! {};
    }
    let find = |name: &String| listed.iter().find(|one| one.entry.learner == *name);
    html! {
        section.card {
            h2 { "Alike, for you to look at" }
            p { "The same bytes, or the same kernel once names, comments and white space are set aside; the rest of the file may differ, and with it the verdict. That may have good reasons." }
            ul.groups {
                @for group in groups {
                    li {
                        @for (at, name) in group.iter().enumerate() {
                            @if at > 0 { " = " }
                            @match find(name) { Some(one) => (one.link()), None => bdi { (safe(name)) } }
                        }
                    }
                }
            }
        }
    }
}

/// What there is to know about some reports.
fn remarks(class: &Class, listed: &[Listed]) -> Markup {
    if class.remarks.is_empty() {
        return html! {};
    }
    html! {
        section.card.wide.apart {
            h2 { "To know about" }
            ul {
                @for (learner, remark) in &class.remarks {
                    li {
                        @match listed.iter().find(|one| one.entry.learner == *learner) {
                            Some(one) => (one.link()),
                            None => bdi { (safe(learner)) },
                        }
                        " " span.muted { (safe(remark)) }
                    }
                }
            }
        }
    }
}

/// What was not taken for a submission: perhaps somebody handed in a file of another kind.
fn ignored(class: &Class) -> Markup {
    if class.ignored.is_empty() {
        return html! {};
    }
    html! {
        section.card.wide.apart {
            h2 { "Nobody's submission: " (class.ignored.len()) }
            p { "Files beside the submissions that are no " code { ".cu" } " and no archive. Has somebody handed in a file of another kind?" }
            ul { @for name in &class.ignored { li { bdi { (safe(name)) } } } }
        }
    }
}

/// Those that the grader or the machine could not judge, with the reason.
fn not_graded(ungraded: &[Listed]) -> Markup {
    if ungraded.is_empty() {
        return html! {};
    }
    html! {
        section.card.wide.apart {
            h2 { "Ungraded: " (ungraded.len()) }
            p { "The grader's or the machine's doing, never counted against the learner. Once the reason is gone, "
                code { "--retry-ungraded" } " grades them again." }
            ul {
                @for one in ungraded {
                    li { (one.link()) " " span.muted { (words::reason(one.report())) } }
                }
            }
        }
    }
}
