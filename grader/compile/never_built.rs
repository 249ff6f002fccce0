//! What rewritten heat.cu may leave for g++ and is never built. Pure.

use super::conditions::own_lines;
use super::diagnostics::{Diagnostic, Diagnostics, Severity, Speaker};
use super::externals::{External, LABEL, external};
use super::rewrite::is_attribute;
use super::thread_loops::MADE;
use crate::submission::constructs::starts_assembly;
use crate::submission::lexer::lex;

/// The first such thing in rewritten text, as an error of g++'s. Assembly could define what the kernel's `extern` variables mean, and take in any
/// file; a name of the grader's own could pass for it.
pub fn first(cpp: &str) -> Option<Diagnostics> {
    let lines: Vec<_> = own_lines(cpp).collect();
    let words = ["asm", "extern", "alias", "weakref"].into_iter().chain(MADE);
    let is_worth_reading = |line: &str| words.clone().any(|word| line.contains(word));
    if !lines.iter().any(|(_, line)| is_worth_reading(line)) {
        return None;
    }
    let text: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
    let text = text.join("\n");
    let tokens = lex(&text).tokens;
    let (token, message) = tokens.iter().enumerate().find_map(|(at, token)| {
        let is_made = token.is_identifier() && MADE.iter().any(|prefix| token.text.starts_with(prefix));
        let says = if starts_assembly(&tokens, at) && !text[token.span.start..].starts_with(LABEL) {
            "inline assembly (asm) outside the kernel, which is never assembled here".to_owned()
        } else if token.is("extern") && external(&tokens, at) == External::Odd {
            "an `extern` variable that nothing in heat.cu defines".to_owned()
        } else if ["alias", "weakref"].contains(&token.text.trim_matches('_')) && is_attribute(&tokens, at) {
            format!("the attribute {}, which makes one name another's", token.text)
        } else {
            is_made.then(|| format!("the name {} is the grader's own here", token.text))?
        };
        Some((token, says))
    })?;
    let line = lines.get((token.line as usize).saturating_sub(1)).map(|((_, line), _)| *line);
    let (column, source_line) = (None, None);
    let error =
        Diagnostic { severity: Severity::Error, line, column, message, source_line, tool: Speaker::HostCompiler };
    Some(Diagnostics { shown: vec![error], more: 0 })
}
