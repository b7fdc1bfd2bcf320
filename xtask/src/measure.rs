//! `cargo xtask measure`: the cost of adding the library with one provider (crates, CPU seconds of
//! a clean check). `cargo xtask measure binary`: CPU time of a clean build and size of the binary.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::check::budget;
use crate::command::{Failure, cargo, fail_with, output, root};

/// Features of the binary without `embedded`, the model that runs inside the process.
const WITHOUT_ENGINE: &[&str] = &[
    "--no-default-features",
    "--features",
    "gemini,openai,anthropic,ollama,postgres",
];

/// Prints the number of third-party crates of the library with one provider, and the CPU time of a
/// clean `cargo check`.
///
/// # Errors
/// A cargo command fails.
pub(crate) fn library() -> Result<(), Failure> {
    let crates = budget::crates_of(budget::LIBRARY)?;
    println!("adjutant with gemini, without its tests");
    println!("third-party crates: {}", crates.len());
    let seconds = clean_build_cpu_seconds(&[&["check"], budget::LIBRARY].concat())?;
    println!("clean cargo check, CPU (user + system): {seconds:.0} s");
    remove_build_folder()
}

/// Builds the binary from scratch in each profile, and prints CPU time and size.
///
/// # Errors
/// A cargo command fails, or a binary exceeds its limit in [`budget`].
pub(crate) fn binary() -> Result<(), Failure> {
    let builds = [
        ("release", &[][..], budget::RELEASE_BYTES),
        ("dist", &[], budget::DIST_BYTES),
        ("dist", WITHOUT_ENGINE, budget::DIST_WITHOUT_ENGINE_BYTES),
    ];
    let mut failures = Vec::new();
    for (profile, features, limit) in builds {
        println!("profile {profile} {}", features.join(" "));
        let build = ["build", "--package", "adjutant-cli", "--profile", profile];
        let seconds = clean_build_cpu_seconds(&[&build, features].concat())?;
        println!(
            "    clean build, CPU (user + system): {:.1} min",
            seconds / 60.0
        );
        let binary = build_folder()
            .join(profile)
            .join(format!("adjutant{}", std::env::consts::EXE_SUFFIX));
        failures.extend(budget::check_size(&binary, limit).err());
    }
    remove_build_folder()?;
    fail_with(failures)
}

/// Returns a target folder that nothing else uses, so that each measured build starts from scratch.
fn build_folder() -> PathBuf {
    root().join("target").join("measure")
}

fn remove_build_folder() -> Result<(), Failure> {
    let folder = build_folder();
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(&folder)
        .map_err(|error| format!("{} cannot be removed: {error}", folder.display()))
}

/// Runs cargo with an empty target folder and returns the CPU seconds (user and system) of all its
/// child processes.
fn clean_build_cpu_seconds(arguments: &[&str]) -> Result<f64, Failure> {
    remove_build_folder()?;
    // Downloads first, so that the time does not depend on the network.
    output(&mut cargo(["fetch", "--locked"]))?;
    let mut run = Command::new("sh");
    run.args([
        "-c",
        "\"$CARGO\" \"$@\" --locked --quiet 1>&2 && times",
        "measure",
    ])
    .args(arguments)
    .env("CARGO", cargo([]).get_program())
    .env("CARGO_TARGET_DIR", build_folder())
    .current_dir(root());
    let times = output(&mut run)?;
    parse_times(&times).ok_or_else(|| format!("the shell's times cannot be read: {times:?}"))
}

/// Parses the second line that the shell's `times` prints, such as `1m2.34s 0m5.6s`: user and
/// system time of all child processes.
fn parse_times(times: &str) -> Option<f64> {
    let children = times.lines().nth(1)?;
    children.split_whitespace().map(parse_seconds).sum()
}

fn parse_seconds(time: &str) -> Option<f64> {
    let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_children_are_added() {
        assert_eq!(
            parse_times("0m0.00s 0m0.00s\n1m2.50s 0m5.25s\n"),
            Some(67.75)
        );
        assert_eq!(parse_times("0m0.00s 0m0.00s\n"), None);
        assert_eq!(parse_times("a b\nc d\n"), None);
    }
}
