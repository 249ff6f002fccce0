//! Shadow memory: for every 4-byte word, who last wrote it and who read it since, and when.
//!
//! Time is a counter that moves on at every barrier, warp operation and block, so nothing is ever cleared: what happened
//! before the running interval is ordered by the barrier between, what happened before the running block is stale.

/// One access: time (32 bits), block (22 bits), thread (10 bits).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Access(pub u64);

impl Access {
    pub fn new(time: u32, block: u32, thread: usize) -> Self {
        Self((u64::from(time) << 32) | (u64::from(block & 0x3f_ffff) << 10) | (thread as u64 & 0x3ff))
    }
    pub fn time(self) -> u32 {
        (self.0 >> 32) as u32
    }
    pub fn block(self) -> u32 {
        (self.0 >> 10) as u32 & 0x3f_ffff
    }
    pub fn thread(self) -> usize {
        (self.0 & 0x3ff) as usize
    }
}

/// Who is asking: the running thread and the times that order it after others.
#[derive(Clone, Copy)]
pub struct Now<'a> {
    pub access: Access,
    /// Start of the launch, of the running block, of the running barrier interval.
    pub launch: u32,
    pub block: u32,
    pub interval: u32,
    /// Latest time at which a warp operation joined this thread with each lane of its warp.
    pub joined: &'a [u32; 32],
}

impl Now<'_> {
    /// Whether `past` happened before this thread's present, or is its own.
    pub fn after(&self, past: Access) -> bool {
        let time = past.time();
        if time < self.launch {
            return true;
        }
        if past.block() != self.access.block() {
            return false;
        }
        let (mine, theirs) = (self.access.thread(), past.thread());
        mine == theirs || time < self.interval || (mine / 32 == theirs / 32 && self.joined[theirs % 32] > time)
    }
}

/// Shadow of one word: write, two readers, their code offsets, byte masks.
type Cell = [u64; 5];

const WRITE: usize = 0;
const READ: usize = 1;
const READ2: usize = 2;
/// Code offsets: write in the low half, read in the high half.
const SITES: usize = 3;
/// Second reader's code offset in the low half, then masks of the bytes written and read, then the atomic flag.
const MISC: usize = 4;

/// Shadow of a range of memory.
pub struct Shadow {
    start: usize,
    cells: Vec<Cell>,
}

/// A conflict between the present access and a past one.
#[derive(Clone, Copy)]
pub struct Conflict {
    pub past: Access,
    pub past_site: u32,
    pub past_wrote: bool,
}

/// What a read found.
#[derive(Default)]
pub struct ReadReport {
    pub conflict: Option<Conflict>,
    /// Time of the last write, 0 when there is none.
    pub written: u32,
}

impl Shadow {
    /// Shadow of `bytes` bytes from `start`; pages are taken when touched.
    pub fn new(start: usize, bytes: usize) -> Self {
        Self { start, cells: vec![[0; 5]; bytes.div_ceil(4) + 1] }
    }

    fn words(&self, address: usize, bytes: usize) -> impl Iterator<Item = (usize, u8)> + use<> {
        let (start, from) = (self.start, address.saturating_sub(self.start));
        debug_assert!(address >= start);
        let last = (from + bytes.max(1) - 1) / 4;
        (from / 4..=last).map(move |word| {
            let (low, high) = (from.max(word * 4) - word * 4, (from + bytes).min(word * 4 + 4) - word * 4);
            (word, ((1u16 << high) - (1u16 << low)) as u8 & 0xf)
        })
    }

    /// Whether the whole access is covered by this shadow.
    pub fn covers(&self, address: usize, bytes: usize) -> bool {
        address >= self.start && address + bytes <= self.start + self.cells.len() * 4
    }

    /// Records a read; reports the first unordered write, and the oldest last write among its words.
    pub fn read(&mut self, address: usize, bytes: usize, site: u32, now: Now) -> ReadReport {
        let mut report = ReadReport { conflict: None, written: u32::MAX };
        for (word, mask) in self.words(address, bytes) {
            let Some(cell) = self.cells.get_mut(word) else { break };
            let write = Access(cell[WRITE]);
            report.written = report.written.min(write.time());
            let overlaps = (cell[MISC] >> 32) as u8 & mask != 0;
            if report.conflict.is_none() && overlaps && !now.after(write) {
                report.conflict = Some(Conflict { past: write, past_site: cell[SITES] as u32, past_wrote: true });
            }
            remember_reader(cell, mask, site, now);
        }
        report
    }

    /// Records a write (`atomic` ones do not conflict with each other); reports the first unordered access.
    pub fn write(&mut self, address: usize, bytes: usize, site: u32, now: Now, atomic: bool) -> Option<Conflict> {
        let mut conflict = None;
        for (word, mask) in self.words(address, bytes) {
            let Some(cell) = self.cells.get_mut(word) else { break };
            conflict = conflict.or_else(|| conflict_of_write(cell, mask, now, atomic));
            let stale = Access(cell[WRITE]).time() < now.block;
            let written = if stale { mask } else { (cell[MISC] >> 32) as u8 | mask };
            cell[WRITE] = now.access.0;
            cell[SITES] = (cell[SITES] & !0xffff_ffff) | u64::from(site);
            cell[MISC] = (cell[MISC] & 0x0000_ff00_ffff_ffff) | u64::from(written) << 32 | u64::from(atomic) << 48;
        }
        conflict
    }

    /// The last write to the word at `address` and its site, if there was one.
    pub fn last_write(&self, address: usize) -> Option<(Access, u32)> {
        let cell = self.cells.get(address.checked_sub(self.start)? / 4)?;
        (cell[WRITE] != 0).then_some((Access(cell[WRITE]), cell[SITES] as u32))
    }
}

/// Two readers are kept, of different blocks where there are such: any later writer conflicts with one of them if it
/// conflicts with any reader.
fn remember_reader(cell: &mut Cell, mask: u8, site: u32, now: Now) {
    let first = Access(cell[READ]);
    let same = |past: Access| past.block() == now.access.block() && past.thread() == now.access.thread();
    let set_first = |cell: &mut Cell, fresh: bool| {
        let bytes = if fresh { mask } else { (cell[MISC] >> 40) as u8 | mask };
        cell[READ] = now.access.0;
        cell[SITES] = (cell[SITES] & 0xffff_ffff) | u64::from(site) << 32;
        cell[MISC] = (cell[MISC] & !(0xff << 40)) | u64::from(bytes) << 40;
    };
    if cell[READ] == 0 || same(first) || now.after(first) {
        let fresh = !same(first);
        set_first(cell, fresh);
        return;
    }
    let second = Access(cell[READ2]);
    let second_adds_a_block = second.block() != first.block() && second.time() >= now.launch;
    if cell[READ2] == 0
        || same(second)
        || now.after(second)
        || (!second_adds_a_block && first.block() != now.access.block())
    {
        cell[READ2] = now.access.0;
        cell[MISC] = (cell[MISC] & !0xffff_ffff) | u64::from(site) | u64::from(mask) << 40;
    }
}

fn conflict_of_write(cell: &Cell, mask: u8, now: Now, atomic: bool) -> Option<Conflict> {
    let write = Access(cell[WRITE]);
    let was_atomic = cell[MISC] >> 48 & 1 == 1;
    let write_overlaps = (cell[MISC] >> 32) as u8 & mask != 0;
    if cell[WRITE] != 0 && write_overlaps && !(atomic && was_atomic) && !now.after(write) {
        return Some(Conflict { past: write, past_site: cell[SITES] as u32, past_wrote: true });
    }
    if (cell[MISC] >> 40) as u8 & mask == 0 {
        return None;
    }
    let readers = [(cell[READ], (cell[SITES] >> 32) as u32), (cell[READ2], cell[MISC] as u32)];
    readers.into_iter().find(|(key, _)| *key != 0 && !now.after(Access(*key))).map(|(key, site)| Conflict {
        past: Access(key),
        past_site: site,
        past_wrote: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: [u32; 32] = [0; 32];

    fn now(time: u32, block: u32, thread: usize, interval: u32) -> Now<'static> {
        Now { access: Access::new(time, block, thread), launch: 1, block: 1, interval, joined: &ALONE }
    }

    #[test]
    fn a_read_after_another_threads_write_in_the_same_interval_conflicts() {
        let mut shadow = Shadow::new(0x1000, 64);
        assert!(shadow.write(0x1004, 4, 7, now(1, 0, 0, 1), false).is_none());
        let report = shadow.read(0x1004, 4, 8, now(1, 0, 1, 1));
        let conflict = report.conflict.expect("a race");
        assert_eq!((conflict.past.thread(), conflict.past_site, conflict.past_wrote), (0, 7, true));
    }

    #[test]
    fn a_barrier_orders() {
        let mut shadow = Shadow::new(0x1000, 64);
        shadow.write(0x1004, 4, 7, now(1, 0, 0, 1), false);
        assert!(shadow.read(0x1004, 4, 8, now(2, 0, 1, 2)).conflict.is_none());
        assert!(shadow.write(0x1004, 4, 9, now(2, 0, 2, 2), false).is_some_and(|c| !c.past_wrote));
    }

    #[test]
    fn blocks_are_never_ordered_within_a_launch() {
        let mut shadow = Shadow::new(0x1000, 64);
        shadow.read(0x1004, 4, 7, now(1, 0, 0, 1));
        assert!(shadow.write(0x1004, 4, 8, now(9, 1, 0, 9), false).is_some());
    }

    #[test]
    fn a_warp_operation_orders_the_lanes_it_joined_and_no_others() {
        let mut shadow = Shadow::new(0x1000, 64);
        shadow.write(0x1000, 4, 7, now(1, 0, 3, 1), false);
        let mut joined = [0; 32];
        joined[3] = 2;
        let later = Now { joined: &joined, ..now(2, 0, 5, 1) };
        assert!(shadow.read(0x1000, 4, 8, later).conflict.is_none());
        assert!(shadow.read(0x1000, 4, 8, now(2, 0, 5, 1)).conflict.is_some());
    }

    #[test]
    fn neighbouring_bytes_of_a_word_do_not_conflict() {
        let mut shadow = Shadow::new(0x1000, 64);
        shadow.write(0x1000, 2, 7, now(1, 0, 0, 1), false);
        assert!(shadow.write(0x1002, 2, 7, now(1, 0, 1, 1), false).is_none());
        assert!(shadow.write(0x1000, 4, 7, now(1, 0, 2, 1), false).is_some());
    }

    #[test]
    fn a_third_reader_of_another_block_is_not_forgotten() {
        let mut shadow = Shadow::new(0x1000, 64);
        shadow.read(0x1000, 4, 1, now(1, 0, 0, 1));
        shadow.read(0x1000, 4, 2, now(1, 0, 1, 1));
        shadow.read(0x1000, 4, 3, now(2, 1, 0, 2));
        assert!(shadow.write(0x1000, 4, 4, now(3, 0, 0, 3), false).is_some(), "block 1 read it in this launch");
    }

    #[test]
    fn atomics_do_not_conflict_with_each_other() {
        let mut shadow = Shadow::new(0x1000, 64);
        shadow.write(0x1000, 4, 1, now(1, 0, 0, 1), true);
        assert!(shadow.write(0x1000, 4, 2, now(2, 1, 0, 2), true).is_none());
        assert!(shadow.write(0x1000, 4, 2, now(3, 2, 0, 3), false).is_some());
    }
}
