//! Where a kernel is cut: the statements at which a block's threads wait for each other, in the spellings of CUDA C++.

use super::super::functions::matching;
use crate::submission::lexer::Token;

/// The barrier, as cuda_runtime.h spells it.
const BARRIER: &str = "hg_sync_threads";

/// A barrier, by what each thread does before it waits: its own asynchronous copies land.
pub enum Landing<'t> {
    Nothing,
    /// All but the newest groups of `wait_prior<N>(block)`, or all.
    Groups(&'t str),
    /// What is bound to this `cuda::barrier` or `cuda::pipeline`.
    Bound(&'t str),
}

impl Landing<'_> {
    /// The statement that does it: the header's, without the barrier.
    pub fn statement(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Groups(left) => format!("hg_async_wait({left});"),
            Self::Bound(object) => format!("{object}.hg_land();"),
        }
    }
}

/// The objects through which a kernel waits, as far as its top-level declarations name them.
#[derive(Default)]
pub struct Waiters<'t> {
    /// `auto block = cg::this_thread_block();`
    blocks: Vec<&'t str>,
    /// `auto pipe = cuda::make_pipeline(block, &state);`
    pipelines: Vec<&'t str>,
}

impl<'t> Waiters<'t> {
    /// Takes note of a declaration. Says whether it is one of the block, which is the same for all its threads.
    pub fn note(&mut self, statement: &'t [Token]) -> bool {
        if let Some(name) = declared_block(statement) {
            self.blocks.push(name);
            return true;
        }
        self.pipelines.extend(declared_pipeline(statement));
        false
    }

    /// Names of the block.
    pub fn blocks(&self) -> impl Iterator<Item = &'t str> {
        self.blocks.iter().copied()
    }

    /// The barrier that a statement is, and nothing else.
    pub fn barrier(&self, statement: &'t [Token]) -> Option<Landing<'t>> {
        let (_, call) = statement.split_last().filter(|(end, _)| end.is(";"))?;
        let open = call.iter().position(|token| token.is("("))?;
        let whole = matching(call, open) == Some(call.len() - 1);
        let (callee, arguments) = (&call[..open], &call[open + 1..call.len().checked_sub(1)?]);
        match callee {
            [name] if name.is(BARRIER) && whole => Some(Landing::Nothing),
            [object, dot, method] if dot.is(".") && object.is_identifier() && whole => {
                self.method(&object.text, &method.text, arguments)
            }
            _ if whole => self.function(callee, arguments),
            // cg::this_thread_block().sync()
            _ => {
                let tail = call.len().checked_sub(4)?;
                let is_sync = spells(&call[tail..], &[".", "sync", "(", ")"]);
                (is_sync && is_this_block(&call[..tail])).then_some(Landing::Nothing)
            }
        }
    }

    fn method(&self, object: &'t str, method: &str, arguments: &[Token]) -> Option<Landing<'t>> {
        match method {
            "sync" if arguments.is_empty() && self.blocks.contains(&object) => Some(Landing::Nothing),
            "arrive_and_wait" if arguments.is_empty() => Some(Landing::Bound(object)),
            "wait" if is_token(object, arguments) => Some(Landing::Bound(object)),
            "consumer_wait" if arguments.is_empty() && self.pipelines.contains(&object) => Some(Landing::Bound(object)),
            _ => None,
        }
    }

    /// `cg::sync(block)`, `cg::wait(block)`, `cg::wait_prior<1>(block)`
    fn function(&self, callee: &'t [Token], arguments: &[Token]) -> Option<Landing<'t>> {
        let of_block = match arguments {
            [name] => self.blocks.contains(&&*name.text),
            _ => is_this_block(arguments),
        };
        let rest = unqualified(callee)?;
        match rest {
            _ if !of_block || rest.len() == callee.len() => None,
            [name] if name.is("sync") => Some(Landing::Nothing),
            [name] if name.is("wait") => Some(Landing::Groups("0")),
            [name, open, left, close] if name.is("wait_prior") && open.is("<") && close.is(">") => {
                Some(Landing::Groups(&left.text))
            }
            _ => None,
        }
    }
}

/// What follows `cg::` or `cooperative_groups::`.
fn unqualified(path: &[Token]) -> Option<&[Token]> {
    let mut rest = path;
    while let [name, colons, after @ ..] = rest
        && name.is_identifier()
        && colons.is("::")
    {
        rest = after;
    }
    (!rest.is_empty()).then_some(rest)
}

fn spells(tokens: &[Token], words: &[&str]) -> bool {
    tokens.len() == words.len() && tokens.iter().zip(words).all(|(token, word)| token.is(word))
}

/// `cg::this_thread_block()`
fn is_this_block(tokens: &[Token]) -> bool {
    unqualified(tokens).is_some_and(|rest| spells(rest, &["this_thread_block", "(", ")"]))
}

/// What a `cuda::barrier`'s wait may be given: nothing that does more than arrive.
fn is_token(barrier: &str, arguments: &[Token]) -> bool {
    let arrives = spells(arguments, &[barrier, ".", "arrive", "(", ")"]);
    let moves = match unqualified(arguments) {
        Some([name, open, token, close]) => name.is("move") && open.is("(") && token.is_identifier() && close.is(")"),
        _ => false,
    };
    arrives || moves
}

/// The name in `auto block = cg::this_thread_block();` or `cg::thread_block block = ...`.
fn declared_block(statement: &[Token]) -> Option<&str> {
    let (head, value) = initialised(statement)?;
    let (name, of_type) = head.split_last()?;
    let of_type = if of_type.first()?.is("const") { &of_type[1..] } else { of_type };
    let known = spells(of_type, &["auto"]) || unqualified(of_type).is_some_and(|rest| spells(rest, &["thread_block"]));
    (name.is_identifier() && known && is_this_block(value)).then_some(&*name.text)
}

/// The name in `auto pipe = cuda::make_pipeline(block, &state);`: a pipeline of the block, at which its threads wait.
fn declared_pipeline(statement: &[Token]) -> Option<&str> {
    let (head, value) = initialised(statement)?;
    let rest = unqualified(value)?;
    let shared = rest.first()?.is("make_pipeline") && matching(rest, 1)? == rest.len() - 1 && rest.len() > 3;
    (shared && head.last()?.is_identifier()).then_some(&*head.last()?.text)
}

/// What stands before and behind the `=` of a statement.
fn initialised(statement: &[Token]) -> Option<(&[Token], &[Token])> {
    let equals = statement.iter().position(|token| token.is("="))?;
    let (end, value) = statement[equals + 1..].split_last()?;
    end.is(";").then_some((&statement[..equals], value))
}
