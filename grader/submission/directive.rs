//! `// grader: kernel=NAME block=32x8 tile=32x8 shared=0`: the launch in the learner's own words.

use super::lexer::Comment;

/// The form that every message shows.
pub const FORM: &str = "// grader: kernel=NAME block=32x8 tile=32x8 shared=0";
/// Block and tile of a directive that leaves them out, and of a file without a launch: threads or cells in x and y.
pub const DEFAULT_BLOCK: [u32; 3] = [32, 8, 1];
pub const DEFAULT_TILE: [u32; 2] = [32, 8];
/// Most threads that a block may have on any GPU, and most along z.
const THREADS: u64 = 1024;
const THREADS_IN_Z: u32 = 64;

/// What the comments of a file direct.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directive {
    /// The kernel's name, perhaps with template arguments.
    pub kernel: Option<String>,
    /// Threads of a block in x, y, z.
    pub block: Option<[u32; 3]>,
    /// Cells of a tile in x and y.
    pub tile: Option<[u32; 2]>,
    /// Dynamic shared memory of a block, bytes.
    pub shared: Option<u32>,
    /// Line of the first directive, from 1; 0 when there is none.
    pub line: u32,
    /// The first directive as written.
    pub text: String,
}

impl Directive {
    /// Whether it settles the launch, rather than only naming the kernel.
    pub fn gives_launch(&self) -> bool {
        self.block.is_some() || self.tile.is_some() || self.shared.is_some()
    }
}

/// A directive that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadDirective {
    /// Line of the comment, from 1.
    pub line: u32,
    /// What is wrong with it.
    pub what: String,
}

/// Reads all directives of a file; each key may be given once.
pub fn read(comments: &[Comment]) -> Result<Directive, BadDirective> {
    let mut directive = Directive::default();
    for (line, text) in comments.iter().flat_map(comment_lines) {
        let Some(rest) = strip_marker(text) else { continue };
        if directive.line == 0 {
            directive.line = line;
            directive.text = text.chars().take(200).collect();
        }
        read_line(&mut directive, rest).map_err(|what| BadDirective { line, what })?;
    }
    Ok(directive)
}

/// The lines of a comment without its marks, each with its line number.
pub fn comment_lines(comment: &Comment) -> impl Iterator<Item = (u32, &str)> {
    let inside = comment.text.strip_prefix("/*").map(|text| text.strip_suffix("*/").unwrap_or(text));
    let inside = inside.unwrap_or_else(|| comment.text.trim_start_matches('/'));
    let lines = inside.lines().zip(comment.line..);
    lines.map(|(text, line)| (line, text.trim().trim_start_matches(['*', '/', '!', '<']).trim()))
}

fn strip_marker(text: &str) -> Option<&str> {
    let head = text.get(..6)?;
    let rest = text.get(6..)?.trim_start();
    if head.eq_ignore_ascii_case("grader") { rest.strip_prefix(':') } else { None }
}

fn read_line(directive: &mut Directive, rest: &str) -> Result<(), String> {
    let items = items(rest);
    if items.is_empty() {
        return Err("it gives no key".to_owned());
    }
    for item in items {
        let (key, value) = item.split_once('=').ok_or_else(|| format!("{} is not key=value", quoted(item)))?;
        if value.is_empty() {
            return Err(format!("{} has no value", quoted(key)));
        }
        set(directive, &key.to_ascii_lowercase(), value)?;
    }
    Ok(())
}

/// The text at white space and commas, those inside `<...>` left alone.
fn items(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    let separates = |c: char| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        depth <= 0 && (c.is_whitespace() || c == ',' || c == ';')
    };
    text.split(separates).filter(|item| !item.is_empty()).collect()
}

fn set(directive: &mut Directive, key: &str, value: &str) -> Result<(), String> {
    let repeated = match key {
        "kernel" => directive.kernel.replace(value.to_owned()).is_some(),
        "block" => directive.block.replace(block(value)?).is_some(),
        "tile" => directive.tile.replace(tile(value)?).is_some(),
        "shared" => directive.shared.replace(bytes(value)?).is_some(),
        _ => return Err(format!("{} is no key; the keys are kernel, block, tile and shared", quoted(key))),
    };
    if repeated { Err(format!("{} is given more than once", quoted(key))) } else { Ok(()) }
}

fn block(value: &str) -> Result<[u32; 3], String> {
    let [x, y, z] = lengths::<3>("block", value)?;
    let threads = u64::from(x) * u64::from(y).saturating_mul(u64::from(z));
    if threads > THREADS {
        return Err(format!("block={} is {threads} threads; a block has at most {THREADS}", shown(value)));
    }
    if z > THREADS_IN_Z {
        return Err(format!("block={} has {z} threads along z; a block has at most {THREADS_IN_Z}", shown(value)));
    }
    Ok([x, y, z])
}

fn tile(value: &str) -> Result<[u32; 2], String> {
    lengths::<2>("tile", value)
}

/// `32x8` as lengths; those left out are 1.
fn lengths<const COUNT: usize>(key: &str, value: &str) -> Result<[u32; COUNT], String> {
    let bad = |why: &str| format!("{key}={} {why}", shown(value));
    let parts: Vec<&str> = value.split(['x', 'X', '*']).collect();
    if parts.len() > COUNT {
        return Err(bad(&format!("has more than {COUNT} lengths")));
    }
    let mut lengths = [1; COUNT];
    for (length, part) in lengths.iter_mut().zip(parts) {
        *length = part.trim().parse().map_err(|_| bad("is not of the form 32x8"))?;
        if *length == 0 {
            return Err(bad("has a length of zero"));
        }
    }
    Ok(lengths)
}

fn bytes(value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("shared={} is not a number of bytes", shown(value)))
}

fn quoted(text: &str) -> String {
    format!("`{}`", shown(text))
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submission::lexer::lex;

    fn read_text(text: &str) -> Result<Directive, BadDirective> {
        read(&lex(text).comments)
    }

    #[test]
    fn every_key_is_read_in_any_order_and_kind_of_comment() {
        let directive = read_text(
            "int a;\n/* words\n * grader: tile=64x16 kernel=ns::k<64, 16>\n */ // Grader : block=64x8x1, shared=1024\n",
        );
        let directive = directive.expect("a directive");
        assert_eq!(directive.kernel.as_deref(), Some("ns::k<64, 16>"));
        assert_eq!((directive.block, directive.tile, directive.shared), (Some([64, 8, 1]), Some([64, 16]), Some(1024)));
        assert_eq!(directive.line, 3);
    }

    #[test]
    fn a_block_of_one_length_is_one_dimensional() {
        assert_eq!(read_text("// grader: block=256").expect("a directive").block, Some([256, 1, 1]));
    }

    #[test]
    fn prose_and_strings_are_no_directives() {
        let directive =
            read_text("// the grader: it counts\nconst char* s = \"// grader: x\"; // graders: no").expect("none");
        assert_eq!(directive, Directive::default());
    }

    #[test]
    fn what_cannot_be_followed_is_named() {
        let cases = [
            ("blok=32x8", "`blok` is no key"),
            ("block=32x", "not of the form"),
            ("block=0x8", "zero"),
            ("block=64x64", "4096 threads"),
            ("block=1x1x128", "128 threads along z"),
            ("tile=1x2x3", "more than 2"),
            ("shared=1k", "not a number of bytes"),
            ("shared=-1", "not a number of bytes"),
            ("block=99999999999x1", "not of the form"),
            ("block 32x8", "`block` is not key=value"),
            ("block=", "no value"),
            ("block=32x8 block=32x8", "more than once"),
            ("", "no key"),
        ];
        for (text, expected) in cases {
            let bad = read_text(&format!("\n// grader: {text}\n")).expect_err(text);
            assert!(bad.what.contains(expected), "{text}: {}", bad.what);
            assert_eq!(bad.line, 2);
        }
        assert!(read_text("// grader: tile=32x8\n// grader: tile=64x8").is_err());
    }
}
