//! The part of C++ that decides a launch, as a tree: expressions, statements, declarations.
//!
//! Every node knows the tokens that it covers, so that a launch can be found in the statement that holds it and a
//! message can show an expression as it was written.

use std::ops::Range;
use std::sync::Arc;

use super::types::Type;
use super::value::Value;

/// Tokens that a node covers: indices into the preprocessed text.
pub type Tokens = Range<usize>;

/// A name with its namespaces, and its template arguments when it has some.
#[derive(Clone, Debug)]
pub struct Name {
    /// `ns::twoStep`, without a leading `::`.
    pub path: Arc<str>,
    /// Template arguments after its last part.
    pub arguments: Option<Vec<TemplateArgument>>,
    /// Those after an earlier part, and how long the path is there: `Tile<32>` of `Tile<32>::x`.
    pub scope: Option<(usize, Vec<TemplateArgument>)>,
}

impl Name {
    /// The last part of the path.
    pub fn last(&self) -> &str {
        self.path.rsplit("::").next().unwrap_or_default()
    }

    fn height(&self) -> u16 {
        let all = self.arguments.iter().flatten().chain(self.scope.iter().flat_map(|(_, list)| list));
        let values = all.filter_map(|argument| argument.value.as_ref());
        values.map(|value| value.height).max().unwrap_or(0)
    }
}

/// A template argument: the tokens it covers, its value when it reads as an expression, its type when as a type.
#[derive(Clone, Debug)]
pub struct TemplateArgument {
    pub at: Tokens,
    pub value: Option<Expression>,
    pub kind: Option<Type>,
}

#[derive(Clone, Debug)]
pub struct Expression {
    pub kind: ExpressionKind,
    pub at: Tokens,
    /// Nodes from here to its deepest leaf; at most [`TALLEST`].
    pub height: u16,
}

/// The most nodes on top of one another: what walks a tree may recurse.
pub const TALLEST: u16 = 300;

impl ExpressionKind {
    /// Height of the tallest part; a lambda's body is not counted.
    pub fn height_of_parts(&self) -> u16 {
        let tallest = |parts: &[Expression]| parts.iter().map(|part| part.height).max().unwrap_or(0);
        match self {
            Self::Number(_)
            | Self::Character(_)
            | Self::Text
            | Self::SizeOfType(_)
            | Self::Lambda(_)
            | Self::Known(_)
            | Self::Opaque
            | Self::TooTall => 0,
            Self::Name(name) => name.height(),
            Self::Member(part, name) => part.height.max(name.height()),
            Self::Unary(_, part) | Self::Cast(_, part) | Self::SizeOf(part) | Self::Spread(part) => part.height,
            Self::Step { place, .. } => place.height,
            Self::Binary(_, left, right) | Self::Assign(_, left, right) | Self::Index(left, right) => {
                left.height.max(right.height)
            }
            Self::Conditional(condition, left, right) => condition.height.max(left.height).max(right.height),
            Self::Comma(parts) | Self::Construct(_, parts) => tallest(parts),
            Self::Braces(items) => items.iter().map(|(_, part)| part.height).max().unwrap_or(0),
            Self::Call(callee, parts) => callee.height.max(tallest(parts)),
            Self::Launch(launch) => {
                launch.callee.height.max(tallest(&launch.configuration)).max(tallest(&launch.arguments))
            }
        }
    }
}

#[derive(Clone, Debug)]
pub enum ExpressionKind {
    Number(Arc<str>),
    Character(Arc<str>),
    Text,
    Name(Name),
    /// `- + ! ~ * &` before a value.
    Unary(char, Box<Expression>),
    /// `++` and `--`.
    Step {
        by: i8,
        before: bool,
        place: Box<Expression>,
    },
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// `=`, or `+=` and its like.
    Assign(Option<Operator>, Box<Expression>, Box<Expression>),
    Conditional(Box<Expression>, Box<Expression>, Box<Expression>),
    Comma(Vec<Expression>),
    Cast(Type, Box<Expression>),
    /// `T(...)` and `T{...}`.
    Construct(Type, Vec<Expression>),
    /// `{a, b}` and `{.x = a}`.
    Braces(Vec<(Option<Arc<str>>, Expression)>),
    Call(Box<Expression>, Vec<Expression>),
    Launch(Box<LaunchExpression>),
    Index(Box<Expression>, Box<Expression>),
    Member(Box<Expression>, Name),
    SizeOfType(Type),
    SizeOf(Box<Expression>),
    Lambda(Arc<Lambda>),
    /// `args...` among a call's arguments.
    Spread(Box<Expression>),
    /// A value worked out before: a template argument where its template is used.
    Known(Box<Value>),
    /// `new`, `throw` and whatever else has no value here.
    Opaque,
    /// What has more nodes on top of one another than are followed.
    TooTall,
}

/// `callee<<<configuration>>>(arguments)`.
#[derive(Clone, Debug)]
pub struct LaunchExpression {
    pub callee: Expression,
    pub configuration: Vec<Expression>,
    pub arguments: Vec<Expression>,
}

#[derive(Clone, Debug)]
pub struct Lambda {
    /// Captures with a value of their own: `[n = size]`.
    pub captures: Vec<Capture>,
    /// For `[=]`: the names that it does not copy.
    pub copies_but: Option<Vec<Arc<str>>>,
    pub mutable: bool,
    pub parameters: Vec<Parameter>,
    pub body: Statement,
}

/// `name = value` between a lambda's brackets.
#[derive(Clone, Debug)]
pub struct Capture {
    pub name: Arc<str>,
    /// The name's token.
    pub name_at: usize,
    pub value: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    ShiftLeft,
    ShiftRight,
    BitAnd,
    BitOr,
    BitXor,
    And,
    Or,
    Equal,
    Unequal,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
}

#[derive(Clone, Debug)]
pub struct Statement {
    pub kind: StatementKind,
    pub at: Tokens,
}

#[derive(Clone, Debug)]
pub enum StatementKind {
    Empty,
    Expression(Expression),
    Declare(Vec<Declarator>),
    /// `auto [a, b] = value;`
    Bind {
        names: Vec<(Arc<str>, usize)>,
        value: Expression,
        reference: bool,
    },
    /// `using Name = Type;`
    Alias(Arc<str>, Type),
    Block(Vec<Statement>),
    If {
        before: Vec<Statement>,
        condition: Expression,
        then: Box<Statement>,
        otherwise: Option<Box<Statement>>,
    },
    Loop {
        before: Option<Box<Statement>>,
        condition: Option<Expression>,
        step: Option<Expression>,
        body: Box<Statement>,
        test_first: bool,
    },
    ForEach {
        name: Arc<str>,
        name_at: usize,
        reference: bool,
        range: Expression,
        body: Box<Statement>,
    },
    Switch {
        condition: Expression,
        body: Box<Statement>,
    },
    /// A `case`; without a value, the default one.
    Case(Option<Expression>),
    Return(Option<Expression>),
    Break,
    Continue,
    /// A statement that could not be read.
    Unread,
}

/// One variable of a declaration.
#[derive(Clone, Debug)]
pub struct Declarator {
    pub name: Arc<str>,
    /// The name's token.
    pub name_at: usize,
    pub kind: Type,
    /// Lengths of its array dimensions, where they are written.
    pub dimensions: Vec<Option<Expression>>,
    pub initial: Option<Initial>,
}

#[derive(Clone, Debug)]
pub enum Initial {
    /// `= value`
    Value(Expression),
    /// `(a, b)` or `{a, b}`; braces may name members.
    Arguments(Vec<(Option<Arc<str>>, Expression)>),
}

/// One parameter of a function, template or lambda.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub kind: Type,
    pub name: Option<Arc<str>>,
    /// The name's token, or the parameter's first.
    pub name_at: usize,
    pub default: Option<Expression>,
    /// Whether it stands for all further arguments: `A... args`.
    pub pack: bool,
    /// All its tokens.
    pub at: Tokens,
}
