//! What a kernel prints: formatted here, not by the C library, and limited in what it may cost.
//!
//! A GPU keeps what its kernels print in a buffer of 1 MiB and drops the rest; here the first [`MOST_BYTES`] of a trial are
//! kept, which is what the grader keeps of them anyway, and a call after that returns at once. A width or a precision of a
//! thousand million costs as much as [`WIDEST`].

use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that one trial may print.
const MOST_BYTES: usize = 64 << 10;
/// What a call takes of them at least: so many bytes does one without arguments take in a GPU's buffer.
const LEAST_BYTES: usize = 16;
/// The largest width and precision that are heeded.
const WIDEST: usize = 4096;

/// Bytes that may still be printed.
static ROOM: AtomicUsize = AtomicUsize::new(MOST_BYTES);

/// A trial begins: it may print as much as any.
pub fn begin_trial() {
    ROOM.store(MOST_BYTES, Ordering::Relaxed);
}

/// The kernel's `printf`. Answers how many arguments it took, as on a GPU; 0 once all room is used.
pub extern "C" fn print(format: *const c_char, arguments: *mut VaList) -> i32 {
    let room = ROOM.load(Ordering::Relaxed);
    if format.is_null() {
        return -1;
    }
    if room == 0 {
        return 0;
    }
    // SAFETY: what the kernel passes to printf; a wild pointer faults as the kernel's own access would.
    let (format, arguments) = unsafe { (CStr::from_ptr(format), &mut *arguments) };
    let (text, taken) = formatted(format.to_bytes(), arguments, room);
    let cost = text.len().max(LEAST_BYTES).max(format.count_bytes());
    // Two lanes may both find room: then a little more is printed.
    ROOM.store(room.saturating_sub(cost), Ordering::Relaxed);
    // SAFETY: writes a buffer of its own to the descriptor that the grader captures.
    unsafe { libc::write(libc::STDOUT_FILENO, text.as_ptr().cast(), text.len()) };
    taken
}

/// Where the arguments of a call come from.
pub trait Arguments {
    /// The next integer, character or pointer.
    fn word(&mut self) -> u64;
    fn double(&mut self) -> f64;
}

/// A `va_list` of the x86-64 System V ABI.
#[repr(C)]
pub struct VaList {
    /// Offsets into `saved` of the next general register (up to 48) and the next vector register (up to 176).
    general: u32,
    vector: u32,
    overflow: *const u64,
    saved: *const u8,
}

impl VaList {
    fn overflowed(&mut self) -> u64 {
        // SAFETY: the compiler of the kernel made this list. What a format asks for beyond the arguments is read from its stack.
        unsafe {
            let value = self.overflow.read();
            self.overflow = self.overflow.add(1);
            value
        }
    }
}

impl Arguments for VaList {
    fn word(&mut self) -> u64 {
        if self.general >= 48 {
            return self.overflowed();
        }
        // SAFETY: the offset lies within the saved general registers.
        let value = unsafe { self.saved.add(self.general as usize).cast::<u64>().read() };
        self.general += 8;
        value
    }

    fn double(&mut self) -> f64 {
        if self.vector >= 176 {
            return f64::from_bits(self.overflowed());
        }
        // SAFETY: the offset lies within the saved vector registers.
        let value = unsafe { self.saved.add(self.vector as usize).cast::<f64>().read() };
        self.vector += 16;
        value
    }
}

/// The text, cut to `most` bytes, and how many arguments it took. A conversion that CUDA does not know stays as it is.
fn formatted(format: &[u8], arguments: &mut dyn Arguments, most: usize) -> (Vec<u8>, i32) {
    let (mut text, mut taken, mut rest) = (Vec::new(), 0, format);
    while text.len() < most {
        let plain = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
        text.extend(&rest[..plain]);
        rest = &rest[plain..];
        if rest.is_empty() || text.len() >= most {
            break;
        }
        let mut counted = Counted { arguments: &mut *arguments, taken: 0 };
        let (conversion, bytes) = converted(rest, &mut counted).unwrap_or_else(|| (b"%".to_vec(), 1));
        taken += counted.taken;
        text.extend(conversion);
        rest = &rest[bytes..];
    }
    text.truncate(most);
    (text, taken)
}

/// Arguments, and how many were taken.
struct Counted<'a> {
    arguments: &'a mut dyn Arguments,
    taken: i32,
}

impl Arguments for Counted<'_> {
    fn word(&mut self) -> u64 {
        self.taken += 1;
        self.arguments.word()
    }

    fn double(&mut self) -> f64 {
        self.taken += 1;
        self.arguments.double()
    }
}

/// The text of the conversion that `spec` begins with, and its length there.
fn converted(spec: &[u8], arguments: &mut dyn Arguments) -> Option<(Vec<u8>, usize)> {
    let mut at = 1;
    let while_in = |at: &mut usize, set: &[u8]| {
        let start = *at;
        *at += spec[start..].iter().take_while(|byte| set.contains(byte)).count();
        &spec[start..*at]
    };
    let flags = while_in(&mut at, b"-+ #0");
    let mut minus = &b""[..];
    let mut width = match while_in(&mut at, b"0123456789") {
        [] => String::new(),
        digits => clamped(digits),
    };
    if width.is_empty() && spec.get(at) == Some(&b'*') {
        at += 1;
        let asked = arguments.word() as i32;
        minus = if asked < 0 { b"-" } else { b"" };
        width = clamped(asked.unsigned_abs().to_string().as_bytes());
    }
    let mut precision = String::new();
    if spec.get(at) == Some(&b'.') {
        at += 1;
        precision = format!(".{}", clamped(while_in(&mut at, b"0123456789")));
        if spec.get(at) == Some(&b'*') {
            at += 1;
            let asked = arguments.word() as i32;
            precision = if asked < 0 { String::new() } else { format!(".{}", clamped(asked.to_string().as_bytes())) };
        }
    }
    let size = while_in(&mut at, b"hljzt");
    let kind = *spec.get(at)?;
    if precision.is_empty() && kind == b's' {
        precision = format!(".{WIDEST}");
    }
    // A flag counts once, however often it is written.
    let once = |flag: &&u8| flags.contains(flag) || minus.contains(flag);
    let flags: Vec<u8> = b"-+ #0".iter().filter(once).copied().collect();
    let shape = [b"%", &flags[..], width.as_bytes(), precision.as_bytes()].concat();
    let value = match kind {
        b'%' => return Some((b"%".to_vec(), at + 1)),
        b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c'
            if matches!(size, b"" | b"h" | b"hh" | b"l" | b"ll" | b"j" | b"z" | b"t") =>
        {
            Value::Word(arguments.word())
        }
        b'p' | b's' if size.is_empty() => Value::Word(arguments.word()),
        b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' if matches!(size, b"" | b"l") => {
            Value::Double(arguments.double())
        }
        _ => return None,
    };
    let size = if kind == b'c' { b"" } else { size };
    Some((by_the_c_library(&[&shape, size, &[kind]].concat(), value), at + 1))
}

/// A width or precision as it is heeded.
fn clamped(digits: &[u8]) -> String {
    let number = digits.iter().fold(0, |number: usize, digit| (10 * number + usize::from(digit - b'0')).min(WIDEST));
    number.to_string()
}

enum Value {
    Word(u64),
    Double(f64),
}

/// One value as C formats it.
fn by_the_c_library(conversion: &[u8], value: Value) -> Vec<u8> {
    // A double has up to 309 digits before the point.
    let mut text = vec![0; WIDEST + 512];
    let Ok(conversion) = CString::new(conversion) else { return Vec::new() };
    let (to, room, conversion) = (text.as_mut_ptr().cast(), text.len(), conversion.as_ptr());
    // SAFETY: the buffer is as long as it says, and the conversion takes exactly one argument of this kind.
    let wanted = unsafe {
        match value {
            Value::Word(word) => libc::snprintf(to, room, conversion, word),
            Value::Double(double) => libc::snprintf(to, room, conversion, double),
        }
    };
    text.truncate(usize::try_from(wanted).unwrap_or(0).min(room - 1));
    text
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[derive(Default)]
    struct Given {
        words: VecDeque<u64>,
        doubles: VecDeque<f64>,
    }

    impl Arguments for Given {
        fn word(&mut self) -> u64 {
            self.words.pop_front().expect("an integer or pointer")
        }

        fn double(&mut self) -> f64 {
            self.doubles.pop_front().expect("a double")
        }
    }

    fn printed(format: &str, words: &[u64], doubles: &[f64]) -> (String, i32) {
        let mut given = Given { words: words.iter().copied().collect(), doubles: doubles.iter().copied().collect() };
        let (text, taken) = formatted(format.as_bytes(), &mut given, MOST_BYTES);
        (String::from_utf8(text).unwrap(), taken)
    }

    #[test]
    fn conversions_are_those_of_c() {
        let name = c"tile";
        let words = [(-3_i64) as u64, 7, name.as_ptr() as u64, u64::from(b'x')];
        assert_eq!(printed("%5d|%-3u|%s|%c|%.3f|%g%%\n", &words, &[0.5, 1e30]).0, "   -3|7  |tile|x|0.500|1e+30%\n");
        assert_eq!(
            printed("%+*d %.*s %lld", &[6, 5, 2, name.as_ptr() as u64, 1 << 40], &[]).0,
            "    +5 ti 1099511627776"
        );
        assert_eq!(printed("%*d|", &[(-4_i64) as u64, 1], &[]).0, "1   |");
    }

    #[test]
    fn the_answer_is_the_number_of_arguments() {
        assert_eq!(printed("hello", &[], &[]).1, 0);
        assert_eq!(printed("%d %f %*d", &[1, 2, 3], &[4.0]).1, 4);
    }

    #[test]
    fn what_cuda_does_not_know_stays_as_it_is() {
        assert_eq!(printed("%n %1$d %Lf 100%! %", &[], &[]).0, "%n %1$d %Lf 100%! %");
    }

    #[test]
    fn a_width_or_precision_costs_no_more_than_the_widest() {
        for (format, words) in [("%1000000000d", &[1][..]), ("%*d", &[1_000_000_000, 1]), ("%.1000000000d", &[1])] {
            assert_eq!(printed(format, words, &[]).0.len(), WIDEST, "{format}");
        }
        assert_eq!(printed(&format!("%{}d", "0".repeat(100_000) + "3"), &[1], &[]).0, "001");
        assert_eq!(printed("%.1000000000f", &[], &[1.0]).0.len(), WIDEST + 2);
    }

    #[test]
    fn a_text_is_cut_where_the_room_ends() {
        let (text, taken) = formatted(b"abc%d", &mut Given::default(), 3);
        assert_eq!((&text[..], taken), (&b"abc"[..], 0));
    }
}
