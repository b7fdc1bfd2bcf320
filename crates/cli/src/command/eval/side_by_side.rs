//! Several models side by side: their verdicts, and the cases in which they differ.

use std::fmt::Write as _;

use serde::Serialize;

use super::baseline::OfModel;
use super::outcome::{CaseKey, Outcome};
use super::report::Summary;
use super::verdict::Verdict;

/// A case on which models have different verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Differing {
    #[serde(flatten)]
    case: CaseKey,
    /// The verdicts of each model, in their order.
    results: Vec<String>,
}

/// Returns the cases on which models have different verdicts.
pub(crate) fn differing(models: &[OfModel]) -> Vec<Differing> {
    let Some(first) = models.first() else {
        return Vec::new();
    };
    let mut differing = Vec::new();
    // All models ran the same cases in the same order.
    for (at, outcome) in first.cases.iter().enumerate() {
        let of_models = models.iter().filter_map(|model| model.cases.get(at));
        let results: Vec<String> = of_models.map(Outcome::to_text).collect();
        if results.iter().any(|result| *result != results[0]) {
            differing.push(Differing {
                case: outcome.key.clone(),
                results,
            });
        }
    }
    differing
}

/// Formats a table with a group of columns for each model, and the cases in which they differ.
pub(crate) fn to_text(models: &[Summary], total: &Summary, differing: &[Differing]) -> String {
    let columns: Vec<(&str, &Summary)> = models
        .iter()
        .map(|model| (model.model.as_str(), model))
        .chain([("all", total)])
        .collect();
    let mut text = format!("{:12}", "");
    let widths: Vec<usize> = columns
        .iter()
        .map(|(name, _)| name.chars().count().max(34))
        .collect();
    // Writing to a String cannot fail.
    for ((name, _), &width) in columns.iter().zip(&widths) {
        let _ = write!(text, "  {name:width$}");
    }
    text = text.trim_end().to_owned() + "\n";
    for verdict in Verdict::ALL {
        let mut line = format!("{:12}", verdict.label());
        for ((_, summary), &width) in columns.iter().zip(&widths) {
            let share = summary.verdicts[&verdict];
            let cell = format!("{:5}  {}", share.count, share.to_text());
            let _ = write!(line, "  {cell:width$}");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let _ = writeln!(
        text,
        "\nthe models differ in {} of {} cases",
        differing.len(),
        total.cases
    );
    for Differing { case, results } in differing {
        let _ = writeln!(text, "{}: {}", case.to_text(), results.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::outcome::outcomes;
    use super::super::report::Bounds;
    use super::super::report::tests::judged;
    use super::*;

    #[test]
    fn models_stand_side_by_side() {
        let runs = |model: &str, verdicts: &[Verdict]| {
            let runs = verdicts.iter().enumerate();
            runs.map(|(index, verdict)| judged(index, model, *verdict))
                .collect::<Vec<_>>()
        };
        let all = [
            runs("a", &[Verdict::Right, Verdict::Asked]),
            runs("b", &[Verdict::Right, Verdict::Missed]),
        ];
        let names = ["a", "b"];
        let summaries: Vec<Summary> = names
            .iter()
            .zip(&all)
            .map(|(name, runs)| Summary::sum((*name).to_owned(), runs, Bounds::default()))
            .collect();
        let models: Vec<OfModel> = names
            .iter()
            .zip(&all)
            .map(|(name, runs)| OfModel {
                model: (*name).to_owned(),
                cases: outcomes(runs),
            })
            .collect();
        let total = Summary::total(&summaries, &all.concat());
        assert_eq!((total.cases, total.runs, total.ok), (2, 4, false));
        let text = to_text(&summaries, &total, &differing(&models));
        assert!(
            text.ends_with("\n\nthe models differ in 1 of 2 cases\nc1 of -: asked | missed\n"),
            "{text}"
        );
        let right: Vec<&str> = text
            .lines()
            .nth(1)
            .expect("right")
            .split_whitespace()
            .collect();
        assert_eq!(right[..4], ["right", "1", "50.0", "%"]);
    }
}
