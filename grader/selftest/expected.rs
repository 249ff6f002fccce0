//! What a fixture's verdict.json promises, and where a report breaks the promise.

use std::collections::BTreeSet;

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::execute::HazardKind;
use crate::report::{Code, Hazard, Report};
use crate::submission::LaunchSource;
use crate::verdict::{Check, CheckId, Status, Verdict};

/// What stands for no cause.
pub const UNKNOWN: &str = "unknown";

/// The report's likeliest cause, by its name.
pub fn named(report: &Report) -> &'static str {
    report.causes.first().map_or(UNKNOWN, |cause| cause.code.name())
}

/// A verdict.json. What it leaves out is not compared.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// What the fixture is, in one sentence.
    pub about: String,
    pub verdict: Verdict,
    /// A check that fails.
    pub failing_check: Option<CheckId>,
    /// The checks that warn; for a passing fixture exactly these of `memory`, `race`, `portable`.
    #[serde(default)]
    pub warns: Vec<CheckId>,
    /// 4-byte words read in the counted launch at the exercise's n.
    pub words_per_launch: Option<u64>,
    /// Fields of the report's `first_mismatch`.
    pub first_mismatch: Option<Map<String, Value>>,
    pub hazard: Option<ExpectedHazard>,
    pub launch_source: Option<LaunchSource>,
    /// The likeliest cause: a code, or `unknown` where there must be none.
    pub cause: Option<String>,
    /// Codes of the remarks on main(), exactly these.
    #[serde(default)]
    pub remarks: Vec<Code>,
    /// Codes of advice: of a passing fixture exactly these, but for advice on what a multiprocessor holds, of which there may
    /// be more.
    #[serde(default)]
    pub advice: BTreeSet<Code>,
    /// With or without its namespaces.
    pub kernel: Option<String>,
    /// The author was not certain of the words.
    #[serde(default)]
    pub unsure: bool,
}

/// Something that the report must place.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ExpectedHazard {
    pub kind: ExpectedKind,
    /// Line of heat.cu.
    pub line: Option<u32>,
}

/// What a fixture is about, as its author sees it: coarser than the engine's kinds.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedKind {
    OutOfRange,
    NeverWritten,
    InputChanged,
    ConstantWritten,
    ForeignLocal,
    Race,
    Barrier,
    /// Placed by check `memory`.
    Crash,
    /// Placed by check `values`.
    Hang,
}

impl ExpectedKind {
    fn covers(self, kind: HazardKind) -> bool {
        match self {
            Self::OutOfRange => kind == HazardKind::OutOfRange,
            Self::NeverWritten => kind == HazardKind::NeverWritten,
            Self::InputChanged => kind == HazardKind::InputWritten,
            Self::ConstantWritten => kind == HazardKind::ConstantWritten,
            Self::ForeignLocal => kind == HazardKind::ForeignLocal,
            Self::Race => {
                matches!(kind, HazardKind::WriteWriteRace | HazardKind::SameValueRace | HazardKind::ReadWriteRace)
            }
            Self::Barrier => matches!(kind, HazardKind::BarrierDivergence | HazardKind::BarrierAfterExit),
            Self::Crash | Self::Hang => false,
        }
    }

    /// The check whose place says where a launch ended.
    fn placed_by(self) -> Option<CheckId> {
        match self {
            Self::Crash => Some(CheckId::Memory),
            Self::Hang => Some(CheckId::Values),
            _ => None,
        }
    }
}

impl Expected {
    /// Reads a verdict.json for an engine: the object under the engine's name overrides the keys beside it.
    pub fn parse(text: &str, engine: &str) -> anyhow::Result<Self> {
        let mut keys: Map<String, Value> = serde_json::from_str(text)?;
        let mut overrides = ["cpu", "cuda"].map(|name| (name, keys.remove(name)));
        if let Some(own) = overrides.iter_mut().find(|(name, _)| *name == engine).and_then(|(_, own)| own.take()) {
            let Value::Object(own) = own else { anyhow::bail!("`{engine}` must be an object") };
            keys.extend(own);
        }
        serde_json::from_value(Value::Object(keys)).context("not a verdict.json")
    }

    /// Where the report differs, a phrase each; empty when it agrees.
    pub fn differences(&self, report: &Report) -> Vec<String> {
        let mut found = vec![
            differs("verdict", &self.verdict, &report.verdict),
            self.failing_check.and_then(|id| not_failing(id, report)),
            self.words_per_launch
                .and_then(|words| differs("words", &Some(words), &report.reads.as_ref().map(|r| r.words))),
            self.hazard.as_ref().and_then(|hazard| missing_hazard(hazard, report)),
            self.launch_source.and_then(|source| {
                let launch = report.submission.as_ref().and_then(|submission| submission.launch.as_ref());
                differs("launch source", &Some(source), &launch.map(|launch| launch.source))
            }),
            self.kernel.as_ref().and_then(|kernel| other_kernel(kernel, report)),
            self.other_cause(report),
            differs("remarks", &self.remarks, &report.remarks.iter().map(|remark| remark.code).collect()),
        ];
        found.push(self.other_advice(report));
        found.extend(self.warnings(report));
        found.extend(self.first_mismatch.iter().flat_map(|fields| mismatch_fields(fields, report)));
        found.into_iter().flatten().collect()
    }

    /// What the report's first cause must be: none of a passing fixture.
    pub fn planted(&self) -> Option<&str> {
        let none = (self.verdict == Verdict::Pass).then_some(UNKNOWN);
        self.cause.as_deref().or(none)
    }

    fn other_cause(&self, report: &Report) -> Option<String> {
        let planted = self.planted()?;
        (planted != named(report)).then(|| format!("the cause is {}, not {planted}", named(report)))
    }

    /// What a multiprocessor holds depends on the GPU, so of that only what is expected is compared.
    fn other_advice(&self, report: &Report) -> Option<String> {
        let compared =
            |code: &Code| matches!(code, Code::BankConflicts | Code::PaddingUnused) || self.advice.contains(code);
        let given = report.advice.iter().map(|advice| advice.code).filter(compared).collect();
        differs("advice", &self.advice, &given).filter(|_| self.verdict == Verdict::Pass)
    }

    fn warnings(&self, report: &Report) -> Vec<Option<String>> {
        let exact = self.verdict == Verdict::Pass;
        let compared = report.checks.iter().filter(|check| {
            let exactly = exact && matches!(check.id, CheckId::Memory | CheckId::Race | CheckId::Portable);
            exactly || self.warns.contains(&check.id)
        });
        let one = |check: &Check| {
            let (expected, warns) = (self.warns.contains(&check.id), check.status == Status::Warn);
            (expected != warns).then(|| {
                let word = if expected { "should warn" } else { "should not warn" };
                format!("{} {word}: {}", check.id.name(), check.summary)
            })
        };
        compared.map(one).collect()
    }
}

fn differs<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, got: &T) -> Option<String> {
    (expected != got).then(|| format!("{what} is {got:?}, not {expected:?}"))
}

fn not_failing(id: CheckId, report: &Report) -> Option<String> {
    let fails = report.checks.iter().any(|check| check.id == id && check.status == Status::Fail);
    (!fails).then(|| {
        let instead = report.failing_check.map_or("nothing", CheckId::name);
        format!("{} does not fail; {instead} does", id.name())
    })
}

fn missing_hazard(expected: &ExpectedHazard, report: &Report) -> Option<String> {
    let on_line = |line: Option<u32>| expected.line.is_none_or(|expected| line == Some(expected));
    // A race has two sides, and which of them comes second is the schedule's choice.
    let sides =
        |hazard: &Hazard| on_line(hazard.line) || hazard.other.as_ref().is_some_and(|other| on_line(other.line));
    let listed = report.hazards.iter().any(|hazard| expected.kind.covers(hazard.kind) && sides(hazard));
    let placed = |check: &Check| {
        expected.kind.placed_by() == Some(check.id)
            && check.status == Status::Fail
            && on_line(check.place.map(|at| at.line))
    };
    let hazards = report.hazards.iter().map(|hazard| (format!("{:?}", hazard.kind), hazard.line));
    let failed = report.checks.iter().filter(|check| check.status == Status::Fail);
    let places = failed.map(|check| (check.id.name().to_owned(), check.place.map(|at| at.line)));
    let seen = || hazards.chain(places).map(|(what, line)| format!("{what}:{}", line.unwrap_or(0))).collect::<Vec<_>>();
    let found = listed || report.checks.iter().any(placed);
    (!found)
        .then(|| format!("no {:?} at line {}; seen: {}", expected.kind, expected.line.unwrap_or(0), seen().join(" ")))
}

fn other_kernel(expected: &str, report: &Report) -> Option<String> {
    let got = report.submission.as_ref().and_then(|submission| submission.kernel.as_deref()).unwrap_or("none");
    let same = got == expected || got.rsplit("::").next() == Some(expected);
    (!same).then(|| format!("kernel is {got}, not {expected}"))
}

fn mismatch_fields(expected: &Map<String, Value>, report: &Report) -> Vec<Option<String>> {
    let got = serde_json::to_value(&report.first_mismatch).unwrap_or_default();
    expected.iter().map(|(key, value)| differs(&format!("first_mismatch.{key}"), value, &got[key])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Cause;

    const TEXT: &str = r#"{"about": "x", "verdict": "fail", "failing_check": "race",
        "hazard": {"kind": "race", "line": 5}, "cuda": {"failing_check": "values", "hazard": null}}"#;

    fn failing(id: CheckId) -> Report {
        Report::blank().with_checks(vec![Check::new(id, Status::Fail, "x")])
    }

    #[test]
    fn an_engine_overrides_what_stands_beside_it() {
        let cpu = Expected::parse(TEXT, "cpu").unwrap();
        assert_eq!(cpu.differences(&failing(CheckId::Race)).len(), 1, "the hazard is missing");
        let cuda = Expected::parse(TEXT, "cuda").unwrap();
        assert!(cuda.differences(&failing(CheckId::Values)).is_empty());
        assert_eq!(cuda.differences(&failing(CheckId::Race)), ["values does not fail; race does"]);
    }

    #[test]
    fn the_first_cause_is_compared_and_a_passing_fixture_has_none() {
        let cause = |code: Code| Cause { code, sentence: String::new(), evidence: Vec::new(), explain: String::new() };
        let with = |causes: Vec<Cause>, report: Report| Report { causes, ..report };
        let expected = |verdict: &str, cause: &str| {
            Expected::parse(&format!(r#"{{"about": "x", "verdict": {verdict:?}{cause}}}"#), "cpu")
        };
        let halo = expected("fail", r#", "cause": "halo-too-small""#).unwrap();
        let failed = || failing(CheckId::Values);
        let both = vec![cause(Code::HaloTooSmall), cause(Code::RingLost)];
        assert!(halo.differences(&with(both, failed())).is_empty());
        assert_eq!(halo.differences(&failed()), ["the cause is unknown, not halo-too-small"]);
        let unknown = expected("fail", r#", "cause": "unknown""#).unwrap();
        assert_eq!(unknown.differences(&with(vec![cause(Code::RingLost)], failed())).len(), 1);
        let silent = expected("fail", "").unwrap();
        assert!(silent.differences(&with(vec![cause(Code::RingLost)], failed())).is_empty());
        assert_eq!(expected("pass", "").unwrap().planted(), Some(UNKNOWN));
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        assert!(Expected::parse(r#"{"about": "x", "verdict": "pass", "wrods": 3}"#, "cpu").is_err());
    }

    #[test]
    fn a_passing_fixture_warns_where_it_says_and_nowhere_else() {
        let expected = Expected::parse(r#"{"about": "x", "verdict": "pass", "warns": ["race"]}"#, "cpu").unwrap();
        let warn = |id| Check::new(id, Status::Warn, "x");
        let pass = |id| Check::new(id, Status::Pass, "x");
        let gates = CheckId::ALL.into_iter().filter(|id| id.gates(false));
        let all = |warned: CheckId| gates.clone().map(|id| if id == warned { warn(id) } else { pass(id) }).collect();
        assert!(expected.differences(&Report::blank().with_checks(all(CheckId::Race))).is_empty());
        assert_eq!(expected.differences(&Report::blank().with_checks(all(CheckId::Memory))).len(), 2);
    }
}
