//! A whole PTX text as functions and variables, and written anew.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::NotCountable;
use super::text::{Kind, NAME, Piece, pieces};
use crate::compile::diagnostics::{SOURCE_NAME, pattern};

/// PTX taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// `.version`, `.target`, `.address_size`.
    header: Vec<String>,
    pub(super) items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A variable, or a pragma for the whole text.
    Variable(String),
    /// A function without its body.
    Declaration {
        name: String,
        text: String,
    },
    Function(Function),
}

/// A function with its body: a kernel (`.entry`) or not (`.func`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub name: String,
    pub kernel: bool,
    pub head: String,
    /// From its `{` to its `}`.
    pub body: Vec<Piece>,
}

static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
    let linkage = r"^(?:\.(?:visible|extern|weak|common)\s*)*";
    let tuning = r"(?:\s*\.\s*(?:noreturn|maxntid|reqntid|minnctapersm|maxnctapersm|maxnreg|explicitcluster|reqnctapercluster|maxclusterrank|blocksareclusters)\b[\d,\s]*)*";
    pattern(&format!(r"{linkage}\.(entry|func)\s*(?:\([^()]*\)\s*)?({NAME})\s*(?:\([^()]*\))?{tuning}\s*[{{;]?$"))
});

impl Module {
    /// Reads PTX. What it holds is judged when it is counted, so that a kernel does not answer for its neighbours.
    pub fn parse(ptx: &str) -> Result<Self, NotCountable> {
        let mut rest = pieces(ptx)?.into_iter().peekable();
        let mut header = Vec::new();
        while let Some(piece) = rest.next_if(|piece| piece.kind == Kind::Header) {
            header.push(piece.text);
        }
        let words: Vec<_> = header.iter().filter_map(|text| text.split(' ').next()).collect();
        if words != [".version", ".target", ".address_size"] {
            return Err(NotCountable::hiding("PTX with a header that is not nvcc's", None));
        }
        let mut items = Vec::new();
        while let Some(piece) = rest.next() {
            let item = match piece.kind {
                Kind::Loc => continue,
                Kind::Head => Item::Function(function(piece, &mut rest)?),
                Kind::Directive => outside(piece)?,
                Kind::Header => return Err(NotCountable::hiding("a second PTX header", piece.line)),
                _ => return Err(NotCountable::hiding("inline PTX that stands outside of every function", piece.line)),
            };
            items.push(item);
        }
        Ok(Self { header, items })
    }

    /// These kernels, the functions that they or a variable mention, and all variables. The kernels become visible to a
    /// program that loads the text.
    pub fn keep(&self, kernels: &BTreeSet<&str>) -> Self {
        let reached = self.reached(kernels);
        let mut kept = self.clone();
        kept.items.retain(|item| match item {
            Item::Variable(_) => true,
            Item::Declaration { name, .. } | Item::Function(Function { name, .. }) => reached.contains(name.as_str()),
        });
        for item in &mut kept.items {
            match item {
                Item::Declaration { name, text: head } | Item::Function(Function { name, head, .. })
                    if kernels.contains(name.as_str()) =>
                {
                    *head = visible(head);
                }
                _ => {}
            }
        }
        kept
    }

    fn reached<'a>(&'a self, kernels: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        let named = |item: &'a Item| match item {
            Item::Variable(_) => None,
            Item::Declaration { name, .. } | Item::Function(Function { name, .. }) => Some(name.as_str()),
        };
        let all: BTreeSet<&str> = self.items.iter().filter_map(named).collect();
        let mut reached: BTreeSet<&str> = kernels.intersection(&all).copied().collect();
        let variables = self.items.iter().filter_map(|item| match item {
            Item::Variable(text) => Some(text.as_str()),
            _ => None,
        });
        reached.extend(variables.flat_map(names).filter(|name| all.contains(name)));
        let mut todo: Vec<&str> = reached.iter().copied().collect();
        while let Some(name) = todo.pop() {
            let bodies = self.functions().filter(|function| function.name == name).flat_map(|function| &function.body);
            for mentioned in bodies.flat_map(|piece| names(&piece.text)).filter(|name| all.contains(name)) {
                if reached.insert(mentioned) {
                    todo.push(mentioned);
                }
            }
        }
        reached
    }

    pub(super) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(function) => Some(function),
            _ => None,
        })
    }

    /// The kernels that have a body.
    pub fn kernels(&self) -> Vec<&str> {
        self.functions().filter(|function| function.kernel).map(|function| function.name.as_str()).collect()
    }

    /// The text anew, uncounted: one statement a line, `.loc` for lines of heat.cu.
    pub fn text(&self) -> String {
        self.written("", |function, lines| {
            lines.extend(function.body.iter().map(|piece| piece.text.clone()));
            Ok::<_, NotCountable>(())
        })
        .unwrap_or_default()
    }

    /// Writes the text with `variable` after the header and bodies as `body` gives them.
    pub(super) fn written<E>(
        &self,
        variable: &str,
        mut body: impl FnMut(&Function, &mut Vec<String>) -> Result<(), E>,
    ) -> Result<String, E> {
        let mut lines = self.header.clone();
        if !variable.is_empty() {
            lines.push(variable.to_owned());
        }
        for item in &self.items {
            match item {
                Item::Variable(text) | Item::Declaration { text, .. } => lines.push(text.clone()),
                Item::Function(function) => {
                    lines.push(function.head.clone());
                    body(function, &mut lines)?;
                }
            }
        }
        if self.functions().flat_map(|function| &function.body).any(|piece| piece.kind == Kind::Loc) {
            lines.push(format!(".file 1 \"{SOURCE_NAME}\""));
        }
        lines.push(String::new());
        Ok(lines.join("\n"))
    }
}

/// A function from its head to its closing brace.
fn function(head: Piece, rest: &mut impl Iterator<Item = Piece>) -> Result<Function, NotCountable> {
    let found = FUNCTION.captures(&head.text);
    let found = found.ok_or_else(|| NotCountable::ordinary("a PTX function of an unknown form", head.line))?;
    let (name, kernel) = (found[2].to_owned(), &found[1] == "entry");
    let mut body = Vec::new();
    let mut depth = 0u32;
    for piece in rest {
        match piece.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            _ => {}
        }
        body.push(piece);
        if depth == 0 {
            break;
        }
    }
    Ok(Function { name, kernel, head: head.text.clone(), body })
}

/// A directive outside of functions.
fn outside(piece: Piece) -> Result<Item, NotCountable> {
    static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^(?:\.(?:visible|extern|weak|common)\s*)*\.(?:global|const|shared|local)\b|^\.pragma ")
    });
    static TEXTURE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\.\s*(?:texref|samplerref|surfref|tex)\b"));
    if let Some(found) = FUNCTION.captures(&piece.text) {
        Ok(Item::Declaration { name: found[2].to_owned(), text: piece.text.clone() })
    } else if TEXTURE.is_match(&piece.text) {
        Err(NotCountable::ordinary("a texture or surface reference", piece.line))
    } else if VARIABLE.is_match(&piece.text) {
        Ok(Item::Variable(piece.text))
    } else {
        let word: String = piece.text.split(' ').next().unwrap_or_default().chars().take(40).collect();
        Err(NotCountable::ordinary(format!("a PTX directive that the grader does not know ({word})"), piece.line))
    }
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    static WORD: LazyLock<Regex> = LazyLock::new(|| pattern(NAME));
    WORD.find_iter(text).map(|found| found.as_str())
}

fn visible(head: &str) -> String {
    static LINKAGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:\.(?:visible|extern|weak|common)\s*)*\.entry\b"));
    LINKAGE.replace(head, ".visible .entry").into_owned()
}
