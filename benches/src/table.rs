//! Tables of the results in Markdown: medians of the runs, and ratios to the floor, the bare client
//! of the same run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use crate::Result;
use crate::figures::{self, Case, Figure, Line};

/// Markers in a Markdown file; the tables are written between them.
const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";

/// All rows, in the order of the tables.
pub(crate) const ROWS: [&str; 16] = [
    "hyper",
    "reqwest",
    "rig",
    "adjutant",
    "adjutant-sqlite",
    "adjutant-postgres",
    "sqlite-rows",
    "service-mock",
    "service-sqlite",
    "service-postgres",
    "long-memory",
    "long-sqlite",
    "long-postgres",
    "calls-memory",
    "calls-sqlite",
    "calls-postgres",
];

/// Prints the tables for a file of results, or writes them into a Markdown file.
pub(crate) fn command(file: &Path, write: Option<&Path>) -> Result<()> {
    let tables = markdown(&figures::read(file)?);
    let Some(page) = write else {
        print!("{tables}");
        return Ok(());
    };
    let text = std::fs::read_to_string(page)?;
    std::fs::write(
        page,
        between(&text, &tables)
            .ok_or(format!("{BEGIN} and {END} are not in {}", page.display()))?,
    )?;
    Ok(())
}

/// Replaces the text between the two markers by `tables`.
fn between(page: &str, tables: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!(
        "{before}{BEGIN}\n{}\n{END}{after}",
        tables.trim_end()
    ))
}

/// Returns all tables.
pub(crate) fn markdown(lines: &[Line]) -> String {
    let figures: Vec<&Figure> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Figure(figure) => Some(figure.as_ref()),
            Line::About(_) | Line::NotRun(_) | Line::Failed(_) => None,
        })
        .collect();
    let mut text = String::new();
    for line in lines {
        // Writing to a string cannot fail.
        let _ = match line {
            Line::About(about) => writeln!(
                text,
                "{}, commit {}, {} cores ({}), load before it {}; {} s a run.",
                about.day, about.commit, about.cores, about.processor, about.load, about.seconds
            ),
            Line::NotRun(not_run) => {
                writeln!(text, "\nNOT RUN: {}: {}", not_run.row, not_run.reason)
            }
            Line::Failed(failed) => writeln!(text, "\nFAILED: {}: {}", failed.row, failed.reason),
            Line::Figure(_) => Ok(()),
        };
    }
    type Section = (
        &'static str,
        fn(&Case) -> bool,
        fn(&[&Figure], &Case) -> String,
    );
    let sections: [Section; 4] = [
        (
            "",
            |case| matches!(case, Case::Turn { .. } | Case::Rows { .. }),
            turns,
        ),
        ("", |case| matches!(case, Case::Service { .. }), turns),
        (LONG, |case| matches!(case, Case::Long { .. }), long),
        (CALLS, |case| matches!(case, Case::Calls { .. }), calls),
    ];
    for (head, belongs, write) in sections {
        let cases: BTreeSet<&Case> = figures
            .iter()
            .map(|figure| &figure.case)
            .filter(|case| belongs(case))
            .collect();
        if cases.is_empty() {
            continue;
        }
        text += "\n";
        text += if head.is_empty() { TURNS } else { head };
        for case in cases {
            text += &write(&figures, case);
        }
    }
    text
}

const TURNS: &str = "\
| model | | CPU µs a turn | × floor | turns/s | of the floor | peak MiB | commits | statements | server's CPU µs |
|---|---|---|---|---|---|---|---|---|---|
";
const LONG: &str = "\
| one conversation | turns | CPU µs at turn 10 | CPU µs at the last | ratio | peak MiB | stored KiB a turn | commits a turn | statements a turn |
|---|---|---|---|---|---|---|---|---|
";
const CALLS: &str = "\
| one turn | calls | KiB of results | CPU ms | peak MiB | stored KiB | commits | statements |
|---|---|---|---|---|---|---|---|
";

/// Returns the results of a case, grouped by row in the order of [`ROWS`].
fn rows<'a>(figures: &[&'a Figure], case: &Case) -> Vec<(String, Vec<&'a Figure>)> {
    let here: Vec<&Figure> = figures
        .iter()
        .copied()
        .filter(|figure| figure.case == *case)
        .collect();
    let names: BTreeSet<&str> = here.iter().map(|figure| figure.row.as_str()).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_key(|name| ROWS.iter().position(|known| known == name));
    let of = |name: &str| {
        here.iter()
            .copied()
            .filter(|figure| figure.row == name)
            .collect()
    };
    names
        .into_iter()
        .map(|name| (name.to_owned(), of(name)))
        .collect()
}

/// Returns the bare client's result in the same case and run, the base of the ratios.
fn floor<'a>(figures: &[&'a Figure], figure: &Figure) -> Option<&'a Figure> {
    let name = if matches!(figure.case, Case::Service { .. }) {
        "service-mock"
    } else {
        "reqwest"
    };
    figures
        .iter()
        .copied()
        .find(|it| it.case == figure.case && it.run == figure.run && it.row == name)
}

/// Returns a short description of a case, such as the model's latency and the number of
/// conversations.
pub(crate) fn named(case: &Case) -> String {
    match case {
        Case::Turn {
            delay_ms,
            whole: false,
            at_once,
        }
        | Case::Service { delay_ms, at_once } => {
            format!("{delay_ms} ms, {at_once} at once")
        }
        Case::Turn {
            delay_ms,
            whole: true,
            at_once,
        } => {
            format!("{delay_ms} ms, {at_once} at once, not streamed")
        }
        Case::Rows { at_once } => format!("{at_once} at once"),
        Case::Long { turns } => format!("{turns} turns"),
        Case::Calls { calls, .. } => format!("{calls} calls"),
    }
}

fn turns(figures: &[&Figure], case: &Case) -> String {
    let model = named(case);
    let mut text = String::new();
    for (name, runs) in rows(figures, case) {
        let (cpu, per_second) = (
            median(&runs, cpu_us),
            median(&runs, |figure| Some(figure.per_second())),
        );
        let times = median(&runs, |figure| {
            Some(cpu_us(figure)? / cpu_us(floor(figures, figure)?)?)
        });
        let share = median(&runs, |figure| {
            Some(figure.per_second() / floor(figures, figure)?.per_second())
        });
        let cells = [
            number(cpu, 0),
            // A service's CPU time does not include its client, so it cannot be compared with the
            // floor.
            if name.starts_with("service") {
                String::new()
            } else {
                number(times, 2)
            },
            number(per_second, if per_second < Some(100.0) { 1 } else { 0 }),
            number(share.map(|share| share * 100.0), 0) + if share.is_some() { " %" } else { "" },
            number(
                median(&runs, |figure| Some(mib(figure.measured.peak_kib))),
                0,
            ),
            number(
                median(&runs, |figure| count(figure, figure.measured.commits)),
                2,
            ),
            number(
                median(&runs, |figure| count(figure, figure.measured.statements)),
                1,
            ),
            number(
                median(&runs, |figure| {
                    Some(figure.per_turn(figure.server_cpu_us? as f64))
                }),
                0,
            ),
        ];
        let _ = writeln!(text, "| {model} | {name} | {} |", cells.join(" | "));
    }
    text
}

fn long(figures: &[&Figure], case: &Case) -> String {
    let Case::Long { turns } = case else {
        return String::new();
    };
    let mut text = String::new();
    for (name, runs) in rows(figures, case) {
        let (early, late) = (
            median(&runs, |figure| figure.measured.early_us),
            median(&runs, |figure| figure.measured.late_us),
        );
        let ratio = median(&runs, |figure| {
            Some(figure.measured.late_us? / figure.measured.early_us?)
        });
        let cells = [
            number(early, 0),
            number(late, 0),
            number(ratio, 1),
            number(
                median(&runs, |figure| Some(mib(figure.measured.peak_kib))),
                0,
            ),
            number(
                median(&runs, |figure| {
                    Some(figure.per_turn(figure.measured.bytes? as f64) / 1024.0)
                }),
                1,
            ),
            number(
                median(&runs, |figure| count(figure, figure.measured.commits)),
                2,
            ),
            number(
                median(&runs, |figure| count(figure, figure.measured.statements)),
                1,
            ),
        ];
        let _ = writeln!(text, "| {name} | {turns} | {} |", cells.join(" | "));
    }
    text
}

fn calls(figures: &[&Figure], case: &Case) -> String {
    let Case::Calls {
        calls,
        at_once,
        result_bytes,
    } = case
    else {
        return String::new();
    };
    let mut text = String::new();
    for (name, runs) in rows(figures, case) {
        let cells = [
            number(Some(f64::from(*calls) * *result_bytes as f64 / 1024.0), 0),
            number(
                median(&runs, |figure| Some(figure.measured.cpu_us as f64 / 1000.0)),
                0,
            ),
            number(
                median(&runs, |figure| Some(mib(figure.measured.peak_kib))),
                0,
            ),
            number(
                median(&runs, |figure| Some(figure.measured.bytes? as f64 / 1024.0)),
                0,
            ),
            number(
                median(&runs, |figure| Some(figure.measured.commits? as f64)),
                0,
            ),
            number(
                median(&runs, |figure| Some(figure.measured.statements? as f64)),
                0,
            ),
        ];
        let _ = writeln!(
            text,
            "| {name} | {calls}, {at_once} in an answer | {} |",
            cells.join(" | ")
        );
    }
    text
}

fn cpu_us(figure: &Figure) -> Option<f64> {
    Some(figure.per_turn(figure.measured.cpu_us as f64))
}

fn count(figure: &Figure, counted: Option<u64>) -> Option<f64> {
    Some(figure.per_turn(counted? as f64))
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// Returns the median, of an even number the lower of the two in the middle.
fn median(runs: &[&Figure], value: impl Fn(&Figure) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = runs.iter().filter_map(|figure| value(figure)).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// Formats a number, or nothing if there is none.
fn number(value: Option<f64>, digits: usize) -> String {
    let Some(value) = value else {
        return String::new();
    };
    let text = format!("{value:.digits$}");
    // Groups of three digits make microseconds readable.
    let (whole, rest) = text
        .split_once('.')
        .map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 && digit.is_ascii_digit() {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    rest.map_or(grouped.clone(), |rest| format!("{grouped}.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Measured;

    fn figure(row: &str, run: u32, turns: u64, cpu_us: i64) -> Line {
        let case = Case::Turn {
            delay_ms: 0,
            whole: false,
            at_once: 64,
        };
        let measured = Measured {
            turns,
            seconds: 2.0,
            cpu_us,
            ..Measured::default()
        };
        Line::Figure(Box::new(Figure {
            case,
            row: row.to_owned(),
            run,
            measured,
            server_cpu_us: None,
        }))
    }

    #[test]
    fn shares_are_of_the_floor_of_the_same_run() {
        let lines = [
            figure("adjutant", 1, 100, 60_000),
            figure("reqwest", 1, 200, 40_000),
            // A slow machine affects both rows, so the ratio stays the same.
            figure("adjutant", 2, 10, 60_000),
            figure("reqwest", 2, 20, 40_000),
        ];
        let rows: Vec<String> = markdown(&lines)
            .lines()
            .rev()
            .take(2)
            .map(str::to_owned)
            .collect();
        assert!(
            rows[1].starts_with("| 0 ms, 64 at once | reqwest | 200 | 1.00 |"),
            "{}",
            rows[1]
        );
        assert!(
            rows[0].starts_with("| 0 ms, 64 at once | adjutant | 600 | 3.00 | 5.0 | 50 % |"),
            "{}",
            rows[0]
        );
    }

    #[test]
    fn tables_stand_between_the_marks_and_nothing_else_changes() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        assert_eq!(
            between(&page, "new\n"),
            Some(format!("before\n{BEGIN}\nnew\n{END}\nafter\n"))
        );
        assert_eq!(between("no marks", "new"), None);
    }

    #[test]
    fn numbers_can_be_read() {
        assert_eq!(number(Some(1_234_567.0), 0), "1,234,567");
        assert_eq!(number(Some(1234.56), 1), "1,234.6");
        assert_eq!(number(None, 1), "");
    }
}
