//! Variables that heat.cu declares with `extern`. nvcc makes definitions of them; a linker would look for them in every library.
//! Pure.

use super::diagnostics::Diagnostics;
use super::rewrite::{Edits, OwnText, SHARED, ends_before_declaration, in_function, matching};
use crate::submission::lexer::Token;

/// What an `extern` variable is called that heat.cu declares: one that it does not define is nobody's then, and no variable of
/// a library that happens to have its name.
const EXTERNAL: &str = "hg_external_";
/// Begins an assembler name of the grader's own: no preprocessor leaves a comment.
pub const LABEL: &str = "__asm__/*hg*/(";

/// What a declaration with `extern` declares.
#[derive(Debug, PartialEq)]
pub enum External<'t> {
    /// Functions, what it also defines, what is shared, or nothing.
    Other,
    /// Variables of a namespace: the name of each, and the place behind its declarator.
    Variables(Vec<(&'t Token, usize)>),
    /// A variable that cannot be given a name of its own.
    Odd,
}

/// What the `extern` at a position declares.
pub fn external(tokens: &[Token], position: usize) -> External<'_> {
    const ATTRIBUTES: [&str; 5] = ["__attribute__", "__attribute", "alignas", "decltype", "__typeof__"];
    let linkage = tokens.get(position + 1).is_some_and(|next| !next.is_identifier());
    let begin = position + if linkage { 2 } else { 1 };
    let start = tokens[..position].iter().rposition(ends_before_declaration).map_or(0, |end| end + 1);
    if tokens[start..position].iter().any(|token| token.is(SHARED)) {
        return External::Other;
    }
    let (mut names, mut depth, mut weak) = (Vec::new(), 0, false);
    let mut at = begin;
    while let Some(token) = tokens.get(at) {
        let last = &tokens[at - 1];
        match &*token.text {
            _ if token.is(SHARED) || token.is("template") || token.is("__asm__") => return External::Other,
            "<" => depth += 1,
            ">" => depth -= 1,
            ">>" => depth -= 2,
            "(" if depth <= 0 && ATTRIBUTES.iter().any(|word| last.is(word)) => {
                let close = matching(tokens, at, ["(", ")"]);
                weak |= tokens[at..close].iter().any(|word| word.text.contains("weak"));
                at = close;
            }
            "(" if depth <= 0 => {
                let is_pointer = tokens.get(at + 1).is_some_and(|next| next.is("*"));
                return if is_pointer { External::Odd } else { External::Other };
            }
            "{" => {
                const CLASSES: [&str; 4] = ["struct", "class", "union", "enum"];
                let class = tokens[begin..at].iter().any(|token| CLASSES.iter().any(|key| token.is(key)));
                return if class { External::Odd } else { External::Other };
            }
            "=" if depth <= 0 => return External::Other,
            "[" if depth <= 0 && last.is_identifier() => names.push((last, None)),
            "]" if depth <= 0 => {
                if let Some((_, place)) = names.last_mut() {
                    *place = Some(token.span.end);
                }
            }
            "," | ";" if depth <= 0 => {
                if last.is_identifier() {
                    names.push((last, Some(last.span.end)));
                }
                let named = last.is_identifier() || last.is("]");
                if !named || weak {
                    return External::Odd;
                }
                if token.is(";") {
                    let placed: Option<Vec<_>> = names.into_iter().map(|(name, place)| Some((name, place?))).collect();
                    let local = in_function(&tokens[..start]);
                    return placed.filter(|_| !local).map_or(External::Odd, External::Variables);
                }
            }
            _ => {}
        }
        at += 1;
    }
    External::Other
}

/// Gives every `extern` variable of heat.cu's own text the name by which a linker is to look for it.
pub fn label(tokens: &[Token], own: &OwnText, edits: &mut Edits) {
    for position in (0..tokens.len()).filter(|&at| tokens[at].is("extern") && own.holds(&tokens[at])) {
        let External::Variables(names) = external(tokens, position) else { continue };
        for (name, place) in names {
            edits.insert(place, format!(" {LABEL}\"{EXTERNAL}{}\")", name.text));
        }
    }
}

/// What the linker says of variables that nothing defines, without the names that they have here.
pub fn named(mut said: Diagnostics) -> Diagnostics {
    for error in &mut said.shown {
        if let Some((_, behind)) = error.message.split_once(EXTERNAL) {
            let name: String = behind.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '$').collect();
            error.message = format!("nothing in heat.cu defines the `extern` variable {name}");
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::rewrite::{HostCode, to_cpp};
    use crate::submission::lexer::lex;

    fn left(text: &str) -> String {
        to_cpp(text, HostCode::Kept).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_heat_cu_only_declares_is_nothing_of_a_librarys() {
        let text = "extern float a, b[2][3]; extern \"C\" { extern char _DYNAMIC[8]; }\n#pragma weak a = stdout\nextern \"C\" Pair<int, 2> c;";
        let expected = "extern float a __asm__/*hg*/(\"hg_external_a\"), b[2][3] __asm__/*hg*/(\"hg_external_b\"); extern \"C\" { \
                        extern char _DYNAMIC[8] __asm__/*hg*/(\"hg_external__DYNAMIC\"); } extern \"C\" Pair<int, 2> c \
                        __asm__/*hg*/(\"hg_external_c\");";
        assert_eq!(left(&format!("# 1 \"heat.cu\"\n{text}")), format!("# 1 \"heat.cu\" {expected}"));
        let of = |text: &str| {
            external(&lex(text).tokens, lex(text).tokens.iter().position(|token| token.is("extern")).unwrap())
                == External::Odd
        };
        for odd in [
            "extern float a __attribute__((weak));",
            "void f() { extern float a; }",
            "extern void (*f)(int);",
            "extern struct S { int x; } s;",
        ] {
            assert!(of(odd), "{odd}");
        }
        for other in [
            "extern \"C\" float f(float);",
            "extern __attribute__((cold)) float f(int);",
            "extern const float a = 3;",
            "extern template struct S<3>;",
            "extern \"C\" void f() { }",
        ] {
            assert_eq!(left(other), other);
        }
    }
}
