//! The repository's own commands: `cargo xtask check`, `test`, `clients`, `dist`, `measure`,
//! `bfcl`, `memory-eval` and `simulate`. Developers and CI run the same ones.
#![expect(
    clippy::disallowed_methods,
    reason = "a developer's program may read its environment"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is for a terminal, so a closed pipe may end it"
)]

mod bfcl; // the public function-calling set
mod check; // lints and repository rules
mod clients; // clients of other languages and a browser
mod command; // child processes
#[cfg(unix)]
mod dist; // release packages
mod faults; // fault injection under load
mod file_system; // files and folders, with errors that name the path
mod instructions; // instructions of a turn, counted by valgrind
mod measure; // size of library and binary
mod memory_eval; // recall of memory retrieval
mod metadata; // `cargo metadata`
mod model; // tests and evaluations with a language model
mod not_run; // tests that could not run
mod routes; // instructions of the service's routes
mod server; // adapters against llama.cpp's server
mod simulate; // deterministic simulation
mod steps; // named and timed steps
mod test; // the tests, in four sizes

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask check     formatting, lints, docs, features, dependencies, licences, spelling, import cycles, references
cargo xtask test [SIZE]
    quick [-p PACKAGE]  fast tests of all crates, or the tests of one package; starts no other process
    (no size)           everything that downloads nothing but crates: workspace, PostgreSQL, crash tests, doc tests, examples
    all                 also Restate, fault injection, clients of other languages, a browser, and the model suite
    long                the same with all cases of which `all` takes a sample
cargo xtask clients [NAME]   official clients and a browser against the running binary (tests/clients/, tests/browser)
cargo xtask dist [archive|rootfs|deb] [--binary FILE]   builds and tests the release packages in target/packages
cargo xtask measure          size of the library with one provider: crates in its tree, CPU seconds of a clean check
cargo xtask measure binary   size of the binary in each profile: CPU minutes of a clean build, bytes
cargo xtask measure turn     instructions of a turn, in memory and on SQLite, counted by valgrind; also at turns 10 and 10,000
cargo xtask measure routes   instructions of the service's routes against their limits, in the debug build of the tests
cargo xtask bfcl [--cases N] [--seed S]   the public function-calling set over the small model in three ways, N cases (75) of each
    category; goes on where a run was stopped, and takes hours
cargo xtask memory-eval FOLDER [--json]   recall of memory retrieval over questions with known evidence; each folder in FOLDER is a data set
cargo xtask simulate [--seeds N] [--seed S] [--workers N] [--plant epoch]
    agents of several processes in one thread, over a simulated store, clock and network: N seeds (200), or one with its trace
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments
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
        ["measure", "routes"] => routes::measure(),
        ["bfcl", arguments @ ..] => bfcl::measure(arguments),
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
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
