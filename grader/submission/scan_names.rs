//! Guessing which names are types and which are templates.

use std::sync::Arc;

use super::parser::{Names, Parser, Text};

/// Names that the text declares as types or templates, guessed from the words before them.
pub fn names(text: &Text) -> Names {
    let mut names = Names::default();
    for (at, token) in text.tokens.iter().enumerate().filter(|(_, token)| token.is_identifier()) {
        match &*token.text {
            "struct" | "class" | "union" | "enum" | "typename" | "using" => {
                let next = text.tokens.get(at + 1).filter(|next| next.is_identifier());
                let class = next.is_some_and(|next| next.is("class") || next.is("struct"));
                let name = if class { text.tokens.get(at + 2) } else { next };
                let alias = !token.is("using") || text.is(at + 2, "=");
                if let Some(name) = name.filter(|name| alias && name.is_identifier()) {
                    names.types.insert(name.text.clone());
                }
            }
            "typedef" => {
                let rest = text.tokens.get(at..).unwrap_or_default();
                let end = rest.iter().take(400).position(|token| token.is(";")).unwrap_or(0);
                if let Some(name) =
                    end.checked_sub(1).and_then(|last| rest.get(last)).filter(|name| name.is_identifier())
                {
                    names.types.insert(name.text.clone());
                }
            }
            "template" => names.templates.extend(template_name(text, &names, at)),
            _ => {}
        }
    }
    names
}

/// The name that a `template <...>` declares.
fn template_name(text: &Text, names: &Names, at: usize) -> Option<Arc<str>> {
    let parser = Parser::new(text, names, at + 1, text.tokens.len());
    let after = parser.after_angles(at + 1).filter(|_| text.is(at + 1, "<"))?;
    let mut at = after;
    while at < after + 60 {
        let token = text.tokens.get(at)?;
        let opens = text.is(at + 1, "(");
        match &*token.text {
            "struct" | "class" => return text.tokens.get(at + 1).map(|name| name.text.clone()),
            "{" | ";" => return None,
            "=" => return text.tokens.get(at.checked_sub(1)?).map(|name| name.text.clone()),
            word if opens && (word.starts_with("__") || matches!(word, "alignas" | "decltype")) => {
                at = text.partner(at + 1)
            }
            _ if opens && token.is_identifier() => return Some(token.text.clone()),
            _ => {}
        }
        at += 1;
    }
    None
}
