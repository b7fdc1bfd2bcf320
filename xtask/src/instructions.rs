//! Instructions of a turn, counted by valgrind: a cost that is the same on a busy machine, so that
//! a test can bound it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::check::budget;
use crate::command::{Failure, cargo, run as run_command, target};
use crate::steps::Ended;

/// The program that runs turns, and what it is built with: features of what both packages need are
/// those of the binary as it ships, so that next to nothing is built twice. No example: those have
/// the features that tests need, too.
const BUILD: &[&str] = &[
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

/// The turns of one conversation that are compared: those around the first number, and the last
/// ones before the second.
const PLACES: (u32, u32) = (10, 1000);
/// The same where time does not matter.
const PLACES_MEASURED: (u32, u32) = (10, 10_000);
/// Number of turns that are counted together at each place.
const AT_A_PLACE: u32 = 10;
/// Percentage of the instructions of an early turn that a late one may take.
const GROWTH_MAX: u64 = 120;

/// A store whose turns are counted.
#[derive(Debug)]
struct Counted {
    store: &'static str,
    /// A run of so many turns less one of so many: what the start takes falls out.
    turns: (u32, u32),
    /// Instructions of a turn when the limit was last set.
    recorded: u64,
    /// Number of counts; the least is taken. Threads that wait for each other look more or less
    /// often before they sleep.
    times: u32,
    /// Percentage by which a count may be higher: more than the count differs from run to run.
    tolerance: u64,
}

const COUNTED: [Counted; 2] = [
    // More than are kept in memory, so that making room is counted too.
    Counted {
        store: "memory",
        turns: (1_400, 1_200),
        recorded: budget::MEMORY_TURN_INSTRUCTIONS,
        times: 1,
        tolerance: 3,
    },
    Counted {
        store: "sqlite",
        turns: (300, 100),
        recorded: budget::SQLITE_TURN_INSTRUCTIONS,
        times: 3,
        tolerance: 5,
    },
];

/// Counts the instructions of a turn, in memory and on SQLite.
///
/// # Errors
/// If a turn takes more than it may; if something cannot be built or run.
pub(crate) fn within_limits() -> Result<Ended, Failure> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(Ended::NotRun(
            "it needs valgrind (Debian: apt-get install valgrind)".to_owned(),
        ));
    }
    let program = build()?;
    let verdicts = COUNTED.iter().map(|it| it.judge(it.count(&program)?));
    let grown = COUNTED
        .iter()
        .map(|it| judge_growth(it.store, PLACES, it.count_places(&program, PLACES)?));
    let failures: Vec<Failure> = verdicts.chain(grown).filter_map(Result::err).collect();
    if failures.is_empty() {
        Ok(Ended::Ok)
    } else {
        Err(failures.join("\n"))
    }
}

/// Prints the instructions of a turn, in memory and on SQLite, and those of an early and a late one
/// of a long conversation.
///
/// # Errors
/// If something cannot be built or run.
pub(crate) fn measure() -> Result<(), Failure> {
    let program = build()?;
    for it in COUNTED {
        println!("{}: {} instructions a turn", it.store, it.count(&program)?);
    }
    for it in COUNTED {
        let (early, late) = it.count_places(&program, PLACES_MEASURED)?;
        let (first, last) = PLACES_MEASURED;
        println!(
            "{}: {early} instructions at turn {first}, {late} at turn {last}",
            it.store
        );
    }
    Ok(())
}

fn build() -> Result<PathBuf, Failure> {
    run_command(&mut cargo(BUILD.iter().copied()))?;
    let name = format!("turns{}", std::env::consts::EXE_SUFFIX);
    Ok(target().join("release").join(name))
}

fn of_a_turn(program: &Path, store: &str, (many, few): (u32, u32)) -> Result<u64, Failure> {
    let count = |turns: u32| count(program, &[], &[store, &turns.to_string()]);
    Ok(count(many)?.saturating_sub(count(few)?) / u64::from(many - few))
}

/// Counts the last of so many turns of one conversation.
fn of_the_last_turns(program: &Path, store: &str, turns: u32) -> Result<u64, Failure> {
    let arguments = [store, &turns.to_string(), &AT_A_PLACE.to_string()];
    Ok(count(program, &["--instr-atstart=no"], &arguments)? / u64::from(AT_A_PLACE))
}

/// Runs the program and returns the instructions that valgrind has counted.
fn count(program: &Path, options: &[&str], arguments: &[&str]) -> Result<u64, Failure> {
    let folder = target().join("xtask");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let said = folder.join(format!("instructions-{}.txt", std::process::id()));
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options);
    valgrind
        .arg(format!("--log-file={}", said.display()))
        .arg(program);
    run_command(valgrind.args(arguments))?;
    let words =
        fs::read_to_string(&said).map_err(|error| format!("{}: {error}", said.display()))?;
    // Every process has a file of its own; nobody else reads it.
    let _ = fs::remove_file(&said);
    collected(&words)
}

/// Reads what callgrind says at its end: `==PID== Collected : NUMBER`.
fn collected(words: &str) -> Result<u64, Failure> {
    let number = words
        .lines()
        .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    number.ok_or_else(|| format!("valgrind counted nothing:\n{words}"))
}

fn least(counts: impl Iterator<Item = Result<u64, Failure>>) -> Result<u64, Failure> {
    let least = counts.reduce(|least, next| Ok(least?.min(next?)));
    least.unwrap_or_else(|| Err("nothing was counted".to_owned()))
}

/// Compares the instructions of an early and a late turn.
fn judge_growth(
    store: &str,
    (first, last): (u32, u32),
    (early, late): (u64, u64),
) -> Result<(), Failure> {
    println!("    {store}: {early} instructions at turn {first}, {late} at turn {last}");
    if late > early * GROWTH_MAX / 100 {
        return Err(format!(
            "a turn ({store}) takes {early} instructions at turn {first} and {late} at turn {last}; {GROWTH_MAX} % are allowed"
        ));
    }
    Ok(())
}

impl Counted {
    /// Counts turns of one conversation, around the first place and before the second, as often as
    /// it says; returns the least of each.
    fn count_places(
        &self,
        program: &Path,
        (first, last): (u32, u32),
    ) -> Result<(u64, u64), Failure> {
        let least =
            |turns| least((0..self.times).map(|_| of_the_last_turns(program, self.store, turns)));
        Ok((least(first + AT_A_PLACE / 2)?, least(last)?))
    }

    /// Counts as often as it says, and returns the least.
    fn count(&self, program: &Path) -> Result<u64, Failure> {
        least((0..self.times).map(|_| of_a_turn(program, self.store, self.turns)))
    }

    /// Compares a count with the limit, and says when the limit could be lowered.
    fn judge(&self, instructions: u64) -> Result<(), Failure> {
        let Self {
            store,
            recorded,
            tolerance,
            ..
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
            println!("    a turn has become cheaper: lower the limit in xtask/src/check/budget.rs");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_and_none_is_a_failure() {
        assert_eq!(
            collected("==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n"),
            Ok(1_234_567)
        );
        assert!(collected("valgrind: cannot execute").is_err());
    }

    #[test]
    fn a_turn_that_grows_with_its_conversation_is_a_failure() {
        assert_eq!(judge_growth("memory", (10, 1000), (1000, 1200)), Ok(()));
        let failure = judge_growth("memory", (10, 1000), (1000, 1201)).unwrap_err();
        assert!(
            failure.contains("1201") && failure.contains("turn 1000"),
            "{failure}"
        );
    }

    #[test]
    fn more_than_the_tolerance_is_a_failure() {
        let counted = Counted {
            store: "memory",
            turns: (2, 1),
            recorded: 1000,
            times: 1,
            tolerance: 3,
        };
        assert_eq!(counted.judge(1030), Ok(()));
        assert_eq!(counted.judge(10), Ok(()));
        let failure = counted.judge(1031).unwrap_err();
        assert!(
            failure.contains("1031") && failure.contains("1000"),
            "{failure}"
        );
    }
}
