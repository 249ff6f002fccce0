//! A number of a report that may be NaN or infinite, which JSON has no number for.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A real number: a JSON number when finite, else one of the strings `nan`, `inf`, `-inf`.
#[derive(Clone, Copy, Debug)]
pub struct Real(pub f64);

impl Real {
    /// The shortest decimal that is this `f32`: 0.3, not 0.30000001192092896.
    pub fn of_f32(value: f32) -> Self {
        Self(value.to_string().parse().unwrap_or(f64::from(value)))
    }
}

impl PartialEq for Real {
    /// By what a report shows, so that NaN equals NaN.
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || (self.0.is_nan() && other.0.is_nan())
    }
}

impl std::fmt::Display for Real {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.word() {
            Some(word) => f.write_str(word),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Real {
    fn word(self) -> Option<&'static str> {
        match self.0 {
            value if value.is_nan() => Some("nan"),
            f64::INFINITY => Some("inf"),
            f64::NEG_INFINITY => Some("-inf"),
            _ => None,
        }
    }
}

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.word() {
            Some(word) => serializer.serialize_str(word),
            None => serializer.serialize_f64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(f64),
            Word(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Ok(Self(number)),
            Either::Word(word) => match word.as_str() {
                "nan" => Ok(Self(f64::NAN)),
                "inf" => Ok(Self(f64::INFINITY)),
                "-inf" => Ok(Self(f64::NEG_INFINITY)),
                _ => Err(D::Error::custom("a number, `nan`, `inf` or `-inf`")),
            },
        }
    }
}

impl JsonSchema for Real {
    fn schema_name() -> Cow<'static, str> {
        "Real".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number; NaN and the infinities are strings, because JSON has no number for them.",
            "anyOf": [{ "type": "number" }, { "enum": ["nan", "inf", "-inf"] }]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_survives_json() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.1, -0.0] {
            let json = serde_json::to_string(&Real(value)).unwrap();
            assert_eq!(serde_json::from_str::<Real>(&json).unwrap(), Real(value), "{json}");
        }
    }

    #[test]
    fn a_float_reads_as_it_was_meant() {
        assert_eq!(serde_json::to_string(&Real::of_f32(0.3)).unwrap(), "0.3");
        assert_eq!(Real::of_f32(f32::NAN), Real(f64::NAN));
    }
}
