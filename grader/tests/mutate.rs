//! Texts that were right once: proptest strategies that damage them as no generator of grammar would.

use proptest::prelude::*;

/// The texts of fixtures whose heat.cu is small.
pub fn fixtures() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let folders = ["right", "wrong"].into_iter().flat_map(|kind| std::fs::read_dir(root.join(kind)).expect("fixtures"));
    let texts = folders.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("heat.cu")).ok());
    let mut texts: Vec<String> = texts.filter(|text| text.len() < 5_000).collect();
    texts.sort();
    texts
}

/// What an edit moves about.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Line,
    Token,
    Character,
}

/// One edit; places are shares of the text's length.
#[derive(Clone, Debug)]
struct Edit {
    unit: Unit,
    kind: u8,
    from: f64,
    length: usize,
    to: f64,
}

/// One of the seeds after a few edits: pieces deleted, doubled, repeated often, moved, or taken from another seed.
pub fn mutated(seeds: Vec<String>) -> impl Strategy<Value = String> {
    let unit = prop::sample::select(vec![Unit::Line, Unit::Token, Unit::Token, Unit::Token, Unit::Character]);
    let edit = (unit, 0..6u8, 0.0..1.0f64, 1..6usize, 0.0..1.0f64);
    let edit = edit.prop_map(|(unit, kind, from, length, to)| Edit { unit, kind, from, length, to });
    let seeds = prop::sample::select(seeds);
    (seeds.clone(), seeds, prop::collection::vec(edit, 1..8))
        .prop_map(|(seed, other, edits)| edits.iter().fold(seed, |text, edit| edited(&text, &other, edit)))
}

fn edited(text: &str, other: &str, edit: &Edit) -> String {
    let mut pieces = pieces(text, edit.unit);
    let at = |share: f64, length: usize| (share * length as f64) as usize;
    let from = at(edit.from, pieces.len());
    let taken: Vec<&str> = pieces.iter().skip(from).take(edit.length).copied().collect();
    let to = at(edit.to, pieces.len());
    match edit.kind {
        0 => drop(pieces.drain(from..from + taken.len())),
        1 => drop(pieces.splice(from..from, taken)),
        2 => drop(pieces.splice(to..to, taken.repeat(50))),
        3 => drop(pieces.splice(to..to, taken)),
        4 if from < pieces.len() && to < pieces.len() => pieces.swap(from, to),
        4 => {}
        _ => {
            let others = self::pieces(other, edit.unit);
            let taken: Vec<&str> = others.iter().skip(at(edit.to, others.len())).take(edit.length).copied().collect();
            drop(pieces.splice(from..from, taken));
        }
    }
    pieces.concat()
}

/// The text in pieces that add up to it.
fn pieces(text: &str, unit: Unit) -> Vec<&str> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    match unit {
        Unit::Line => text.split_inclusive('\n').collect(),
        Unit::Token => {
            let mut pieces = Vec::new();
            let mut rest = text;
            while let Some(first) = rest.chars().next() {
                let length = if word(first) { rest.find(|c| !word(c)) } else { Some(first.len_utf8()) };
                let (piece, after) = rest.split_at(length.unwrap_or(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces
        }
        Unit::Character => text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect(),
    }
}
