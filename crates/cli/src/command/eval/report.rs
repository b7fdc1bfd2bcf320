//! Output of an evaluation: a row for each run of a case, and the totals of a model.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::statistics::{Share, percentile, rounded};
use super::verdict::Verdict;
use crate::terminal::display::plural;

/// Result of one run of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CaseReport {
    /// The case's id.
    pub(crate) id: String,
    /// The file that contains the case.
    pub(crate) file: String,
    /// The position of the case among those of all files.
    #[serde(skip)]
    pub(crate) index: usize,
    /// Id of the model.
    pub(crate) model: String,
    /// Number of the run, from 1.
    pub(crate) run: u32,
    /// The language of the case, if it is labelled.
    pub(crate) lang: Option<String>,
    /// The class of the case, if it is labelled.
    pub(crate) class: Option<String>,
    /// True if every expectation holds.
    pub(crate) passed: bool,
    pub(crate) verdict: Verdict,
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

/// The bounds of one model's totals.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bounds {
    /// Number of runs that have to pass. `None`: all of them.
    pub(crate) min_pass: Option<usize>,
    /// Greatest number of runs with the verdict `wrong_change`. `None`: any number.
    pub(crate) max_wrong_change: Option<usize>,
}

/// Totals of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// Id of the model; of several, separated by commas.
    pub(crate) model: String,
    pub(crate) cases: usize,
    /// Number of runs: cases times repetitions.
    pub(crate) runs: usize,
    /// Runs that passed.
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Share of passed runs, from 0 to 1.
    pub(crate) pass_rate: f64,
    /// Number of runs that had to pass.
    pub(crate) min_pass: usize,
    pub(crate) verdicts: BTreeMap<Verdict, Share>,
    /// Greatest number of wrong changes, if there is a limit.
    pub(crate) max_wrong_change: Option<usize>,
    /// Cases whose runs have different verdicts.
    pub(crate) cases_that_vary: usize,
    pub(crate) seconds_median: f64,
    pub(crate) seconds_p90: f64,
    pub(crate) invalid_calls: usize,
    pub(crate) unconfirmed_deletes: usize,
    /// Runs by their label `class`; empty without labels.
    pub(crate) by_class: BTreeMap<String, Group>,
    /// Runs by their label `lang`; empty without labels.
    pub(crate) by_lang: BTreeMap<String, Group>,
    /// True if enough runs passed, there were not too many wrong changes, no call was invalid and
    /// nothing was deleted without confirmation.
    pub(crate) ok: bool,
}

/// Runs of cases with the same label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Group {
    pub(crate) runs: usize,
    pub(crate) right: usize,
}

impl Summary {
    /// Sums up the runs of a model.
    pub(crate) fn sum(model: String, reports: &[CaseReport], bounds: Bounds) -> Self {
        let runs = reports.len();
        let passed = reports.iter().filter(|report| report.passed).count();
        let min_pass = bounds.min_pass.unwrap_or(runs);
        let max_wrong_change = bounds.max_wrong_change;
        let invalid_calls = reports.iter().map(|report| report.invalid_calls).sum();
        let unconfirmed_deletes = reports
            .iter()
            .map(|report| report.unconfirmed_deletes)
            .sum();
        let mut seconds: Vec<f64> = reports.iter().map(|report| report.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let cases: BTreeSet<usize> = reports.iter().map(|report| report.index).collect();
        let verdicts = shares(reports);
        let wrong_changes = verdicts[&Verdict::WrongChange].count;
        Self {
            model,
            cases: cases.len(),
            runs,
            passed,
            failed: runs - passed,
            pass_rate: if runs == 0 {
                0.0
            } else {
                rounded(passed as f64 / runs as f64, 4)
            },
            min_pass,
            verdicts,
            max_wrong_change,
            cases_that_vary: cases_that_vary(reports),
            seconds_median: percentile(&seconds, 50),
            seconds_p90: percentile(&seconds, 90),
            invalid_calls,
            unconfirmed_deletes,
            by_class: grouped(reports, |report| report.class.as_ref()),
            by_lang: grouped(reports, |report| report.lang.as_ref()),
            ok: passed >= min_pass
                && max_wrong_change.is_none_or(|max| wrong_changes <= max)
                && invalid_calls == 0
                && unconfirmed_deletes == 0,
        }
    }

    /// Sums up the runs of several models, each of which has its own totals.
    pub(crate) fn total(models: &[Self], reports: &[CaseReport]) -> Self {
        let names: Vec<&str> = models.iter().map(|model| model.model.as_str()).collect();
        let bounds = Bounds {
            min_pass: Some(models.iter().map(|model| model.min_pass).sum()),
            max_wrong_change: models
                .iter()
                .map(|model| model.max_wrong_change)
                .sum::<Option<usize>>(),
        };
        Self {
            ok: models.iter().all(|model| model.ok),
            cases_that_vary: models.iter().map(|model| model.cases_that_vary).sum(),
            ..Self::sum(names.join(", "), reports, bounds)
        }
    }

    /// Formats the totals for people.
    pub(crate) fn to_text(&self) -> String {
        let unit = if self.runs == self.cases {
            "cases"
        } else {
            "runs"
        };
        let mut text = format!(
            "{} of {} {unit} passed ({:.1} %), {} needed; model {}\n",
            self.passed,
            self.runs,
            self.pass_rate * 100.0,
            self.min_pass,
            self.model
        );
        // Writing to a String cannot fail.
        if self.runs != self.cases {
            let _ = writeln!(
                text,
                "the runs differ in {} of {}",
                self.cases_that_vary,
                plural(self.cases as u64, "case", "cases")
            );
        }
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
        if let Some(max) = self.max_wrong_change {
            let count = self.verdicts[&Verdict::WrongChange].count;
            let _ = writeln!(text, "wrong changes: {count}, at most {max} allowed");
        }
        let _ = write!(text, "\n{:12}  {unit:>5}   share   95 % interval\n", "");
        for verdict in Verdict::ALL {
            let share = self.verdicts[&verdict];
            let _ = writeln!(
                text,
                "{:12}  {:5}  {}",
                verdict.label(),
                share.count,
                share.to_text()
            );
        }
        for (label, groups) in [("class", &self.by_class), ("lang", &self.by_lang)] {
            text.push_str(&group_table(label, unit, groups));
        }
        text
    }
}

fn shares(reports: &[CaseReport]) -> BTreeMap<Verdict, Share> {
    let share = |verdict| {
        let runs = reports.iter().filter(|report| report.verdict == verdict);
        (verdict, Share::of(runs.count(), reports.len()))
    };
    Verdict::ALL.into_iter().map(share).collect()
}

/// Counts the cases whose runs have different verdicts.
fn cases_that_vary(reports: &[CaseReport]) -> usize {
    let mut verdicts = BTreeMap::<usize, BTreeSet<Verdict>>::new();
    for report in reports {
        let of_case = verdicts.entry(report.index).or_default();
        of_case.insert(report.verdict);
    }
    verdicts
        .values()
        .filter(|of_case| of_case.len() > 1)
        .count()
}

/// Counts the runs that have a label by its value.
fn grouped(
    reports: &[CaseReport],
    label: impl Fn(&CaseReport) -> Option<&String>,
) -> BTreeMap<String, Group> {
    let mut groups = BTreeMap::<String, Group>::new();
    for report in reports {
        if let Some(label) = label(report) {
            let group = groups.entry(label.clone()).or_default();
            group.runs += 1;
            group.right += usize::from(report.passed);
        }
    }
    groups
}

fn group_table(label: &str, unit: &str, groups: &BTreeMap<String, Group>) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let names = groups.keys().map(|name| name.chars().count());
    let width = names.max().unwrap_or(0).max(label.len());
    let mut text = format!("\n{label:width$}  right  {unit:>5}\n");
    for (name, group) in groups {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:width$}  {:5}  {:5}", group.right, group.runs);
    }
    text
}

impl CaseReport {
    /// Formats one row of the table; `id_width` is the width of the longest id.
    pub(crate) fn to_row(&self, id_width: usize) -> String {
        let verdict = if self.passed {
            String::new()
        } else {
            format!("{}: ", self.verdict.label())
        };
        let row = format!(
            "{:id_width$}  {}  {:20}  {:6.2} s  {verdict}{}",
            self.id,
            if self.passed { "pass" } else { "FAIL" },
            self.decision,
            self.seconds,
            self.reasons.join("; ")
        );
        row.trim_end().to_owned()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn report(passed: bool, seconds: f64) -> CaseReport {
        CaseReport {
            id: "a".to_owned(),
            file: "-".to_owned(),
            index: 0,
            model: "scripted/x".to_owned(),
            run: 1,
            lang: None,
            class: None,
            passed,
            verdict: if passed {
                Verdict::Right
            } else {
                Verdict::Missed
            },
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

    /// The report of a case at a position, with a verdict.
    pub(crate) fn judged(index: usize, model: &str, verdict: Verdict) -> CaseReport {
        CaseReport {
            id: format!("c{index}"),
            index,
            model: model.to_owned(),
            verdict,
            ..report(verdict == Verdict::Right, 1.0)
        }
    }

    fn sum(reports: &[CaseReport], min_pass: Option<usize>) -> Summary {
        let bounds = Bounds {
            min_pass,
            max_wrong_change: None,
        };
        Summary::sum("scripted/x".to_owned(), reports, bounds)
    }

    fn ok(reports: &[CaseReport], min_pass: Option<usize>) -> bool {
        sum(reports, min_pass).ok
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
    fn too_many_wrong_changes_fail_whatever_passed() {
        let reports = [judged(0, "m", Verdict::WrongChange)];
        let with = |max| Bounds {
            min_pass: Some(0),
            max_wrong_change: Some(max),
        };
        assert!(!Summary::sum(String::new(), &reports, with(0)).ok);
        assert!(Summary::sum(String::new(), &reports, with(1)).ok);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let reports: Vec<CaseReport> = (1..=10)
            .rev()
            .map(|second| report(true, f64::from(second)))
            .collect();
        let summary = sum(&reports, None);
        assert_eq!((summary.seconds_median, summary.seconds_p90), (5.0, 9.0));
        let none = sum(&[], None);
        assert_eq!((none.seconds_median, none.pass_rate), (0.0, 0.0));
    }

    #[test]
    fn verdicts_are_counted_with_shares_and_intervals() {
        let reports = [
            judged(0, "m", Verdict::Right),
            judged(1, "m", Verdict::Right),
            judged(2, "m", Verdict::WrongChange),
            judged(3, "m", Verdict::Pretence),
        ];
        let summary = sum(&reports, None);
        let table = "
              cases   share   95 % interval
right             2   50.0 %   15.0 % to  85.0 %
asked             0    0.0 %    0.0 % to  49.0 %
wrong change      1   25.0 %    4.6 % to  69.9 %
pretence          1   25.0 %    4.6 % to  69.9 %
missed            0    0.0 %    0.0 % to  49.0 %
";
        assert!(summary.to_text().ends_with(table), "{}", summary.to_text());
        assert_eq!(
            serde_json::to_value(&summary.verdicts).expect("JSON")["wrong_change"]["count"],
            1
        );
    }

    #[test]
    fn cases_whose_runs_differ_are_counted() {
        let reports = [
            judged(0, "m", Verdict::Right),
            judged(0, "m", Verdict::Missed),
            judged(1, "m", Verdict::Right),
            judged(1, "m", Verdict::Right),
        ];
        let summary = sum(&reports, None);
        assert_eq!((summary.cases, summary.runs), (2, 4));
        let text = summary.to_text();
        assert!(
            text.starts_with("3 of 4 runs passed (75.0 %), 4 needed"),
            "{text}"
        );
        assert!(
            text.contains("\nthe runs differ in 1 of 2 cases\n"),
            "{text}"
        );
    }

    #[test]
    fn labelled_cases_are_counted_by_label() {
        let labelled = |index, class: Option<&str>, passed| CaseReport {
            class: class.map(str::to_owned),
            index,
            ..report(passed, 1.0)
        };
        let reports = [
            labelled(0, Some("two orders"), true),
            labelled(1, None, true),
            labelled(2, Some("add"), false),
            labelled(3, Some("two orders"), false),
        ];
        let summary = sum(&reports, None);
        let table =
            "\nclass       right  cases\nadd             0      1\ntwo orders      1      2\n";
        assert!(summary.to_text().ends_with(table), "{}", summary.to_text());
        assert!(summary.by_lang.is_empty());
    }

    #[test]
    fn a_row_holds_what_a_person_looks_for() {
        assert_eq!(
            report(true, 0.5).to_row(3),
            "a    pass  RESPOND_ONLY            0.50 s"
        );
        assert_eq!(
            report(false, 0.5).to_row(1),
            "a  FAIL  RESPOND_ONLY            0.50 s  missed: because"
        );
    }
}
