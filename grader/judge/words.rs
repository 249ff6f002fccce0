//! The grader's turns of phrase: places, threads, numbers. Everything that names one of them goes through here, so that
//! the same thing reads the same in every check.

use crate::execute::{Actor, Hazard, HazardKind, Memory, Place};

/// `4186116` as `4,186,116`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count with its noun: `1 cell`, `2,500 cells`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// A difference or tolerance, three digits.
pub fn small(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value) { format!("{value:.6}") } else { format!("{value:.2e}") }
}

/// A cell's value as short as it can be told from others; with a power of ten where that is shorter to read.
pub fn value(value: f32) -> String {
    let plain = value == 0.0 || !value.is_finite() || (1e-5..1e7).contains(&value.abs());
    if plain { value.to_string() } else { format!("{value:e}") }
}

/// `rows 3 to 98`, or `row 3`.
pub fn span(noun: &str, (from, to): (usize, usize)) -> String {
    if from == to { format!("{noun} {from}") } else { format!("{noun}s {from} to {to}") }
}

/// `heat.cu:57`, or nothing known.
pub fn place(place: Option<Place>) -> String {
    place.map_or_else(|| "heat.cu".to_owned(), |place| format!("heat.cu:{}", place.line))
}

/// `block (1, 0), thread (5, 3)`: z only where it is not 0.
pub fn actor(actor: &Actor) -> String {
    format!("block {}, thread {}", index(actor.block), index(actor.thread))
}

fn index([x, y, z]: [u32; 3]) -> String {
    if z == 0 { format!("({x}, {y})") } else { format!("({x}, {y}, {z})") }
}

/// What an access touched, on an n x n grid.
pub fn memory(memory: &Memory, n: u32) -> String {
    match memory {
        Memory::In { cell } => grid_cell("in", *cell, n),
        Memory::Out { cell } => grid_cell("out", *cell, n),
        Memory::Shared { name, byte, lengths } => shared(name, *byte, lengths),
        Memory::SharedRow { name, index, lengths } => {
            format!("shared {name}[{index}] (declared {})", declared(lengths))
        }
        Memory::Local { name, index } if name.is_empty() => "a word beyond its local array".to_owned(),
        Memory::Local { name, index } => format!("local array {name}[{index}]"),
        Memory::Device { name } => format!("device variable {name}"),
        Memory::Constant { name } => format!("constant variable {name}"),
        Memory::Wild { address } => format!("address {address:#x}, which belongs to no grid or array"),
    }
}

/// `shared tile[8][32] (declared [12][36])`; a word of the array where its shape is not known.
fn shared(name: &str, byte: i64, lengths: &[u32]) -> String {
    // The engine's name for what a launch gives has blanks, which no array's has.
    let array = if name.contains(' ') { format!("the {name}") } else { format!("shared array {name}") };
    if byte % 4 != 0 {
        return format!("byte {byte} of {array}");
    }
    match lengths.split_first() {
        None => format!("word {} of {array}", byte / 4),
        Some((_, inner)) => {
            let (mut indices, mut rest) = (Vec::new(), byte / 4);
            for &length in inner.iter().rev() {
                indices.push(rest.rem_euclid(length.max(1).into()));
                rest = rest.div_euclid(length.max(1).into());
            }
            indices.push(rest);
            let element: String = indices.iter().rev().map(|index| format!("[{index}]")).collect();
            format!("shared {name}{element} (declared {})", declared(lengths))
        }
    }
}

/// `[12][36]`.
fn declared(lengths: &[u32]) -> String {
    lengths.iter().map(|length| format!("[{length}]")).collect()
}

/// Whether a word lies in an array of that shape: then an index beyond one dimension has led to another row.
fn lands_inside(memory: &Memory) -> bool {
    let Memory::Shared { byte, lengths, .. } = memory else { return false };
    let bytes = lengths.iter().map(|&length| i64::from(length)).product::<i64>() * 4;
    !lengths.is_empty() && (0..bytes).contains(byte)
}

fn grid_cell(grid: &str, cell: i64, n: u32) -> String {
    let n = i64::from(n.max(1));
    format!("{grid}[{cell}] (row {}, column {})", cell.div_euclid(n), cell.rem_euclid(n))
}

/// One hazard in one sentence without its full stop: where, what, who.
pub fn hazard(hazard: &Hazard, n: u32) -> String {
    let target = hazard.memory.as_ref().map_or_else(|| "memory".to_owned(), |touched| memory(touched, n));
    let access = if hazard.store { "store to" } else { "load of" };
    let what = match hazard.kind {
        HazardKind::OutOfRange if hazard.memory.as_ref().is_some_and(lands_inside) => {
            format!("an index is out of range: it leads to {target}")
        }
        HazardKind::OutOfRange => format!("{access} {target} is out of range"),
        HazardKind::NeverWritten => format!("load of {target}, which no thread had written yet"),
        HazardKind::InputWritten => format!("store to {target}: the input grid must stay as it is"),
        HazardKind::ConstantWritten => format!("store to {target}: constant memory is read-only for a kernel"),
        HazardKind::ForeignLocal => {
            format!("{access} a local variable of another thread, which no GPU thread can reach")
        }
        HazardKind::WriteWriteRace => format!("two threads write {target} with no barrier between them"),
        HazardKind::SameValueRace => {
            format!("two threads write the same value to {target} with no barrier between them")
        }
        HazardKind::ReadWriteRace if hazard.is_between_blocks() => {
            format!("{access} {target} races with another block's access: nothing orders blocks within a launch")
        }
        HazardKind::ReadWriteRace => {
            format!("{access} {target} races with another thread's access: no barrier between them")
        }
        HazardKind::BarrierDivergence => "threads of one block wait at different barriers".to_owned(),
        HazardKind::BarrierAfterExit => {
            "some threads of the block never come to this barrier, at which the others wait".to_owned()
        }
    };
    let at = place(hazard.place);
    match &hazard.actor {
        Some(who) => format!("{at}: {what} ({}{})", actor(who), other(hazard)),
        None => format!("{at}: {what} (seen after launch {})", hazard.launch),
    }
}

fn other(hazard: &Hazard) -> String {
    let Some((other, at)) = &hazard.other else { return String::new() };
    let line = at.map_or_else(String::new, |at| format!(" at line {}", at.line));
    if hazard.actor.is_some_and(|actor| actor.block == other.block) {
        format!("; the other is thread {}{line}", index(other.thread))
    } else {
        format!("; the other is {}{line}", actor(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_told_as_short_as_it_can_be_read() {
        let said = [0.0, -0.0, 1.0836058, 250_000.5, f32::NAN, f32::INFINITY, -3.4e38, 1e-42].map(value);
        assert_eq!(said, ["0", "-0", "1.0836058", "250000.5", "NaN", "inf", "-3.4e38", "1e-42"]);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 4_186_116].map(grouped), ["0", "999", "1,000", "4,186,116"]);
        assert_eq!(counted(1, "cell"), "1 cell");
    }

    #[test]
    fn a_cell_before_the_grid_has_a_negative_row() {
        assert_eq!(memory(&Memory::In { cell: -101 }, 100), "in[-101] (row -2, column 99)");
    }

    #[test]
    fn a_shared_word_is_named_by_its_row_and_column() {
        let word = |word: i64, lengths: &[u32]| {
            memory(&Memory::Shared { name: "tile".to_owned(), byte: 4 * word, lengths: lengths.to_vec() }, 100)
        };
        assert_eq!(word(304, &[10, 34]), "shared tile[8][32] (declared [10][34])");
        assert_eq!(word(432, &[432]), "shared tile[432] (declared [432])");
        assert_eq!(word(432, &[12, 36]), "shared tile[12][0] (declared [12][36])");
        assert_eq!(word(-1, &[12, 36]), "shared tile[-1][35] (declared [12][36])");
        assert_eq!(word(60, &[2, 4, 8]), "shared tile[1][3][4] (declared [2][4][8])");
        assert_eq!(word(304, &[]), "word 304 of shared array tile");
        let part = Memory::Shared { name: "tile".to_owned(), byte: 6, lengths: vec![4] };
        assert_eq!(memory(&part, 100), "byte 6 of shared array tile");
    }

    #[test]
    fn differences_are_readable_at_any_size() {
        assert_eq!([0.5, 1.9e-6, 4.8e9].map(small), ["0.500000", "1.90e-6", "4.80e9"]);
    }
}
