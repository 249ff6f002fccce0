//! Text in lines of so many columns.

/// Columns of a line of the text report.
pub const WIDTH: usize = 80;

/// The text in lines of [`WIDTH`] columns, each behind `indent` spaces.
pub fn wrapped(text: &str, indent: usize) -> String {
    wrap(text, WIDTH - indent).into_iter().map(|line| format!("{:indent$}{line}\n", "")).collect()
}

/// Breaks at spaces; a word longer than a line is broken where the line ends.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
            used = 0;
        }
        while word.len() > width {
            let rest = word.split_off(width);
            lines.last_mut().expect("never empty").extend(word);
            lines.push(String::new());
            word = rest;
        }
        let line = lines.last_mut().expect("never empty");
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        used += word.len();
        line.extend(word);
    }
    lines
}

/// At most `width` characters, with an ellipsis when cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_wrapped_and_endless_words_are_broken() {
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("a bbbbbbbb c", 4), ["a", "bbbb", "bbbb", "c"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
