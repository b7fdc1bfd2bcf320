//! The public function-calling set (Berkeley Function Calling Leaderboard) over one small model in
//! three ways: the model's own template in llama.cpp's server, our adapter, and our adapter with
//! constrained tool calling.

use std::process::Command;

use crate::command::{Failure, cargo, output, pip_install, root, run, target};
use crate::file_system::create;
use crate::model::find_weights;
use crate::server::{self, KEY, Server};

/// The Python package with the questions and their checker. Its dependencies are the libraries of
/// all vendors, which the checker does not need.
const PACKAGE: &str = "bfcl-eval==2026.3.23";

/// The program as the tests build it.
const BUILD: [&str; 6] = [
    "build",
    "--quiet",
    "--locked",
    "--workspace",
    "--all-features",
    "--bin=adjutant",
];

/// Cases of each category, without an argument.
const CASES: &str = "75";
const SEED: &str = "1";

/// Asks what a run before has not asked yet, and prints the shares of right answers.
///
/// # Errors
/// A package cannot be installed, the server does not start, or the arguments are invalid.
pub(crate) fn measure(arguments: &[&str]) -> Result<(), Failure> {
    let (cases, seed) = parse(arguments)?;
    let package = target().join("xtask").join(PACKAGE);
    if !package.join("bfcl_eval").is_dir() {
        output(pip_install(&package).args(["--no-deps", PACKAGE]))?;
    }
    run(&mut cargo(BUILD))?;
    let adjutant = target().join("debug/adjutant");
    let weights = find_weights(&adjutant)?;
    // The template in the model's file is what a stock server uses.
    let server = Server::start(&server::package()?, &weights, "")?;
    let folder = target().join("bfcl");
    create(&folder)?;
    let answers = folder.join(format!("answers-{seed}.jsonl"));
    println!("answers: {}", answers.display());
    run(Command::new("python3")
        .arg(root().join("xtask/src/bfcl/run.py"))
        .args([&package, &adjutant])
        .args([&server.address, KEY])
        .arg(answers)
        .args([cases, seed])
        .env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Returns the number of cases of each category, and the seed.
fn parse<'a>(arguments: &[&'a str]) -> Result<(&'a str, &'a str), Failure> {
    let (mut cases, mut seed) = (CASES, SEED);
    for pair in arguments.chunks(2) {
        match pair {
            ["--cases", number] if number.parse::<u32>().is_ok_and(|number| number > 0) => {
                cases = number;
            }
            ["--seed", number] if number.parse::<u64>().is_ok() => seed = number,
            other => {
                return Err(format!(
                    "--cases N or --seed N, and not {}",
                    other.join(" ")
                ));
            }
        }
    }
    Ok((cases, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_numbers() {
        assert_eq!(parse(&[]), Ok(("75", "1")));
        assert_eq!(parse(&["--seed", "7", "--cases", "3"]), Ok(("3", "7")));
        assert!(parse(&["--cases", "0"]).is_err());
        assert!(parse(&["--cases"]).is_err());
        assert!(parse(&["--all", "1"]).is_err());
    }
}
