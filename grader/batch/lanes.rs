//! Many things done side by side, each by one lane from its beginning to its end, so that what is held at once grows with
//! the lanes and not with the things.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::outbox;

/// What a lane works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Threads for this piece of work.
    pub threads: usize,
}

/// Does `work` on each thing in `lanes` lanes, in the order of the things; begins nothing more once `stopping` says so. A
/// panic ends one piece of work, and is handed to `failed`.
pub fn run<T: Sync>(
    things: &[T],
    lanes: usize,
    cores: usize,
    stopping: &(dyn Fn() -> bool + Sync),
    work: &(dyn Fn(&T, Share) + Sync),
    failed: &(dyn Fn(&T, String) + Sync),
) {
    let next = AtomicUsize::new(0);
    let lanes = lanes.clamp(1, things.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while !stopping() {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(thing) = things.get(at) else { break };
                    // Twice what falls to it: whoever outlasts the others then has their cores, and threads that wait cost little.
                    let busy = lanes.min(things.len() - at);
                    let share = Share { threads: (2 * cores / busy).clamp(1, cores) };
                    let done = outbox::caught(|| {
                        work(thing, share);
                        Ok(())
                    });
                    if let Err(error) = done {
                        failed(thing, format!("{error:#}"));
                    }
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn each_thing_is_done_once_and_a_panic_ends_none_but_its_own() {
        let (done, broken) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let work = |thing: &u32, _: Share| {
            assert!(thing % 10 != 3, "{thing} is no good");
            done.lock().unwrap().push(*thing);
        };
        let failed = |thing: &u32, why: String| broken.lock().unwrap().push((*thing, why));
        let things: Vec<u32> = (0..50).collect();
        outbox::guarded(|| {
            run(&things, 4, 4, &|| false, &work, &failed);
            Ok(())
        })
        .unwrap();
        let (mut done, mut broken) = (done.into_inner().unwrap(), broken.into_inner().unwrap());
        done.sort_unstable();
        broken.sort_unstable();
        assert_eq!(done, (0..50).filter(|thing| thing % 10 != 3).collect::<Vec<_>>());
        assert_eq!(broken.iter().map(|(thing, _)| *thing).collect::<Vec<_>>(), [3, 13, 23, 33, 43]);
    }

    #[test]
    fn nothing_is_begun_once_it_is_to_stop() {
        let done = AtomicUsize::new(0);
        let work = |_: &u32, _: Share| {
            done.fetch_add(1, Ordering::SeqCst);
        };
        run(&[0; 9], 1, 1, &|| done.load(Ordering::SeqCst) >= 2, &work, &|_, _| {});
        assert_eq!(done.into_inner(), 2);
    }

    #[test]
    fn each_has_twice_its_share_of_the_cores_and_the_last_have_all() {
        let shares = Mutex::new(Vec::new());
        run(&[0, 1, 2, 3, 4, 5], 4, 8, &|| false, &|_, share| shares.lock().unwrap().push(share.threads), &|_, _| {});
        let mut shares = shares.into_inner().unwrap();
        shares.sort_unstable();
        assert_eq!(shares, [4, 4, 4, 5, 8, 8]);
    }
}
