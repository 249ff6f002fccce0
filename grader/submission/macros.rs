//! As much of the preprocessor as it takes to see the host program that a compiler sees.
//!
//! Conditions are decided as nvcc's host pass decides them (`__CUDACC__` and `__NVCC__` defined, `__CUDA_ARCH__` not),
//! function-like macros and those that stand for types or statements are expanded. A macro that stands for a number
//! (`#define N 2048`) stays in the text as a *name*, so that the evaluator can put the grader's n in its place.
//! Included files are not read.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::conditions::Conditions;
use super::expansion::{Expander, result_tokens, unpainted};
use super::lexer::{Lexed, Token, TokenKind, lex};

/// Steps of macro expansion that one text may take; what comes after them stays as written.
const EXPANSION_STEPS: usize = 2_000_000;
/// What was there before the first line.
const PREDEFINED: &str = "#define __CUDACC__ 1\n#define __NVCC__ 1\n#define __CUDACC_VER_MAJOR__ 13\n\
    #define __CUDACC_VER_MINOR__ 0\n#define CUDART_VERSION 13000\n#define CUDA_VERSION 13000\n#define __cplusplus 201703L\n\
    #define __GNUC__ 12\n#define __linux__ 1\n#define __unix__ 1\n#define __x86_64__ 1\n#define __CUDA_ARCH_LIST__ 750\n";

/// A `#define`.
#[derive(Clone, Debug)]
pub struct Macro {
    /// Names of the parameters; none at all for an object-like macro. A variadic one ends with `__VA_ARGS__`.
    pub parameters: Option<Vec<Arc<str>>>,
    pub body: Vec<Token>,
    /// Line of the `#define`, from 1.
    pub line: u32,
    /// Whether the macro stands for a number and stays in the text as a name.
    pub constant: bool,
}

/// A text after the preprocessor.
#[derive(Clone, Debug, Default)]
pub struct Preprocessed {
    /// What the compiler sees; tokens out of a macro's body stand where the macro was used.
    pub tokens: Vec<Token>,
    /// The macros that stayed in the text as names.
    pub constants: HashMap<Arc<str>, Macro>,
    /// Lines that conditions left out, from 1, ends excluded.
    pub inactive: Vec<Range<u32>>,
}

/// Runs the preprocessor over a text that was taken apart; bounded in work, whatever the text.
pub fn preprocess(lexed: &Lexed) -> Preprocessed {
    let mut preprocessor = Preprocessor::default();
    preprocessor.run(&lex(PREDEFINED).tokens);
    preprocessor.macros.values_mut().for_each(|defined| defined.line = 0);
    preprocessor.run(&lexed.tokens);
    preprocessor.finish()
}

struct Preprocessor {
    macros: HashMap<Arc<str>, Macro>,
    conditions: Conditions,
    /// Active tokens since the last directive, not yet expanded.
    pending: Vec<Token>,
    budget: usize,
    result: Preprocessed,
}

impl Default for Preprocessor {
    fn default() -> Self {
        Self {
            macros: HashMap::new(),
            conditions: Conditions::default(),
            pending: Vec::new(),
            budget: EXPANSION_STEPS,
            result: Preprocessed::default(),
        }
    }
}

impl Preprocessor {
    fn run(&mut self, tokens: &[Token]) {
        let mut rest = tokens;
        while let Some(first) = rest.first() {
            let length = if first.directive {
                1 + rest.iter().skip(1).take_while(|token| token.directive && !token.starts_line).count()
            } else {
                rest.iter().take_while(|token| !token.directive).count()
            };
            let (now, later) = rest.split_at(length);
            if first.directive {
                self.directive(now);
            } else if self.conditions.active() {
                self.pending.extend_from_slice(now);
            }
            rest = later;
        }
        self.flush();
    }

    fn finish(mut self) -> Preprocessed {
        let mut constants = std::mem::take(&mut self.result.constants);
        for defined in constants.values_mut() {
            let mut expander = Expander { macros: &self.macros, budget: &mut self.budget, keep_constants: true };
            let body = expander.expand(unpainted(std::mem::take(&mut defined.body)), 0);
            result_tokens(&mut defined.body, body);
        }
        let mut result = self.result;
        drop_pragmas(&mut result.tokens);
        result.constants = constants;
        result.inactive = self.conditions.finish();
        result
    }

    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let mut expander = Expander { macros: &self.macros, budget: &mut self.budget, keep_constants: true };
        result_tokens(&mut self.result.tokens, expander.expand(unpainted(pending), 0));
    }

    fn directive(&mut self, line: &[Token]) {
        let Some(name) = line.get(1) else { return };
        let rest = line.get(2..).unwrap_or_default();
        match &*name.text {
            "if" | "ifdef" | "ifndef" | "elif" | "elifdef" | "elifndef" => self.condition(&name.text, rest, name.line),
            "else" => self.conditions.otherwise(name.line),
            "endif" => self.conditions.end(name.line),
            "define" if self.conditions.active() => {
                self.flush();
                self.define(rest);
            }
            "undef" if self.conditions.active() => {
                self.flush();
                if let Some(name) = rest.first() {
                    self.macros.remove(&name.text);
                }
            }
            _ => {}
        }
    }

    fn condition(&mut self, keyword: &str, rest: &[Token], line: u32) {
        let holds = match keyword.trim_start_matches("el") {
            "ifdef" => rest.first().is_some_and(|name| self.macros.contains_key(&name.text)),
            "ifndef" => rest.first().is_some_and(|name| !self.macros.contains_key(&name.text)),
            _ => self.expression_holds(rest),
        };
        if keyword.starts_with("el") {
            self.conditions.alternative(holds, line);
        } else {
            self.conditions.start(holds, line);
        }
    }

    fn expression_holds(&mut self, tokens: &[Token]) -> bool {
        let resolved = resolve_defined(tokens, |name| self.macros.contains_key(name));
        let mut expander = Expander { macros: &self.macros, budget: &mut self.budget, keep_constants: false };
        let mut expanded = Vec::new();
        result_tokens(&mut expanded, expander.expand(unpainted(resolved), 0));
        super::conditions::holds(expanded)
    }

    /// Whether a body is arithmetic over numbers: no type, no launch, no list, no statement, no string.
    fn stands_for_a_number(&self, body: &[Token]) -> bool {
        let is_number = |token: &Token| {
            let constant = self.macros.get(&token.text).is_some_and(|known| known.constant);
            token.kind == TokenKind::Number || token.is("sizeof") || constant
        };
        let starts_like_a_value = body.first().is_some_and(|first| {
            first.kind == TokenKind::Number
                || matches!(&*first.text, "(" | "-" | "+" | "~" | "!")
                || is_value_name(first)
        });
        starts_like_a_value
            && body.iter().any(is_number)
            && body.iter().all(fits_arithmetic)
            && !is_template_instance(body)
    }

    fn define(&mut self, rest: &[Token]) {
        let Some(name) = rest.first().filter(|name| name.is_identifier()) else { return };
        let after = rest.get(1..).unwrap_or_default();
        let function_like = after.first().is_some_and(|token| token.is("(") && !token.spaced);
        let (parameters, body) = if function_like { parameters_of(after) } else { (None, after) };
        let constant = parameters.is_none() && self.stands_for_a_number(body);
        let defined = Macro { parameters, body: body.to_vec(), line: name.line, constant };
        if defined.constant {
            self.result.constants.insert(name.text.clone(), defined.clone());
        }
        self.macros.insert(name.text.clone(), defined);
    }
}

/// Puts 1 or 0 in the place of every `defined NAME` and `defined(NAME)`.
fn resolve_defined(tokens: &[Token], is_defined: impl Fn(&Arc<str>) -> bool) -> Vec<Token> {
    let mut resolved = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        if !token.is("defined") {
            resolved.push(token.clone());
            continue;
        }
        let bracketed = tokens.get(at).is_some_and(|next| next.is("("));
        let name = tokens.get(at + usize::from(bracketed));
        at += if bracketed { 3 } else { 1 };
        let value = if name.is_some_and(|name| is_defined(&name.text)) { "1" } else { "0" };
        resolved.push(Token { kind: TokenKind::Number, text: value.into(), ..token.clone() });
    }
    resolved
}

/// The parameter names between brackets, and the body after them.
fn parameters_of(tokens: &[Token]) -> (Option<Vec<Arc<str>>>, &[Token]) {
    let end = tokens.iter().position(|token| token.is(")")).unwrap_or(tokens.len());
    let names = tokens.get(1..end).unwrap_or_default();
    let mut parameters: Vec<Arc<str>> = names.iter().filter(|t| t.is_identifier()).map(|t| t.text.clone()).collect();
    if names.iter().any(|token| token.is("...")) {
        parameters.push("__VA_ARGS__".into());
    }
    (Some(parameters), tokens.get(end + 1..).unwrap_or_default())
}

fn fits_arithmetic(token: &Token) -> bool {
    match token.kind {
        TokenKind::Number => true,
        TokenKind::Identifier => !token.text.starts_with("__") && !DECLARATION_WORDS.contains(&&*token.text),
        TokenKind::Punctuation => !matches!(
            &*token.text,
            "<<<" | ">>>" | ";" | "{" | "}" | "[" | "]" | "," | "=" | "#" | "##" | "..." | "." | "->" | "\\"
        ),
        TokenKind::String | TokenKind::Char => false,
    }
}

fn is_value_name(token: &Token) -> bool {
    token.is_identifier() && !TYPE_WORDS.contains(&&*token.text)
}

/// `twoStep<32, 8>` and the like, which must be seen where it is used.
fn is_template_instance(body: &[Token]) -> bool {
    body.first().is_some_and(Token::is_identifier) && body.get(1).is_some_and(|second| second.is("<"))
}

const TYPE_WORDS: [&str; 14] = [
    "float", "double", "int", "unsigned", "signed", "long", "short", "char", "bool", "void", "auto", "size_t",
    "typename", "dim3",
];
const DECLARATION_WORDS: [&str; 14] = [
    "const",
    "static",
    "inline",
    "extern",
    "constexpr",
    "alignas",
    "struct",
    "class",
    "return",
    "if",
    "for",
    "while",
    "do",
    "using",
];

/// Takes out each `_Pragma("...")`: a directive that may stand where a macro puts it.
fn drop_pragmas(tokens: &mut Vec<Token>) {
    const LENGTH: usize = 4;
    let is_pragma = |found: &[Token]| {
        let [word, open, text, close, ..] = found else { return false };
        &*word.text == "_Pragma" && &*open.text == "(" && text.kind == TokenKind::String && &*close.text == ")"
    };
    let starts: HashSet<usize> = (0..tokens.len()).filter(|&at| is_pragma(&tokens[at..])).collect();
    let mut at = 0;
    tokens.retain(|_| {
        let inside = (0..LENGTH).any(|before| at >= before && starts.contains(&(at - before)));
        at += 1;
        !inside
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        let tokens = preprocess(&lex(text)).tokens;
        tokens.iter().map(|token| token.text.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn numbers_stay_names_and_everything_else_is_expanded() {
        let text = "#define N 2048\n#define real float\n#define RESTRICT __restrict__\n#define SQ(x) ((x) * (x))\n\
            #define BOUNDS __launch_bounds__(256)\n#define K k<32, 8>\nreal RESTRICT SQ(N) BOUNDS K";
        assert_eq!(expanded(text), "float __restrict__ ( ( N ) * ( N ) ) __launch_bounds__ ( 256 ) k < 32 , 8 >");
    }

    #[test]
    fn pragmas_among_the_tokens_are_none_of_the_text() {
        let text =
            "#define QUIET _Pragma(\"nv_diag_suppress 177\")\n_Pragma(\"once\") a QUIET b _Pragma (L\"c\") _Pragma(d)";
        assert_eq!(expanded(text), "a b _Pragma ( d )");
    }

    #[test]
    fn conditions_leave_in_what_the_host_pass_of_nvcc_sees() {
        let text = "#ifdef __CUDACC__\na\n#else\nb\n#endif\n#if defined(__CUDA_ARCH__) || UNKNOWN > 3\nc\n#elif 1 + 1 == 2\nd\n#else\ne\n#endif\n\
            #ifndef F\n#define F 1\nf\n#endif\n#if 0\n#if 1\ng\n#endif\n#else\nh\n#endif\n#undef F\n#ifdef F\ni\n#endif";
        assert_eq!(expanded(text), "a d f h");
        let inactive = preprocess(&lex(text)).inactive;
        assert!(inactive.contains(&(3..5)), "{inactive:?}");
    }

    #[test]
    fn arguments_pasting_and_variadic_macros_work_as_in_c() {
        let text = "#define CAT(a, b) a##b\n#define RUN(k, ...) k<<<1, 2>>>(__VA_ARGS__)\n#define NAME k\nRUN(CAT(he, at), x, f(y, z)) NAME";
        assert_eq!(expanded(text), "heat <<< 1 , 2 >>> ( x , f ( y , z ) ) k");
    }

    #[test]
    fn a_name_of_a_number_is_pasted_as_the_number_where_it_came_through_another_macro() {
        let text = "#define V 2\n#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\nCAT(heat_, V) CAT_(heat_, V) CAT(V, V)";
        assert_eq!(expanded(text), "heat_2 heat_V 22");
    }

    #[test]
    fn a_number_without_brackets_is_no_name_where_its_neighbours_bind_more_strongly() {
        let text = "#define S 8 + 8\n#define P 2 * N\n#define N 2048\n#define Q(x) x * x\n#define B (8 + 8)\n\
            S * 2, S + 2, S, 3 - S, P - 2, P / 3, 4 / P, -P, (int)S, Q(S), B * 2, f(S)";
        assert_eq!(
            expanded(text),
            "8 + 8 * 2 , S + 2 , S , 3 - 8 + 8 , P - 2 , P / 3 , 4 / 2 * N , - P , ( int ) 8 + 8 , 8 + 8 * 8 + 8 , B * 2 , f ( S )"
        );
    }

    #[test]
    fn a_macro_does_not_expand_itself() {
        assert_eq!(expanded("#define f(x) f(x) + g\n#define g f(y)\nf(2)"), "f ( 2 ) + f ( y )");
    }
}
