//! Results of a run in a file, and the comparison of a later run with them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::outcome::{CaseKey, Outcome};
use crate::error::CliError;

/// The version of the file that is written, and the only one that is read.
const VERSION: u64 = 1;

/// The results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Results {
    /// The version of this format.
    adjutant_eval: u64,
    models: Vec<OfModel>,
}

/// The results of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfModel {
    pub(crate) model: String,
    pub(crate) cases: Vec<Outcome>,
}

/// A case whose verdicts are not those of the earlier run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Moved {
    model: String,
    #[serde(flatten)]
    case: CaseKey,
    before: String,
    now: String,
}

/// A case that only one of the runs has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Single {
    model: String,
    #[serde(flatten)]
    case: CaseKey,
}

/// The comparison of a run with an earlier one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Cases of which a greater share of the runs is right.
    better: Vec<Moved>,
    /// Cases of which a smaller share of the runs is right.
    worse: Vec<Moved>,
    /// Cases with other verdicts, and the same share of right ones.
    other: Vec<Moved>,
    /// Cases that the earlier run does not have.
    new: Vec<Single>,
    /// Cases that only the earlier run has.
    gone: Vec<Single>,
    allow_worse: usize,
    /// True if there are not more worse cases than allowed.
    pub(crate) ok: bool,
}

impl Results {
    /// Creates the results of a run.
    pub(crate) fn new(models: Vec<OfModel>) -> Self {
        Self {
            adjutant_eval: VERSION,
            models,
        }
    }

    /// Reads the results of an earlier run.
    ///
    /// # Errors
    /// The file cannot be read, or is none that this version wrote.
    pub(crate) fn read(file: &Path) -> Result<Self, CliError> {
        let text = fs::read_to_string(file).map_err(|error| {
            CliError::usage(format!("--baseline: {} cannot be read", file.display()))
                .because(error.to_string())
                .or_try("adjutant eval FILE --save BASELINE    makes one")
        })?;
        Self::parse(&text).map_err(|reason| {
            CliError::usage(format!(
                "--baseline: {} has no results of adjutant eval that can be read",
                file.display()
            ))
            .because(reason)
            .or_try("adjutant eval FILE --save BASELINE    makes a new one")
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            adjutant_eval: u64,
        }
        let in_words = |error: serde_json::Error| error.to_string();
        let Versioned { adjutant_eval } = serde_json::from_str(text).map_err(in_words)?;
        // Before the rest, which another version may have in another form.
        if adjutant_eval != VERSION {
            return Err(format!(
                "it is of version {adjutant_eval}, and this program reads version {VERSION}"
            ));
        }
        serde_json::from_str(text).map_err(in_words)
    }

    /// Writes the results.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, file: &Path) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| CliError::failed(error.to_string()))?;
        write_file(file, &(text + "\n"))
    }

    /// Compares these results with those of an earlier run. If both are of one model, its name does
    /// not matter: one model can be compared with another.
    pub(crate) fn compare(&self, earlier: &Self, allow_worse: usize) -> Comparison {
        let mut comparison = Comparison {
            allow_worse,
            ..Comparison::default()
        };
        let one_each = self.models.len() == 1 && earlier.models.len() == 1;
        for OfModel { model, cases } in &self.models {
            let before = earlier
                .models
                .iter()
                .find(|other| one_each || other.model == *model);
            let before = before.map_or(&[][..], |other| &other.cases);
            comparison.add(model, before, cases);
        }
        comparison.ok = comparison.worse.len() <= allow_worse;
        comparison
    }
}

impl Comparison {
    fn add(&mut self, model: &str, before: &[Outcome], now: &[Outcome]) {
        let by_key = |outcomes| -> BTreeMap<&CaseKey, &Outcome> {
            let outcomes: &[Outcome] = outcomes;
            outcomes
                .iter()
                .map(|outcome| (&outcome.key, outcome))
                .collect()
        };
        let (old, new) = (by_key(before), by_key(now));
        let single = |outcome: &Outcome| Single {
            model: model.to_owned(),
            case: outcome.key.clone(),
        };
        for outcome in now {
            let Some(earlier) = old.get(&outcome.key) else {
                self.new.push(single(outcome));
                continue;
            };
            let moved = Moved {
                model: model.to_owned(),
                case: outcome.key.clone(),
                before: earlier.to_text(),
                now: outcome.to_text(),
            };
            match outcome.cmp_right(earlier) {
                Ordering::Greater => self.better.push(moved),
                Ordering::Less => self.worse.push(moved),
                Ordering::Equal if moved.before != moved.now => self.other.push(moved),
                Ordering::Equal => {}
            }
        }
        let gone = before
            .iter()
            .filter(|outcome| !new.contains_key(&outcome.key));
        self.gone.extend(gone.map(single));
    }

    /// Formats the comparison for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "compared with the baseline: {} better, {} worse ({} allowed), {} new, {} gone\n",
            self.better.len(),
            self.worse.len(),
            self.allow_worse,
            self.new.len(),
            self.gone.len()
        );
        for (name, cases) in [
            ("better", &self.better),
            ("WORSE", &self.worse),
            ("other", &self.other),
        ] {
            for moved in cases {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "{name:6}  {}: was {}, is {}; model {}",
                    moved.case.to_text(),
                    moved.before,
                    moved.now,
                    moved.model
                );
            }
        }
        for (name, cases) in [("new", &self.new), ("gone", &self.gone)] {
            for Single { model, case } in cases {
                let _ = writeln!(text, "{name:6}  {}; model {model}", case.to_text());
            }
        }
        text
    }
}

/// Checks that a file can be made later, so that a long run does not end without its results.
///
/// # Errors
/// Its folder does not exist, or it is a folder itself.
pub(crate) fn check_place(option: &str, file: &Path) -> Result<(), CliError> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    if !folder.is_dir() {
        return Err(CliError::usage(format!(
            "{option}: there is no folder {}",
            folder.display()
        )));
    }
    match file.is_dir() {
        true => Err(CliError::usage(format!(
            "{option}: {} is a folder",
            file.display()
        ))),
        false => Ok(()),
    }
}

/// Writes a file of results.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_file(file: &Path, text: &str) -> Result<(), CliError> {
    fs::write(file, text).map_err(|error| {
        CliError::failed(format!("{} cannot be written", file.display())).because(error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::super::outcome::outcomes;
    use super::super::report::tests::judged;
    use super::super::verdict::Verdict::{self, Asked, Missed, Right, WrongChange};
    use super::*;

    /// The results of a model: the verdicts on the runs of each case.
    fn results(model: &str, cases: &[&[Verdict]]) -> Results {
        let mut reports = Vec::new();
        for (index, verdicts) in cases.iter().enumerate() {
            reports.extend(
                verdicts
                    .iter()
                    .map(|verdict| judged(index, model, *verdict)),
            );
        }
        Results::new(vec![OfModel {
            model: model.to_owned(),
            cases: outcomes(&reports),
        }])
    }

    #[test]
    fn cases_get_better_and_worse_or_are_only_in_one_run() {
        let before = results(
            "m",
            &[&[Right], &[Missed], &[Right, Right], &[Missed], &[Right]],
        );
        let now = results(
            "n",
            &[
                &[WrongChange],
                &[Right],
                &[Right, Asked],
                &[Asked],
                &[Right],
                &[Right],
            ],
        );
        let compared = now.compare(&before, 1);
        assert_eq!(
            compared.to_text(),
            "\
compared with the baseline: 1 better, 2 worse (1 allowed), 1 new, 0 gone
better  c1 of -: was missed, is right; model n
WORSE   c0 of -: was right, is wrong change; model n
WORSE   c2 of -: was right, is 1 right, 1 asked; model n
other   c3 of -: was missed, is asked; model n
new     c5 of -; model n
"
        );
        assert!(!compared.ok);
        assert!(now.compare(&before, 2).ok);
        let back = before.compare(&now, 9);
        assert!(
            back.to_text().ends_with("gone    c5 of -; model m\n"),
            "{}",
            back.to_text()
        );
    }

    #[test]
    fn more_runs_of_the_same_share_are_not_worse() {
        let compared =
            results("m", &[&[Right, Right, Right]]).compare(&results("m", &[&[Right]]), 0);
        assert_eq!(
            compared.to_text(),
            "compared with the baseline: 0 better, 0 worse (0 allowed), 0 new, 0 gone\n"
        );
    }

    #[test]
    fn a_saved_run_is_read_again() {
        let written = results("m", &[&[Right], &[WrongChange, Missed]]);
        let text = serde_json::to_string(&written).expect("JSON");
        assert_eq!(Results::parse(&text), Ok(written));
    }

    #[test]
    fn another_version_is_named() {
        for (text, reason) in [
            (
                r#"{"adjutant_eval": 2, "runs": []}"#,
                "it is of version 2, and this program reads version 1",
            ),
            ("{}", "missing field `adjutant_eval`"),
            ("[", "EOF while parsing a list"),
            (r#"{"adjutant_eval": 1}"#, "missing field `models`"),
        ] {
            let error = Results::parse(text).expect_err(text);
            assert!(error.contains(reason), "{error}");
        }
    }
}
