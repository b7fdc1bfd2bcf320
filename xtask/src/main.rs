//! The house's machinery: `cargo xtask check`, `test` and `measure`. What CI runs is what a
//! developer runs.
#![expect(
    clippy::disallowed_methods,
    reason = "a program: it may read its environment"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal, without pipes behind it"
)]

mod check; // rules of the house
mod clients; // official clients and a browser against the running binary
#[cfg(unix)]
mod dist; // what a person installs without building
mod faults; // services under load while something breaks
mod instructions; // what a turn takes
mod measure; // how heavy library and binary are
mod memory_eval; // what retrieval finds of a memory
mod metadata; // what cargo knows of the workspace
mod model; // the suite that needs a language model
mod not_run; // what could not be run here, and why
mod server; // the adapters against somebody else's server
mod simulate; // the engine over a simulated store
mod steps; // running commands, one named step each
mod test; // the tests, in sizes

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask check     format, clippy, docs, features one by one, arrows between crates, licences, files
cargo xtask test [SIZE]
    quick [-p PACKAGE]  units, core, runtime, tools, memory, service; or one package. No other process is started
    (no size)           everything that needs no download but crates: workspace, PostgreSQL, crash tests, doc tests, examples
    all                 also Restate, clients of other languages, a browser, and the suites that need a model
    long                the same with all cases of what `all` samples
cargo xtask clients [NAME]   official clients and a browser against the running binary (tests/clients/, tests/browser)
cargo xtask dist [archive|rootfs|deb] [--binary FILE]   what a person installs without building, in target/packages; made and tried
cargo xtask measure   weight of the library with one provider: crates in its tree, CPU seconds of a clean check
cargo xtask measure binary   weight of the binary, each profile: CPU minutes of a clean build, bytes
cargo xtask measure turn     instructions of a turn, in memory and on SQLite, counted by valgrind; those at turn 10 and 10,000
cargo xtask memory-eval FOLDER [--json]   what is found of a memory for questions with known evidence; each folder in FOLDER is a set
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
        ["dist", words @ ..] => dist::Wanted::read(words).and_then(|wanted| dist::run(&wanted)),
        #[cfg(not(unix))]
        ["dist", ..] => Err("packages are made on Linux".to_owned()),
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
