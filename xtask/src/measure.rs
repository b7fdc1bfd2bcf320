//! `cargo xtask measure`: what the library with one provider costs whoever adds it.
//! `cargo xtask measure binary`: what the binary costs whoever builds it, and what it weighs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::check::budget;
use crate::command::{Failure, cargo, output, root};

/// The binary with its default features but the model inside the process.
const WITHOUT_ENGINE: &[&str] = &[
    "--no-default-features",
    "--features",
    "gemini,openai,anthropic,ollama,postgres",
];

/// Prints how many crates the library brings and what a clean check of it costs.
///
/// # Errors
/// If cargo fails.
pub(crate) fn library() -> Result<(), Failure> {
    let crates = budget::crates_of(budget::LIBRARY)?;
    println!("adjutant with gemini, without its tests");
    println!("third-party crates: {}", crates.len());
    let seconds = cpu(&[&["check"], budget::LIBRARY].concat())?;
    println!("clean cargo check, CPU (user + system): {seconds:.0} s");
    remove()
}

/// Builds the binary of each profile from nothing, and prints what that costs and what comes out.
///
/// # Errors
/// If cargo fails, or a binary has more bytes than it may have.
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
        let seconds = cpu(&[&build, features].concat())?;
        println!(
            "    clean build, CPU (user + system): {:.1} min",
            seconds / 60.0
        );
        let binary = folder()
            .join(profile)
            .join(format!("adjutant{}", std::env::consts::EXE_SUFFIX));
        failures.extend(budget::size(&binary, limit).err());
    }
    remove()?;
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n"))
    }
}

/// A folder of its own, so that nothing is built already.
fn folder() -> PathBuf {
    root().join("target").join("measure")
}

fn remove() -> Result<(), Failure> {
    let folder = folder();
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(&folder)
        .map_err(|error| format!("{} cannot be removed: {error}", folder.display()))
}

/// Runs cargo in an empty folder and gives the CPU seconds of all that it started.
fn cpu(arguments: &[&str]) -> Result<f64, Failure> {
    remove()?;
    // Downloads are no part of the figure.
    output(&mut cargo(["fetch", "--locked"]))?;
    let mut run = Command::new("sh");
    run.args([
        "-c",
        "\"$CARGO\" \"$@\" --locked --quiet 1>&2 && times",
        "measure",
    ])
    .args(arguments)
    .env("CARGO", cargo([]).get_program())
    .env("CARGO_TARGET_DIR", folder())
    .current_dir(root());
    let times = output(&mut run)?;
    cpu_seconds(&times).ok_or_else(|| format!("the shell's times cannot be read: {times:?}"))
}

/// User and system seconds of all children, from the second line of the shell's `times`:
/// `1m2.34s 0m5.6s`.
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
    fn times_of_children_are_added() {
        assert_eq!(
            cpu_seconds("0m0.00s 0m0.00s\n1m2.50s 0m5.25s\n"),
            Some(67.75)
        );
        assert_eq!(cpu_seconds("0m0.00s 0m0.00s\n"), None);
        assert_eq!(cpu_seconds("a b\nc d\n"), None);
    }
}
