//! Memory for large grids, in large pages: finding memory for 16 MiB a small page at a time takes longer than copying a grid
//! into it. And memory given back, where many grades follow each other.

/// Bytes from which the system is asked: below, there is no whole large page in it.
const LARGE: usize = 4 << 20;
const PAGE: usize = 4096;

/// Room for so many values.
pub fn room<T>(values: usize) -> Vec<T> {
    let room = Vec::with_capacity(values);
    ask_for_large_pages(room.as_ptr() as usize, values * size_of::<T>());
    room
}

/// The values once more.
pub fn copy_of<T: Copy>(values: &[T]) -> Vec<T> {
    let mut copy = room(values.len());
    copy.extend_from_slice(values);
    copy
}

/// Asks for large pages behind `bytes` from `start`, which are mapped; where the system has none, they stay small.
pub fn ask_for_large_pages(start: usize, bytes: usize) {
    let (first, end) = (start.next_multiple_of(PAGE), (start + bytes) / PAGE * PAGE);
    if bytes >= LARGE {
        // SAFETY: whole pages of memory that is mapped; the advice changes nothing that they hold.
        let _ = unsafe { rustix::mm::madvise(first as *mut _, end - first, rustix::mm::Advice::LinuxHugepage) };
    }
}

/// Gives memory that is free back to the system. glibc keeps it in an arena of each thread, where what one grade leaves seldom
/// fits the next one's grids: a class would take more memory the longer it is.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: only memory that nobody holds is given back.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_large_pages_hold_stays() {
        let values: Vec<u32> = (0..2 * LARGE as u32 / 4).collect();
        let copy = copy_of(&values);
        ask_for_large_pages(copy.as_ptr() as usize + 3, copy.len() * 4 - 3);
        assert_eq!(copy, values);
        assert!(room::<u8>(7).capacity() >= 7 && copy_of::<u64>(&[]).is_empty());
    }
}
