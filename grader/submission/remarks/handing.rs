//! What a launch function of the lesson's form, `(const float* in, float* out, int n, float r)`, makes of the launch: the
//! grader launches the kernel itself, with these four as they are, so that no check sees what the function hands over.
//!
//! Only functions of that form are looked at: what other host code calls its grids and its r is its own affair.

use std::ops::Range;

use super::super::program::{Function, Program};
use super::super::signature;
use super::super::tree::{Statement, StatementKind};
use super::super::types::Base;
use super::{HostFault, Launch, Remark, Unlike, number, spelt, ways};

/// The names of a launch function's parameters.
struct Given<'p> {
    input: &'p str,
    output: &'p str,
    n: &'p str,
    r: &'p str,
}

/// Launches of the kernel that plainly are not the grader's: the first of each kind.
pub fn unlike(program: &Program, launches: &[&Launch]) -> Vec<Remark> {
    let of_form = launches.iter().filter_map(|launch| Some((*launch, given(program, launch)?)));
    let mut remarks: Vec<Remark> = Vec::new();
    for (launch, given) in of_form {
        let found = [
            (Unlike::SwappedGrids, swaps(program, launch, &given)),
            (Unlike::MovedGrid, moves(program, launch, &given)),
            (Unlike::OtherR, scales(program, launch, &given)),
            (Unlike::Twice, repeats(program, launch, launches)),
            (Unlike::ByCalls, counts(program, launch)),
        ];
        for (unlike, _) in found.into_iter().filter(|(_, found)| *found) {
            let fault = HostFault::LaunchUnlike(unlike);
            if !remarks.iter().any(|known| known.fault == fault) {
                remarks.push(Remark { fault, line: program.text.line(launch.at) });
            }
        }
    }
    remarks
}

/// The parameters of the function around a launch, where it is of the lesson's form and each name still means its parameter.
fn given<'p>(program: &Program, launch: &Launch<'p>) -> Option<Given<'p>> {
    let function = launch.within;
    let nothing = function.returns.as_ref().is_some_and(|kind| kind.base == Base::Void && kind.pointers.is_empty());
    if !nothing || signature::fault(program, function).is_some() {
        return None;
    }
    let names: Vec<&str> = function.parameters.iter().flatten().filter_map(|one| one.name.as_deref()).collect();
    let [input, output, n, r] = *names.as_slice() else { return None };
    let before = ways::body(function).start..launch.at;
    let kept = |name: &&str| !ways::changes(program, before.clone(), name) && !ways::declares(program, function, name);
    names.iter().all(kept).then_some(Given { input, output, n, r })
}

/// The texts of some tokens.
fn words<'p>(program: &'p Program, tokens: &Range<usize>) -> Vec<&'p str> {
    program.text.tokens.get(tokens.clone()).unwrap_or_default().iter().map(|token| &*token.text).collect()
}

/// Whether tokens are a name and nothing else but a cast.
fn is_cast_of(words: &[&str], name: &str) -> bool {
    let cast = ["const_cast", "static_cast", "reinterpret_cast", "<", ">", "(", ")", "const", "float", "*"];
    words.contains(&name) && words.iter().all(|word| *word == name || cast.contains(word))
}

/// `k<<<...>>>(out, (float*)in, n, r)`
fn swaps(program: &Program, launch: &Launch, given: &Given) -> bool {
    let is = |index: usize, name: &str| {
        launch.arguments.get(index).is_some_and(|argument| is_cast_of(&words(program, argument), name))
    };
    is(0, given.output) && is(1, given.input)
}

/// `k<<<...>>>(in + 1, out, n, r)`, or `&in[n]`.
fn moves(program: &Program, launch: &Launch, given: &Given) -> bool {
    let moved = |index: usize, grid: &str| {
        let words = launch.arguments.get(index).map(|argument| words(program, argument)).unwrap_or_default();
        let others: Vec<&str> = words.iter().copied().filter(|word| *word != grid).collect();
        let by = others.iter().any(|word| *word == given.n || value(word).is_some_and(|value| value != 0.0));
        let plain = |word: &str| {
            word == given.n || value(word).is_some() || ["+", "-", "*", "(", ")", "&", "[", "]"].contains(&word)
        };
        others.len() + 1 == words.len() && by && others.iter().all(|word| plain(word))
    };
    moved(0, given.input) || moved(1, given.output)
}

/// `k<<<...>>>(in, out, n, 0.5f * r)`. A parameter of another name may be what r is worked out from.
fn scales(program: &Program, launch: &Launch, given: &Given) -> bool {
    let words = launch.arguments.get(3).map(|argument| words(program, argument)).unwrap_or_default();
    let other = words.iter().any(|word| value(word).is_some_and(|value| value != 1.0));
    let plain = |word: &str| word == given.r || value(word).is_some() || ["+", "-", "*", "/", "(", ")"].contains(&word);
    given.r == "r" && words.contains(&"r") && other && words.iter().all(|word| plain(word))
}

fn value(word: &str) -> Option<f64> {
    super::super::lexer::lex(word).tokens.first().and_then(number)
}

/// Whether the next statement is the same launch again.
fn repeats(program: &Program, launch: &Launch, all: &[&Launch]) -> bool {
    let Some(StatementKind::Block(statements)) = launch.within.body.as_ref().map(|body| &body.kind) else {
        return false;
    };
    let is = |statement: &Statement, launch: &Launch| {
        matches!(statement.kind, StatementKind::Expression(_)) && statement.at.contains(&launch.at)
    };
    let handed = |launch: &Launch| launch.arguments.iter().map(|argument| spelt(program, argument)).collect::<Vec<_>>();
    let again = |next: &Statement| all.iter().any(|other| is(next, other) && handed(other) == handed(launch));
    statements.windows(2).any(|pair| is(&pair[0], launch) && again(&pair[1]))
}

/// Whether the grid or the block depends on a variable that outlives the function and that it counts in.
fn counts(program: &Program, launch: &Launch) -> bool {
    let text = &program.text;
    let body = ways::body(launch.within);
    let Some(open) = (launch.at..body.end).find(|&at| text.is(at, "<<<")) else { return false };
    let Some(close) = (open..body.end).find(|&at| text.is(at, ">>>")) else { return false };
    let configuration = words(program, &(open..close));
    let counted = |at: usize| {
        let step = |at: usize| ["++", "--", "+=", "-="].iter().any(|sign| text.is(at, sign));
        step(at + 1) || at.checked_sub(1).is_some_and(step)
    };
    let lasting = |name: &str| {
        let local = body.clone().any(|at| text.is(at, name) && at >= 2 && text.is(at - 2, "static"));
        local || program.variables.contains_key(name) && !ways::declares(program, launch.within, name)
    };
    // In the launch itself, or where a name of it is declared.
    let decides = |name: &str| {
        configuration.contains(&name)
            || declarations(launch.within).any(|(declared, tokens)| {
                configuration.contains(&declared) && declared != name && words(program, &tokens).contains(&name)
            })
    };
    let mut names = body.clone().filter(|&at| text.tokens.get(at).is_some_and(|token| token.is_identifier()));
    names.any(|at| counted(at) && lasting(&text.tokens[at].text) && decides(&text.tokens[at].text))
}

/// Names declared by statements of a function's own block, with the tokens of each name and its value.
fn declarations(function: &Function) -> impl Iterator<Item = (&str, Range<usize>)> {
    let all = match function.body.as_ref().map(|body| &body.kind) {
        Some(StatementKind::Block(all)) => all.as_slice(),
        _ => &[],
    };
    all.iter().flat_map(|statement| {
        let StatementKind::Declare(declared) = &statement.kind else { return Vec::new() };
        let mut ends = declared.iter().skip(1).map(|next| next.name_at).chain([statement.at.end]);
        declared.iter().map(|one| (&*one.name, one.name_at..ends.next().unwrap_or(statement.at.end))).collect()
    })
}
