//! What a grade is worth: the `[points]` of reference/exercise.toml.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::verdict::{Check, CheckId, Status, Verdict};

/// Points of a pass, and of single checks where the exercise gives any.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "BTreeMap<String, f64>")]
pub struct Points {
    /// What a pass earns.
    total: f64,
    /// What a check earns that passed, or warned, in a submission that failed.
    checks: BTreeMap<CheckId, f64>,
}

impl Points {
    /// What a pass earns, which is the most there is.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// What this check earns by itself; `None` when the exercise does not say.
    pub fn of_check(&self, id: CheckId) -> Option<f64> {
        self.checks.get(&id).copied()
    }

    /// What this check earned; `None` when the exercise does not say what it is worth.
    pub fn earned_by(&self, check: &Check) -> Option<f64> {
        let earned = matches!(check.status, Status::Pass | Status::Warn);
        self.of_check(check.id).map(|points| if earned { points } else { 0.0 })
    }

    /// The whole score: all points for a pass, for a fail those of single checks. `None` when there was no verdict.
    pub fn score(&self, verdict: Verdict, checks: &[Check]) -> Option<f64> {
        match verdict {
            Verdict::Pass => Some(self.total),
            // 0.0 + .. because the sum of nothing is -0.0.
            Verdict::Fail => Some(0.0 + checks.iter().filter_map(|check| self.earned_by(check)).sum::<f64>()),
            Verdict::Ungraded => None,
        }
    }
}

impl TryFrom<BTreeMap<String, f64>> for Points {
    type Error = String;

    fn try_from(keys: BTreeMap<String, f64>) -> Result<Self, String> {
        let mut total = None;
        let mut checks = BTreeMap::new();
        for (key, points) in keys {
            if !points.is_finite() || points < 0.0 {
                return Err(format!("points: {key} must be 0 or more"));
            }
            match CheckId::ALL.into_iter().find(|id| id.name() == key) {
                Some(id) => drop(checks.insert(id, points)),
                None if key == "total" => total = Some(points),
                None => return Err(format!("points: {key} is neither a check nor `total`")),
            }
        }
        let sum: f64 = checks.values().sum();
        let total = total.unwrap_or(sum);
        if total <= 0.0 || sum > total {
            return Err("points: total must be above 0, and no less than the checks together".to_owned());
        }
        Ok(Self { total, checks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Result<Points, toml::de::Error> {
        toml::from_str(text)
    }

    fn checks() -> Vec<Check> {
        let check = |(id, status)| Check::new(id, status, "");
        [(CheckId::Compile, Status::Pass), (CheckId::Kernel, Status::Warn), (CheckId::Values, Status::Fail)]
            .map(check)
            .into()
    }

    #[test]
    fn a_pass_earns_everything_a_fail_nothing_and_no_verdict_no_score() {
        let points = points("total = 100").unwrap();
        assert_eq!(points.score(Verdict::Pass, &[]), Some(100.0));
        let nothing = points.score(Verdict::Fail, &checks()).unwrap();
        assert!(nothing == 0.0 && nothing.is_sign_positive(), "no -0.0");
        assert_eq!(points.score(Verdict::Ungraded, &checks()), None);
    }

    #[test]
    fn checks_with_points_earn_them_in_a_submission_that_failed() {
        let points = points("total = 100\ncompile = 10\nkernel = 5\nvalues = 40").unwrap();
        assert_eq!(points.score(Verdict::Fail, &checks()), Some(15.0));
        assert_eq!(points.score(Verdict::Pass, &checks()), Some(100.0));
        assert_eq!(points.earned_by(&checks()[2]), Some(0.0));
        assert_eq!(points.of_check(CheckId::Race), None);
    }

    #[test]
    fn without_a_total_the_checks_add_up_to_it() {
        assert_eq!(points("values = 3\nrace = 4").unwrap().total(), 7.0);
    }

    #[test]
    fn misspelt_negative_and_contradictory_points_are_errors() {
        for wrong in ["vlaues = 3", "total = -1", "total = nan", "total = 5\nvalues = 6", "total = 0", ""] {
            assert!(points(wrong).is_err(), "{wrong}");
        }
    }
}
