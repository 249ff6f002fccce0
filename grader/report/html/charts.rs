//! The class in pictures: inline SVG with no text of a learner's but names.

use maud::{Markup, html};

use super::scale::Scale;
use super::words::{self, counted, figure};
use super::{Listed, safe};
use crate::judge::timing::{GLOBAL, TILED};
use crate::verdict::Verdict;

/// A drawing's width and height, in its own units; a unit is about a CSS pixel.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 264.0;
/// Edges of the plot within it.
const LEFT: f64 = 40.0;
const RIGHT: f64 = 392.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 222.0;

/// Words read per cell-step by the lesson's kernels at n = 2048, as this grader and a profiler count them.
const LESSON: [(&str, f64); 3] = [("two-step", 0.84), ("tiled", 1.33), ("global", 5.0)];

/// How many words the kernels read, with the budget and the lesson's kernels marked.
pub fn reads(listed: &[Listed], budget: f64) -> Markup {
    let values: Vec<f64> = listed.iter().filter_map(|one| words::reads(one.report())).collect();
    let scale = Scale::over(values.iter().copied().chain(LESSON.map(|(_, reads)| reads)), budget, (LEFT, RIGHT));
    let within = values.iter().filter(|reads| **reads <= budget).count();
    html! {
        figure.card {
            figcaption { h2 { "Words read per cell-step" }
                p { (within) " of " (counted(values.len(), "counted kernel keeps", "counted kernels keep")) " the budget of " (budget) "." }
            }
            (plot("Histogram of words read per cell-step; the table holds each figure.", html! {
                @for (row, (name, reads)) in [1, 0, 1].into_iter().zip(LESSON) {
                    (mark(scale.at(reads), row, reads > budget, "lesson", &format!("{name} {reads}")))
                }
                (mark(scale.at(budget), 0, true, "limit", &format!("budget {budget}")))
                (bars(&scale, &values, ("within", "over")))
                (axis(&scale, "words read from global memory per cell and timestep"))
            }))
        }
    }
}

/// How long the kernels take against heatStepTiled; nothing when none was timed.
pub fn ratios(listed: &[Listed]) -> Markup {
    let values: Vec<f64> = listed.iter().filter_map(|one| words::ratio(one.report())).collect();
    if values.is_empty() {
        return html! {};
    }
    let scale = Scale::over(values.iter().copied().chain([0.5, 2.0]), 1.0, (LEFT, RIGHT));
    let faster = values.iter().filter(|ratio| **ratio < 1.0).count();
    html! {
        figure.card {
            figcaption { h2 { "Time against heatStepTiled" }
                p { (faster) " of " (counted(values.len(), "timed kernel is", "timed kernels are")) " faster than heatStepTiled." }
            }
            (plot("Histogram of time a timestep over heatStepTiled's; the table holds each figure.", html! {
                (mark(scale.at(1.0), 0, true, "limit", "heatStepTiled 1"))
                (bars(&scale, &values, ("faster", "slower")))
                (axis(&scale, "time a timestep over heatStepTiled's"))
            }))
        }
    }
}

/// Reads against time, the lesson's point: the one does not tell the other. Nothing when no kernel was timed.
pub fn reads_against_time(listed: &[Listed], budget: f64) -> Markup {
    let both = |one: &Listed<'_>| Some((words::reads(one.report())?, words::ratio(one.report())?));
    let points: Vec<(&Listed, f64, f64)> =
        listed.iter().filter_map(|one| both(one).map(|(reads, ratio)| (one, reads, ratio))).collect();
    if points.is_empty() {
        return html! {};
    }
    let shipped = shipped(listed);
    let (top, bottom) = (20.0, BOTTOM);
    let across = points.iter().map(|point| point.1).chain(shipped.iter().map(|kernel| kernel.1));
    let x = Scale::over(across, budget, (LEFT, RIGHT));
    let upward = points.iter().map(|point| point.2).chain(shipped.iter().map(|kernel| kernel.2)).chain([0.6, 1.6]);
    let y = Scale::over(upward, 1.0, (bottom, top));
    let kept = points.iter().filter(|point| point.1 <= budget);
    let (kept, slower) = (kept.clone().count(), kept.filter(|point| point.2 >= 1.0).count());
    let faster = points.iter().filter(|point| point.1 > budget && point.2 < 1.0).count();
    html! {
        figure.card {
            figcaption { h2 { "Reads against time" }
                p {
                    (slower) " of " (counted(kept, "timed kernel", "timed kernels")) " within the budget "
                    (if slower == 1 { "is" } else { "are" }) " no faster than heatStepTiled; "
                    (faster) " of " (points.len() - kept) " above it " (if faster == 1 { "is" } else { "are" }) " faster."
                }
            }
            (plot("Scatter of words read per cell-step against time over heatStepTiled's; the table holds each pair.", html! {
                rect.quadrant x=(LEFT) y=(px(y.at(1.0))) width=(px(x.at(budget) - LEFT)) height=(px(bottom - y.at(1.0))) {}
                @for tick in y.ticks(20.0) {
                    line.grid x1=(LEFT) x2=(RIGHT) y1=(px(y.at(tick))) y2=(px(y.at(tick))) {}
                    text.tick x=(LEFT - 5.0) y=(px(y.at(tick) + 4.0)) text-anchor="end" { (tick) }
                }
                line.limit x1=(LEFT) x2=(RIGHT) y1=(px(y.at(1.0))) y2=(px(y.at(1.0))) {}
                line.limit x1=(px(x.at(budget))) x2=(px(x.at(budget))) y1=(top) y2=(bottom) {}
                text.limit x=(px(x.at(budget) + 4.0)) y=(top + 8.0) { "budget " (budget) }
                text.corner x=(LEFT + 5.0) y=(top + 8.0) { "slower" }
                text.corner x=(LEFT + 5.0) y=(bottom - 6.0) { "faster" }
                @for (name, reads, ratio) in &shipped {
                    text.lesson x=(px((x.at(*reads) - 9.0).min(WIDTH - width(name) / 2.0))) y=(px(y.at(*ratio) + 13.0)) text-anchor="middle" { (name) }
                }
                @for (one, reads, ratio) in &points {
                    (dot(one, x.at(*reads), y.at(*ratio), &format!("{} words, {} times", figure(*reads), figure(*ratio))))
                }
                @for (_, reads, ratio) in &shipped {
                    path.shipped d=(format!("M{:.1} {:.1}l5.5 5.5l-5.5 5.5l-5.5 -5.5z", x.at(*reads), y.at(*ratio) - 5.5)) {}
                }
                text.tick x="2" y="10" { "time over heatStepTiled's" }
                (axis(&x, "words read from global memory per cell and timestep"))
            }))
            p.legend {
                svg viewBox="0 0 12 12" aria-hidden="true" { circle.within cx="6" cy="6" r="4.2" {} } "passed "
                svg viewBox="0 0 12 12" aria-hidden="true" { path.over d="M6 1.5l5 8.6h-10z" {} } "failed "
                svg viewBox="0 0 12 12" aria-hidden="true" { path.shipped d="M6 1l5 5l-5 5l-5 -5z" {} } "the lesson's kernels"
            }
        }
    }
}

/// The lesson's two kernels on the GPU that timed the class: name, words read, time over heatStepTiled's.
fn shipped(listed: &[Listed]) -> Vec<(&'static str, f64, f64)> {
    let timings = listed.iter().filter_map(|one| one.report().timing.as_ref());
    let Some(timing) = timings.into_iter().find(|timing| timing.unreliable.is_none()) else { return Vec::new() };
    let row = |kernel: &str| timing.rows.iter().find(|row| row.kernel == kernel);
    let Some(tiled) = row(TILED).map(|row| row.ms).filter(|ms| *ms > 0.0) else { return Vec::new() };
    let place = |name| row(name).and_then(|row| Some((name, row.reads?, row.ms / tiled)));
    [TILED, GLOBAL].into_iter().filter_map(place).collect()
}

/// One learner: a disc that passed, a triangle that did not.
fn dot(one: &Listed, x: f64, y: f64, figures: &str) -> Markup {
    html! {
        // The table has the same links, in the order of the keyboard.
        a href={ "#" (one.id) } tabindex="-1" {
            @if one.report().verdict == Verdict::Pass {
                circle.within cx=(px(x)) cy=(px(y)) r="4.2" { title { (safe(&one.entry.learner)) ": " (figures) } }
            } @else {
                path.over d=(format!("M{x:.1} {:.1}l5 8.6h-10z", y - 5.4)) { title { (safe(&one.entry.learner)) ": " (figures) } }
            }
        }
    }
}

fn plot(description: &str, content: Markup) -> Markup {
    html! {
        svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(description) { (content) }
    }
}

/// A bar a bin, its count on top.
fn bars(scale: &Scale, values: &[f64], classes: (&str, &str)) -> Markup {
    let bins = scale.bins(values);
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1) as f64;
    let height = |count: usize| (BOTTOM - TOP - 14.0) * count as f64 / most;
    html! {
        @for bin in bins.iter().filter(|bin| bin.count > 0) {
            @let (left, right) = (bin.pixels.0 + 1.0, bin.pixels.1 - 1.0);
            @let top = BOTTOM - height(bin.count).max(2.0);
            rect class=(if bin.above_pivot { classes.1 } else { classes.0 })
                x=(px(left)) y=(px(top)) width=(px(right - left)) height=(px(BOTTOM - top)) rx="1.5" {
                title { (bin.count) ": " (figure(bin.from)) " to " (figure(bin.to)) }
            }
            text.count x=(px((left + right) / 2.0)) y=(px(top - 4.0)) text-anchor="middle" { (bin.count) }
        }
    }
}

/// A vertical line with its label, in the first or second row above the plot, to its left or right.
fn mark(x: f64, row: u8, right: bool, class: &str, label: &str) -> Markup {
    let y = 13.0 + 14.0 * f64::from(row);
    // A label needs room on its side, or stands on the other.
    let needs = width(label) + 4.0;
    let right = if right { x + needs <= WIDTH } else { x < needs };
    let (at, anchor) = if right { (x + 4.0, "start") } else { (x - 4.0, "end") };
    html! {
        line class=(class) x1=(px(x)) x2=(px(x)) y1=(px(y - 9.0)) y2=(BOTTOM) {}
        text class=(class) x=(px(at)) y=(px(y)) text-anchor=(anchor) { (label) }
    }
}

fn axis(scale: &Scale, label: &str) -> Markup {
    html! {
        line.axis x1=(LEFT) x2=(RIGHT) y1=(BOTTOM) y2=(BOTTOM) {}
        @for tick in scale.ticks(26.0) {
            line.axis x1=(px(scale.at(tick))) x2=(px(scale.at(tick))) y1=(BOTTOM) y2=(BOTTOM + 4.0) {}
            text.tick x=(px(scale.at(tick))) y=(BOTTOM + 17.0) text-anchor="middle" { (tick) }
        }
        text.axis-label x=((LEFT + RIGHT) / 2.0) y=(BOTTOM + 35.0) text-anchor="middle" { (label) }
    }
}

/// Units that a text takes at most in the fonts that a system has.
fn width(text: &str) -> f64 {
    let of = |c: char| match c {
        'f' | 'i' | 'j' | 'l' | 'r' | 't' | ' ' | '.' | '-' => 4.2,
        'A'..='Z' => 8.0,
        _ => 7.2,
    };
    text.chars().map(of).sum()
}

/// A coordinate to a tenth of a unit.
fn px(value: f64) -> String {
    format!("{value:.1}")
}
