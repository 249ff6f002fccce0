//! Asynchronous copies of the running block's threads: issued, committed in groups, landing at the wait.

use std::collections::VecDeque;

/// One copy under way.
#[derive(Clone, Copy)]
pub struct Copy {
    pub to: *mut u8,
    pub from: *const u8,
    pub bytes: usize,
    /// Bytes at the end that are zeroed instead of copied.
    pub zero_fill: usize,
    /// Return address of the issuing call.
    pub code: usize,
}

/// The copies of one thread.
#[derive(Default)]
pub struct Copies {
    open: Vec<Copy>,
    committed: VecDeque<Vec<Copy>>,
}

impl Copies {
    pub fn issue(&mut self, to: *mut u8, from: *const u8, bytes: usize, zero_fill: usize, code: usize) {
        self.open.push(Copy { to, from, bytes, zero_fill, code });
    }

    /// Closes the group of copies issued since the last commit.
    pub fn commit(&mut self) {
        self.committed.push_back(std::mem::take(&mut self.open));
    }

    /// All copies but those of the newest `left` groups, in order of issue.
    pub fn due(&mut self, left: usize) -> Vec<Copy> {
        let groups = self.committed.len().saturating_sub(left);
        self.committed.drain(..groups).flatten().collect()
    }

    /// A new block begins.
    pub fn clear(&mut self) {
        self.open.clear();
        self.committed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_groups_stay_under_way() {
        let mut copies = Copies::default();
        for bytes in [4, 8, 16] {
            copies.issue(std::ptr::null_mut(), std::ptr::null(), bytes, 0, 0);
            copies.commit();
        }
        let bytes = |due: Vec<Copy>| due.iter().map(|copy| copy.bytes).collect::<Vec<_>>();
        assert_eq!(bytes(copies.due(1)), [4, 8]);
        assert_eq!(bytes(copies.due(1)), [0; 0]);
        assert_eq!(bytes(copies.due(0)), [16]);
    }
}
