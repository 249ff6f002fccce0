//! Macro expansion by hide sets, as the C standard has it.

use std::collections::HashMap;
use std::sync::Arc;

use super::lexer::{Token, TokenKind};
use super::macros::Macro;
use super::operators::binary_operator;

/// Macros within macros, and arguments within arguments, that are followed.
const NESTING: usize = 48;
/// Parameters of a macro that is expanded, and characters of a name that `##` makes.
const PARAMETERS: usize = 64;
const PASTED_LENGTH: usize = 256;

/// The macros that a token came out of and may not be expanded by again.
struct Paint {
    name: Arc<str>,
    depth: usize,
    under: Painted,
}

type Painted = Option<Arc<Paint>>;

#[derive(Clone)]
pub struct Item {
    token: Token,
    painted: Painted,
    /// Whether it is the name of a number, left where its digits would stand.
    kept: bool,
}

impl Item {
    fn of(token: Token) -> Self {
        Self { token, painted: None, kept: false }
    }

    fn painted_with(&self, name: &str) -> bool {
        let mut paint = self.painted.as_ref();
        while let Some(layer) = paint {
            if &*layer.name == name || layer.depth >= NESTING {
                return true;
            }
            paint = layer.under.as_ref();
        }
        false
    }
}

pub fn unpainted(tokens: Vec<Token>) -> Vec<Item> {
    tokens.into_iter().map(Item::of).collect()
}

pub fn result_tokens(into: &mut Vec<Token>, items: Vec<Item>) {
    into.extend(items.into_iter().map(|item| item.token));
}

/// Macro expansion by hide sets, as the C standard has it.
pub struct Expander<'a> {
    pub macros: &'a HashMap<Arc<str>, Macro>,
    /// Steps that are left.
    pub budget: &'a mut usize,
    /// Whether macros that stand for numbers stay as names.
    pub keep_constants: bool,
}

impl Expander<'_> {
    pub fn expand(&mut self, input: Vec<Item>, nesting: usize) -> Vec<Item> {
        let mut waiting = input;
        waiting.reverse();
        let mut output = Vec::new();
        while let Some(mut item) = waiting.pop() {
            if self.keeps(&item, output.last(), waiting.last()) {
                item.kept = true;
                output.push(item);
                continue;
            }
            match self.replacement(&item, &mut waiting, nesting) {
                Some(replacement) => waiting.extend(replacement.into_iter().rev()),
                None => output.push(item),
            }
        }
        output
    }

    /// Whether `item` stays as the name of a number. It is evaluated as if in brackets, so what stands beside it must not
    /// bind more strongly than what is in it: `#define W 8 + 8` makes 24 of `W * 2`.
    fn keeps(&self, item: &Item, before: Option<&Item>, after: Option<&Item>) -> bool {
        let known = self.macros.get(&item.token.text).filter(|_| self.keep_constants && item.token.is_identifier());
        let Some(found) = known.filter(|found| found.constant) else { return false };
        let Some(weakest) = weakest_operator(&found.body) else { return true };
        let looser_before = before.is_none_or(|before| match binary_operator(&before.token) {
            Some((_, strength)) => strength < weakest,
            // Behind a bracket it may be what a cast applies to.
            None => !matches!(&*before.token.text, "!" | "~" | ")" | "++" | "--"),
        });
        let looser_after = after.and_then(|after| binary_operator(&after.token)).is_none_or(|(_, it)| it <= weakest);
        looser_before && looser_after
    }

    /// What stands in the place of `item` and of the arguments after it.
    fn replacement(&mut self, item: &Item, waiting: &mut Vec<Item>, nesting: usize) -> Option<Vec<Item>> {
        if !item.token.is_identifier() || *self.budget == 0 {
            return None;
        }
        let macros = self.macros;
        let found = macros.get(&item.token.text)?;
        if item.painted_with(&item.token.text) {
            return None;
        }
        let arguments = match &found.parameters {
            Some(parameters) => self.arguments(waiting, parameters)?,
            None => Vec::new(),
        };
        let body = self.substitute(found, arguments, &item.token, nesting);
        self.spend(body.len() + 1);
        let depth = item.painted.as_ref().map_or(1, |paint| paint.depth + 1);
        let paint = |under| Some(Arc::new(Paint { name: item.token.text.clone(), depth, under }));
        let common = paint(item.painted.clone());
        Some(
            body.into_iter()
                .map(|item| {
                    let painted = if item.painted.is_none() { common.clone() } else { paint(item.painted) };
                    Item { painted, ..item }
                })
                .collect(),
        )
    }

    fn spend(&mut self, steps: usize) {
        *self.budget = self.budget.saturating_sub(steps);
    }

    /// Takes `( ... )` off the waiting tokens and splits it; nothing is taken when there is no such list.
    fn arguments(&mut self, waiting: &mut Vec<Item>, parameters: &[Arc<str>]) -> Option<Vec<Vec<Item>>> {
        waiting.last().filter(|next| next.token.is("(") && parameters.len() <= PARAMETERS)?;
        let mut depth = 0usize;
        let mut length = 0;
        for item in waiting.iter().rev() {
            length += 1;
            match &*item.token.text {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.spend(length);
        if depth != 0 {
            return None;
        }
        let mut list = waiting.split_off(waiting.len() - length);
        list.reverse();
        Some(split_arguments(list, parameters))
    }

    fn substitute(&mut self, found: &Macro, arguments: Vec<Vec<Item>>, at: &Token, nesting: usize) -> Vec<Item> {
        let parameters = found.parameters.as_deref().unwrap_or_default();
        let index_of = |token: &Token| parameters.iter().position(|name| *name == token.text);
        let mut expanded: Vec<Option<Vec<Item>>> = vec![None; arguments.len()];
        let mut body: Vec<Item> = Vec::new();
        let mut place = 0;
        while let Some(token) = found.body.get(place).filter(|_| *self.budget > 0) {
            place += 1;
            let next = found.body.get(place);
            if token.is("##") && place > 1 {
                let raw = next.map(|next| match index_of(next).and_then(|index| arguments.get(index)) {
                    Some(argument) => self.digits(argument.clone()),
                    None => vec![Item::of(moved(next, at))],
                });
                place += 1;
                paste(&mut body, raw.unwrap_or_default());
            } else if let Some(argument) = index_of(token).and_then(|index| arguments.get(index)) {
                let index = index_of(token).unwrap_or_default();
                let raw = nesting >= NESTING || next.is_some_and(|next| next.is("##"));
                let items = if raw {
                    self.digits(argument.clone())
                } else {
                    let known = expanded.get(index).cloned().flatten();
                    known.unwrap_or_else(|| self.expand(argument.clone(), nesting + 1))
                };
                self.spend(items.len());
                if let Some(slot) = expanded.get_mut(index).filter(|_| !raw) {
                    *slot = Some(items.clone());
                }
                body.extend(items);
            } else if token.is("#") && found.parameters.is_some() {
                place += 1;
                body.push(Item {
                    token: Token { kind: TokenKind::String, text: "\"\"".into(), ..moved(token, at) },
                    painted: None,
                    kept: false,
                });
            } else {
                body.push(Item::of(moved(token, at)));
            }
        }
        body
    }

    /// An argument for `##`, which takes it as it was written: names that stayed in the place of numbers make way for them.
    fn digits(&mut self, argument: Vec<Item>) -> Vec<Item> {
        let (macros, mut all) = (self.macros, Vec::new());
        for item in argument {
            if item.kept
                && let Some(found) = macros.get(&item.token.text)
            {
                let mut expander = Expander { macros, budget: &mut *self.budget, keep_constants: false };
                let body = found.body.iter().map(|token| Item::of(moved(token, &item.token))).collect();
                all.extend(expander.expand(body, NESTING));
            } else {
                all.push(item);
            }
        }
        all
    }
}

/// A token of a macro's body, standing where the macro is used.
fn moved(token: &Token, at: &Token) -> Token {
    Token {
        kind: token.kind,
        text: token.text.clone(),
        line: at.line,
        column: at.column,
        span: at.span.clone(),
        spaced: token.spaced,
        starts_line: false,
        directive: false,
    }
}

fn paste(body: &mut Vec<Item>, mut right: Vec<Item>) {
    if right.is_empty() {
        return;
    }
    let first = right.remove(0);
    match body.last_mut() {
        Some(last) if last.token.text.len() + first.token.text.len() > PASTED_LENGTH => {}
        Some(last) => {
            let text = format!("{}{}", last.token.text, first.token.text);
            last.token.text = text.into();
        }
        None => body.push(first),
    }
    body.extend(right);
}

/// How strongly the weakest operator of an expression binds, brackets left out; `None` where there is none.
fn weakest_operator(body: &[Token]) -> Option<u8> {
    let (mut depth, mut weakest) = (0usize, None);
    for (at, token) in body.iter().enumerate() {
        match &*token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "?" | ":" if depth == 0 => return Some(0),
            _ => {}
        }
        let follows_value = at.checked_sub(1).and_then(|before| body.get(before)).is_some_and(|before| {
            before.is(")") || matches!(before.kind, TokenKind::Number | TokenKind::Identifier | TokenKind::Char)
        });
        if let Some((_, strength)) = binary_operator(token).filter(|_| depth == 0 && follows_value) {
            weakest = Some(weakest.map_or(strength, |known: u8| known.min(strength)));
        }
    }
    weakest
}

fn split_arguments(list: Vec<Item>, parameters: &[Arc<str>]) -> Vec<Vec<Item>> {
    let variadic = parameters.last().is_some_and(|last| &**last == "__VA_ARGS__");
    let mut arguments: Vec<Vec<Item>> = vec![Vec::new()];
    let mut depth = 0usize;
    let inner = list.len().saturating_sub(1);
    for item in list.into_iter().take(inner).skip(1) {
        match &*item.token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "," if depth == 0 && !(variadic && arguments.len() >= parameters.len()) => {
                arguments.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = arguments.last_mut() {
            last.push(item);
        }
    }
    while arguments.len() < parameters.len() {
        arguments.push(Vec::new());
    }
    arguments
}
