//! A submission's declarations: functions, variables, structs, enumerators and type names, wherever they stand.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::lexer::{Comment, lex};
use super::macros::{Macro, preprocess};
use super::parser::{Names, Parser, Text};
use super::tree::{Declarator, Expression, Parameter, Statement};
use super::types::{Base, Type};

/// A submission's text, taken apart once.
#[derive(Default)]
pub struct Program {
    /// The text after the preprocessor.
    pub text: Text,
    pub names: Names,
    pub functions: Vec<Function>,
    /// Variables and enumerators outside functions, by their last name.
    pub variables: HashMap<Arc<str>, Vec<Variable>>,
    pub structs: HashMap<Arc<str>, Struct>,
    /// `using` and `typedef` names.
    pub aliases: HashMap<Arc<str>, Type>,
    /// Macros that stand for numbers.
    pub constants: HashMap<Arc<str>, Constant>,
    /// Comments in lines that conditions leave in.
    pub comments: Vec<Comment>,
}

/// A macro that stands for a number.
#[derive(Debug)]
pub struct Constant {
    pub value: Expression,
    /// Line of its `#define`, from 1.
    pub line: u32,
}

/// A function, defined or only declared.
#[derive(Debug)]
pub struct Function {
    /// Its own name: `twoStep`.
    pub name: Arc<str>,
    /// With the namespaces and structs around it: `ns::twoStep`.
    pub path: Arc<str>,
    /// The struct that it belongs to.
    pub owner: Option<Arc<str>>,
    /// Parameters of its template; none when it is not one.
    pub template: Option<Vec<TemplateParameter>>,
    /// Nothing when they could not be read.
    pub parameters: Option<Vec<Parameter>>,
    /// Nothing for constructors, and when it could not be read.
    pub returns: Option<Type>,
    /// A constructor's `: member(value)` list.
    pub member_initials: Vec<(Arc<str>, Vec<Expression>)>,
    pub body: Option<Statement>,
    /// Whether it is a kernel.
    pub global: bool,
    /// Whether it is `template <>` of another one.
    pub specialisation: bool,
    /// Its name's token.
    pub at: usize,
    /// Line of its name, from 1.
    pub line: u32,
}

#[derive(Clone, Debug)]
pub struct TemplateParameter {
    pub name: Option<Arc<str>>,
    pub name_at: usize,
    /// Whether it stands for a type.
    pub is_type: bool,
    /// Whether it stands for all further arguments.
    pub pack: bool,
    /// The tokens after `=`.
    pub default_at: Option<std::ops::Range<usize>>,
    pub default: Option<Expression>,
    /// The same for a type.
    pub default_kind: Option<Type>,
}

/// A variable outside functions, or an enumerator.
#[derive(Debug)]
pub struct Variable {
    pub path: Arc<str>,
    pub declarator: Declarator,
    /// What is added to its initial value: an enumerator's distance from the last one that has a value.
    pub offset: i64,
}

/// A struct's members, static ones and functions left out.
#[derive(Debug, Default)]
pub struct Struct {
    /// With the namespaces and structs around it.
    pub path: Arc<str>,
    /// Parameters of its template; none when it is not one.
    pub template: Option<Vec<TemplateParameter>>,
    pub bases: Vec<Type>,
    /// Whether its members share their place.
    pub union: bool,
    pub members: Vec<Declarator>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({} tokens, {} functions)", self.text.tokens.len(), self.functions.len())
    }
}

impl Program {
    /// Takes a text apart; bounded in work and depth, whatever the text.
    pub fn new(source: &str) -> Self {
        let lexed = lex(source);
        let preprocessed = preprocess(&lexed);
        let left_in = |line: u32| !preprocessed.inactive.iter().any(|lines| lines.contains(&line));
        let comments = lexed.comments.iter().filter(|comment| left_in(comment.line)).cloned().collect();
        let text = Text::with_split_angles(preprocessed.tokens);
        let names = super::scan_names::names(&text);
        let constants = constants(&preprocessed.constants, &names);
        let mut program = Self { text: Text::default(), names, constants, comments, ..Self::default() };
        super::scan::scan(&text, &mut program);
        super::defaults::share(&text, &mut program);
        program.text = text;
        program
    }

    /// The type behind `using`, `typedef` and both in a row.
    pub fn resolved(&self, kind: &Type) -> Type {
        let mut kind = kind.clone();
        for _ in 0..16 {
            let Base::Named(path) = &kind.base else { break };
            let last = path.rsplit("::").next().unwrap_or_default();
            let Some(alias) = self.aliases.get(last) else { break };
            kind = kind.meaning(alias);
        }
        kind
    }

    /// The functions that a name can mean, in the order of the text.
    pub fn functions_named<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (usize, &'a Function)> {
        self.functions.iter().enumerate().filter(move |(_, function)| path_means(path, &function.path))
    }

    /// Those that it means where it stands in a function or variable with the path `from`: of the innermost namespace or struct
    /// around that has one. Where none has, a `using` may have brought in any of that name.
    pub fn functions_meant<'a>(&'a self, path: &'a str, from: &str) -> Vec<(usize, &'a Function)> {
        let named: Vec<_> = self.functions_named(path).collect();
        let mut scope = from;
        while let Some((around, _)) = scope.rsplit_once("::") {
            scope = around;
            let here =
                |function: &Function| function.path.strip_prefix(scope)?.strip_prefix("::").map(|rest| rest == path);
            let found: Vec<_> = named.iter().copied().filter(|(_, function)| here(function) == Some(true)).collect();
            if !found.is_empty() {
                return found;
            }
        }
        let outside: Vec<_> = named.iter().copied().filter(|(_, function)| *function.path == *path).collect();
        if outside.is_empty() { named } else { outside }
    }
}

/// Whether a name as written can mean the thing with the full path.
pub fn path_means(written: &str, full: &str) -> bool {
    full.strip_suffix(written).is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

fn constants(macros: &HashMap<Arc<str>, Macro>, names: &Names) -> HashMap<Arc<str>, Constant> {
    let mut constants = HashMap::new();
    for (name, found) in macros {
        let text = Text::new(found.body.clone());
        let mut parser = Parser::new(&text, names, 0, text.tokens.len());
        if let Some(value) = parser.expression().filter(|_| parser.at == parser.end) {
            constants.insert(name.clone(), Constant { value, line: found.line });
        }
    }
    constants
}
