//! Results of cases by model, and their comparison: side by side, and with an earlier run.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::report::CaseReport;
use super::verdict::Verdict;

/// The identity of a case among all others, also in a later run: files are known by their names, so that
/// they can be moved, and cases of a file with the same id by their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct CaseKey {
    pub(crate) file: String,
    pub(crate) id: String,
    /// The number of the case among those with this id, from 1.
    pub(crate) number: usize,
}

/// The verdicts on one case by one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    #[serde(flatten)]
    pub(crate) key: CaseKey,
    /// One verdict for each run.
    pub(crate) verdicts: Vec<Verdict>,
}

/// Returns the outcomes of one model's runs, in order of the cases.
pub(crate) fn outcomes(reports: &[CaseReport]) -> Vec<Outcome> {
    let mut by_case = BTreeMap::<usize, (&CaseReport, Vec<Verdict>)>::new();
    for report in reports {
        let (_, verdicts) = by_case.entry(report.index).or_insert((report, Vec::new()));
        verdicts.push(report.verdict);
    }
    let mut seen = BTreeMap::<(String, &str), usize>::new();
    let mut outcomes = Vec::new();
    for (report, verdicts) in by_case.into_values() {
        let file = Path::new(&report.file)
            .file_name()
            .map_or_else(|| report.file.clone(), |name| name.display().to_string());
        let number = seen.entry((file.clone(), &report.id)).or_default();
        *number += 1;
        let key = CaseKey {
            file,
            id: report.id.clone(),
            number: *number,
        };
        outcomes.push(Outcome { key, verdicts });
    }
    outcomes
}

impl CaseKey {
    /// Formats the case for people.
    pub(crate) fn to_text(&self) -> String {
        let number = match self.number {
            1 => String::new(),
            number => format!(" ({number})"),
        };
        format!("{}{number} of {}", self.id, self.file)
    }
}

impl Outcome {
    /// Formats the verdicts for people: one, if all runs have the same.
    pub(crate) fn to_text(&self) -> String {
        match self.verdicts.as_slice() {
            [] => "not run".to_owned(),
            [first, rest @ ..] if rest.iter().all(|verdict| verdict == first) => {
                first.label().to_owned()
            }
            all => {
                let count =
                    |verdict: &Verdict| all.iter().filter(|other| *other == verdict).count();
                let parts = Verdict::ALL.iter().filter(|verdict| count(verdict) > 0);
                let parts: Vec<String> = parts
                    .map(|verdict| format!("{} {}", count(verdict), verdict.label()))
                    .collect();
                parts.join(", ")
            }
        }
    }

    /// Compares the shares of runs that were right.
    pub(crate) fn cmp_right(&self, other: &Self) -> std::cmp::Ordering {
        let right = |outcome: &Self| {
            let right = outcome.verdicts.iter();
            right.filter(|verdict| **verdict == Verdict::Right).count()
        };
        // As fractions, which are compared exactly.
        let (own, others) = (right(self), right(other));
        (own * other.verdicts.len()).cmp(&(others * self.verdicts.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::judged;
    use super::*;

    #[test]
    fn cases_with_the_same_id_are_told_apart() {
        let mut reports = [
            judged(0, "m", Verdict::Right),
            judged(0, "m", Verdict::Missed),
            judged(1, "m", Verdict::Asked),
            judged(2, "m", Verdict::Right),
        ];
        for report in &mut reports {
            report.id = "a".to_owned();
            report.file = "evals/todo.jsonl".to_owned();
        }
        reports[3].file = "other/memory.jsonl".to_owned();
        let outcomes = outcomes(&reports);
        let texts: Vec<String> = outcomes
            .iter()
            .map(|outcome| format!("{}: {}", outcome.key.to_text(), outcome.to_text()))
            .collect();
        assert_eq!(
            texts,
            [
                "a of todo.jsonl: 1 right, 1 missed",
                "a (2) of todo.jsonl: asked",
                "a of memory.jsonl: right"
            ]
        );
    }
}
