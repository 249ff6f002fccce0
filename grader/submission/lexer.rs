//! Tokens of a C++ or CUDA text: where each stands, what is a comment, what is a preprocessor line.
//!
//! General on purpose: besides this module's own preprocessor ([`super::macros`]) the cpu engine's rewriter reads
//! preprocessed text through it. Nothing is an error here: an unfinished string ends with its line, an unfinished
//! comment or raw string with the text, a stray byte is a punctuator.
//!
//! `<<<` is always one token, as for nvcc (no C++ text has it, but for `operator<<<`). `>>>` is one only where it ends
//! a launch's `<<<` at the same depth of brackets; elsewhere it is `>>` and `>`, as closing template lists need it.

use std::ops::Range;
use std::sync::Arc;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    Identifier,
    /// A preprocessing number: `1'000u`, `0x1p-3f`, also malformed ones.
    Number,
    /// A string with its prefix and quotes, raw ones included.
    String,
    /// A character with its prefix and quotes.
    Char,
    Punctuation,
}

/// One token, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// Its spelling, line splices removed; `{` for `<%`, and so on.
    pub text: Arc<str>,
    /// Line of its first byte, from 1.
    pub line: u32,
    /// Byte column of its first byte, from 1.
    pub column: u32,
    /// Bytes of the text that it covers, line splices included.
    pub span: Range<usize>,
    /// Whether white space or a comment stands before it.
    pub spaced: bool,
    /// Whether it is the first of its line (splices joined).
    pub starts_line: bool,
    /// Whether it belongs to a preprocessor line.
    pub directive: bool,
}

impl Token {
    /// Whether the token is this punctuator or identifier.
    pub fn is(&self, text: &str) -> bool {
        &*self.text == text && matches!(self.kind, TokenKind::Punctuation | TokenKind::Identifier)
    }

    /// Whether the token is an identifier (keywords are).
    pub fn is_identifier(&self) -> bool {
        self.kind == TokenKind::Identifier
    }
}

/// A comment, delimiters included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    pub text: String,
    /// Line of its first byte, from 1.
    pub line: u32,
    /// Bytes of the text that it covers.
    pub span: Range<usize>,
}

/// A text taken apart.
#[derive(Clone, Debug, Default)]
pub struct Lexed {
    pub tokens: Vec<Token>,
    pub comments: Vec<Comment>,
}

/// Punctuators of more than one character, longest first. `>>` and longer are made with regard to what is open.
const PUNCTUATORS: [&str; 26] = [
    "<<<", "<<=", "<=>", "->*", "...", "::", "->", "++", "--", "<<", "<=", "==", "!=", "&&", "||", "+=", "-=", "*=",
    "/=", "%=", "&=", "|=", "^=", "##", ".*", ">=",
];

/// Other spellings of punctuators, longest first. Source: C++17, \[lex.digraph\].
const DIGRAPHS: [(&str, &str); 6] = [("%:%:", "##"), ("%:", "#"), ("<%", "{"), ("%>", "}"), ("<:", "["), (":>", "]")];

/// Operators that are spelled as words. Source: C++17, \[lex.digraph\].
const OPERATOR_WORDS: [(&str, &str); 11] = [
    ("and", "&&"),
    ("or", "||"),
    ("not", "!"),
    ("not_eq", "!="),
    ("bitand", "&"),
    ("bitor", "|"),
    ("xor", "^"),
    ("compl", "~"),
    ("and_eq", "&="),
    ("or_eq", "|="),
    ("xor_eq", "^="),
];

/// Takes a text apart; linear in its length.
pub fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer::new(text);
    while lexer.skip_trivia() {
        lexer.token();
    }
    lexer.lexed
}

pub struct Lexer<'a> {
    pub text: &'a str,
    pub bytes: &'a [u8],
    /// Offset of the next byte that is not part of a line splice.
    pub at: usize,
    pub line: u32,
    pub line_start: usize,
    spaced: bool,
    starts_line: bool,
    directive: bool,
    /// Depth of brackets, and the depths at which a launch's `<<<` is open.
    depth: usize,
    launches: Vec<usize>,
    /// Depth and launches of the text around the preprocessor line that is being read.
    around: Option<(usize, Vec<usize>)>,
    lexed: Lexed,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        let mut lexer = Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            line: 1,
            line_start: 0,
            spaced: false,
            starts_line: true,
            directive: false,
            depth: 0,
            launches: Vec::new(),
            around: None,
            lexed: Lexed::default(),
        };
        lexer.skip_splices();
        lexer
    }

    pub fn skip_splices(&mut self) {
        while let Some(end) = splice(self.bytes, self.at) {
            self.at = end;
            self.line += 1;
            self.line_start = end;
        }
    }

    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The byte `ahead` places on, splices skipped.
    pub fn peek_at(&self, ahead: usize) -> Option<u8> {
        let mut at = self.at;
        for _ in 0..ahead {
            at += 1;
            while let Some(end) = splice(self.bytes, at) {
                at = end;
            }
        }
        self.bytes.get(at).copied()
    }

    pub fn advance(&mut self) {
        if self.peek() == Some(b'\n') {
            self.line += 1;
            self.line_start = self.at + 1;
        }
        self.at = (self.at + 1).min(self.bytes.len());
        self.skip_splices();
    }

    fn looking_at(&self, wanted: &str) -> bool {
        wanted.bytes().enumerate().all(|(ahead, byte)| self.peek_at(ahead) == Some(byte))
    }

    /// Skips white space and comments; false at the end of the text.
    fn skip_trivia(&mut self) -> bool {
        loop {
            match self.peek() {
                None => return false,
                Some(b'\n') => {
                    self.starts_line = true;
                    self.leave_directive();
                    self.spaced = true;
                    self.advance();
                }
                Some(byte) if byte.is_ascii_whitespace() || byte == 0x0B => {
                    self.spaced = true;
                    self.advance();
                }
                Some(b'/') if self.looking_at("//") => self.comment(false),
                Some(b'/') if self.looking_at("/*") => self.comment(true),
                Some(_) => return true,
            }
        }
    }

    fn leave_directive(&mut self) {
        self.directive = false;
        if let Some((depth, launches)) = self.around.take() {
            (self.depth, self.launches) = (depth, launches);
        }
    }

    fn comment(&mut self, block: bool) {
        let (start, line) = (self.at, self.line);
        self.advance();
        self.advance();
        while let Some(byte) = self.peek() {
            if block && byte == b'*' && self.peek_at(1) == Some(b'/') {
                self.advance();
                self.advance();
                break;
            }
            if !block && byte == b'\n' {
                break;
            }
            self.advance();
        }
        self.spaced = true;
        let span = start..self.at;
        self.lexed.comments.push(Comment { text: self.slice(&span), line, span });
    }

    pub fn slice(&self, span: &Range<usize>) -> String {
        String::from_utf8_lossy(self.bytes.get(span.clone()).unwrap_or_default()).into_owned()
    }

    fn token(&mut self) {
        let (start, line, column) = (self.at, self.line, (self.at - self.line_start) as u32 + 1);
        if self.starts_line && (self.peek() == Some(b'#') || self.looking_at("%:")) {
            self.directive = true;
            self.around = Some((std::mem::take(&mut self.depth), std::mem::take(&mut self.launches)));
        }
        let mut text = String::new();
        let kind = self.scan(&mut text);
        let token = Token {
            kind,
            text: text.into(),
            line,
            column,
            span: start..self.at,
            spaced: self.spaced,
            starts_line: self.starts_line,
            directive: self.directive,
        };
        self.track_launch(&token);
        self.lexed.tokens.push(token);
        self.spaced = false;
        self.starts_line = false;
    }

    fn scan(&mut self, text: &mut String) -> TokenKind {
        let byte = self.peek().unwrap_or_default();
        if is_identifier_start(byte) {
            self.take_while(text, is_identifier_part);
            if let Some((_, meant)) = OPERATOR_WORDS.iter().find(|(word, _)| *word == text.as_str()) {
                text.replace_range(.., meant);
                return TokenKind::Punctuation;
            }
            return self.literal_after_prefix(text);
        }
        if byte.is_ascii_digit() || (byte == b'.' && self.peek_at(1).is_some_and(|next| next.is_ascii_digit())) {
            self.number(text);
            return TokenKind::Number;
        }
        if byte == b'"' || byte == b'\'' {
            return self.quoted(text, byte);
        }
        if let Some((spelled, meant)) = self.digraph() {
            spelled.bytes().for_each(|_| self.advance());
            text.push_str(meant);
            return TokenKind::Punctuation;
        }
        let length = self.punctuator_length();
        for _ in 0..length {
            self.take(text);
        }
        TokenKind::Punctuation
    }

    pub fn take(&mut self, text: &mut String) {
        if let Some(byte) = self.peek() {
            text.push(char::from(byte));
            self.advance();
        }
    }

    /// Takes bytes while they fit; whole UTF-8 characters, because every byte above 0x7F fits an identifier.
    fn take_while(&mut self, text: &mut String, fits: impl Fn(u8) -> bool) {
        let mut taken = Vec::new();
        while let Some(byte) = self.peek().filter(|&byte| fits(byte)) {
            taken.push(byte);
            self.advance();
        }
        text.push_str(&String::from_utf8_lossy(&taken));
    }

    fn digraph(&self) -> Option<(&'static str, &'static str)> {
        // `v<::name>` is a list of template arguments.
        let opens_template = self.looking_at("<::") && !matches!(self.peek_at(3), Some(b':' | b'>'));
        DIGRAPHS.into_iter().find(|(spelled, _)| self.looking_at(spelled)).filter(|_| !opens_template)
    }

    fn punctuator_length(&self) -> usize {
        if self.peek() == Some(b'>') {
            return self.closing_angles();
        }
        let after_operator = self.lexed.tokens.last().is_some_and(|last| last.is("operator"));
        PUNCTUATORS
            .iter()
            .filter(|punctuator| !(after_operator && **punctuator == "<<<"))
            .find(|punctuator| self.looking_at(punctuator))
            .map_or(1, |punctuator| punctuator.len())
    }

    /// How many characters of a run of `>` make the next token.
    fn closing_angles(&self) -> usize {
        let launch_open = self.launches.last() == Some(&self.depth);
        let run = (0..4).take_while(|&ahead| self.peek_at(ahead) == Some(b'>')).count();
        match run {
            4 if launch_open => 1,
            3 if launch_open => 3,
            2.. if self.peek_at(2) == Some(b'=') => 3,
            2.. => 2,
            _ if self.peek_at(1) == Some(b'=') => 2,
            _ => 1,
        }
    }

    fn track_launch(&mut self, token: &Token) {
        if token.kind != TokenKind::Punctuation {
            return;
        }
        match &*token.text {
            "(" | "[" | "{" => self.depth += 1,
            ")" | "]" | "}" => {
                self.depth = self.depth.saturating_sub(1);
                while self.launches.last().is_some_and(|&open| open > self.depth) {
                    self.launches.pop();
                }
            }
            "<<<" => self.launches.push(self.depth),
            ">>>" => {
                self.launches.pop();
            }
            ";" => self.launches.retain(|&open| open < self.depth),
            _ => {}
        }
    }
}

/// The end of the line splice at `at`: a backslash, spaces as compilers allow them, a line end.
fn splice(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'\\') {
        return None;
    }
    let blanks = bytes.get(at + 1..)?.iter().take(80).take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    (bytes.get(at + 1 + blanks) == Some(&b'\n')).then_some(at + blanks + 2)
}

fn is_identifier_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || byte >= 0x80
}

pub fn is_identifier_part(byte: u8) -> bool {
    is_identifier_start(byte) || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        lex(text).tokens.iter().map(|token| token.text.to_string()).collect()
    }

    #[test]
    fn a_launch_has_its_own_brackets_and_templates_keep_theirs() {
        assert_eq!(texts("k<<<g, b>>>(a)"), ["k", "<<<", "g", ",", "b", ">>>", "(", "a", ")"]);
        assert_eq!(texts("v<v<v<int>>> x"), ["v", "<", "v", "<", "v", "<", "int", ">>", ">", "x"]);
        assert_eq!(texts("k<<<g, f<b>>>>(a)"), ["k", "<<<", "g", ",", "f", "<", "b", ">", ">>>", "(", "a", ")"]);
        assert_eq!(
            texts("k<8><<<f(x >> 1), 2>>>"),
            ["k", "<", "8", ">", "<<<", "f", "(", "x", ">>", "1", ")", ",", "2", ">>>"]
        );
    }

    #[test]
    fn comments_strings_and_splices_do_not_mislead() {
        let lexed = lex("a /* \"b\n*/ c // d \\\n e\n\"/* f\\\"\" R\"x(g)\" )x\" 'h' i\\\nj");
        let texts: Vec<&str> = lexed.tokens.iter().map(|token| &*token.text).collect();
        assert_eq!(texts, ["a", "c", "\"/* f\\\"\"", "R\"x(g)\" )x\"", "'h'", "ij"]);
        let lines: Vec<u32> = lexed.tokens.iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 4, 4, 4, 4]);
        assert_eq!(lexed.comments.iter().map(|comment| comment.line).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(lexed.tokens.get(1).map(|token| (token.column, token.span.clone())), Some((4, 11..12)));
    }

    #[test]
    fn preprocessor_lines_are_marked_to_their_end() {
        let lexed = lex("# define A \\\n 1\nb #c\n");
        let marks: Vec<(&str, bool)> = lexed.tokens.iter().map(|token| (&*token.text, token.directive)).collect();
        assert_eq!(
            marks,
            [("#", true), ("define", true), ("A", true), ("1", true), ("b", false), ("#", false), ("c", false)]
        );
    }

    #[test]
    fn digraphs_are_what_they_stand_for() {
        assert_eq!(
            texts("<% a<:1:> %> v<::b> v<:::b:> x%y"),
            ["{", "a", "[", "1", "]", "}", "v", "<", "::", "b", ">", "v", "[", "::", "b", "]", "x", "%", "y"]
        );
        assert_eq!(
            texts("a and not b or c bitand compl d xor e not_eq f and_eq g operator and android"),
            "a && ! b || c & ~ d ^ e != f &= g operator && android".split(' ').collect::<Vec<_>>()
        );
        let lexed = lex("%:define A(x) %:x %:%: 1\n%:> 2");
        let marks: Vec<(&str, bool)> = lexed.tokens.iter().map(|token| (&*token.text, token.directive)).collect();
        let define = ["#", "define", "A", "(", "x", ")", "#", "x", "##", "1"].map(|text| (text, true));
        assert_eq!(marks[..10], define);
        assert_eq!(lexed.tokens[0].span, 0..2);
    }

    #[test]
    fn numbers_keep_separators_suffixes_and_exponents() {
        assert_eq!(
            texts("1'000u+1e-3f-0x1p+2 0xE+1 .5 1.."),
            ["1'000u", "+", "1e-3f", "-", "0x1p+2", "0xE", "+", "1", ".5", "1.."]
        );
    }
}
