//! `cargo xtask measure`: what the library with one provider costs whoever adds it.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::steps::{Failure, cargo, output, root};

/// The library as a user adds it: `cargo add adjutant --no-default-features --features gemini`.
const SELECTION: &[&str] =
    &["--locked", "--package", "adjutant", "--no-default-features", "--features", "gemini"];

/// Prints how many crates the library brings and what a clean check of it costs.
///
/// # Errors
/// If cargo fails.
pub(crate) fn run() -> Result<(), Failure> {
    let tree = ["tree", "--edges", "no-dev", "--prefix", "none", "--format", "{p}"];
    let tree = output(&mut cargo(tree.iter().chain(SELECTION).copied()))?;
    let crates = third_party(&tree, &root().display().to_string());
    println!("adjutant with gemini, for this platform, without its tests");
    println!("third-party crates: {}", crates.len());

    // A folder of its own, so that nothing is built already.
    let target = root().join("target").join("measure");
    if target.exists() {
        fs::remove_dir_all(&target)
            .map_err(|error| format!("{} cannot be emptied: {error}", target.display()))?;
    }
    // Downloads are no part of the figure.
    output(&mut cargo(["fetch", "--locked"]))?;
    let mut check = Command::new("sh");
    check
        .args(["-c", "\"$CARGO\" check --quiet \"$@\" 1>&2 && times", "measure"])
        .args(SELECTION)
        .env("CARGO", cargo([]).get_program())
        .env("CARGO_TARGET_DIR", &target)
        .current_dir(root());
    let times = output(&mut check)?;
    let seconds =
        cpu_seconds(&times).ok_or_else(|| format!("the shell's times cannot be read: {times:?}"))?;
    println!("clean cargo check, CPU (user + system): {seconds:.0} s");
    fs::remove_dir_all(&target).map_err(|error| format!("{} cannot be removed: {error}", target.display()))
}

/// The packages of a `cargo tree` without those of this workspace.
fn third_party(tree: &str, root: &str) -> BTreeSet<String> {
    tree.lines()
        .filter(|line| !line.contains(root))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some(format!("{} {}", words.next()?, words.next()?))
        })
        .collect()
}

/// User and system seconds of all children, from the second line of the shell's `times`: `1m2.34s 0m5.6s`.
fn cpu_seconds(times: &str) -> Option<f64> {
    let children = times.lines().nth(1)?;
    children.split_whitespace().map(seconds).sum()
}

fn seconds(time: &str) -> Option<f64> {
    let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_counted_once_and_ours_are_not() {
        let tree = "adjutant v0.1.0 (/x/crates/adjutant)\nserde v1.0.0\nserde_derive v1.0.0 (proc-macro)\nserde v1.0.0 (*)\n\nsyn v1.0.0\nsyn v2.0.0\n";
        let crates = third_party(tree, "/x");
        assert_eq!(
            crates.iter().map(String::as_str).collect::<Vec<_>>(),
            ["serde v1.0.0", "serde_derive v1.0.0", "syn v1.0.0", "syn v2.0.0"]
        );
    }

    #[test]
    fn times_of_children_are_added() {
        assert_eq!(cpu_seconds("0m0.00s 0m0.00s\n1m2.50s 0m5.25s\n"), Some(67.75));
        assert_eq!(cpu_seconds("0m0.00s 0m0.00s\n"), None);
        assert_eq!(cpu_seconds("a b\nc d\n"), None);
    }
}
