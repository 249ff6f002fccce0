//! How often a learner's kernel reads each cell: the apron of one block, and the map of a small grid.

use base64::Engine as _;
use maud::{Markup, html};

use super::BASE64;
use crate::report::{Report, apron, picture};

/// The drawing of one block's apron; nothing where there is none.
pub fn apron(report: &Report) -> Markup {
    let (Some(apron), Some(drawing)) = (&report.apron, apron::figure(report)) else { return html! {} };
    html! {
        figure.card.map {
            figcaption { h2 { "What one block reads" } p { (apron::sentence(apron)) } }
            (drawing)
        }
    }
}

/// The reads map with its axes and legend; nothing where there is none.
pub fn reads_map(report: &Report) -> Markup {
    let (Some(map), Some(png)) = (&report.reads_map, picture::reads::bare(report)) else { return html! {} };
    let (side, left, top) = (300.0, 58.0, 24.0);
    let data = format!("data:image/png;base64,{}", BASE64.encode(png));
    let last = map.n.saturating_sub(1);
    let shades = picture::reads::occurring(map);
    html! {
        figure.card.map {
            figcaption { h2 { "How often each cell is read" } p { "By the first launch at n = " (map.n) ", at most " (map.most) " times." } }
            svg viewBox="0 0 400 368" role="img" aria-label={ "Map of how often each cell is read, at most " (map.most) " times." } {
                image.sharp x=(left) y=(top) width=(side) height=(side) preserveAspectRatio="none" href=(data) {}
                text.tick x=(left) y=(top - 8.0) text-anchor="start" { "column 0" }
                text.tick x=(left + side) y=(top - 8.0) text-anchor="end" { (last) }
                text.tick x=(left - 6.0) y=(top + 10.0) text-anchor="end" { "row 0" }
                text.tick x=(left - 6.0) y=(top + side) text-anchor="end" { (last) }
                @for (at, reads) in shades.iter().enumerate() {
                    rect.swatch x=(left + 34.0 * at as f64) y=(top + side + 14.0) width="12" height="12" fill=(picture::reads::shade(*reads)) {}
                    text.tick x=(left + 34.0 * at as f64 + 16.0) y=(top + side + 24.0) { (reads) @if *reads == 9 { "+" } }
                }
            }
        }
    }
}
