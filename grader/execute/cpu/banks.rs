//! What one block of a watched launch does to its shared arrays: which words it touches, and which its first warp touches
//! together, instruction by instruction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::checker::Touch;
use super::raw::Site;

/// Lanes of a warp.
pub const LANES: usize = 32;
/// Most instructions that are kept: many times what a tile of the lesson's needs.
pub const MOST: usize = 512;

/// The accesses of the block looked at, as they come in: a thread at a time.
#[derive(Default)]
pub struct Banks {
    /// Whether each word was touched, by number of the array.
    touched: BTreeMap<usize, Vec<bool>>,
    /// How often each lane has come by each place in the code.
    passes: HashMap<(usize, usize), u32>,
    /// Words that lanes touched together: at one place in the code, in one array, each on its so many-th pass.
    together: BTreeMap<(usize, u32, usize), Vec<u32>>,
}

/// The same in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawBanks {
    /// The words touched of each array, by its number, rising.
    pub touched: Vec<(usize, Vec<u32>)>,
    /// Where, in which array, which words; only of places that all lanes came by equally often. Where they did not, which of
    /// them were together is not known.
    pub together: Vec<(Site, usize, Vec<u32>)>,
    /// Arrays that are touched at places of the other kind.
    pub uneven: Vec<usize>,
}

impl Banks {
    /// A thread's access to an array of so many bytes; `byte` counts from the array's start.
    pub fn touch(&mut self, touch: Touch, array: usize, (byte, bytes): (usize, usize), thread: usize) {
        let words = self.touched.entry(array).or_default();
        words.resize(bytes.div_ceil(4).max(words.len()), false);
        let last = words.len();
        words[(byte / 4).min(last)..(byte + touch.bytes).div_ceil(4).min(last)].fill(true);
        // Wider accesses go half a warp or a quarter at a time, which makes turns of their own.
        if thread >= LANES || touch.bytes != 4 {
            return;
        }
        let passes = self.passes.entry((thread, touch.code)).or_default();
        *passes += 1;
        let key = (touch.code, *passes, array);
        if self.together.len() < MOST || self.together.contains_key(&key) {
            self.together.entry(key).or_default().push((byte / 4) as u32);
        }
    }

    /// What was seen; `site` tells places in the code.
    pub fn seen(self, site: impl Fn(usize) -> Option<Site>) -> RawBanks {
        let words = |words: &[bool]| (0..).zip(words).filter(|(_, touched)| **touched).map(|(word, _)| word).collect();
        let lanes: BTreeSet<usize> = self.passes.keys().map(|(lane, _)| *lane).collect();
        let passes = |lane: usize, code: usize| self.passes.get(&(lane, code)).copied().unwrap_or(0);
        let first = lanes.first().copied().unwrap_or(0);
        let even = |code: usize| lanes.iter().all(|&lane| passes(lane, code) == passes(first, code));
        let uneven: BTreeSet<usize> =
            self.together.keys().filter(|(code, ..)| !even(*code)).map(|(.., array)| *array).collect();
        let together = self.together.iter().filter(|((code, ..), _)| even(*code));
        RawBanks {
            uneven: uneven.into_iter().collect(),
            touched: self.touched.iter().map(|(array, touched)| (*array, words(touched))).collect(),
            together: together
                .filter_map(|((code, _, array), words)| Some((site(*code)?, *array, words.clone())))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::checker::TouchKind;
    use super::*;

    #[test]
    fn lanes_are_together_on_the_same_pass_and_wide_accesses_only_touch() {
        let mut banks = Banks::default();
        let access = |code, bytes| Touch { address: 0, bytes, code, kind: TouchKind::Read };
        // Thread after thread, as a block runs: two passes of one place, one of another.
        for thread in 0..40 {
            banks.touch(access(5, 4), 0, (4 * thread, 400), thread);
            banks.touch(access(5, 4), 0, (4 * thread + 160, 400), thread);
            banks.touch(access(9, 8), 1, (8, 24), thread);
        }
        let seen = banks.seen(|code| Some(Site::Code(code as u64)));
        let warp = |first: u32| (first..first + 32).collect::<Vec<u32>>();
        assert_eq!(seen.together, [(Site::Code(5), 0, warp(0)), (Site::Code(5), 0, warp(40))]);
        assert_eq!(seen.touched, [(0, (0..80).collect()), (1, vec![2, 3])]);
        assert!(seen.uneven.is_empty());
    }

    #[test]
    fn where_lanes_come_by_unequally_often_nothing_is_said_of_who_is_together() {
        let mut banks = Banks::default();
        let access = |code| Touch { address: 0, bytes: 4, code, kind: TouchKind::Read };
        for thread in 0..32 {
            (0..if thread < 4 { 2 } else { 1 }).for_each(|_| banks.touch(access(5), 0, (4 * thread, 400), thread));
            banks.touch(access(6), 1, (4 * thread, 400), thread);
        }
        let seen = banks.seen(|code| Some(Site::Code(code as u64)));
        assert_eq!((seen.together.len(), seen.together[0].1, seen.uneven), (1, 1, vec![0]));
    }
}
