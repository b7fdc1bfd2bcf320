//! Output of an evaluation: a row for each case, and a summary.

use std::fmt::Write as _;

use serde::Serialize;

/// Result of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CaseReport {
    /// The case's id.
    pub(crate) id: String,
    /// The file that contains the case.
    pub(crate) file: String,
    /// True if every expectation holds.
    pub(crate) passed: bool,
    /// The turn's decision.
    pub(crate) decision: &'static str,
    /// The turn's outcome.
    pub(crate) outcome: &'static str,
    /// The executed tools.
    pub(crate) tools: Vec<String>,
    /// The text for the user.
    pub(crate) reply: String,
    /// Reasons of failure; empty if the case passed.
    pub(crate) reasons: Vec<String>,
    /// Duration of the turn in seconds.
    pub(crate) seconds: f64,
    /// Calls that the gate refused: no such tool, or the arguments do not match the schema.
    pub(crate) invalid_calls: usize,
    /// Destructive calls that ran, although no confirmation could be given.
    pub(crate) unconfirmed_deletes: usize,
}

/// Totals of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// Id of the model.
    pub(crate) model: String,
    pub(crate) cases: usize,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Share of passed cases, from 0 to 1.
    pub(crate) pass_rate: f64,
    /// Number of cases that had to pass.
    pub(crate) min_pass: usize,
    pub(crate) seconds_median: f64,
    pub(crate) seconds_p90: f64,
    pub(crate) invalid_calls: usize,
    pub(crate) unconfirmed_deletes: usize,
    /// True if enough cases passed, no call was invalid and nothing was deleted without
    /// confirmation.
    pub(crate) ok: bool,
}

impl Summary {
    /// Sums up reports. `min_pass` of `None` requires all cases to pass.
    pub(crate) fn sum(model: String, reports: &[CaseReport], min_pass: Option<usize>) -> Self {
        let cases = reports.len();
        let passed = reports.iter().filter(|report| report.passed).count();
        let min_pass = min_pass.unwrap_or(cases);
        let invalid_calls = reports.iter().map(|report| report.invalid_calls).sum();
        let unconfirmed_deletes = reports
            .iter()
            .map(|report| report.unconfirmed_deletes)
            .sum();
        let mut seconds: Vec<f64> = reports.iter().map(|report| report.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        Self {
            model,
            cases,
            passed,
            failed: cases - passed,
            pass_rate: if cases == 0 {
                0.0
            } else {
                rounded(passed as f64 / cases as f64, 4)
            },
            min_pass,
            seconds_median: percentile(&seconds, 50),
            seconds_p90: percentile(&seconds, 90),
            invalid_calls,
            unconfirmed_deletes,
            ok: passed >= min_pass && invalid_calls == 0 && unconfirmed_deletes == 0,
        }
    }

    /// Formats the totals for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{} of {} cases passed ({:.1} %), {} needed; model {}\n",
            self.passed,
            self.cases,
            self.pass_rate * 100.0,
            self.min_pass,
            self.model
        );
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "seconds a case: median {:.2}, p90 {:.2}",
            self.seconds_median, self.seconds_p90
        );
        let _ = writeln!(
            text,
            "invalid calls: {}, unconfirmed deletes: {}{}",
            self.invalid_calls,
            self.unconfirmed_deletes,
            if self.invalid_calls + self.unconfirmed_deletes > 0 {
                " (both must be 0)"
            } else {
                ""
            }
        );
        text
    }
}

impl CaseReport {
    /// Formats one row of the table; `id_width` is the width of the longest id.
    pub(crate) fn to_row(&self, id_width: usize) -> String {
        let row = format!(
            "{:id_width$}  {}  {:20}  {:6.2} s  {}",
            self.id,
            if self.passed { "pass" } else { "FAIL" },
            self.decision,
            self.seconds,
            self.reasons.join("; ")
        );
        row.trim_end().to_owned()
    }
}

/// Rounds a value to `digits` digits after the point.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

/// Returns the nearest-rank percentile of sorted values; 0 if there are none.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: bool, seconds: f64) -> CaseReport {
        CaseReport {
            id: "a".to_owned(),
            file: "-".to_owned(),
            passed,
            decision: "RESPOND_ONLY",
            outcome: "SUCCESS:RESPONSE_GIVEN",
            tools: Vec::new(),
            reply: "Hello".to_owned(),
            reasons: if passed {
                Vec::new()
            } else {
                vec!["because".to_owned()]
            },
            seconds,
            invalid_calls: 0,
            unconfirmed_deletes: 0,
        }
    }

    fn ok(reports: &[CaseReport], min_pass: Option<usize>) -> bool {
        Summary::sum("scripted/x".to_owned(), reports, min_pass).ok
    }

    #[test]
    fn all_have_to_pass_unless_fewer_are_enough() {
        let reports = [report(true, 1.0), report(false, 1.0)];
        assert!(!ok(&reports, None));
        assert!(!ok(&reports, Some(2)));
        assert!(ok(&reports, Some(1)));
        assert!(ok(&reports[..1], None));
    }

    #[test]
    fn invalid_calls_and_unconfirmed_deletes_fail_whatever_passed() {
        let mut invalid = report(true, 1.0);
        invalid.invalid_calls = 1;
        assert!(!ok(&[invalid], Some(0)));
        let mut deleted = report(true, 1.0);
        deleted.unconfirmed_deletes = 1;
        assert!(!ok(&[deleted], Some(0)));
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let reports: Vec<CaseReport> = (1..=10)
            .rev()
            .map(|second| report(true, f64::from(second)))
            .collect();
        let summary = Summary::sum(String::new(), &reports, None);
        assert_eq!((summary.seconds_median, summary.seconds_p90), (5.0, 9.0));
        let none = Summary::sum(String::new(), &[], None);
        assert_eq!((none.seconds_median, none.pass_rate), (0.0, 0.0));
    }

    #[test]
    fn a_row_holds_what_a_person_looks_for() {
        assert_eq!(
            report(true, 0.5).to_row(3),
            "a    pass  RESPOND_ONLY            0.50 s"
        );
        assert_eq!(
            report(false, 0.5).to_row(1),
            "a  FAIL  RESPOND_ONLY            0.50 s  because"
        );
    }
}
