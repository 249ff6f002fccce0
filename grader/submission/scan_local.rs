//! Structs and enumerators that are declared inside functions.

use super::parse_structs::LocalStruct;
use super::program::Struct;
use super::scan::{Scanner, Scope};
use super::tree::Tokens;

/// What a function's path ends with in the path of a name that is known in its body alone.
pub const INSIDE: &str = "{}";

/// Functions in structs in functions that are looked into.
const DEEPEST: usize = 24;

impl Scanner<'_, '_> {
    /// Fills the program with the structs and enumerators of a function's body.
    pub fn local_types(&mut self, path: &str, body: Tokens) {
        if self.scopes.len() > DEEPEST || body.end <= body.start {
            return;
        }
        let (after, outer) = (self.parser.at, self.parser.end);
        let scope = Scope { name: format!("{path}{INSIDE}").into(), is_struct: false, local: true, end: body.end };
        let scopes = std::mem::replace(&mut self.scopes, vec![scope]);
        let template = self.template.take();
        self.parser.end = body.end - 1;
        self.parser.at = body.start + 1;
        while self.parser.at < self.parser.end {
            let at = self.parser.at;
            if self.parser.is("enum") {
                self.enumeration();
            } else if let Some(found) = LocalStruct::at(self.parser.text, at).filter(|found| found.close < body.end) {
                self.local_struct(&found);
                self.parser.at = found.close;
            }
            self.parser.at = self.parser.at.max(at + 1);
        }
        (self.parser.at, self.parser.end) = (after, outer);
        self.scopes = scopes;
        self.template = template;
    }

    fn local_struct(&mut self, found: &LocalStruct) {
        let path = format!("{}{}", self.scope_path(), found.known_as).into();
        let union = self.parser.is("union");
        self.program.structs.insert(found.known_as.clone(), Struct { path, union, ..Struct::default() });
        self.parser.at = found.open;
        self.enter(found.known_as.clone(), true);
        if let Some(scope) = self.scopes.last_mut() {
            scope.local = true;
        }
        let depth = self.scopes.len();
        while self.scopes.len() >= depth && self.parser.at < self.parser.end {
            let before = self.parser.at;
            self.declaration();
            if self.scopes.len() >= depth && self.parser.at <= before {
                self.parser.at = before + 1;
            }
        }
        self.scopes.truncate(depth - 1);
    }
}
