//! Duplicated code between the folders of providers: common code belongs in a shared file of
//! `crates/providers`.
//!
//! A line counts if it is part of a run of equal lines in two folders. Blank lines, comments and
//! white space are ignored.

use std::collections::{BTreeMap, HashMap};

use super::files::File;

/// The folder with one subfolder per provider, each of which has a file `wire.rs`.
const PROVIDERS: &str = "crates/providers/src/";
/// The number of equal lines in a row that count as duplicated.
const RUN: usize = 6;
/// The limit of duplicated lines, in percent of all lines.
const PERCENT_MAX: f64 = 6.0;

/// Returns the files with duplicated lines if their share exceeds the limit.
pub(crate) fn between_providers(files: &[File]) -> Vec<String> {
    let folders = folders(files);
    let mut seen: HashMap<&[&str], Option<&str>> = HashMap::new();
    for (folder, files) in &folders {
        for run in files.iter().flat_map(|file| file.lines.windows(RUN)) {
            // `Some(folder)` if the run is in one folder only, `None` if it is in several.
            seen.entry(run)
                .and_modify(|known| *known = known.filter(|known| known == folder))
                .or_insert(Some(folder));
        }
    }
    let mut found = Vec::new();
    let (mut total, mut repeated) = (0, 0);
    for file in folders.values().flatten() {
        let mut marked = vec![false; file.lines.len()];
        for (at, run) in file.lines.windows(RUN).enumerate() {
            if seen.get(run) == Some(&None) {
                marked[at..at + RUN].fill(true);
            }
        }
        let count = marked.into_iter().filter(|marked| *marked).count();
        total += file.lines.len();
        repeated += count;
        if count > 0 {
            found.push(format!(
                "{}: {count} lines also stand in another provider's folder",
                file.path
            ));
        }
    }
    if folders.len() < 2 {
        return vec![format!(
            "nothing to compare: {} provider folders in {PROVIDERS}",
            folders.len()
        )];
    }
    let percent = percent(repeated, total);
    println!("    {repeated} of {total} lines are repeated between providers: {percent:.1} %");
    if percent <= PERCENT_MAX {
        return Vec::new();
    }
    found.push(format!(
        "{percent:.1} % of the lines are repeated; {PERCENT_MAX} % are allowed"
    ));
    found
}

struct Code<'a> {
    path: &'a str,
    lines: Vec<&'a str>,
}

/// Returns the code in each provider's folder.
fn folders(files: &[File]) -> BTreeMap<&str, Vec<Code<'_>>> {
    let mut folders: BTreeMap<&str, Vec<Code<'_>>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let inside = file
            .path
            .strip_prefix(PROVIDERS)
            .and_then(|path| path.split_once('/'));
        if let Some((folder, _)) = inside {
            folders.entry(folder).or_default().push(Code {
                path: &file.path,
                lines: lines(&file.text),
            });
        }
    }
    folders.retain(|_, files| files.iter().any(|file| file.path.ends_with("/wire.rs")));
    folders
}

fn lines(text: &str) -> Vec<&str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .collect()
}

fn percent(part: usize, whole: usize) -> f64 {
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    if whole == 0 {
        0.0
    } else {
        100.0 * count(part) / count(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: impl Iterator<Item = u32>) -> File {
        let lines: Vec<String> = lines
            .map(|line| format!("  line {line};\n\n// A comment.\n"))
            .collect();
        File {
            path: format!("{PROVIDERS}{path}"),
            text: lines.concat(),
        }
    }

    #[test]
    fn a_run_of_six_in_two_folders_is_found() {
        let files = [
            file("a/wire.rs", 0..6),
            file("b/wire.rs", 0..6),
            file("c/wire.rs", 100..110),
        ];
        let found = between_providers(&files);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].contains("a/wire.rs: 6 lines") && found[2].contains("54.5 %"),
            "{found:?}"
        );
    }

    #[test]
    fn shorter_runs_runs_of_one_vendor_and_shared_files_are_not() {
        let short = [file("a/wire.rs", 0..5), file("b/wire.rs", 0..5)];
        assert!(between_providers(&short).is_empty());
        let own = [
            file("a/wire.rs", 0..9),
            file("a/tests.rs", 0..9),
            file("b/wire.rs", 20..30),
        ];
        assert!(between_providers(&own).is_empty());
        let shared = [
            file("a/wire.rs", 0..9),
            file("shared/mod.rs", 0..9),
            file("b/wire.rs", 20..30),
        ];
        assert!(between_providers(&shared).is_empty());
    }

    #[test]
    fn a_share_below_the_limit_passes() {
        let files = [file("a/wire.rs", 0..200), file("b/wire.rs", 194..400)];
        assert!(between_providers(&files).is_empty());
    }

    #[test]
    fn nothing_to_compare_is_a_failure() {
        assert_eq!(between_providers(&[file("a/wire.rs", 0..9)]).len(), 1);
    }
}
