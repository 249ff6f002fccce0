//! Numbers, characters and strings of the lexer.

use super::lexer::{Lexer, TokenKind, is_identifier_part};

impl Lexer<'_> {
    /// An identifier, unless it is the prefix of the string or character that follows without a space.
    pub fn literal_after_prefix(&mut self, text: &mut String) -> TokenKind {
        match (self.peek(), text.as_str()) {
            (Some(b'"'), "R" | "LR" | "uR" | "UR" | "u8R") => self.raw_string(text),
            (Some(quote @ (b'"' | b'\'')), "L" | "u" | "U" | "u8") => self.quoted(text, quote),
            _ => TokenKind::Identifier,
        }
    }

    pub fn number(&mut self, text: &mut String) {
        while let Some(byte) = self.peek() {
            let sign = matches!(byte, b'+' | b'-') && text.ends_with(['e', 'E', 'p', 'P']);
            let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
            let sign = sign && (!hexadecimal || text.ends_with(['p', 'P']));
            let separator = byte == b'\'' && self.peek_at(1).is_some_and(|next| next.is_ascii_alphanumeric());
            if !(sign || separator || byte == b'.' || is_identifier_part(byte) && byte < 0x80) {
                break;
            }
            self.take(text);
        }
    }

    pub fn quoted(&mut self, text: &mut String, quote: u8) -> TokenKind {
        let start = self.at;
        self.advance();
        while let Some(byte) = self.peek().filter(|&byte| byte != b'\n') {
            self.advance();
            if byte == quote {
                break;
            }
            if byte == b'\\' && self.peek().is_some_and(|next| next != b'\n') {
                self.advance();
            }
        }
        let body = self.slice(&(start..self.at));
        text.push_str(&body.replace("\\\n", ""));
        if quote == b'"' { TokenKind::String } else { TokenKind::Char }
    }

    /// `R"delimiter(...)delimiter"`; splices mean nothing inside.
    fn raw_string(&mut self, text: &mut String) -> TokenKind {
        let start = self.at;
        let rest = self.text.get(start + 1..).unwrap_or_default();
        let delimiter = rest.bytes().take(17).position(|byte| byte == b'(').and_then(|length| rest.get(..length));
        let end = match delimiter {
            Some(delimiter) => {
                let closing = format!("){delimiter}\"");
                rest.find(&closing).map_or(self.bytes.len(), |found| start + 1 + found + closing.len())
            }
            None => return self.quoted(text, b'"'),
        };
        text.push_str(&self.slice(&(start..end)));
        for (offset, _) in self.bytes.iter().enumerate().take(end).skip(start).filter(|(_, byte)| **byte == b'\n') {
            self.line += 1;
            self.line_start = offset + 1;
        }
        self.at = end;
        self.skip_splices();
        TokenKind::String
    }
}
