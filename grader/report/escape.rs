//! Text that a learner controls: made harmless before anybody's terminal or page shows it.

/// Bytes kept of what a kernel printed.
pub const OUTPUT: usize = 4096;

/// The text with every control, formatting and direction-changing character spelled out, so that it can neither move a
/// cursor, colour a line, nor reorder what is read. Newlines are spelled out too.
pub fn line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        push(&mut safe, c);
        safe
    })
}

/// The same with line ends and tabs kept, cut to `most` bytes with a note of how much was left out.
pub fn block(text: &str, most: usize) -> String {
    let mut safe = String::new();
    for (at, c) in text.char_indices() {
        if safe.len() >= most {
            let left = text.len() - at;
            safe.push_str(&format!("\n[{left} more bytes left out]"));
            break;
        }
        match c {
            '\n' | '\t' => safe.push(c),
            '\r' if text[at + 1..].starts_with('\n') => {}
            _ => push(&mut safe, c),
        }
    }
    safe
}

fn push(safe: &mut String, c: char) {
    if is_harmless(c) {
        safe.push(c);
    } else {
        safe.extend(c.escape_unicode());
    }
}

/// Printable, and read where it stands. Whitespace other than the plain space could fake an indent or a new line.
fn is_harmless(c: char) -> bool {
    let formatting = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || formatting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_commands_and_bidi_overrides_are_spelled_out() {
        assert_eq!(line("\u{1b}[32mPASS\u{202e}x\r\n"), "\\u{1b}[32mPASS\\u{202e}x\\u{d}\\u{a}");
        assert_eq!(line("Größe 温度 é"), "Größe 温度 é");
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(block("a\tb\r\nc\u{7}", 100), "a\tb\nc\\u{7}");
    }

    #[test]
    fn a_long_block_is_cut_between_characters() {
        let cut = block(&"ä".repeat(100), 11);
        assert!(cut.starts_with("ääääää\n[188 more bytes"), "{cut}");
    }
}
