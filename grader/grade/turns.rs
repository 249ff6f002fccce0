//! Several grades of this process on one GPU. A few have a seat, and with it workers whose contexts take memory; their runs go
//! side by side, which fills the time in which the processor draws and compares grids. While one of them times a kernel, nothing
//! else runs, and no context is made or ended, which holds up every other process on the GPU.
//!
//! Changing from runs to a timing costs the time in which the last of them goes on alone. So runs come first as long as there
//! are any, and then all timings that are waited for, one after another. What only the reference went through, one grade leaves
//! to the next: its worker, and the words that it reads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::execute::cuda::CudaRunner;

/// Bytes of a GPU's memory for a grade that has workers: two contexts and their grids.
const SEAT: u64 = 2 << 30;
/// Most of them. A driver makes one context after another, so that many more would wait for each other.
const MOST_SEATS: u64 = 8;

/// What goes on on one GPU; clones are the same.
#[derive(Clone)]
pub struct Turns(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether a grade has loaded what this toolkit builds.
    loads: AtomicBool,
    /// Workers of the reference that wait for the next grade.
    references: Mutex<Vec<CudaRunner>>,
    table_reads: OnceLock<TableReads>,
}

/// Words that the reference's kernels read per cell-step, by name.
pub type TableReads = Vec<(String, f64)>;

#[derive(Default)]
struct State {
    seats: usize,
    seated: usize,
    /// Who came when, and who sits down next.
    last_ticket: u64,
    next_ticket: u64,
    running: usize,
    /// Whether somebody times.
    alone: bool,
    /// How many wait to time.
    wait_to_be_alone: usize,
    /// Whether they have their turn, and no run begins.
    timing: bool,
}

/// The right to have workers, until it is dropped.
pub struct Seat(Turns);

/// The right to run, until it is dropped.
pub struct Permit {
    turns: Turns,
    alone: bool,
}

impl Turns {
    /// On a GPU with so many bytes of memory.
    pub fn on(memory: u64) -> Self {
        let seats = (memory / SEAT).clamp(1, MOST_SEATS) as usize;
        let state = Mutex::new(State { seats, ..State::default() });
        let (changed, references, table_reads) = (Condvar::new(), Mutex::default(), OnceLock::new());
        Self(Arc::new(Shared { state, changed, loads: AtomicBool::new(false), references, table_reads }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready`, and then makes the change.
    fn wait(&self, ready: impl Fn(&State) -> bool, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        while !ready(&state) {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        change(&mut state);
    }

    fn end(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.0.changed.notify_all();
    }

    /// In the order in which they came: nobody waits while others sit down twice.
    fn seat(&self) -> Seat {
        let ticket = {
            let mut state = self.state();
            state.last_ticket += 1;
            state.last_ticket - 1
        };
        let free = |state: &State| state.seated < state.seats && state.next_ticket == ticket;
        self.wait(free, |state| (state.seated, state.next_ticket) = (state.seated + 1, ticket + 1));
        // The next one may have looked before this one sat down.
        self.0.changed.notify_all();
        Seat(self.clone())
    }

    fn references(&self) -> MutexGuard<'_, Vec<CudaRunner>> {
        self.0.references.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn beside(&self) -> Permit {
        self.wait(|state| !state.timing, |state| state.running += 1);
        Permit { turns: self.clone(), alone: false }
    }

    fn alone(&self) -> Permit {
        self.state().wait_to_be_alone += 1;
        let change = |state: &mut State| {
            state.wait_to_be_alone -= 1;
            (state.alone, state.timing) = (true, true);
        };
        self.wait(|state| !state.alone && state.running == 0, change);
        Permit { turns: self.clone(), alone: true }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.end(|state| state.seated -= 1);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.turns.end(|state| {
            if self.alone {
                (state.alone, state.timing) = (false, state.wait_to_be_alone > 0);
            } else {
                state.running -= 1;
            }
        });
    }
}

/// One grade's place among the others. Without others it never waits.
#[derive(Default)]
pub struct Turn {
    turns: Option<Turns>,
    seat: Mutex<Option<Seat>>,
    /// Where there are no others.
    own_table_reads: OnceLock<TableReads>,
}

impl Turn {
    /// A place among others; `None`: nobody else is there.
    pub fn of(turns: Option<Turns>) -> Arc<Self> {
        Arc::new(Self { turns, ..Self::default() })
    }

    /// Notes that the driver takes what this toolkit builds.
    pub fn has_loaded(&self) {
        if let Some(turns) = &self.turns {
            turns.0.loads.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a grade before this one has noted it.
    pub fn is_known_to_load(&self) -> bool {
        self.turns.as_ref().is_some_and(|turns| turns.0.loads.load(Ordering::Relaxed))
    }

    /// The worker of the reference that an earlier grade left.
    pub fn left_reference(&self) -> Option<CudaRunner> {
        self.turns.as_ref()?.references().pop()
    }

    /// Whether other grades use the GPU too.
    pub fn has_others(&self) -> bool {
        self.turns.is_some()
    }

    /// Leaves the reference's worker to the next grade. Where nobody comes after this one, it ends.
    pub fn leave_reference(&self, reference: CudaRunner) {
        if let Some(turns) = &self.turns {
            turns.references().push(reference);
        }
    }

    /// What the reference's kernels read, once a grade has counted it: on one GPU it is the same for all.
    pub fn table_reads(&self) -> &OnceLock<TableReads> {
        self.turns.as_ref().map_or(&self.own_table_reads, |turns| &turns.0.table_reads)
    }

    /// Waits for a seat. At once where this grade has one.
    pub fn sit(&self) {
        let mut seat = self.seat.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(turns)) = (&*seat, &self.turns) {
            *seat = Some(turns.seat());
        }
    }

    /// Gives the seat to the caller, who ends it by dropping it.
    pub fn leave(&self) -> Option<Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until nobody times, nor is about to, and then keeps anybody from timing. Holds no worker meanwhile.
    pub fn beside(&self) -> Option<Permit> {
        self.turns.as_ref().map(Turns::beside)
    }

    /// Waits until nobody runs, and then keeps everybody from running. What it holds meanwhile, no other run of its grade may want.
    pub fn alone(&self) -> Option<Permit> {
        self.turns.as_ref().map(Turns::alone)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_more_sit_than_there_are_seats_and_everybody_gets_one() {
        let (turns, inside, most) = (Turns::on(3 * SEAT), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    let turn = Turn::of(Some(turns.clone()));
                    turn.sit();
                    turn.sit();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(turn.leave());
                });
            }
        });
        assert!((1..=3).contains(&most.into_inner()));
        assert_eq!(turns.state().seated, 0);
    }

    #[test]
    fn nobody_runs_beside_one_that_times() {
        let (turns, running, timing) = (Turns::on(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for at in 0..12 {
                let turn = Turn::of(Some(turns.clone()));
                let (running, timing) = (&running, &timing);
                scope.spawn(move || {
                    for _ in 0..50 {
                        let (_permit, mine) =
                            if at % 4 == 0 { (turn.alone(), timing) } else { (turn.beside(), running) };
                        mine.fetch_add(1, Ordering::SeqCst);
                        let (running, timing) = (running.load(Ordering::SeqCst), timing.load(Ordering::SeqCst));
                        assert!(timing == 0 || (timing == 1 && running == 0), "{timing} time, {running} run");
                        mine.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let state = turns.state();
        assert_eq!((state.running, state.alone, state.timing, state.wait_to_be_alone), (0, false, false, 0));
    }

    #[test]
    fn runs_come_first_and_then_all_timings_that_are_waited_for() {
        let (turns, order) = (Turns::on(0), Mutex::new(Vec::new()));
        let waiting = |timers: usize| {
            while turns.state().wait_to_be_alone < timers {
                std::thread::yield_now();
            }
        };
        let note = |what| order.lock().unwrap().push(what);
        let run = turns.beside();
        std::thread::scope(|scope| {
            let time = || {
                let _alone = turns.alone();
                note("time");
            };
            scope.spawn(time);
            waiting(1);
            drop(turns.beside());
            note("run");
            drop(run);
        });
        let timing = turns.alone();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let _alone = turns.alone();
                    note("time");
                });
            }
            waiting(2);
            scope.spawn(|| {
                let _beside = turns.beside();
                note("run");
            });
            drop(timing);
        });
        assert_eq!(order.into_inner().unwrap(), ["run", "time", "time", "time", "run"]);
    }

    #[test]
    fn alone_in_the_process_nobody_waits() {
        let turn = Turn::of(None);
        turn.sit();
        assert!(turn.leave().is_none() && turn.beside().is_none() && turn.alone().is_none());
    }
}
