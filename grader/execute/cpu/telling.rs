//! A worker's words as the grader's: addresses become lines and names, words of an array its rows and columns.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::banks::{LANES, MOST, RawBanks};
use super::object::ObjectMap;
use super::raw::{RawHazard, RawObservation, Site};
use super::symbols::Symbols;
use crate::execute::{
    Actor, DeviceState, Hazard, InputChange, LastWrite, Memory, Observation, Place, RunFault, SharedArray, SharedUse,
};
use crate::grid::Grid;
use crate::submission::{self, SharedShape, shared_shapes};

/// How a run went, before it is put in the grader's terms.
#[derive(Default)]
pub struct Raw {
    pub seen: RawObservation,
    pub grids: Vec<(u32, Grid)>,
    pub states: Vec<(u32, Arc<DeviceState>)>,
    pub fault: Option<RunFault>,
    pub output: String,
}

/// What turns a worker's words into the grader's.
pub struct Telling<'a> {
    pub symbols: &'a Symbols,
    pub source: &'a str,
    pub map: &'a ObjectMap,
    pub n: usize,
    /// The shared arrays as they are declared, once somebody asks.
    pub shapes: OnceCell<Vec<SharedShape>>,
}

impl Telling<'_> {
    /// The arrays and what the first warp did in them. What a worker says of arrays or words that there are not, or of more
    /// lanes than a warp has, is left out.
    fn shared_use(&self, banks: RawBanks) -> (Vec<SharedArray>, Vec<SharedUse>) {
        let known = |at: usize, words: &[u32]| {
            let array = self.map.shared.get(at)?;
            let inside = |word: &u32| array.dynamic || u64::from(*word) < array.bytes.div_ceil(4);
            words.iter().all(inside).then_some(array)
        };
        let mut numbers = Vec::new();
        let mut arrays = Vec::new();
        for (at, touched) in banks.touched {
            if let Some(array) = known(at, &touched) {
                let (name, uneven) = (array.name.clone(), banks.uneven.contains(&at));
                arrays.push(SharedArray { lengths: self.lengths(&name), name, touched, uneven });
                numbers.push(at);
            }
        }
        let used = |(site, at, words): (Site, usize, Vec<u32>)| {
            known(at, &words).filter(|_| words.len() <= LANES)?;
            let array = numbers.iter().position(|&number| number == at)?;
            Some(SharedUse { line: self.symbols.place(site)?.line, array, words })
        };
        (arrays, banks.together.into_iter().take(MOST).filter_map(used).collect())
    }

    fn by_line(&self, sites: &[(Site, u64)]) -> Vec<(u32, u64)> {
        let mut lines = BTreeMap::new();
        for (site, bytes) in sites {
            if let Some(place) = self.symbols.place(*site) {
                *lines.entry(place.line).or_insert(0) += bytes;
            }
        }
        lines.into_iter().collect()
    }

    pub fn observation(&self, raw: Raw) -> Observation {
        let changed = raw.seen.input_changed.map(|(launch, cell, before, after)| InputChange {
            launch,
            row: cell / self.n,
            column: cell % self.n,
            before: f32::from_bits(before),
            after: f32::from_bits(after),
        });
        // The worker runs learner's code: what it says is looked at before anybody walks along it.
        let mut cell_reads = raw.seen.cell_reads.filter(|reads| reads.are_of(self.n));
        if let Some(block) = cell_reads.as_mut().and_then(|reads| reads.of_block.as_mut()) {
            block.by_line = self.by_line(&raw.seen.read_sites);
            block.elsewhere = self.by_line(&raw.seen.other_sites);
            (block.arrays, block.uses) = self.shared_use(raw.seen.banks);
        }
        let written = |(actor, site): (Actor, Site)| LastWrite { actor, place: self.symbols.place(site) };
        Observation {
            grids: raw.grids,
            states: raw.states,
            words_read: raw.seen.words_read,
            hazards: raw.seen.hazards.into_iter().filter_map(|hazard| self.hazard(hazard)).collect(),
            input_changed: changed,
            shortcut: raw.seen.loops,
            writers: raw.seen.writers.into_iter().map(|write| write.map(written)).collect(),
            cell_reads,
            fault: raw.fault,
            output: raw.output,
            constructors_printed: String::new(),
            cpu_seconds: raw.seen.cpu_seconds,
            wall_seconds: raw.seen.wall_seconds,
        }
    }

    fn hazard(&self, raw: RawHazard) -> Option<Hazard> {
        let place = raw.site.and_then(|site| self.symbols.place(site));
        if let (Some(Memory::Shared { name, byte, .. }), Some(place), 0) = (&raw.memory, place, raw.bytes)
            && self.flattened(name, *byte, place.line)
        {
            return None;
        }
        Some(Hazard {
            kind: raw.kind,
            memory: raw.memory.map(|memory| self.shaped(memory, place)),
            store: raw.store,
            bytes: raw.bytes,
            place,
            actor: Some(raw.actor),
            other: raw.other.map(|(actor, site)| (actor, site.and_then(|site| self.symbols.place(site)))),
            launch: raw.launch,
            count: raw.count,
        })
    }

    /// Shared memory by an array with the lengths that it is declared with; `place` is where it is touched.
    fn shaped(&self, memory: Memory, place: Option<Place>) -> Memory {
        match memory {
            Memory::Shared { name, byte, .. } => Memory::Shared { byte, lengths: self.lengths(&name), name },
            Memory::Local { name, index } => {
                self.shared_by_type(&name, index, place).unwrap_or(Memory::Local { name, index })
            }
            memory => memory,
        }
    }

    /// The shared array whose type the compiler's bounds check names (`float [2][12][36]`), when the line names no other one of
    /// that type: an access past its end need not come near it.
    fn shared_by_type(&self, of_type: &str, index: i64, place: Option<Place>) -> Option<Memory> {
        let names = names_at(self.source, place?.line);
        let arrays = self.map.shared.iter().filter(|symbol| !symbol.hidden && names(&symbol.name));
        let mut alike = arrays.map(|symbol| (&symbol.name, self.lengths(&symbol.name))).filter(|(_, lengths)| {
            let declared: String = lengths.iter().map(|length| format!("[{length}]")).collect();
            !lengths.is_empty() && of_type.ends_with(&format!(" {declared}"))
        });
        let (name, lengths) = alike.next().filter(|_| alike.next().is_none())?;
        Some(Memory::SharedRow { name: name.clone(), index, lengths })
    }

    /// The lengths that a shared array is declared with, where they come to its size; else none.
    fn lengths(&self, name: &str) -> Vec<u32> {
        let shapes = self.shapes.get_or_init(|| shared_shapes(&submission::Program::new(self.source)));
        let bytes = |lengths: &[u32]| lengths.iter().map(|&length| u64::from(length)).product::<u64>() * 4;
        let symbol = self.map.shared.iter().find(|symbol| symbol.name == name && !symbol.dynamic);
        let shape = shapes.iter().find(|shape| shape.name == name);
        let fits = symbol.zip(shape).filter(|(symbol, shape)| symbol.bytes == bytes(&shape.lengths));
        fits.map_or_else(Vec::new, |(_, shape)| shape.lengths.clone())
    }

    /// Whether an index beyond its dimension is the ordinary trick of walking a whole shared array by its first row
    /// (`tile[0][s]`): it landed inside an array, and the line does not name another one instead.
    fn flattened(&self, landed: &str, byte: i64, line: u32) -> bool {
        let Some(symbol) = self.map.shared.iter().find(|symbol| symbol.name == landed) else { return false };
        let inside = byte >= 0 && (symbol.dynamic || (byte as u64) < symbol.bytes);
        let names = names_at(self.source, line);
        let others = || self.map.shared.iter().filter(|symbol| !symbol.hidden && symbol.name != landed);
        inside && (names(landed) || !others().any(|symbol| names(&symbol.name)))
    }
}

/// Whether a line of the source, counted from 1, has a word.
fn names_at(source: &str, line: u32) -> impl Fn(&str) -> bool {
    let text = source.lines().nth(line.saturating_sub(1) as usize).unwrap_or("");
    move |name| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}
