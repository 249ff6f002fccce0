//! Blocks as loops over their threads ([`crate::compile::thread_loops`]): relied on only where one launch made that way
//! gave, bit by bit, what coroutines gave; and every launch whose grid is kept is made both ways.

use super::abi::KernelFn;
use super::arena::Buffer;
use super::launch::{Pace, poison_interior};
use super::object::LoadedObject;
use crate::execute::wire::bytes_of;
use crate::memory::copy_of;

/// Most bytes of a program's variables that are compared.
const MOST_DATA: usize = 16 << 20;

/// How a trial's launches are made.
pub struct Loops {
    block: Option<KernelFn>,
    state: State,
    /// Launches were made as loops before one showed that they cannot be relied on.
    misled: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Untried,
    /// A launch as loops gave the bits that coroutines gave.
    Proven,
    Refused,
}

impl Loops {
    /// Nothing is proven yet.
    pub fn new(pace: &Pace) -> Self {
        let block = pace.object.block.filter(|_| pace.run.loops);
        Self { block, state: if block.is_some() { State::Untried } else { State::Refused }, misled: false }
    }

    /// Whether any launch was made as loops and counted.
    pub fn used(&self) -> bool {
        self.state == State::Proven
    }

    /// Whether the trial has to be made again without.
    pub fn misled(&self) -> bool {
        self.misled
    }

    /// Makes one launch.
    pub fn launch(&mut self, pace: &mut Pace, launch: u32, input: Buffer) {
        match (self.state, self.block) {
            (State::Proven, Some(block)) if pace.run.keep.contains(&launch) => {
                self.check(pace, launch, input, block);
            }
            (State::Proven, Some(_)) => {
                pace.launch(launch, input, self.block);
                if pace.take_needs_coroutines() {
                    // The cells that it has written hold what coroutines write there too.
                    self.state = State::Refused;
                    pace.launch(launch, input, None);
                }
            }
            (State::Untried, Some(block)) => self.try_out(pace, launch, input, block),
            _ => pace.launch(launch, input, None),
        }
    }

    /// Makes the launch both ways: what a kernel does may change with the data. What it leaves is what coroutines made.
    fn check(&mut self, pace: &mut Pace, launch: u32, input: Buffer, block: KernelFn) {
        let output = input.other();
        let before = copy_of(pace.arena.cells(output));
        pace.launch(launch, input, Some(block));
        let well = !pace.take_needs_coroutines() && pace.went_well();
        let made = copy_of(pace.arena.cells(output));
        pace.arena.cells_mut(output).copy_from_slice(&before);
        if well {
            pace.launch(launch, input, None);
        }
        if !well || bytes_of(&made) != bytes_of(pace.arena.cells(output)) {
            self.state = State::Refused;
            self.misled = true;
        }
    }

    /// Makes the launch by coroutines, and once more as loops, and compares. What it leaves is what coroutines made.
    fn try_out(&mut self, pace: &mut Pace, launch: u32, input: Buffer, block: KernelFn) {
        self.state = State::Refused;
        let data = variables(pace.object);
        pace.launch(launch, input, None);
        // A program whose variables a launch changes would see one launch too many.
        if !pace.went_well() || data.is_none() || data != variables(pace.object) {
            return;
        }
        let before = copy_of(pace.arena.cells(input));
        let made = copy_of(pace.arena.cells(input.other()));
        // The trial's buffers are as at its start, but for what coroutines just wrote.
        poison_interior(pace.arena.cells_mut(input.other()), pace.run.n);
        pace.launch(launch, input, Some(block));
        let same = !pace.take_needs_coroutines()
            && pace.went_well()
            && bytes_of(&made) == bytes_of(pace.arena.cells(input.other()))
            && bytes_of(&before) == bytes_of(pace.arena.cells(input))
            && data == variables(pace.object);
        if same {
            self.state = State::Proven;
        } else {
            pace.arena.cells_mut(input).copy_from_slice(&before);
            pace.arena.cells_mut(input.other()).copy_from_slice(&made);
        }
    }
}

/// The program's writable variables; `None` where there are too many to compare.
fn variables(object: &LoadedObject) -> Option<Vec<u8>> {
    let range = object.data();
    if range.len() > MOST_DATA {
        return None;
    }
    // SAFETY: the range is the loaded object's own data, and no kernel runs.
    Some(unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) }.to_vec())
}
