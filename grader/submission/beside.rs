//! Answers that lie beside flat programs: `ann_12345_answer.md` is that of `ann_12345_heat.cu`. Pure.

use std::path::Path;

use super::handed::{Node, What};
use super::owner::{self, stem};
use super::source::has_cu_extension;

/// Which answer belongs to which flat program.
pub struct Answers {
    /// Program and answer by their names.
    pairs: Vec<(String, String)>,
    pub used: Vec<String>,
}

impl Answers {
    /// Pairs the answers among `nodes` with the programs.
    pub fn of(nodes: &[Node], programs: &[&Node]) -> Self {
        let is_md = |node: &&Node| Path::new(&node.name).extension().is_some_and(|end| end.eq_ignore_ascii_case("md"));
        let answers: Vec<(&str, &str)> = nodes
            .iter()
            .filter(|node| matches!(node.what, What::File(_)))
            .filter(is_md)
            .filter_map(|node| Some((node.name.as_str(), owner::owner_of_answer(stem(&node.name))?)))
            .collect();
        let programs: Vec<(&str, &str)> = programs
            .iter()
            .filter(|node| has_cu_extension(Path::new(&node.name)))
            .map(|node| (node.name.as_str(), owner::owner_of_program(stem(&node.name)).unwrap_or(stem(&node.name))))
            .collect();
        let only = |owner: &str, all: &[(&str, &str)]| {
            let owner = owner::without_number(owner);
            all.iter().filter(|(_, other)| owner::without_number(other) == owner).count() == 1
        };
        let mut pairs = Vec::new();
        for (program, owner) in &programs {
            let exact = answers.iter().find(|(_, of)| of == owner);
            // Canvas gives each file of a learner a number of its own.
            let alike = || {
                let same = |of: &str| owner::without_number(of) == owner::without_number(owner);
                let unambiguous = only(owner, &programs) && only(owner, &answers);
                answers.iter().find(|(_, of)| same(of)).filter(|_| unambiguous)
            };
            if let Some((answer, _)) = exact.or_else(alike) {
                pairs.push(((*program).to_owned(), (*answer).to_owned()));
            }
        }
        let used = pairs.iter().map(|(_, answer)| answer.clone()).collect();
        Self { pairs, used }
    }

    pub fn of_program(&self, program: &str) -> Option<&str> {
        self.pairs.iter().find(|(of, _)| of == program).map(|(_, answer)| answer.as_str())
    }
}
