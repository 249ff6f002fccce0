//! Whether a report is as its JSON Schema says: the part of JSON Schema (2020-12) that `schemars` writes for our types.
//!
//! A keyword that is not known here is an error, so that nothing passes by not being looked at; the tests compare with a
//! whole validator, which a binary that is built on every Gradescope image can do without.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

/// Keywords that say nothing of what is valid. A `format` is one of Rust's number types, whose bounds stand beside it or are
/// the type's own.
const NOTES: [&str; 7] = ["$schema", "$defs", "title", "description", "default", "format", "examples"];

/// Says where a value is not as the schema has it.
pub fn validate(value: &Value, schema: &Value) -> Result<()> {
    Validator { root: schema }.check(value, schema, "")
}

struct Validator<'s> {
    root: &'s Value,
}

impl Validator<'_> {
    fn check(&self, value: &Value, schema: &Value, at: &str) -> Result<()> {
        let schema = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Object(schema) => schema,
            _ => bail!("{}: nothing may be here", shown(at)),
        };
        for (keyword, wanted) in schema {
            let holds = match keyword.as_str() {
                note if NOTES.contains(&note) => true,
                "$ref" => {
                    self.check(value, self.referred(wanted)?, at)?;
                    true
                }
                "type" => list(wanted).iter().any(|kind| is_of(value, kind)),
                "const" => value == wanted,
                "enum" => list(wanted).contains(value),
                "anyOf" => self.fitting(value, wanted, at) > 0,
                "oneOf" => self.fitting(value, wanted, at) == 1,
                "minimum" => below(wanted, value),
                "maximum" => below(value, wanted),
                "minItems" => value.as_array().is_none_or(|items| Some(items.len() as u64) >= wanted.as_u64()),
                "maxItems" => value.as_array().is_none_or(|items| Some(items.len() as u64) <= wanted.as_u64()),
                "required" => list(wanted).iter().all(|name| has(value, name)),
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(item, wanted, &format!("{at}/{index}"))?;
                    }
                    true
                }
                "properties" => {
                    for (name, item) in value.as_object().into_iter().flatten() {
                        wanted.get(name).map_or(Ok(()), |wanted| self.check(item, wanted, &format!("{at}/{name}")))?;
                    }
                    true
                }
                "additionalProperties" => {
                    for (name, item) in value.as_object().into_iter().flatten().filter(|(name, _)| !named(schema, name))
                    {
                        self.check(item, wanted, &format!("{at}/{name}"))?;
                    }
                    true
                }
                other => bail!("the schema has a keyword that is not known here: {other}"),
            };
            ensure!(holds, "{}: {keyword} does not hold", shown(at));
        }
        Ok(())
    }

    fn referred(&self, name: &Value) -> Result<&Value> {
        let path = name.as_str().and_then(|name| name.strip_prefix('#'));
        path.and_then(|path| self.root.pointer(path)).with_context(|| format!("the schema has no {name}"))
    }

    /// How many of the schemas fit.
    fn fitting(&self, value: &Value, schemas: &Value, at: &str) -> usize {
        list(schemas).iter().filter(|schema| self.check(value, schema, at).is_ok()).count()
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("number") => value.is_number(),
        // A whole number, however it is written.
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

/// Of two numbers, whether the first is not above the second; what is no number has no bounds.
fn below(one: &Value, other: &Value) -> bool {
    one.as_f64().zip(other.as_f64()).is_none_or(|(one, other)| one <= other)
}

fn has(value: &Value, name: &Value) -> bool {
    value.as_object().is_none_or(|object| name.as_str().is_some_and(|name| object.contains_key(name)))
}

fn named(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get("properties").is_some_and(|properties| properties.get(name).is_some())
}

fn shown(at: &str) -> &str {
    if at.is_empty() { "/" } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::json;

    const REPORTS: [&str; 4] = [
        include_str!("../tests/html/reports/amara.json"),
        include_str!("../tests/html/reports/halo_one_cell.json"),
        include_str!("../tests/html/reports/shared_one_past.json"),
        include_str!("../tests/html/reports/emeka.json"),
    ];

    /// The value with every place in it changed, one at a time: gone, doubled under another name, or of another kind.
    fn damaged(value: &Value) -> Vec<Value> {
        let mut all: Vec<Value> =
            ["x".into(), Value::Null, 1.5.into(), (-1).into(), 300.into(), true.into(), Value::Array(Vec::new())]
                .into();
        match value {
            Value::Object(object) => {
                for (name, part) in object {
                    let with = |part: Option<Value>, name: &str| {
                        let mut object = object.clone();
                        match part {
                            Some(part) => object.insert(name.to_owned(), part),
                            None => object.remove(name),
                        };
                        Value::Object(object)
                    };
                    all.extend([with(None, name), with(Some(part.clone()), &format!("{name}2"))]);
                    all.extend(damaged(part).into_iter().map(|part| with(Some(part), name)));
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate().take(3) {
                    all.push(Value::Array([items.as_slice(), std::slice::from_ref(item)].concat()));
                    all.extend(damaged(item).into_iter().map(|item| {
                        let mut items = items.clone();
                        items[at] = item;
                        Value::Array(items)
                    }));
                }
            }
            _ => {}
        }
        all
    }

    #[test]
    fn it_judges_as_a_whole_validator_does() {
        let schema: Value = serde_json::from_str(&json::schema().unwrap()).unwrap();
        let whole = jsonschema::validator_for(&schema).unwrap();
        let (mut valid, mut invalid) = (0, 0);
        for report in REPORTS {
            let report: Value = serde_json::from_str(report).unwrap();
            validate(&report, &schema).unwrap();
            for damaged in damaged(&report) {
                let ours = validate(&damaged, &schema);
                assert_eq!(ours.is_ok(), whole.is_valid(&damaged), "{ours:?}: {damaged}");
                *(if ours.is_ok() { &mut valid } else { &mut invalid }) += 1;
            }
        }
        assert!(valid > 50 && invalid > 1000, "{valid} {invalid}");
    }

    #[test]
    fn it_says_where_and_knows_what_it_does_not_know() {
        let schema: Value = serde_json::from_str(&json::schema().unwrap()).unwrap();
        let mut report: Value = serde_json::from_str(REPORTS[0]).unwrap();
        report["checks"][3]["status"] = "great".into();
        let said = validate(&report, &schema).unwrap_err().to_string();
        assert!(said.starts_with("/checks/3/status: "), "{said}");
        let odd = serde_json::json!({"type": "object", "patternProperties": {}});
        assert!(validate(&serde_json::json!({}), &odd).unwrap_err().to_string().contains("patternProperties"));
    }
}
