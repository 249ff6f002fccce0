//! One grade at a time on the GPU, where several of this process go side by side: their kernels would share its clocks and
//! caches, and each worker's context takes memory.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The turns on one GPU; clones are the same turns.
#[derive(Clone, Default)]
pub struct Turns(Arc<(Mutex<bool>, Condvar)>);

/// The right to be on the GPU, until it is dropped.
pub struct Permit(Turns);

impl Turns {
    fn wait(&self) -> Permit {
        let (taken, free) = &*self.0;
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken {
            taken = free.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken = true;
        Permit(self.clone())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let (taken, free) = &*self.0.0;
        *taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        free.notify_one();
    }
}

/// The turn of one grade. Without turns to share it is always that grade's.
#[derive(Default)]
pub struct Turn {
    turns: Option<Turns>,
    permit: Mutex<Option<Permit>>,
}

impl Turn {
    /// A turn among those of others; `None`: nobody else is there.
    pub fn of(turns: Option<Turns>) -> Arc<Self> {
        Arc::new(Self { turns, permit: Mutex::default() })
    }

    /// Waits until it is this grade's turn. At once where it is already.
    pub fn hold(&self) {
        let mut permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(turns)) = (&*permit, &self.turns) {
            *permit = Some(turns.wait());
        }
    }

    /// Gives the turn to the caller, who ends it by dropping it.
    pub fn pass(&self) -> Option<Permit> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn one_at_a_time_holds_it_and_everybody_gets_it() {
        let (turns, inside, most) = (Turns::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let turn = Turn::of(Some(turns.clone()));
                    turn.hold();
                    turn.hold();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(turn.pass());
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
    }

    #[test]
    fn a_turn_that_was_passed_is_waited_for_again() {
        let turns = Turns::default();
        let turn = Turn::of(Some(turns.clone()));
        turn.hold();
        let passed = turn.pass();
        let other = Turn::of(Some(turns));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| other.hold());
            drop(passed);
            waiting.join().unwrap();
        });
        drop(other.pass());
        turn.hold();
    }

    #[test]
    fn alone_nobody_waits() {
        let turn = Turn::of(None);
        turn.hold();
        assert!(turn.pass().is_none());
    }
}
