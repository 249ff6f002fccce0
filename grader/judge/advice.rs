//! What could be better about a kernel without its being wrong: how its warps use shared memory, and what a multiprocessor
//! can hold of it. No verdict rests on it.

use std::collections::{BTreeMap, BTreeSet};

use super::diagnosis::Code;
use super::{Seen, grouped};
use crate::execute::{BlockReads, SharedArray, SharedUse};

/// Banks of shared memory, one 4-byte word wide each (CUDA C++ Programming Guide, compute capability 5.0 and later).
const BANKS: u32 = 32;
/// Fewest lanes of a warp whose turns say something.
const LANES: usize = 16;
/// Turns an access, on average, from which advice is given.
const TURNS: f64 = 3.0;
/// Most columns that nobody touches which are taken for padding.
const PADDING: u32 = 4;

/// Registers of a multiprocessor, and by how many a warp gets them.
const REGISTERS: u32 = 65_536;
const REGISTERS_AT_A_TIME: u32 = 256;
/// Shared memory that the system takes of each block from compute capability 8.0 on, bytes.
const RESERVED: u32 = 1024;
/// The share of a multiprocessor's threads below which memory or registers keep it from having enough to do.
const ENOUGH: f64 = 0.5;

/// What ptxas and the launch give a block on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// 75 is sm_75.
    pub arch: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of shared memory a block, static and dynamic.
    pub shared: u32,
    /// Bytes a thread that ptxas stores to and loads from local memory for want of registers.
    pub spills: u32,
}

/// A word of advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    pub code: Code,
    pub line: Option<u32>,
    pub sentence: String,
}

/// Advice on the kernel, from what one block of a watched launch did; nothing while a cell is wrong.
pub fn advice(seen: &Seen) -> Vec<Advice> {
    if !seen.gating().all(|outcome| outcome.grids_right() && outcome.fault.is_none()) {
        return Vec::new();
    }
    let blocks = seen.gating().filter_map(|outcome| outcome.cell_reads.as_ref()?.of_block.as_ref());
    blocks.max_by_key(|block| block.reads.len()).map(of_block).unwrap_or_default()
}

fn of_block(block: &BlockReads) -> Vec<Advice> {
    conflicts(&block.uses)
        .into_iter()
        .chain(block.arrays.iter().enumerate().filter_map(|(at, array)| {
            let uses = block.uses.iter().filter(|used| used.array == at);
            padding(array, &uses.map(|used| used.words.as_slice()).collect::<Vec<_>>())
        }))
        .collect()
}

/// Advice on what a multiprocessor can hold of the kernel.
pub fn of_footprint(footprint: &Footprint) -> Vec<Advice> {
    spills(footprint).into_iter().chain(occupancy(footprint)).collect()
}

fn spills(footprint: &Footprint) -> Option<Advice> {
    let Footprint { spills, registers, .. } = *footprint;
    let sentence = format!(
        "With {registers} registers a thread ptxas has to keep {spills} bytes of a thread's variables in local memory, which is \
         as far away as global memory."
    );
    (spills > 0).then_some(Advice { code: Code::RegisterSpills, line: None, sentence })
}

/// Threads, blocks and bytes of shared memory that a multiprocessor holds at most (CUDA C++ Programming Guide, technical
/// specifications by compute capability); `None` for one that is not listed here.
fn multiprocessor(arch: u32) -> Option<(u32, u32, u32)> {
    Some(match arch {
        70 => (2048, 32, 96 << 10),
        75 => (1024, 16, 64 << 10),
        80 => (2048, 32, 164 << 10),
        86 => (1536, 16, 100 << 10),
        89 => (1536, 24, 100 << 10),
        90 => (2048, 32, 228 << 10),
        _ => return None,
    })
}

fn occupancy(footprint: &Footprint) -> Option<Advice> {
    let Footprint { arch, threads, registers, shared, .. } = *footprint;
    let (most_threads, most_blocks, most_shared) = multiprocessor(arch)?;
    let warps = threads.div_ceil(32).max(1);
    let a_block = shared + if arch >= 80 { RESERVED } else { 0 };
    let by_shared = if shared == 0 { most_blocks } else { most_shared / a_block };
    let by_registers = REGISTERS / ((registers.max(1) * 32).next_multiple_of(REGISTERS_AT_A_TIME) * warps);
    let by_threads = (most_threads / (warps * 32)).min(most_blocks);
    let resident = by_shared.min(by_registers).min(by_threads);
    let share = f64::from(resident * warps * 32) / f64::from(most_threads);
    if share >= ENOUGH || resident == by_threads {
        return None;
    }
    let because = if by_shared <= by_registers {
        format!(
            "a block takes {} bytes of its {} of shared memory",
            grouped(shared.into()),
            grouped(most_shared.into())
        )
    } else {
        format!(
            "a thread takes {registers} registers and a block {} of its {}",
            grouped((registers * warps * 32).into()),
            grouped(REGISTERS.into())
        )
    };
    let sentence = format!(
        "A multiprocessor of sm_{arch} holds {resident} of these blocks at once, {:.0}% of the threads that it has room for, because \
         {because}.",
        100.0 * share
    );
    Some(Advice { code: Code::LowOccupancy, line: None, sentence })
}

/// How many turns a warp takes for words that its lanes want together: as many as the bank has different words that has most.
fn turns(words: impl Iterator<Item = u32>) -> u32 {
    let mut banks: [Vec<u32>; BANKS as usize] = Default::default();
    for word in words {
        let bank = &mut banks[(word % BANKS) as usize];
        if !bank.contains(&word) {
            bank.push(word);
        }
    }
    banks.iter().map(|bank| bank.len() as u32).max().unwrap_or(0)
}

/// Lines where the lanes of a warp wait for each other's banks.
fn conflicts(uses: &[SharedUse]) -> Vec<Advice> {
    let mut places: BTreeMap<(u32, usize), Vec<&SharedUse>> = BTreeMap::new();
    for used in uses {
        places.entry((used.line, used.array)).or_default().push(used);
    }
    let mut lines: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for ((line, _), uses) in places.into_iter().filter(|(_, uses)| !are_one_run(uses)) {
        for used in uses.into_iter().filter(|used| used.words.len() >= LANES) {
            let (accesses, all) = lines.entry(line).or_default();
            (*accesses, *all) = (*accesses + 1, *all + turns(used.words.iter().copied()));
        }
    }
    let mean = |(accesses, all): (u32, u32)| f64::from(all) / f64::from(accesses.max(1));
    let worst = lines.into_iter().map(|(line, seen)| (line, mean(seen))).filter(|(_, mean)| *mean >= TURNS);
    // The worst line stands for the others: they walk the same array.
    let Some((line, turns)) = worst.max_by(|(_, one), (_, other)| one.total_cmp(other)) else { return Vec::new() };
    let sentence = format!(
        "The accesses of a warp to shared memory at heat.cu:{line} take {turns:.1} turns, on average, where one would do: words \
         that lie a multiple of {BANKS} words apart share a bank, and its lanes want several of them at once."
    );
    vec![Advice { code: Code::BankConflicts, line: Some(line), sentence }]
}

/// Whether all that is touched of an array at one line is one run of words. g++ takes a wide access (a float4) apart, lane by
/// lane four words away from the next; a GPU makes it at once.
fn are_one_run(uses: &[&SharedUse]) -> bool {
    let words: BTreeSet<u32> = uses.iter().flat_map(|used| used.words.iter().copied()).collect();
    words.first().zip(words.last()).is_some_and(|(first, last)| (last - first) as usize + 1 == words.len())
}

/// A column beside the tile that nothing is kept in and that spares no warp a turn.
fn padding(array: &SharedArray, together: &[&[u32]]) -> Option<Advice> {
    let &[_, columns] = array.lengths.as_slice() else { return None };
    let column_of = |word: &u32| word % columns.max(1);
    let used = array.touched.iter().map(|word| column_of(word) + 1).max()?;
    // An array as large as another one, of which the middle is used, is not padded.
    let from_the_first = array.touched.iter().any(|word| column_of(word) == 0);
    if array.uneven || !from_the_first || used == columns || columns - used > PADDING || together.is_empty() {
        return None;
    }
    let all = |pitch: u32| -> u32 {
        let moved = |word: u32| word / columns * pitch + word % columns;
        together.iter().map(|words| turns(words.iter().map(|&word| moved(word)))).sum()
    };
    (all(used) <= all(columns)).then(|| {
        let (rows, name) = (array.lengths[0], &array.name);
        let spare = columns - used;
        let many = if spare == 1 { "column" } else { "columns" };
        Advice {
            code: Code::PaddingUnused,
            line: None,
            sentence: format!(
                "{name}[{rows}][{columns}] has {spare} {many} that no thread uses, and without {} no warp would wait longer for a \
                 bank: padding costs {} bytes of shared memory here and buys nothing.",
                if spare == 1 { "it" } else { "them" },
                4 * rows * spare
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(line: u32, words: impl Iterator<Item = u32>) -> SharedUse {
        SharedUse { line, array: 0, words: words.collect() }
    }

    #[test]
    fn a_warp_takes_a_turn_for_each_word_of_its_fullest_bank() {
        assert_eq!(turns(0..32), 1, "a row");
        assert_eq!(turns((0..32).map(|lane| lane * 32)), 32, "a column of a row as long as the banks");
        assert_eq!(turns((0..32).map(|lane| lane * 33)), 1, "a column of a padded row");
        assert_eq!(turns((0..32).map(|lane| lane * 36)), 4);
        assert_eq!(turns((0..32).map(|_| 7)), 1, "one word goes to all");
    }

    #[test]
    fn only_a_line_that_waits_gets_advice() {
        let rows = (0..4).map(|row| used(60, (0..32).map(move |lane| row * 36 + lane)));
        assert!(conflicts(&rows.collect::<Vec<_>>()).is_empty());
        let column = [used(60, 0..32), used(61, (0..32).map(|lane| lane * 36)), used(62, (0..8).map(|lane| lane * 32))];
        let said = conflicts(&column);
        assert_eq!((said.len(), said[0].code, said[0].line), (1, Code::BankConflicts, Some(61)));
        assert!(said[0].sentence.contains("heat.cu:61 take 4.0 turns"), "{said:?}");
        let wide = (0..4).map(|part| used(60, (0..32).map(move |lane| 4 * lane + part)));
        assert!(conflicts(&wide.collect::<Vec<_>>()).is_empty(), "a float4 that was taken apart");
    }

    #[test]
    fn a_column_that_spares_no_turn_is_told_and_one_that_does_is_not() {
        let array = |columns: u32, used: u32| SharedArray {
            name: "tile".to_owned(),
            lengths: vec![12, columns],
            uneven: false,
            touched: (0..12).flat_map(|row| (0..used).map(move |column| row * columns + column)).collect(),
        };
        let row: Vec<u32> = (37..69).collect();
        let said = padding(&array(37, 36), &[&row]).expect("advice");
        assert!(said.sentence.starts_with("tile[12][37] has 1 column that no thread uses"), "{said:?}");
        assert!(said.sentence.contains("padding costs 48 bytes"), "{said:?}");
        assert_eq!(padding(&array(36, 36), &[&row]), None, "no column is spare");
        let uneven = SharedArray { uneven: true, ..array(37, 36) };
        assert_eq!(padding(&uneven, &[&row]), None, "other accesses may need it");
        let column: Vec<u32> = (0..12).map(|row| row * 33).collect();
        assert_eq!(padding(&array(33, 32), &[&column]), None, "without it a column would be one bank");
        assert_eq!(padding(&array(64, 36), &[&row]), None, "that is no padding");
        assert_eq!(padding(&SharedArray { lengths: vec![444], ..array(37, 36) }, &[&row]), None, "no rows are known");
    }

    #[test]
    fn what_a_multiprocessor_holds_is_told_where_memory_or_registers_keep_it_low() {
        let lesson = Footprint { arch: 75, threads: 256, registers: 32, shared: 3088, spills: 0 };
        assert!(of_footprint(&lesson).is_empty());
        let said = |footprint: Footprint| {
            of_footprint(&footprint).into_iter().map(|advice| advice.sentence).collect::<Vec<_>>()
        };
        let large = said(Footprint { shared: 40_000, ..lesson });
        assert!(
            large[0].contains("holds 1 of these blocks at once, 25%")
                && large[0].contains("40,000 bytes of its 65,536"),
            "{large:?}"
        );
        // 4 blocks of 53,248 bytes and the system's share: half of the threads.
        assert!(said(Footprint { arch: 90, shared: 53_248, ..lesson }).is_empty());
        let hungry = said(Footprint { registers: 200, ..lesson });
        assert!(hungry[0].contains("a thread takes 200 registers and a block 51,200 of its 65,536"), "{hungry:?}");
        assert!(said(Footprint { threads: 32, ..lesson }).is_empty(), "small blocks are another matter");
        assert!(said(Footprint { arch: 999, shared: 40_000, ..lesson }).is_empty(), "nothing is known of it");
        let spilt = said(Footprint { spills: 48, ..lesson });
        assert!(spilt.len() == 1 && spilt[0].contains("48 bytes"), "{spilt:?}");
    }
}
