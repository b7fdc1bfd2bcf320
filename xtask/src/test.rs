//! `cargo xtask test [SIZE]`: the tests in four sizes, each of which includes the one before.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::check::{self, budget};
use crate::command::{Failure, cargo, fail_with, output, root, run as run_command, target};
use crate::faults;
use crate::instructions::{self, Profile};
use crate::metadata::SELECTION;
use crate::metadata::{self, Package};
use crate::not_run;
use crate::steps::Steps;
use crate::{clients, model, routes, server};

/// The package whose examples are run.
const LIBRARY: &str = "adjutant";

/// Selects how many of the tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Size {
    /// Tests that start no other process and use no database but SQLite.
    Quick,
    /// Everything that downloads nothing but crates.
    Standard,
    /// Everything, with a sample of the long lists of cases.
    All,
    /// Everything, with all cases.
    Long,
}

impl Size {
    /// Returns the environment variables that set the number of cases. They are unset for a sample.
    fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Cases of each property test that does not set a number itself; proptest's default is
            // 256.
            Self::Long => &[("ADJUTANT_TEST_SIZE", "long"), ("PROPTEST_CASES", "4096")],
            Self::Quick | Self::Standard | Self::All => &[],
        }
    }

    /// Returns the duration of the soak test.
    fn soak_seconds(self) -> u32 {
        if self == Self::Long { 300 } else { 60 }
    }

    /// Returns the least duration of the storms.
    fn storm_seconds(self) -> u32 {
        if self == Self::Long { 300 } else { 40 }
    }
}

/// A selection of tests: one filter expression for nextest, or the arguments of one or more `cargo
/// test` runs.
struct Tests {
    filter: &'static str,
    cargo: &'static [&'static [&'static str]],
}

/// Unit tests, and the integration tests of the crates where these are fast, without the tests that
/// start a process.
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

/// All tests but those that need a download: Restate's server or a language model's weights.
const STANDARD: Tests = Tests {
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

/// The soak test: a service is killed and attacked at random times, for as long as
/// [`Size::soak_seconds`] says. As part of the other selections it runs for a few seconds.
const SOAK: Tests = Tests {
    filter: "package(adjutant-cli) & kind(test) & test(/^soak::/)",
    cargo: &[&["--package", "adjutant-cli", "--test", "it", "--", "soak::"]],
};

/// Storms of clocks that step and of syncs that fail, each for as long as [`Size::storm_seconds`]
/// says. As part of the other selections they run for a few seconds.
const STORMS: Tests = Tests {
    filter: "package(adjutant-durability) & kind(test) & test(/^storm::.*(clock|sync)/)",
    cargo: &[&[
        "--package",
        "adjutant-durability",
        "--test",
        "it",
        "--",
        "storm::nothing_is_lost_where_clocks_step",
        "storm::nothing_is_lost_where_syncs_fail",
        "storm::clocks_that_step",
    ]],
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

/// Runs the tests of a size, or those of one package.
///
/// # Errors
/// The arguments are unknown, a step fails (the message has the names of the failed steps), or, in
/// CI, a test was not run without an excuse.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let size = match arguments {
        [] => Size::Standard,
        ["quick"] => Size::Quick,
        ["quick", "-p" | "--package", package] => return one_package(package),
        ["all"] => Size::All,
        ["long"] => Size::Long,
        _ => {
            return Err("usage: cargo xtask test [quick [-p PACKAGE] | all | long]".to_owned());
        }
    };
    let workspace = metadata::packages()?;
    let runner = Runner::installed(size);
    let steps = Steps::begin()?;
    steps.step("build of the tests", || runner.build());
    match size {
        Size::Quick => steps.step("tests", || runner.run(&QUICK)),
        Size::Standard => standard(&steps, &runner, &workspace),
        Size::All | Size::Long => everything(&steps, &runner, &workspace),
    }
    if size == Size::Quick {
        println!(
            "\nnot in this size: processes, PostgreSQL, the binary, examples (cargo xtask test)"
        );
    } else if size == Size::Standard {
        println!(
            "\nnot in this size: Restate, clients, browser, the model suite (cargo xtask test all)"
        );
    }
    steps.finish()
}

/// Runs the tests of one package that need no download.
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
                command.args(["-E", STANDARD.filter]);
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

/// Runs everything that downloads nothing but crates.
fn standard(steps: &Steps, runner: &Runner, workspace: &[Package]) {
    steps.step("ignored tests", || {
        not_run::append_notes(&not_run::ignored_tests()?)
    });
    steps.step("tests", || runner.run(&STANDARD));
    steps.step("documentation tests", || {
        // Nextest cannot run documentation tests.
        run_command(cargo(["test", "--doc", "--locked"]).args(SELECTION))
    });
    steps.step("examples", || examples(workspace));
}

/// Runs everything. Downloads run in parallel with the tests of [`Size::Standard`]. The tests of the
/// whole binary follow: a long run builds and tests the one that ships, and the other sizes test
/// the debug build, which the tests have built anyway.
fn everything(steps: &Steps, runner: &Runner, workspace: &[Package]) {
    let built = target().join("debug").join(program("adjutant"));
    let (clients, weights) = thread::scope(|scope| {
        let fetched = scope.spawn(|| {
            (
                clients::prepare(steps),
                model::prepare(steps, &built),
                server::prepare(steps),
            )
        });
        standard(steps, runner, workspace);
        steps.step("tests with Restate", || runner.run(&RESTATE));
        steps.step("faults under load", || {
            faults::under_load(&built, runner.size == Size::Long)
        });
        steps.step("soak of attacks", || {
            let seconds = runner.size.soak_seconds();
            runner.run_for(&SOAK, "ADJUTANT_SOAK_SECONDS", seconds)
        });
        steps.step("storms of faults", || {
            let seconds = runner.size.storm_seconds();
            runner.run_for(&STORMS, "ADJUTANT_STORM_SECONDS", seconds)
        });
        fetched.join().map_or_else(
            |_| {
                steps.step("preparations", || Err("a thread has panicked".to_owned()));
                (Vec::new(), None)
            },
            |(clients, weights, ())| (clients, weights),
        )
    });
    let is_long = runner.size == Size::Long;
    let adjutant = if is_long {
        steps.step("features that take long, one by one", check::slow_features);
        steps.step("benches", benches);
        let Some(shipped) = release(steps) else {
            return;
        };
        steps.step("size of the release binary", || {
            budget::check_size(&shipped, budget::RELEASE_BYTES)
        });
        steps.skippable_step("instructions of a turn as it ships", || {
            instructions::within_limits(Profile::Release)
        });
        shipped
    } else {
        built.clone()
    };
    if clients.iter().any(|folder| clients::is_browser(folder)) {
        steps.step("the page with Restate", || {
            faults::browser_with_restate(&built)
        });
    }
    thread::scope(|scope| {
        // The clients wait for services most of the time and the browser for its timers, so both
        // run in parallel with the steps below, which need the CPU.
        let environment = runner.size.environment();
        let (browser, clients): (Vec<_>, Vec<_>) = clients
            .into_iter()
            .partition(|folder| clients::is_browser(folder));
        for folders in [browser, clients] {
            let adjutant = &adjutant;
            scope.spawn(move || {
                clients::run_programs(
                    steps,
                    &folders,
                    adjutant,
                    Some(&built_examples()),
                    environment,
                );
            });
        }
        steps.skippable_step("instructions of a turn", || {
            instructions::within_limits(Profile::Dev)
        });
        steps.skippable_step("instructions of routes", routes::within_limits);
        if let Some(weights) = weights {
            let tests = &mut runner.commands(&WEIGHTS);
            model::suite(steps, &adjutant, &weights, tests, is_long);
        }
    });
}

/// Lints and tests the workspace in `benches/`, with and without the feature that adds rig, whose
/// dependencies double the tree.
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

/// Builds the binary that ships. Returns `None` if that fails.
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

/// The test runner: cargo-nextest if it is installed, or else `cargo test`.
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

    /// Builds all tests that [`Self::run`] runs, and the programs that they start.
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

    /// Runs a selection of tests. Documentation tests are not part of any.
    fn run(&self, tests: &Tests) -> Result<(), Failure> {
        run_each(&mut self.commands(tests))
    }

    /// Runs tests whose duration a variable sets, in seconds.
    fn run_for(&self, tests: &Tests, variable: &str, seconds: u32) -> Result<(), Failure> {
        let mut commands = self.commands(tests);
        for command in &mut commands {
            command.env(variable, seconds.to_string());
        }
        run_each(&mut commands)
    }

    fn commands(&self, tests: &Tests) -> Vec<Command> {
        let mut commands = match self.kind {
            Kind::Nextest => {
                let mut command = cargo(["nextest", "run", "--locked", "--no-fail-fast"]);
                command.args(SELECTION).args(["-E", tests.filter]);
                // Most tests wait for a process, a server or a disk, so twice as many threads as
                // processors are busy.
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

/// Runs all commands, even if one fails, and joins the failures.
fn run_each(commands: &mut [Command]) -> Result<(), Failure> {
    let failed = commands
        .iter_mut()
        .filter_map(|command| run_command(command).err())
        .collect();
    fail_with(failed)
}

/// Returns the folder of the workspace's compiled examples.
fn built_examples() -> PathBuf {
    target().join("debug").join("examples")
}

/// Runs every example of the library until it ends.
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
    fail_with(runs.filter_map(Result::err).collect())
}

fn example(folder: &Path, name: &str) -> Result<(), Failure> {
    let mut example = Command::new(folder.join(program(name)));
    // Without standard input, so that no example can wait for a person.
    example.current_dir(root()).stdin(Stdio::null());
    // An example that reads its model from the environment gets the script beside it.
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
    fn a_library_without_examples_is_an_error() {
        let package = Package {
            name: LIBRARY.to_owned(),
            ..Package::default()
        };
        assert!(examples(&[package]).is_err());
        assert!(examples(&[]).is_err());
    }

    #[test]
    fn unknown_arguments_are_refused() {
        assert!(run(&["huge"]).is_err());
        assert!(run(&["quick", "-p"]).is_err());
    }

    #[test]
    fn only_a_long_run_asks_for_all_cases() {
        let asks_for_all = |size| {
            let runner = Runner {
                kind: Kind::Cargo,
                size,
            };
            let commands = runner.commands(&STANDARD);
            commands.iter().all(|command| {
                command
                    .get_envs()
                    .any(|(name, _)| name == "ADJUTANT_TEST_SIZE")
            })
        };
        assert!(asks_for_all(Size::Long));
        assert!(!asks_for_all(Size::All));
    }
}
