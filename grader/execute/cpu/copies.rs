//! Asynchronous copies of the running block's threads: issued, committed in groups, landing at the wait.

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

/// The copies of one thread. What it holds is kept from block to block: nothing is allocated once it has grown.
#[derive(Default)]
#[repr(align(64))]
pub struct Copies {
    /// The block that issued them.
    block: u64,
    /// Groups committed.
    groups: u32,
    /// Of the issued copies, how many have landed.
    landed: u32,
    /// In order of issue.
    issued: Vec<Copy>,
    /// Groups that hold anything: which one, counted from 1, and how many copies had been issued at its end.
    ends: Vec<(u32, u32)>,
}

impl Copies {
    /// The copies of a thread of block number `block`: a new block has none.
    #[inline(always)]
    pub fn of_block(&mut self, block: u64) -> &mut Self {
        if self.block != block {
            self.block = block;
            self.clear();
        }
        self
    }

    pub fn issue(&mut self, copy: Copy) {
        self.issued.push(copy);
    }

    /// Closes the group of copies issued since the last commit, which may be none.
    #[inline(always)]
    pub fn commit(&mut self) {
        if self.issued.is_empty() {
            // Nobody can wait for what is under way behind this group.
            return;
        }
        self.groups += 1;
        let issued = self.issued.len() as u32;
        if issued > self.ends.last().map_or(0, |&(_, end)| end) {
            self.ends.push((self.groups, issued));
        }
    }

    /// The oldest copy that has not landed, unless it is in one of the newest `left` groups or in none. It then has landed.
    #[inline(always)]
    pub fn land(&mut self, left: usize) -> Option<Copy> {
        if self.landed as usize == self.issued.len() {
            self.clear();
            return None;
        }
        let waited = (self.groups as usize).saturating_sub(left);
        let due = self.ends.iter().rfind(|&&(group, _)| group as usize <= waited).map_or(0, |&(_, end)| end);
        (self.landed < due).then(|| {
            self.landed += 1;
            self.issued[self.landed as usize - 1]
        })
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.issued.clear();
        self.ends.clear();
        (self.groups, self.landed) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(bytes: usize) -> Copy {
        Copy { to: std::ptr::null_mut(), from: std::ptr::null(), bytes, zero_fill: 0, code: 0 }
    }

    fn landing(copies: &mut Copies, left: usize) -> Vec<usize> {
        std::iter::from_fn(|| copies.land(left)).map(|copy| copy.bytes).collect()
    }

    #[test]
    fn the_newest_groups_stay_under_way() {
        let mut copies = Copies::default();
        for bytes in [4, 8, 16] {
            copies.issue(copy(bytes));
            copies.commit();
        }
        assert_eq!(landing(&mut copies, 1), [4, 8]);
        assert_eq!(landing(&mut copies, 1), [0; 0]);
        assert_eq!(landing(&mut copies, 0), [16]);
    }

    #[test]
    fn an_empty_group_counts_and_an_open_one_stays() {
        let mut copies = Copies::default();
        copies.issue(copy(4));
        copies.commit();
        copies.commit();
        copies.issue(copy(8));
        assert_eq!(landing(&mut copies, 2), [0; 0]);
        assert_eq!(landing(&mut copies, 1), [4]);
        assert_eq!(landing(&mut copies, 0), [0; 0]);
        copies.commit();
        assert_eq!(landing(&mut copies, 0), [8]);
    }

    #[test]
    fn a_new_block_has_none() {
        let mut copies = Copies::default();
        copies.of_block(1).issue(copy(4));
        copies.of_block(1).commit();
        assert_eq!(landing(copies.of_block(2), 0), [0; 0]);
    }
}
