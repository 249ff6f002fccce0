//! Reads a counted text once more, by other means than those that wrote it: line by line, with no knowledge of blocks
//! or operands. A disagreement is refused.

use std::sync::LazyLock;

use regex::Regex;

use super::NotCountable;
use crate::compile::diagnostics::pattern;

/// Whether `counted` is `plain` with lines of the counter's added and nothing else, and each read in it follows an
/// addition that the same guard lets run, of as many bytes as the read takes.
pub fn check(counted: &str, plain: &str, counter: &str) -> Result<(), NotCountable> {
    let own = |line: &&str| line.contains(counter);
    let without: Vec<&str> = counted.lines().filter(|line| !own(line)).collect();
    if without != plain.lines().collect::<Vec<_>>() {
        return Err(refused("the text without its counting is another"));
    }
    let lines: Vec<&str> = counted.lines().collect();
    let slot = format!("[%{counter}_slot]");
    let (mut additions, mut reads, mut computed) = (0, 0, false);
    for (index, line) in lines.iter().enumerate() {
        if own(line) {
            computed |= line.starts_with(&format!("mad.wide.u32 %{counter}_slot,"));
            if line.contains(&slot) {
                additions += 1;
                if !computed {
                    return Err(refused("an addition to a counter that is not computed"));
                }
            }
        } else if FUNCTION.is_match(line) {
            computed = false;
        } else if reads_global(line) {
            reads += 1;
            let before = index.checked_sub(1).map_or("", |index| lines[index]);
            if !before.contains(&slot) || !agree(before, line, counter) {
                return Err(refused(line));
            }
        }
    }
    if additions == reads { Ok(()) } else { Err(refused("additions without reads")) }
}

fn refused(what: &str) -> NotCountable {
    let what: String = what.chars().take(80).collect();
    NotCountable::ordinary(format!("PTX that the grader's second look does not confirm ({what})"), None)
}

/// A function with a body, whose counter is to be computed anew.
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\.[^;]*\.?\b(?:entry|func)\b[^;]*$"));
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
    let guard = |line: &str| line.strip_prefix('@').map(|rest| rest.split(' ').next().unwrap_or_default().to_owned());
    if guard(addition) != guard(read) {
        return false;
    }
    let amount = addition.rsplit("], ").next().unwrap_or_default().trim_end_matches(';');
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
