//! `cargo xtask test [SIZE]`: the tests, in sizes. Each holds all of the one before.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::check::{self, budget};
use crate::command::{Failure, cargo, output, root, run as run_command, target};
use crate::faults;
use crate::metadata::SELECTION;
use crate::metadata::{self, Package};
use crate::not_run;
use crate::steps::Steps;
use crate::{clients, instructions, model, server};

/// The library whose examples are run.
const LIBRARY: &str = "adjutant";

/// A size of test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Size {
    /// Tests that start no other process and open no database but SQLite.
    Quick,
    /// Everything that needs no download but crates.
    Usual,
    /// Everything; of what has many cases, a sample.
    All,
    /// Everything, with all cases.
    Long,
}

impl Size {
    /// Returns the variables that tell tests their number of cases: none for a sample.
    fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Cases of every generated test that does not name a number itself; the library's own
            // is 256.
            Self::Long => &[("ADJUTANT_TEST_SIZE", "long"), ("PROPTEST_CASES", "4096")],
            Self::Quick | Self::Usual | Self::All => &[],
        }
    }

    /// Returns how long the soak of attacks takes, in seconds.
    fn soak_seconds(self) -> u32 {
        if self == Self::Long { 600 } else { 60 }
    }
}

/// A selection of tests: for nextest one filter, for cargo the arguments of one or more runs.
struct Tests {
    filter: &'static str,
    cargo: &'static [&'static [&'static str]],
}

/// Units, and the crates whose integration tests are quick; not those of their tests that start a
/// process.
const QUICK: Tests = Tests {
    filter: "(kind(lib) + kind(bin) + kind(proc-macro) + package(adjutant-core) + package(adjutant-runtime) \
             + package(adjutant-tools) + package(adjutant-memory) + package(adjutant-service)) \
             - test(/^processes::|what_is_no_file_is_no_note|a_child_is_gone/)",
    cargo: &[
        &[
            "--workspace",
            "--lib",
            "--bins",
            "--",
            "--skip",
            "a_child_is_gone",
        ],
        &[
            "--package",
            "adjutant-core",
            "--package",
            "adjutant-runtime",
            "--package",
            "adjutant-tools",
            "--package",
            "adjutant-memory",
            "--package",
            "adjutant-service",
            "--test",
            "it",
            "--",
            "--skip",
            "processes::",
            "--skip",
            "what_is_no_file_is_no_note",
        ],
    ],
};

/// All but what needs a download: Restate's server and a language model's weights.
const USUAL: Tests = Tests {
    filter: "all() - (package(adjutant-restate) & kind(test)) - (package(adjutant-cli) & kind(test) & test(/^restate::/)) \
             - test(/^weights::/)",
    cargo: &[
        &[
            "--workspace",
            "--exclude",
            "adjutant-restate",
            "--lib",
            "--bins",
            "--tests",
            "--examples",
            "--",
            "--skip",
            "restate::",
            "--skip",
            "weights::",
        ],
        &["--package", "adjutant-restate", "--lib"],
    ],
};

/// Tests that need Restate's server.
const RESTATE: Tests = Tests {
    filter: "(package(adjutant-restate) & kind(test)) + (package(adjutant-cli) & kind(test) & test(/^restate::/))",
    cargo: &[
        &["--package", "adjutant-restate", "--test", "it"],
        &[
            "--package",
            "adjutant-cli",
            "--test",
            "it",
            "--",
            "restate::",
        ],
    ],
};

/// A service that is killed and attacked at random for as long as [`Size::soak_seconds`] says; in
/// other runs it is for some seconds.
const SOAK: Tests = Tests {
    filter: "package(adjutant-cli) & kind(test) & test(/^soak::/)",
    cargo: &[&["--package", "adjutant-cli", "--test", "it", "--", "soak::"]],
};

/// Tests that need a language model's weights.
const WEIGHTS: Tests = Tests {
    filter: "test(/^weights::/)",
    cargo: &[&[
        "--package",
        "adjutant-embedded",
        "--test",
        "it",
        "--",
        "weights::",
    ]],
};

/// Runs the tests of a size, or of one package.
///
/// # Errors
/// If one fails, with the names of the steps that did; in CI also if one is not run without an
/// excuse. If there is no such size.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let size = match arguments {
        [] => Size::Usual,
        ["quick"] => Size::Quick,
        ["quick", "-p" | "--package", package] => return one_package(package),
        ["all"] => Size::All,
        ["long"] => Size::Long,
        _ => {
            return Err("there are: cargo xtask test [quick [-p PACKAGE] | all | long]".to_owned());
        }
    };
    let workspace = metadata::packages()?;
    let runner = Runner::installed(size);
    let steps = Steps::begin()?;
    steps.step("build of the tests", || runner.build());
    match size {
        Size::Quick => steps.step("tests", || runner.run(&QUICK)),
        Size::Usual => usual(&steps, &runner, &workspace),
        Size::All | Size::Long => all(&steps, &runner, &workspace),
    }
    if size == Size::Quick {
        println!(
            "\nnot in this size: processes, PostgreSQL, the binary, examples (cargo xtask test)"
        );
    } else if size == Size::Usual {
        println!(
            "\nnot in this size: Restate, clients, browser, the model suite (cargo xtask test all)"
        );
    }
    steps.finish()
}

/// The tests of one package that need no download.
fn one_package(package: &str) -> Result<(), Failure> {
    let steps = Steps::begin()?;
    let runner = Runner::installed(Size::Quick);
    steps.step(package, || {
        run_command(&mut match runner.kind {
            Kind::Nextest => {
                let mut command = cargo([
                    "nextest",
                    "run",
                    "--locked",
                    "--all-features",
                    "--package",
                    package,
                ]);
                command.args(["-E", USUAL.filter]);
                command
            }
            Kind::Cargo => cargo([
                "test",
                "--locked",
                "--all-features",
                "--package",
                package,
                "--lib",
                "--bins",
                "--tests",
                "--",
                "--skip",
                "restate::",
                "--skip",
                "weights::",
            ]),
        })
    });
    steps.finish()
}

/// Everything that needs no download but crates.
fn usual(steps: &Steps, runner: &Runner, workspace: &[Package]) {
    steps.step("tests that are ignored", || {
        not_run::note(&not_run::ignored()?)
    });
    steps.step("tests", || runner.run(&USUAL));
    steps.step("documentation tests", || {
        run_command(cargo(["test", "--doc", "--locked"]).args(SELECTION))
    });
    steps.step("examples", || examples(workspace));
}

/// Everything: what [`usual`] does, and beside it what is fetched and what ships; then those meet.
fn all(steps: &Steps, runner: &Runner, workspace: &[Package]) {
    let built = target().join("debug").join(program("adjutant"));
    let (clients, weights, shipped) = thread::scope(|scope| {
        let fetched = scope.spawn(|| {
            (
                clients::prepare(steps),
                model::prepare(steps, &built),
                server::prepare(steps),
            )
        });
        let shipped = scope.spawn(|| release(steps));
        usual(steps, runner, workspace);
        steps.step("tests with Restate", || runner.run(&RESTATE));
        steps.step("faults under load", || {
            faults::under_load(&built, runner.size == Size::Long)
        });
        steps.step("soak of attacks", || {
            runner.soak(runner.size.soak_seconds())
        });
        let ended = "a thread ended without its result";
        match (fetched.join(), shipped.join()) {
            (Ok((clients, weights, ())), Ok(shipped)) => (clients, weights, shipped),
            _ => {
                steps.step("preparations", || Err(ended.to_owned()));
                (Vec::new(), None, None)
            }
        }
    });
    if runner.size == Size::Long {
        steps.step("features that take long, one by one", check::other_features);
        steps.step("benches", benches);
    }
    if clients.iter().any(|folder| clients::is_browser(folder)) {
        steps.step("the page with Restate", || faults::page(&built));
    }
    let Some(adjutant) = shipped else { return };
    steps.step("size of the release binary", || {
        budget::size(&adjutant, budget::RELEASE_BYTES)
    });
    thread::scope(|scope| {
        // They wait for each other, and the browser for its clocks; the others compute.
        let environment = runner.size.environment();
        let (browser, clients): (Vec<_>, Vec<_>) = clients
            .into_iter()
            .partition(|folder| clients::is_browser(folder));
        for folders in [browser, clients] {
            let adjutant = &adjutant;
            scope.spawn(move || {
                clients::ask_each(
                    steps,
                    &folders,
                    adjutant,
                    Some(&built_examples()),
                    environment,
                );
            });
        }
        steps.may_be_skipped("instructions of a turn", instructions::within_limits);
        if let Some(weights) = weights {
            let tests = &mut runner.commands(&WEIGHTS);
            model::suite(steps, &adjutant, &weights, tests, runner.size == Size::Long);
        }
    });
}

/// Checks and tests the measurements of `benches/`, a workspace of its own; with and without rig,
/// which doubles its tree.
fn benches() -> Result<(), Failure> {
    let manifest = ["--locked", "--manifest-path", "benches/Cargo.toml"];
    for features in [&[][..], &["--no-default-features"]] {
        let mut clippy = cargo(["clippy", "--all-targets"]);
        run_command(
            clippy
                .args(manifest)
                .args(features)
                .args(["--", "-D", "warnings"]),
        )?;
    }
    run_command(cargo(["test"]).args(manifest))
}

/// Builds the binary as it ships. `None` if that fails.
fn release(steps: &Steps) -> Option<PathBuf> {
    let mut shipped = None;
    steps.step("release build", || {
        run_command(&mut cargo([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--package",
            "adjutant-cli",
        ]))?;
        shipped = Some(target().join("release").join(program("adjutant")));
        Ok(())
    });
    shipped
}

fn program(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

/// The program that runs the tests: cargo-nextest where it is installed, else cargo itself.
struct Runner {
    kind: Kind,
    size: Size,
}

enum Kind {
    Nextest,
    Cargo,
}

impl Runner {
    fn installed(size: Size) -> Self {
        let kind = match output(&mut cargo(["nextest", "--version"])) {
            Ok(_) => Kind::Nextest,
            Err(_) => Kind::Cargo,
        };
        Self { kind, size }
    }

    /// Builds everything that [`Self::run`] runs, and the programs it starts.
    fn build(&self) -> Result<(), Failure> {
        run_command(&mut match self.kind {
            Kind::Nextest => {
                let mut command = cargo(["nextest", "run", "--no-run", "--locked"]);
                command.args(SELECTION);
                command
            }
            Kind::Cargo => {
                let mut command = cargo([
                    "test",
                    "--no-run",
                    "--locked",
                    "--lib",
                    "--bins",
                    "--tests",
                    "--examples",
                ]);
                command.args(SELECTION);
                command
            }
        })
    }

    /// Runs tests, without documentation tests.
    fn run(&self, tests: &Tests) -> Result<(), Failure> {
        run_each(&mut self.commands(tests))
    }

    /// Runs the soak for so many seconds.
    fn soak(&self, seconds: u32) -> Result<(), Failure> {
        let mut commands = self.commands(&SOAK);
        for command in &mut commands {
            command.env("ADJUTANT_SOAK_SECONDS", seconds.to_string());
        }
        run_each(&mut commands)
    }

    fn commands(&self, tests: &Tests) -> Vec<Command> {
        let mut commands = match self.kind {
            Kind::Nextest => {
                let mut command = cargo(["nextest", "run", "--locked", "--no-fail-fast"]);
                command.args(SELECTION).args(["-E", tests.filter]);
                // Most of them wait for a process, a server or a disk.
                let threads = 2 * thread::available_parallelism().map_or(1, std::num::NonZero::get);
                command.args(["--test-threads", &threads.to_string()]);
                if self.size == Size::Long {
                    command.args(["--profile", "long"]);
                }
                vec![command]
            }
            Kind::Cargo => {
                let command = |arguments: &&[&'static str]| {
                    let mut command =
                        cargo(["test", "--locked", "--no-fail-fast", "--all-features"]);
                    command.args(arguments.iter());
                    command
                };
                tests.cargo.iter().map(command).collect()
            }
        };
        for command in &mut commands {
            command.envs(self.size.environment().iter().copied());
        }
        commands
    }
}

/// Runs all of these, also behind one that fails.
fn run_each(commands: &mut [Command]) -> Result<(), Failure> {
    let failed: Vec<Failure> = commands
        .iter_mut()
        .filter_map(|command| run_command(command).err())
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\n"))
    }
}

/// Returns the folder of the workspace's compiled examples.
fn built_examples() -> PathBuf {
    target().join("debug").join("examples")
}

/// Runs every example of the library to its end.
fn examples(workspace: &[Package]) -> Result<(), Failure> {
    let examples = workspace
        .iter()
        .find(|package| package.name == LIBRARY)
        .map(|package| &package.examples);
    let examples = examples
        .filter(|examples| !examples.is_empty())
        .ok_or("the library has no example")?;
    run_command(cargo(["build", "--locked", "--examples"]).args(SELECTION))?;
    let folder = built_examples();
    let runs = examples.keys().map(|name| example(&folder, name));
    let failed: Vec<Failure> = runs.filter_map(Result::err).collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\n"))
    }
}

fn example(folder: &Path, name: &str) -> Result<(), Failure> {
    let mut example = Command::new(folder.join(program(name)));
    example.current_dir(root()).stdin(Stdio::null());
    // One that takes its model from the environment has its script beside it.
    let script = format!("crates/{LIBRARY}/examples/{name}.jsonl");
    if root().join(&script).is_file() {
        example.env("ADJUTANT_MODEL", format!("scripted:{script}"));
    }
    run_command(&mut example)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_run_is_a_failure() {
        let package = Package {
            name: LIBRARY.to_owned(),
            ..Package::default()
        };
        assert!(examples(&[package]).is_err());
        assert!(examples(&[]).is_err());
    }

    #[test]
    fn a_size_that_is_none_is_refused() {
        assert!(run(&["huge"]).is_err());
        assert!(run(&["quick", "-p"]).is_err());
    }

    #[test]
    fn all_cases_are_asked_for_by_a_long_run_only() {
        let asks = |size| {
            let runner = Runner {
                kind: Kind::Cargo,
                size,
            };
            let commands = runner.commands(&USUAL);
            commands.iter().all(|command| {
                command
                    .get_envs()
                    .any(|(name, _)| name == "ADJUTANT_TEST_SIZE")
            })
        };
        assert!(asks(Size::Long));
        assert!(!asks(Size::All));
    }
}
