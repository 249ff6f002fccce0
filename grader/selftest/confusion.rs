//! Which cause was named for each that was planted: a confusion matrix with its zeros left out.

use std::collections::BTreeMap;

use comfy_table::{ContentArrangement, Table, presets};

/// A row a planted cause: how many fixtures have it, in how many it is named first, and what is named in its place.
/// Nothing when no fixture plants one.
pub fn table<'a>(pairs: impl Iterator<Item = &'a (String, String)>) -> String {
    let mut rows: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (planted, named) in pairs {
        *rows.entry(planted).or_default().entry(named).or_default() += 1;
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["planted cause", "fixtures", "named first", "named instead"]);
    for (planted, named) in &rows {
        let all: usize = named.values().sum();
        let right = named.get(planted).copied().unwrap_or_default();
        let others = named.iter().filter(|(named, _)| *named != planted);
        let others: Vec<String> = others.map(|(named, count)| format!("{named} ({count})")).collect();
        table.add_row([(*planted).to_owned(), all.to_string(), right.to_string(), others.join(", ")]);
    }
    format!("\n{table}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_confused_stands_in_the_row_of_what_was_planted() {
        let pairs =
            [("ring-lost", "ring-lost"), ("ring-lost", "unknown"), ("wrong-r", "wrong-r"), ("ring-lost", "ring-lost")];
        let pairs = pairs.map(|(planted, named)| (planted.to_owned(), named.to_owned()));
        let text = table(pairs.iter());
        let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
        let words = |name: &str| row(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("ring-lost"), ["ring-lost", "3", "2", "unknown", "(1)"]);
        assert_eq!(words("wrong-r"), ["wrong-r", "1", "1"]);
        assert_eq!(table([].iter()), "");
    }
}
