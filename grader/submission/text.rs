//! Tokens with their brackets paired.

use std::collections::HashSet;

use super::lexer::Token;
use super::parser::{Names, Parser};

/// Tokens with the partner of every bracket.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub tokens: Vec<Token>,
    /// For an opening bracket its closing one; for any other token, and where it is missing, the number of tokens.
    partners: Vec<usize>,
}

impl Text {
    pub fn new(tokens: Vec<Token>) -> Self {
        let mut partners = vec![tokens.len(); tokens.len()];
        let mut open: Vec<(usize, &str)> = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let closes = match &*token.text {
                "(" | "[" | "{" if token.is(&token.text) => {
                    open.push((at, &token.text));
                    continue;
                }
                ")" => "(",
                "]" => "[",
                "}" => "{",
                _ => continue,
            };
            // A brace closes whatever was left open inside it; other brackets do not reach past a brace.
            while let Some((begin, kind)) = open.pop() {
                if kind == closes {
                    if let Some(partner) = partners.get_mut(begin) {
                        *partner = at;
                    }
                    break;
                }
                if closes != "{" {
                    open.push((begin, kind));
                    break;
                }
            }
        }
        Self { tokens, partners }
    }

    /// As [`Text::new`], after `>>` and `>>>` that close template lists were cut into single angles.
    pub fn with_split_angles(tokens: Vec<Token>) -> Self {
        let text = Self::new(tokens);
        let cut = text.closing_runs();
        if cut.is_empty() {
            return text;
        }
        let whole = |(at, token): (usize, Token)| match cut.contains(&at) {
            true => angles(&token),
            false => vec![token],
        };
        Self::new(text.tokens.into_iter().enumerate().flat_map(whole).collect())
    }

    /// The places of `>>` and `>>>` at which several template lists end.
    fn closing_runs(&self) -> HashSet<usize> {
        let names = Names::default();
        let parser = Parser::new(self, &names, 0, self.tokens.len());
        let mut runs = HashSet::new();
        let opens = |at: &usize| at.checked_sub(1).is_some_and(|name| self.is_name(name)) && self.is(*at, "<");
        for open in (0..self.tokens.len()).filter(opens) {
            let Some(after) = parser.after_angles(open) else { continue };
            let mut at = open;
            while at < after {
                match self.tokens.get(at).map(|token| &*token.text) {
                    Some(">>" | ">>>") => drop(runs.insert(at)),
                    Some("(" | "[" | "{") => at = self.partner(at),
                    _ => {}
                }
                at += 1;
            }
        }
        runs
    }

    fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(Token::is_identifier)
    }

    /// The closing bracket of the opening one at `at`; the number of tokens when it has none.
    pub fn partner(&self, at: usize) -> usize {
        self.partners.get(at).copied().unwrap_or(self.tokens.len())
    }

    pub fn is(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(text))
    }

    /// Line of a token, from 1.
    pub fn line(&self, at: usize) -> u32 {
        self.tokens.get(at).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    /// The tokens as they were written, on one line, at most some 200 characters.
    pub fn spelling(&self, tokens: std::ops::Range<usize>) -> String {
        let mut spelt = String::new();
        for token in self.tokens.get(tokens).unwrap_or_default() {
            if token.spaced && !spelt.is_empty() {
                spelt.push(' ');
            }
            spelt.push_str(&token.text);
            if spelt.len() > 200 {
                return spelt.chars().take(200).chain("...".chars()).collect();
            }
        }
        spelt
    }
}

/// The angles that `>>` or `>>>` is made of.
fn angles(run: &Token) -> Vec<Token> {
    let one = |place: usize| Token {
        text: ">".into(),
        column: run.column.saturating_add(place as u32),
        spaced: run.spaced && place == 0,
        starts_line: run.starts_line && place == 0,
        ..run.clone()
    };
    (0..run.text.len()).map(one).collect()
}
