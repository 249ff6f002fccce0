//! The learner's answer: "two new rows and one sentence", from answer.md or a comment of heat.cu.
//!
//! The form is loose on purpose. `rows:` opens the rows and `ship:` the sentence; a row is a line of a table, a list
//! or plain text with a number in it. Template lines that were left empty are missing, not wrong.

use super::directive::comment_lines;
use super::lexer::lex;
use super::source::Submission;

/// Rows that are read, and characters of a row or sentence that are kept.
const ROWS: usize = 16;
const LENGTH: usize = 500;

/// Where an answer was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSource {
    AnswerMd,
    Comment,
}

/// Rows and sentence, each perhaps missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub rows: Vec<AnswerRow>,
    /// When the learner would ship the kernel.
    pub ship: Option<String>,
    pub source: AnswerSource,
}

/// One row: what it is about, and the numbers in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerRow {
    /// The first cell, or the words before the first number.
    pub label: String,
    /// The row without the marks of a table or list.
    pub text: String,
    /// Every number after the label, in order.
    pub numbers: Vec<f64>,
    /// Words read a cell and timestep, where the row is about reads.
    pub reads_per_cell_step: Option<f64>,
    /// Milliseconds a timestep, where the row is about time.
    pub ms_per_timestep: Option<f64>,
    /// Time over that of heatStepTiled, where the row gives it.
    pub ratio: Option<f64>,
}

/// The answer in answer.md, or else in the first comment of heat.cu that has `rows:` or `ship:`.
pub fn find_answer(submission: &Submission) -> Option<Answer> {
    let from_file = submission.answer_md.as_deref().map(|text| read(text.lines(), AnswerSource::AnswerMd));
    let has_something = |answer: &Answer| !answer.rows.is_empty() || answer.ship.is_some();
    if let Some(answer) = from_file.clone().filter(has_something) {
        return Some(answer);
    }
    let comments = lex(&submission.text).comments;
    // Comments on lines in a row are one text.
    let mut blocks: Vec<(u32, Vec<&str>)> = Vec::new();
    for comment in &comments {
        let after = comment.line.saturating_add(comment.text.matches('\n').count() as u32 + 1);
        let alone = stands_first_in_its_line(&submission.text, comment.span.start);
        let lines = comment_lines(comment).map(|(_, text)| text);
        match blocks.last_mut().filter(|(next, _)| alone && *next == comment.line) {
            Some((next, block)) => {
                *next = after;
                block.extend(lines);
            }
            None => blocks.push((after, lines.collect())),
        }
    }
    let is_answer = |block: &&(u32, Vec<&str>)| block.1.iter().any(|line| opening(line).is_some());
    let block = blocks.iter().find(is_answer);
    block.map(|(_, lines)| read(lines.iter().copied(), AnswerSource::Comment)).filter(has_something).or(from_file)
}

/// Whether nothing but white space stands before `at` in its line.
fn stands_first_in_its_line(text: &str, at: usize) -> bool {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    before.iter().rev().take_while(|byte| **byte != b'\n').take(200).all(u8::is_ascii_whitespace)
}

enum Part {
    Rows,
    Ship,
}

/// `rows:` or `ship:` at the start of a line, with what follows it.
fn opening(line: &str) -> Option<(Part, &str)> {
    let line = line.trim_start_matches(['#', '*', '-', '_', '`', '>', ' ', '\t']);
    let (word, rest) = line.split_once(':')?;
    let rest = rest.trim_start_matches(['*', '_', '`']).trim();
    match word.trim_matches(['*', '_', '`', ' ']).to_ascii_lowercase().as_str() {
        "rows" | "row" | "new rows" | "two new rows" => Some((Part::Rows, rest)),
        "ship" | "ship it" | "when to ship" => Some((Part::Ship, rest)),
        _ => None,
    }
}

fn read<'t>(lines: impl Iterator<Item = &'t str>, source: AnswerSource) -> Answer {
    let mut answer = Answer { rows: Vec::new(), ship: None, source };
    let mut part = None;
    let mut sentence = String::new();
    let mut head = String::new();
    for line in lines.take(2000) {
        let line = line.trim();
        let rest = match opening(line) {
            Some((opened, rest)) => {
                part = Some(opened);
                rest
            }
            None => line,
        };
        match part {
            Some(Part::Rows) if answer.rows.len() < ROWS => match row(rest, &head) {
                Some(row) => answer.rows.push(row),
                None if rest.chars().any(char::is_alphabetic) => head = capped(rest).to_ascii_lowercase(),
                None => {}
            },
            Some(Part::Ship) if sentence.len() < 4 * LENGTH => push_sentence(&mut sentence, rest),
            _ => {}
        }
    }
    let sentence = capped(sentence.trim());
    answer.ship = Some(sentence).filter(|sentence| !is_template(sentence));
    answer
}

/// A sentence ends with an empty line.
fn push_sentence(sentence: &mut String, line: &str) {
    let ended = sentence.ends_with('\n');
    if ended || line.starts_with('#') || line.starts_with("grader:") {
        return;
    }
    if line.is_empty() {
        if !sentence.trim().is_empty() {
            sentence.push('\n');
        }
        return;
    }
    if !sentence.is_empty() {
        sentence.push(' ');
    }
    sentence.extend(line.trim_matches(['*', '`', '_']).trim_start_matches('>').trim().chars().take(LENGTH));
}

/// Whether nothing but a place to fill in is there: dots, dashes, `TODO`, `<...>`.
fn is_template(text: &str) -> bool {
    let bare = text.trim_matches(|c: char| c.is_whitespace() || ".-_*`|…?".contains(c));
    let bracketed = |open, close| bare.starts_with(open) && bare.ends_with(close);
    bare.is_empty()
        || bracketed('<', '>')
        || bracketed('[', ']')
        || matches!(bare.to_ascii_lowercase().as_str(), "todo" | "tbd")
}

fn capped(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LENGTH).collect()
}

/// One row, if the line is one with a number after its label.
fn row(line: &str, head: &str) -> Option<AnswerRow> {
    let line = capped(line);
    let text = line.trim().trim_start_matches(['-', '*', '+', '>']).trim().trim_matches('|').trim();
    let text: String = text.chars().filter(|c| !matches!(c, '`' | '*')).collect();
    let (label, values) = split_label(&text);
    let numbers = numbers(values);
    if numbers.is_empty() || is_template(&text) {
        return None;
    }
    let mut row = AnswerRow { label: label.trim().to_owned(), text: text.clone(), ..AnswerRow::default() };
    row.numbers = numbers.iter().map(|number| number.value).collect();
    classify(&mut row, &numbers, head);
    Some(row)
}

/// The first cell of a table, the text before a colon, or the words before the first number.
fn split_label(text: &str) -> (&str, &str) {
    if let Some((label, rest)) = text.split_once('|').or_else(|| text.split_once(": ")).or_else(|| text.split_once('='))
    {
        return (label, rest);
    }
    let first = number_starts(text).next().unwrap_or(text.len());
    text.split_at_checked(first).unwrap_or((text, ""))
}

/// Offsets where a number begins that is not part of a word.
fn number_starts(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).filter(move |&at| {
        let is_digit = bytes.get(at).is_some_and(u8::is_ascii_digit);
        let point = bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let inside =
            before.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b',' | 0x80..));
        (is_digit || point) && !inside
    })
}

/// A number with the word after it.
struct Number {
    value: f64,
    unit: String,
}

fn numbers(text: &str) -> Vec<Number> {
    let starts = number_starts(text).take(32);
    starts.filter_map(|at| text.get(at..)).filter_map(number).collect()
}

fn number(text: &str) -> Option<Number> {
    let length = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len());
    let digits: String = text.get(..length)?.trim_end_matches(['.', ',']).replace(',', "");
    let value: f64 = digits.parse().ok()?;
    let unit = text.get(length..)?.trim_start().chars().take(16).collect::<String>().to_ascii_lowercase();
    value.is_finite().then_some(Number { value, unit })
}

/// Tells what a row's numbers are, by their units, else by the row's words, else by those of the table's head.
fn classify(row: &mut AnswerRow, numbers: &[Number], head: &str) {
    let words = row.text.to_ascii_lowercase();
    let with_unit = |units: &[&str]| {
        let fits = |number: &&Number| units.iter().any(|unit| number.unit.starts_with(unit));
        numbers.iter().find(fits).map(|number| number.value)
    };
    let first = numbers.first().map(|number| number.value);
    let microseconds = with_unit(&["us", "µs", "microsec"]).map(|value| value / 1000.0);
    row.ms_per_timestep = with_unit(&["ms", "millisec"]).or(microseconds);
    row.ratio = with_unit(&["x", "×", "times"]);
    if row.ms_per_timestep.is_some() {
        return;
    }
    let says = |text: &str, any: &[&str]| any.iter().any(|word| text.contains(word));
    if says(&words, &["read", "word", "load"]) {
        row.reads_per_cell_step = with_unit(&["word", "read", "load", "global"]).or(first);
    } else if says(&words, &["time", "ms"]) || (says(head, &["time", "ms"]) && numbers.len() > 1) {
        row.ms_per_timestep = first;
        row.ratio = row.ratio.or(numbers.last().map(|number| number.value).filter(|_| says(head, &["ratio"])));
    } else if says(&words, &["ratio"]) {
        row.ratio = row.ratio.or(first);
    } else if row.ratio != first && numbers.len() == 1 {
        row.reads_per_cell_step = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_file(text: &str) -> Answer {
        let submission = Submission { answer_md: Some(text.to_owned()), ..Submission::from_text("test", "int a;") };
        find_answer(&submission).expect("an answer")
    }

    #[test]
    fn a_table_in_answer_md_gives_rows_and_sentence() {
        let answer = of_file(
            "# My answer\n\n**Rows:**\n\n| kernel | time (ms) | ratio |\n|---|---|---|\n| `twoStep` | 0.205 ms | 0.72x |\n\
             | reads per cell-step | 0.843 | |\n\n## Ship:\nWhen memory\nbandwidth is short.\n\nMore words.\n",
        );
        assert_eq!(answer.rows.len(), 2, "{answer:?}");
        let first = &answer.rows[0];
        assert_eq!((first.label.as_str(), first.ms_per_timestep, first.ratio), ("twoStep", Some(0.205), Some(0.72)));
        assert_eq!(answer.rows[1].reads_per_cell_step, Some(0.843));
        assert_eq!(answer.ship.as_deref(), Some("When memory bandwidth is short."));
    }

    #[test]
    fn a_comment_of_line_comments_is_one_answer() {
        let text = "int a;\n// rows:\n//   - heatTwoStep reads 0.84283 words\n//   - heatTwoStep 0.0205 ms a timestep, 1.08 times heatStepTiled\n// ship: never, it is slower.\nint b; // ship: no\n";
        let answer = find_answer(&Submission::from_text("test", text)).expect("an answer");
        assert_eq!(answer.source, AnswerSource::Comment);
        assert_eq!(answer.rows[0].reads_per_cell_step, Some(0.84283));
        assert_eq!((answer.rows[1].ms_per_timestep, answer.rows[1].ratio), (Some(0.0205), Some(1.08)));
        assert_eq!(answer.ship.as_deref(), Some("never, it is slower."));
    }

    #[test]
    fn rows_as_the_program_prints_them_are_read() {
        let answer = of_file(
            "rows:\nheatTwoStep               0.844\nheatTwoStep               0.014 ms    0.66x\nship: When it pays.\n",
        );
        assert_eq!(answer.rows[0].reads_per_cell_step, Some(0.844));
        assert_eq!((answer.rows[1].ms_per_timestep, answer.rows[1].ratio), (Some(0.014), Some(0.66)));
        let answer = of_file("rows:\n| kernel | time (ms) | ratio |\n|--|--|--|\n| two | 0.3 | 1.1 |\n");
        assert_eq!((answer.rows[0].ms_per_timestep, answer.rows[0].ratio), (Some(0.3), Some(1.1)));
    }

    #[test]
    fn a_template_left_empty_is_missing() {
        let answer = of_file("rows:\n- reads: ...\n- time:\n| | |\nship: <one sentence>\n");
        assert_eq!((answer.rows.len(), answer.ship), (0, None));
    }

    #[test]
    fn without_the_words_there_is_no_answer() {
        assert_eq!(find_answer(&Submission::from_text("test", "// rows and ships\nint rows; // see\n")), None);
    }
}
