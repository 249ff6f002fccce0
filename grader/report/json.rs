//! The report as JSON, and its JSON Schema.

use super::Report;

/// The report, indented, with a final newline.
pub fn render(report: &Report) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}

/// The JSON Schema of a report, indented, with a final newline. `schema-1.json` beside this file is its checked-in copy.
pub fn schema() -> anyhow::Result<String> {
    let schema = schemars::schema_for!(Report);
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}
