//! The order in which the threads of a block run, drawn for each block: a warp's threads stay together, and the last warp,
//! which may be short, stays last.

use super::Lane;

const WARP: usize = 32;

impl Lane {
    /// Draws the order of the running block's threads, where one is to be drawn.
    #[inline(always)]
    pub(super) fn draw_order(&mut self) {
        if let Some(seed) = self.order {
            self.put_in_order(drawn(seed, self.standing.block));
        }
    }

    fn put_in_order(&mut self, drawn: u64) {
        for place in 0..self.count {
            let number = thread_at(place, self.count, drawn);
            let thread = &mut self.threads[place];
            (thread.number, thread.index) = (number, self.indices[number]);
        }
    }
}

/// A number for a block: splitmix64 (Steele, Lea and Flood 2014).
fn drawn(seed: u64, block: u32) -> u64 {
    let mut bits = seed ^ u64::from(block).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Which of `count` threads comes at a place: warps go up or down from one of them, lanes in odd steps.
fn thread_at(place: usize, count: usize, drawn: u64) -> usize {
    let (warp, lane, whole) = (place / WARP, place % WARP, count / WARP);
    let (down, first) = (drawn & 1 == 1, (drawn >> 1 & 0xffff) as usize);
    if warp == whole {
        let last = count % WARP - 1;
        return whole * WARP + if down { last - lane } else { lane };
    }
    let (step, shift) = ((drawn >> 32 & 0xf) as usize * 2 + 1, (drawn >> 40 & 0x1f) as usize);
    let turned = if down { whole - 1 - warp } else { warp };
    (turned + first) % whole * WARP + (lane * step + shift) % WARP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_comes_once_and_with_its_warp() {
        for (count, block) in [(1, 0), (7, 1), (32, 2), (33, 3), (256, 4), (432, 5), (1000, 6), (1024, 7)] {
            let all: Vec<usize> = (0..count).map(|place| thread_at(place, count, drawn(9, block))).collect();
            let mut sorted = all.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).collect::<Vec<_>>());
            assert!(all.chunks(WARP).all(|warp| warp.iter().all(|thread| thread / WARP == warp[0] / WARP)));
        }
    }

    #[test]
    fn of_any_two_threads_either_comes_first_in_some_block() {
        let place = |thread: usize, block| (0..96).position(|place| thread_at(place, 96, drawn(1, block)) == thread);
        for (one, other) in [(0, 1), (3, 30), (5, 40), (63, 64), (0, 95)] {
            let first = (0..64).filter(|&block| place(one, block) < place(other, block)).count();
            assert!((8..=56).contains(&first), "{one} before {other} in {first} of 64 blocks");
        }
    }
}
