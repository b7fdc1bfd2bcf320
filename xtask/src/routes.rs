//! Counts the CPU instructions of the service's routes with valgrind, for a user who has little and
//! for one who has as much as a user may have.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{Failure, cargo, fail_with, run as run_command, target};
use crate::file_system::{create, read};
use crate::instructions::{Profile, has_valgrind, needs_valgrind, program};
use crate::steps::Outcome;

/// Instructions of a request in the dev profile: about 50 ms of one processor.
const INSTRUCTIONS_MAX: u64 = 150_000_000;
/// Limit of a request of a user who has much, in percent of the instructions of the same request of
/// a user who has little.
const GROWTH_MAX: u64 = 200;
/// Instructions by which two counts of one request differ: those of the service's background tasks.
const NOISE: u64 = 5_000_000;

/// A user's data, by its size.
#[derive(Debug, Clone, Copy)]
struct Data {
    name: &'static str,
    facts: u32,
    /// Conversations, tasks, and turns of one conversation.
    others: u32,
}

const LITTLE: Data = Data {
    name: "little",
    facts: 100,
    others: 20,
};
/// Nearly as many facts as a user may have.
const MUCH: Data = Data {
    name: "much",
    facts: 4_500,
    others: 200,
};

/// A request whose cost does not depend on how much its user has. Lists are asked for a page.
#[derive(Debug)]
struct Route {
    method: &'static str,
    path: &'static str,
    body: &'static str,
    /// Limit of its instructions.
    max: u64,
}

const fn get(path: &'static str) -> Route {
    Route {
        method: "GET",
        path,
        body: "",
        max: INSTRUCTIONS_MAX,
    }
}

const fn post(path: &'static str, body: &'static str) -> Route {
    Route {
        method: "POST",
        path,
        body,
        max: INSTRUCTIONS_MAX,
    }
}

const ROUTES: [Route; 13] = [
    get("/v1/me"),
    get("/v1/usage"),
    get("/v1/pending"),
    get("/v1/threads?limit=20"),
    get("/v1/threads/{thread}"),
    get("/v1/threads/{thread}/messages?limit=20"),
    get("/v1/threads/{thread}/branches"),
    get("/v1/tasks?limit=20"),
    get("/v1/decisions?limit=20"),
    post(
        "/v1/tools/add_task/invoke",
        r#"{"args": {"description": "buy {number} lemons"}}"#,
    ),
    post(
        "/v1/memory",
        r#"{"content": "The note about {number} bicycles is in the shed"}"#,
    ),
    // A text that announces a correction is compared with 64 facts, here of 100 words each, sentence
    // by sentence.
    Route {
        max: 800_000_000,
        ..post(
            "/v1/memory",
            r#"{"content": "Actually, the note about {number} bicycles is in the cellar"}"#,
        )
    },
    post(
        "/v1/chat",
        r#"{"message": "What is the answer to question {number}?", "thread_id": "{thread}"}"#,
    ),
];

/// Checks the instructions of each route at both sizes. The dev profile's program has to be built
/// already.
///
/// # Errors
/// A route exceeds its limit, or the program cannot be run.
pub(crate) fn within_limits() -> Result<Outcome, Failure> {
    if !has_valgrind() {
        return Ok(needs_valgrind());
    }
    let program = program(Profile::Dev, "routes");
    let (little, much) = (count(&program, LITTLE)?, count(&program, MUCH)?);
    let counts = ROUTES.iter().zip(little.into_iter().zip(much));
    let failures = counts.filter_map(|(route, (little, much))| route.check(little, much).err());
    fail_with(failures.collect()).map(|()| Outcome::Passed)
}

/// Builds the program and checks the routes alone.
///
/// # Errors
/// The program cannot be built, or a route exceeds its limit.
pub(crate) fn measure() -> Result<(), Failure> {
    let package = ["--all-features", "--package", "adjutant-durability"];
    let build = ["build", "--quiet", "--locked", "--bin", "routes"];
    run_command(&mut cargo(build.into_iter().chain(package)))?;
    match within_limits()? {
        Outcome::Passed => Ok(()),
        Outcome::NotRun(reason) => Err(reason),
    }
}

/// Returns the instructions of each route over a new database with such data.
fn count(program: &Path, data: Data) -> Result<Vec<u64>, Failure> {
    let name = format!("routes-{}-{}", std::process::id(), data.name);
    let folder = target().join("xtask").join(name);
    create(&folder)?;
    let mut fill = Command::new(program);
    fill.arg("fill").arg(&folder);
    fill.args([data.facts, data.others].map(|number| number.to_string()));
    run_command(&mut fill)?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind", "--instr-atstart=no"]);
    valgrind.arg(format!(
        "--callgrind-out-file={}",
        folder.join("counts").display()
    ));
    valgrind.arg(program).arg("ask").arg(&folder);
    run_command(valgrind.args(ROUTES.iter().map(Route::request)))?;
    // The program has a file written after each of them.
    let counts = (1..=ROUTES.len())
        .map(|number| parse_total(&read(&folder.join(format!("counts.{number}")))?))
        .collect();
    // A folder that is left over is in the target folder.
    let _ = fs::remove_dir_all(&folder);
    counts
}

/// Parses a line `totals: NUMBER` of callgrind's file.
fn parse_total(text: &str) -> Result<u64, Failure> {
    let number = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    number.ok_or_else(|| "callgrind wrote no total".to_owned())
}

impl Route {
    fn request(&self) -> String {
        let Self {
            method, path, body, ..
        } = self;
        format!("{method} {path} {body}")
    }

    /// Compares the instructions for users who have little and much with the limits.
    fn check(&self, little: u64, much: u64) -> Result<(), Failure> {
        let description = format!(
            "{} {}: {little} instructions for a user who has little, {much} for one who has much",
            self.method, self.path
        );
        println!("    {description}");
        if much > self.max || much > little * GROWTH_MAX / 100 + NOISE {
            return Err(format!(
                "{description}; {} and {GROWTH_MAX} % are allowed",
                self.max
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_is_parsed_and_a_missing_one_is_an_error() {
        assert_eq!(parse_total("summary: 0\n\n\ntotals: 33161\n"), Ok(33_161));
        assert!(parse_total("events: Ir\n").is_err());
    }

    #[test]
    fn a_route_over_either_limit_is_a_failure() {
        let route = get("/v1/me");
        assert_eq!(route.check(10_000_000, 25_000_000), Ok(()));
        let failure = route.check(10_000_000, 25_000_001).unwrap_err();
        assert!(
            failure.contains("GET /v1/me") && failure.contains("25000001"),
            "{failure}"
        );
        assert!(route.check(INSTRUCTIONS_MAX, INSTRUCTIONS_MAX + 1).is_err());
    }
}
