//! A kernel's body, cut at its barriers.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::super::declarations::{Declaration, Declarator, declaration};
use super::super::functions::{identifiers, matching, nesting, text_of};
use super::cuts::Waiters;
use super::keeping::Keeping;
use super::warp::is_ours;
use super::{Index, is_view};
use crate::submission::lexer::{Token, TokenKind};

/// One statement at the top level of the kernel's body.
pub struct Statement<'t> {
    pub tokens: &'t [Token],
    /// When it declares locals of a thread.
    pub declaration: Option<Declaration<'t>>,
}

/// A kernel's body, cut at its barriers.
pub struct Body<'t> {
    pub all: &'t [Token],
    pub constants: BTreeSet<&'t str>,
    /// Shared arrays, types and constants: the same for all threads.
    hoisted: Vec<&'t [Token]>,
    pub intervals: Vec<Vec<Statement<'t>>>,
    /// What lands at the end of each interval but the last, as statements.
    landings: Vec<String>,
}

impl<'t> Body<'t> {
    pub fn read(tokens: &'t [Token], constants: BTreeSet<&'t str>) -> Option<Self> {
        let (hoisted, intervals, landings) = (Vec::new(), vec![Vec::new()], Vec::new());
        let mut body = Self { all: tokens, constants, hoisted, intervals, landings };
        let mut waiters = Waiters::default();
        let mut rest = tokens;
        while !rest.is_empty() {
            let (statement, after) = rest.split_at(statement_length(rest)?);
            rest = after;
            if let Some(landing) = waiters.barrier(statement) {
                body.landings.push(landing.statement());
                body.intervals.push(Vec::new());
            } else if waiters.note(statement) || is_hoisted(statement) {
                body.hoisted.push(statement);
            } else if is_forbidden(statement) {
                return None;
            } else {
                let declaration = declaration(statement);
                body.intervals.last_mut()?.push(Statement { tokens: statement, declaration });
            }
        }
        body.constants.extend(waiters.blocks());
        let (_, before) = body.intervals.split_last()?;
        let returns = before.iter().flatten().any(|statement| has_return(statement.tokens));
        (!returns && !body.hoists_a_local() && !body.points_to_a_local() && !body.binds_a_local()).then_some(body)
    }

    /// Whether the name is one of the block's.
    pub fn is_shared(&self, name: &str) -> bool {
        let shared = self.hoisted.iter().filter(|statement| statement.iter().any(|token| token.is("__thread")));
        shared.into_iter().flat_map(|statement| identifiers(statement)).any(|other| other == name)
    }

    fn declarations(&self) -> impl Iterator<Item = &Declaration<'t>> {
        self.intervals.iter().flatten().filter_map(|statement| statement.declaration.as_ref())
    }

    fn declarators(&self) -> impl Iterator<Item = &Declarator<'t>> {
        self.declarations().flat_map(|declaration| &declaration.declarators)
    }

    /// Names of a thread's own locals.
    fn locals(&self) -> BTreeSet<&'t str> {
        self.declarators().map(|declarator| &*declarator.name.text).collect()
    }

    /// Whether a declaration that is moved to the front depends on one that is not.
    fn hoists_a_local(&self) -> bool {
        let locals = self.locals();
        self.hoisted.iter().flat_map(|statement| identifiers(statement)).any(|name| locals.contains(name))
    }

    /// Whether a pointer may lead to a thread's own local, which is elsewhere in the next interval.
    fn points_to_a_local(&self) -> bool {
        let arrays: BTreeSet<&str> =
            self.declarators().filter(|local| local.is_array()).map(|local| &*local.name.text).collect();
        let locals = self.locals();
        let decays = |declaration: &Declaration| {
            let pointers = declaration.declarators.iter().filter(|l| l.is_pointer() || declaration.is_spelled_out());
            pointers.into_iter().any(|local| identifiers(local.initialiser()).any(|name| arrays.contains(name)))
        };
        let taken = (1..self.all.len()).any(|at| {
            let unary = self.all[at - 1].is("&")
                && !at.checked_sub(2).is_some_and(|before| {
                    let token = &self.all[before];
                    token.is_identifier()
                        || [")", "]", ">"].iter().any(|end| token.is(end))
                        || token.kind == TokenKind::Number
                });
            unary && locals.contains(&*self.all[at].text)
        });
        taken || self.declarations().any(decays)
    }

    /// Whether an object's constructor is given a thread's own local, which it may keep a reference to.
    fn binds_a_local(&self) -> bool {
        let locals = self.locals();
        self.declarations().any(|declaration| {
            let objects = declaration.declarators.iter().filter(|local| is_object(declaration, local));
            objects.into_iter().any(|local| identifiers(local.initialiser()).any(|name| locals.contains(name)))
        })
    }

    /// The function's body.
    pub fn loops(&self, index: Index) -> Option<String> {
        let keeping = Keeping::of(self);
        let index = match index {
            Index::Local => "const uint3 threadIdx = {hg_x, hg_y, hg_z};",
            Index::Global => "threadIdx = {hg_x, hg_y, hg_z};",
        };
        let mut text = String::new();
        for hoisted in &self.hoisted {
            let _ = write!(text, "{} ", text_of(hoisted));
        }
        for (at, interval) in self.intervals.iter().enumerate() {
            let last = at + 1 == self.intervals.len();
            let inner = [
                keeping.before(at)?,
                interval.iter().map(|statement| without_returns(statement.tokens)).collect::<Vec<_>>().join(" "),
                self.landings.get(at).cloned().unwrap_or_default(),
                keeping.after(at),
            ]
            .join(" ");
            let next = if last && interval.iter().any(|s| has_return(s.tokens)) { "hg_next: ;" } else { "" };
            let _ = write!(
                text,
                "{{ unsigned hg_thread = 0; const unsigned hg_dx = blockDim.x, hg_dy = blockDim.y, hg_dz = blockDim.z; \
                 for (unsigned hg_z = 0; hg_z < hg_dz; ++hg_z) for (unsigned hg_y = 0; hg_y < hg_dy; ++hg_y) \
                 for (unsigned hg_x = 0; hg_x < hg_dx; ++hg_x, ++hg_thread) {{ \
                 {index} {{ {inner} }} {next} }} }} "
            );
        }
        Some(text)
    }
}

/// Whether a local is of a class, made by a constructor with arguments.
fn is_object(declaration: &Declaration, local: &Declarator) -> bool {
    const PLAIN: [&str; 16] = [
        "int", "unsigned", "float", "double", "bool", "size_t", "long", "char", "short", "dim", "uint", "uchar",
        "int32_t", "uint32_t", "int64_t", "uint64_t",
    ];
    // float4 and its like are made of numbers.
    let is_plain = |word: &str| PLAIN.contains(&word) || PLAIN.contains(&word.trim_end_matches(['1', '2', '3', '4']));
    declaration.class_of(local).is_some_and(|class| !class.split(' ').any(is_plain))
}

/// Tokens of the first statement.
pub fn statement_length(tokens: &[Token]) -> Option<usize> {
    const COMPOUND: [&str; 7] = ["if", "for", "while", "switch", "do", "else", "{"];
    let compound = COMPOUND.iter().any(|word| tokens[0].is(word));
    let is_do = tokens[0].is("do");
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        depth += nesting(token);
        if depth < 0 {
            return None;
        }
        let ends = depth == 0 && (token.is(";") || (token.is("}") && compound && !is_do));
        if ends {
            return Some(at + 1);
        }
    }
    None
}

/// Declarations that belong to the block or to the text, not to a thread.
fn is_hoisted(statement: &[Token]) -> bool {
    const WORDS: [&str; 4] = ["typedef", "using", "static_assert", "constexpr"];
    const TYPES: [&str; 4] = ["struct", "class", "enum", "union"];
    let names_nothing = statement.len() > 2 && statement[statement.len() - 2].is("}");
    let defines =
        TYPES.iter().any(|word| statement[0].is(word)) && names_nothing && !statement.iter().any(|t| t.is("="));
    let is_one = WORDS.iter().any(|word| statement[0].is(word)) || defines;
    let shared = statement.iter().take_while(|token| !token.is("=")).any(|token| token.is("__thread"));
    is_one || shared || (statement[0].is("static") && statement.iter().any(|token| token.is("constexpr")))
}

/// What is not looked into: jumps, assembly, state that outlives a thread, this runtime's own functions.
fn is_forbidden(statement: &[Token]) -> bool {
    const WORDS: [&str; 12] =
        ["struct", "class", "enum", "union", "goto", "asm", "__asm__", "__asm", "try", "throw", "static", "extern"];
    identifiers(statement)
        .any(|word| WORDS.contains(&word) || (word.starts_with("hg_") && !is_view(word) && !is_ours(word)))
}

/// The tokens of a statement that stand in a lambda's body.
pub fn in_lambda(tokens: &[Token]) -> Vec<bool> {
    let mut inside = vec![false; tokens.len()];
    for open in 0..tokens.len() {
        let introduces = tokens[open].is("[")
            && !open.checked_sub(1).is_some_and(|before| {
                let before = &tokens[before];
                before.is_identifier() || before.is(")") || before.is("]")
            });
        let Some(close) = introduces.then(|| matching(tokens, open)).flatten() else { continue };
        let brace = tokens[close..].iter().position(|token| token.is("{")).map(|length| close + length);
        if let Some(brace) = brace
            && let Some(end) = matching(tokens, brace)
        {
            inside[brace..=end].fill(true);
        }
    }
    inside
}

fn has_return(tokens: &[Token]) -> bool {
    tokens.iter().zip(in_lambda(tokens)).any(|(token, lambda)| token.is("return") && !lambda)
}

/// The statement as a piece of a loop's body: a thread that returns goes on to the next one.
fn without_returns(tokens: &[Token]) -> String {
    let lambda = in_lambda(tokens);
    let word = |(at, token): (usize, &Token)| {
        if token.is("return") && !lambda[at] { "goto hg_next".to_owned() } else { token.text.to_string() }
    };
    tokens.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}
