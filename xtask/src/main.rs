//! The repository's own commands: `cargo xtask check`, `test`, `clients`, `dist`, `measure`,
//! `memory-eval` and `simulate`. Developers and CI run the same ones.
#![expect(
    clippy::disallowed_methods,
    reason = "a program: it may read its environment"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal, without pipes behind it"
)]

mod check; // lints and repository rules
mod clients; // official clients and a browser against the running binary
#[cfg(unix)]
mod command; // commands that steps start
mod dist; // packages
mod faults; // fault injection under load
mod instructions; // instructions of a turn, counted by valgrind
mod measure; // weight of library and binary
mod memory_eval; // quality of memory retrieval
mod metadata; // `cargo metadata`
mod model; // the suite that needs a language model
mod not_run; // tests that could not run here
mod server; // adapters against llama.cpp's server
mod simulate; // deterministic simulation
mod steps; // named and timed steps
mod test; // the tests, in sizes

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask check     format, lints, docs, features, dependencies, licences, spelling, import cycles, references
cargo xtask test [SIZE]
    quick [-p PACKAGE]  units, core, runtime, tools, memory, service; or one package. No other process is started
    (no size)           everything that needs no download but crates: workspace, PostgreSQL, crash tests, doc tests, examples
    all                 also Restate, clients of other languages, a browser, and the suites that need a model
    long                the same with all cases of what `all` samples
cargo xtask clients [NAME]   official clients and a browser against the running binary (tests/clients/, tests/browser)
cargo xtask dist [archive|rootfs|deb] [--binary FILE]   packages in target/packages, built and tried
cargo xtask measure   weight of the library with one provider: crates in its tree, CPU seconds of a clean check
cargo xtask measure binary   weight of the binary, each profile: CPU minutes of a clean build, bytes
cargo xtask measure turn     instructions of a turn, in memory and on SQLite, counted by valgrind; those at turn 10 and 10,000
cargo xtask memory-eval FOLDER [--json]   recall of memory retrieval over questions with known evidence; each folder in FOLDER is a set
cargo xtask simulate [--seeds N] [--seed S] [--workers N] [--plant epoch]
    the agents of several processes in one thread, over a simulated store, clock and network: N seeds (200), or one with its trace
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["check"] => check::run(),
        ["test", size @ ..] => test::run(size),
        ["clients"] => clients::run(None),
        ["clients", name] => clients::run(Some(name)),
        #[cfg(unix)]
        ["dist", arguments @ ..] => {
            dist::Options::parse(arguments).and_then(|options| dist::run(&options))
        }
        #[cfg(not(unix))]
        ["dist", ..] => Err("packages can be built on Linux only".to_owned()),
        ["measure"] => measure::library(),
        ["measure", "binary"] => measure::binary(),
        ["measure", "turn"] => instructions::measure(),
        ["memory-eval", arguments @ ..] => memory_eval::run(arguments),
        ["simulate", arguments @ ..] => simulate::simulate(arguments),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
