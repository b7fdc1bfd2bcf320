//! Counts the CPU instructions of a turn with valgrind. Unlike a time, the count does not depend on
//! the load of the machine, so a test can set a limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::check::budget;
use crate::command::{Failure, cargo, fail_with, run as run_command, target};
use crate::file_system::{create, read};
use crate::steps::Outcome;

/// A cargo profile in which turns are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The one in which tests are built: the program is there already. Its turns take several times
    /// the instructions, but grow for the same reasons.
    Dev,
    /// The one of the binary that ships.
    Release,
}

/// Builds the program that runs turns together with the binary that ships, so that their common
/// dependencies have the same features and are compiled once. The program is a `bin` and not an
/// example, because examples get the features that tests add.
const RELEASE_BUILD: &[&str] = &[
    "build",
    "--quiet",
    "--release",
    "--locked",
    "--package",
    "adjutant-cli",
    "--package",
    "adjutant-durability",
    "--bin",
    "turns",
];

/// Turns of one conversation that are compared: a late turn must not cost much more than an early
/// one.
const POSITIONS: Positions = Positions {
    early: 10,
    late: 1000,
};
/// The positions of `cargo xtask measure turn`, which may take longer.
const POSITIONS_MEASURED: Positions = Positions {
    early: 10,
    late: 10_000,
};
/// Number of turns whose mean is taken at each position.
const TURNS_PER_POSITION: u32 = 10;
/// Limit of a late turn, in percent of an early turn's instructions.
const GROWTH_MAX: u64 = 120;

/// Two positions in a conversation, as numbers of turns.
#[derive(Debug, Clone, Copy)]
struct Positions {
    early: u32,
    late: u32,
}

/// The instructions of a turn at two positions.
struct Growth {
    early: u64,
    late: u64,
}

/// A store with the limit of its turns.
#[derive(Debug)]
struct Workload {
    store: &'static str,
    /// Lengths of two runs. The difference of their counts, divided by the difference in turns,
    /// leaves out the instructions of the start.
    many: u32,
    few: u32,
    /// Instructions of a turn of the release profile when the limit was last set.
    recorded: u64,
    /// Instructions of an early turn of the dev profile when the limit was last set.
    recorded_dev: u64,
    /// Number of measurements; the smallest counts. Threads that wait for a lock spin more or less
    /// often before they sleep, which adds instructions.
    repeats: u32,
    /// Percentage by which a count may exceed `recorded`: a little more than counts vary between
    /// runs.
    tolerance: u64,
}

const WORKLOADS: [Workload; 2] = [
    // More turns than the store keeps in memory, so that eviction is counted too.
    Workload {
        store: "memory",
        many: 1_400,
        few: 1_200,
        recorded: budget::MEMORY_TURN_INSTRUCTIONS,
        recorded_dev: budget::MEMORY_TURN_INSTRUCTIONS_DEV,
        repeats: 1,
        tolerance: 5,
    },
    Workload {
        store: "sqlite",
        many: 300,
        few: 100,
        recorded: budget::SQLITE_TURN_INSTRUCTIONS,
        recorded_dev: budget::SQLITE_TURN_INSTRUCTIONS_DEV,
        repeats: 3,
        tolerance: 5,
    },
];

/// Checks the instructions of a turn, in memory and on SQLite, against their limits, and those of a
/// late turn against an early one's. The dev profile's program has to be built already.
///
/// # Errors
/// A turn exceeds its limit, or the program cannot be built or run.
pub(crate) fn within_limits(profile: Profile) -> Result<Outcome, Failure> {
    if !has_valgrind() {
        return Ok(needs_valgrind());
    }
    let program = match profile {
        Profile::Dev => program(profile, "turns"),
        Profile::Release => build()?,
    };
    let mut failures = Vec::new();
    for it in &WORKLOADS {
        let growth = it.count_growth(&program, POSITIONS)?;
        let (turn, recorded) = match profile {
            // The early turns, so that no further run is needed.
            Profile::Dev => (growth.early, it.recorded_dev),
            Profile::Release => (it.count(&program)?, it.recorded),
        };
        failures.extend(it.check_limit(turn, recorded).err());
        failures.extend(check_growth(it.store, POSITIONS, &growth).err());
    }
    fail_with(failures).map(|()| Outcome::Passed)
}

/// Prints the instructions of a turn, in memory and on SQLite, and those of an early and a late
/// turn of a long conversation.
///
/// # Errors
/// The program cannot be built or run.
pub(crate) fn measure() -> Result<(), Failure> {
    let program = build()?;
    for it in &WORKLOADS {
        println!("{}: {} instructions a turn", it.store, it.count(&program)?);
    }
    for it in &WORKLOADS {
        let growth = it.count_growth(&program, POSITIONS_MEASURED)?;
        println!("{}: {}", it.store, growth.describe(POSITIONS_MEASURED));
    }
    Ok(())
}

fn build() -> Result<PathBuf, Failure> {
    run_command(&mut cargo(RELEASE_BUILD.iter().copied()))?;
    Ok(program(Profile::Release, "turns"))
}

pub(crate) fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

pub(crate) fn needs_valgrind() -> Outcome {
    Outcome::NotRun("it needs valgrind (Debian: apt-get install valgrind)".to_owned())
}

/// Returns the place of a program whose instructions are counted.
pub(crate) fn program(profile: Profile, name: &str) -> PathBuf {
    let folder = match profile {
        Profile::Dev => "debug",
        Profile::Release => "release",
    };
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    target().join(folder).join(name)
}

/// Returns the mean instructions of the last turns of a conversation with `turns` turns.
fn count_last_turns(program: &Path, store: &str, turns: u32) -> Result<u64, Failure> {
    let arguments = [store, &turns.to_string(), &TURNS_PER_POSITION.to_string()];
    // The program itself starts the counting, with `callgrind_control`, before its last turns.
    Ok(count(program, &["--instr-atstart=no"], &arguments)? / u64::from(TURNS_PER_POSITION))
}

/// Runs the program under valgrind and returns the number of instructions.
fn count(program: &Path, options: &[&str], arguments: &[&str]) -> Result<u64, Failure> {
    let folder = target().join("xtask");
    create(&folder)?;
    let log = folder.join(format!("instructions-{}.txt", std::process::id()));
    let mut valgrind = Command::new("valgrind");
    valgrind
        // Only the total is needed, which is in the log; the profile itself is discarded.
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options);
    valgrind
        .arg(format!("--log-file={}", log.display()))
        .arg(program);
    run_command(valgrind.args(arguments))?;
    let text = read(&log)?;
    // The name contains the process id, so no other run needs the file.
    let _ = fs::remove_file(&log);
    parse_collected(&text)
}

/// Parses callgrind's last line: `==PID== Collected : NUMBER`.
fn parse_collected(text: &str) -> Result<u64, Failure> {
    let number = text
        .lines()
        .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    number.ok_or_else(|| format!("callgrind reported no instructions:\n{text}"))
}

fn least(counts: impl Iterator<Item = Result<u64, Failure>>) -> Result<u64, Failure> {
    let least = counts.reduce(|least, next| Ok(least?.min(next?)));
    least.unwrap_or_else(|| Err("no measurement was made".to_owned()))
}

/// Fails if a late turn takes more instructions than [`GROWTH_MAX`] allows.
fn check_growth(store: &str, positions: Positions, growth: &Growth) -> Result<(), Failure> {
    let description = growth.describe(positions);
    println!("    {store}: {description}");
    if growth.late > growth.early * GROWTH_MAX / 100 {
        return Err(format!(
            "a late turn ({store}) costs too much: {description}; {GROWTH_MAX} % are allowed"
        ));
    }
    Ok(())
}

impl Growth {
    fn describe(&self, positions: Positions) -> String {
        format!(
            "{} instructions at turn {}, {} at turn {}",
            self.early, positions.early, self.late, positions.late
        )
    }
}

impl Workload {
    /// Returns the instructions of an early and of a late turn, each the smallest of
    /// [`Workload::repeats`] measurements.
    fn count_growth(&self, program: &Path, positions: Positions) -> Result<Growth, Failure> {
        let least =
            |turns| least((0..self.repeats).map(|_| count_last_turns(program, self.store, turns)));
        Ok(Growth {
            // The counted turns lie around the early position, and just before the late one.
            early: least(positions.early + TURNS_PER_POSITION / 2)?,
            late: least(positions.late)?,
        })
    }

    /// Returns the instructions of a turn, the smallest of [`Workload::repeats`] measurements.
    fn count(&self, program: &Path) -> Result<u64, Failure> {
        let count = |turns: u32| count(program, &[], &[self.store, &turns.to_string()]);
        least((0..self.repeats).map(|_| {
            let difference = count(self.many)?.saturating_sub(count(self.few)?);
            Ok(difference / u64::from(self.many - self.few))
        }))
    }

    /// Compares a count with the limit, which is a few percent above the `recorded` one. Prints a
    /// hint if the limit can be lowered.
    fn check_limit(&self, instructions: u64, recorded: u64) -> Result<(), Failure> {
        let Self {
            store, tolerance, ..
        } = self;
        let limit = recorded + recorded * tolerance / 100;
        println!("    {store}: {instructions} instructions a turn, {limit} are allowed");
        if instructions > limit {
            return Err(format!(
                "a turn ({store}) takes {instructions} instructions; {recorded} are recorded in xtask/src/check/budget.rs, and \
                 {tolerance} % more are allowed"
            ));
        }
        if instructions < recorded - recorded * tolerance / 100 {
            println!(
                "    a turn has become cheaper: lower the recorded number in xtask/src/check/budget.rs"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_parsed_and_a_missing_one_is_an_error() {
        assert_eq!(
            parse_collected("==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n"),
            Ok(1_234_567)
        );
        assert!(parse_collected("valgrind: cannot execute").is_err());
    }

    #[test]
    fn a_turn_that_grows_with_its_conversation_is_a_failure() {
        let check = |late| check_growth("memory", POSITIONS, &Growth { early: 1000, late });
        assert_eq!(check(1200), Ok(()));
        let failure = check(1201).unwrap_err();
        assert!(
            failure.contains("1201") && failure.contains("turn 1000"),
            "{failure}"
        );
    }

    #[test]
    fn more_than_the_tolerance_is_a_failure() {
        let workload = Workload {
            store: "memory",
            many: 2,
            few: 1,
            recorded: 0,
            recorded_dev: 0,
            repeats: 1,
            tolerance: 3,
        };
        assert_eq!(workload.check_limit(1030, 1000), Ok(()));
        assert_eq!(workload.check_limit(10, 1000), Ok(()));
        let failure = workload.check_limit(1031, 1000).unwrap_err();
        assert!(
            failure.contains("1031") && failure.contains("1000"),
            "{failure}"
        );
    }
}
