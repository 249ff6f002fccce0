//! Reads a counted text once more, by other means than those that wrote it: line by line, with no knowledge of blocks
//! or operands. A disagreement is refused.

use std::sync::LazyLock;

use regex::Regex;

use super::NotCountable;
use crate::compile::diagnostics::pattern;

/// Whether `counted` is `plain` with lines of the counter's added and nothing else, and each read in it follows an
/// addition that the same guard lets run, of as many bytes as the read takes. An addition to the counter itself finds
/// the counter's address computed. An addition to the sum, which only kernels have, starts from 0, and reaches the
/// counter by a line directly before each `ret` and `exit` of the kernel, under the same guard; nothing else touches it.
pub fn check(counted: &str, plain: &str, counter: &str) -> Result<(), NotCountable> {
    let own = |line: &&str| line.contains(counter);
    let without: Vec<&str> = counted.lines().filter(|line| !own(line)).collect();
    if without != plain.lines().collect::<Vec<_>>() {
        return Err(refused("the text without its counting is another"));
    }
    let lines: Vec<&str> = counted.lines().collect();
    let mut starts: Vec<usize> = (0..lines.len()).filter(|&index| FUNCTION.is_match(lines[index])).collect();
    let outside = &lines[..starts.first().copied().unwrap_or(lines.len())];
    if outside.iter().filter(|line| own(line)).any(|line| !line.starts_with(".visible .global ")) {
        return Err(refused("counting outside of every function"));
    }
    starts.push(lines.len());
    let (mut sums, mut lost) = (false, false);
    for function in starts.windows(2).map(|pair| &lines[pair[0]..pair[1]]) {
        let seen = Looked { lines: function, counter }.check()?;
        sums |= seen.sums;
        let kernel = KERNEL.is_match(function[0]);
        lost |= !kernel && function.iter().any(|line| ENDS.captures(line).is_some_and(|found| &found[1] == "exit"));
    }
    if sums && lost { Err(refused("a sum that an exit elsewhere loses")) } else { Ok(()) }
}

/// The lines of one function, and what follows it up to the next.
struct Looked<'a> {
    lines: &'a [&'a str],
    counter: &'a str,
}

struct Seen {
    /// Whether the function keeps a sum.
    sums: bool,
}

impl Looked<'_> {
    fn check(&self) -> Result<Seen, NotCountable> {
        let (c, lines) = (self.counter, self.lines);
        let [slot, sum, flushed] =
            [format!("[%{c}_slot]"), format!("%{c}_sum"), format!("red.global.add.u64 [%{c}_slot], %{c}_sum;")];
        let sums = lines.iter().any(|line| line.contains(&sum));
        if sums && !KERNEL.is_match(lines[0]) {
            return Err(refused("a sum outside of a kernel"));
        }
        let (mut additions, mut reads, mut computed, mut begun) = (0, 0, false, false);
        for (index, line) in lines.iter().enumerate() {
            let before = index.checked_sub(1).map_or("", |index| lines[index]);
            if line.contains(c) {
                computed |= line.starts_with(&format!("mad.wide.u32 %{c}_slot,"));
                if bare(line) == flushed {
                    if !before.starts_with(&format!("mad.wide.u32 %{c}_slot,")) || !self.leaves_after(index) {
                        return Err(refused("a sum that is counted where the thread does not end"));
                    }
                } else if self.adds(line, &sum, &slot) {
                    additions += 1;
                    if sums != line.contains(&sum) || !(if sums { begun } else { computed }) {
                        return Err(refused("an addition to a counter that is not computed"));
                    }
                } else if line.contains(&slot) {
                    return Err(refused("another use of a counter"));
                } else if line.contains(&sum) && !line.starts_with(".reg ") {
                    // Nothing of the kernel's may come before it, or could jump back to it.
                    let own = |line: &&str| line.contains(c);
                    let first = index > 2 && lines[1] == "{" && lines[2..index].iter().all(own);
                    if begun || !first || *line != format!("mov.b64 {sum}, 0;") {
                        return Err(refused("another use of a sum"));
                    }
                    begun = true;
                }
            } else if reads_global(line) {
                reads += 1;
                if !self.adds(before, &sum, &slot) || !agree(before, line, c) {
                    return Err(refused(line));
                }
            } else if sums && ENDS.is_match(line) && (bare(before) != flushed || guard(before) != guard(line)) {
                return Err(refused("a thread that ends without its count"));
            }
        }
        if sums && !self.body().iter().rev().find(|line| !silent(line)).is_some_and(|line| leaves(line, &flushed)) {
            return Err(refused("a kernel that ends without its count"));
        }
        if additions == reads { Ok(Seen { sums }) } else { Err(refused("additions without reads")) }
    }

    /// Whether a line adds to the sum or to the counter itself.
    fn adds(&self, line: &str, sum: &str, slot: &str) -> bool {
        let amount = bare(line)
            .strip_prefix(&format!("add.u64 {sum}, {sum}, "))
            .or_else(|| bare(line).strip_prefix(&format!("red.global.add.u64 {slot}, ")));
        amount.is_some_and(|amount| amount != format!("{sum};"))
    }

    /// Whether the thread ends right after a line, under the line's guard.
    fn leaves_after(&self, index: usize) -> bool {
        let next = self.lines.get(index + 1).copied().unwrap_or_default();
        if ENDS.is_match(next) {
            return guard(self.lines[index]) == guard(next);
        }
        let body = self.body();
        guard(self.lines[index]).is_none() && index < body.len() && body[index + 1..].iter().all(|line| *line == "}")
    }

    /// From the head to the last closing brace.
    fn body(&self) -> &[&str] {
        let end = self.lines.iter().rposition(|line| *line == "}").map_or(0, |index| index + 1);
        &self.lines[..end]
    }
}

/// A line that no control passes.
fn silent(line: &str) -> bool {
    line == "}" || line.starts_with('.')
}

/// Whether a line ends the thread, or counts its sum, whatever holds.
fn leaves(line: &str, flushed: &str) -> bool {
    guard(line).is_none() && (ENDS.is_match(line) || bare(line) == flushed)
}

/// A line without its guard.
fn bare(line: &str) -> &str {
    line.strip_prefix('@').and_then(|rest| rest.split_once(' ')).map_or(line, |(_, bare)| bare)
}

fn guard(line: &str) -> Option<&str> {
    line.strip_prefix('@').map(|rest| rest.split(' ').next().unwrap_or_default())
}

fn refused(what: &str) -> NotCountable {
    let what: String = what.chars().take(80).collect();
    NotCountable::ordinary(format!("PTX that the grader's second look does not confirm ({what})"), None)
}

/// A function with a body, whose counter is to be computed anew.
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\.[^;]*\.?\b(?:entry|func)\b[^;]*$"));
static KERNEL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:\.(?:visible|extern|weak|common)\s*)*\.entry\b"));
/// What ends a thread, or returns from a function.
static ENDS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s;}])(ret|exit)(?:\.\w+)*\s*;"));
/// The words that begin with a letter, dots included: opcodes, wherever on the line they stand.
static OPCODE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s;}])(ld|ldu|atom|cp)((?:\.[\w:]+)+)"));

/// Whether a line has a read of global memory, or one that may be.
fn reads_global(line: &str) -> bool {
    OPCODE.captures_iter(line).any(|found| {
        let tail = format!("{}.", &found[2]);
        let has = |word: &str| tail.contains(word);
        match &found[1] {
            "cp" => {
                let moves = !has(".reduce.") && !has(".prefetch.") && !has("commit_group") && !has(".wait");
                moves && !has(".bulk_group.") && !has(".arrive.") && has(".global.")
            }
            _ => has(".global.") || ![".shared", ".local.", ".param", ".const"].into_iter().any(has),
        }
    })
}

/// Whether an addition has the guard and the bytes of the read after it.
fn agree(addition: &str, read: &str, counter: &str) -> bool {
    if guard(addition) != guard(read) {
        return false;
    }
    let amount = addition.rsplit(", ").next().unwrap_or_default().trim_end_matches(';');
    if amount == format!("%{counter}_bytes") {
        let found = OPCODE.captures(read);
        // Only a read that may not take place, or not in full, has its bytes worked out.
        return found.is_some_and(|found| &found[1] == "cp" || !found[2].contains(".global"));
    }
    let Ok(amount) = amount.parse::<u64>() else { return false };
    amount == bytes(read).unwrap_or(amount)
}

/// The bytes of a read: values between braces, or one, times the digits of the type. `None` for a copy, whose bytes
/// are no part of its name.
fn bytes(read: &str) -> Option<u64> {
    static SUFFIX: LazyLock<Regex> = LazyLock::new(|| pattern(r"\.(?:bf|[busf])(8|16|32|64|128)(x2)?[.\s]"));
    static VECTOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[^\[]*?\{([^}]*)\}\s*,\s*\["));
    if read.contains("cp.async") {
        return None;
    }
    let found = SUFFIX.captures(read)?;
    let bits: u64 = found[1].parse().ok()?;
    let values = VECTOR.captures(read).map_or(1, |list| list[1].split(',').count() as u64);
    Some(bits / 8 * values * if found.get(2).is_some() { 2 } else { 1 })
}
