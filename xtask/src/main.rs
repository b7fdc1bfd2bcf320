//! The house's machinery: `cargo xtask check`, `test` and `measure`. What CI runs is what a developer runs.
#![expect(clippy::disallowed_methods, reason = "a program: it may read its environment")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal, without pipes behind it"
)]

mod check; // rules of the house
mod clients; // official clients and a browser against the running binary
mod measure; // how heavy the library is
mod metadata; // what cargo knows of the workspace
mod model; // the suite that needs a language model
mod server; // the adapters against somebody else's server
mod steps; // running commands, one named step each
mod test; // every test

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask check     format, clippy, docs, features one by one, arrows between crates, licences, files
cargo xtask test      every test: workspace, doc tests, examples, crash tests, clients, and the suites that need a model
cargo xtask clients [NAME]   official clients and a browser against the running binary (tests/clients/, tests/browser)
cargo xtask measure   weight of the library with one provider: crates in its tree, CPU seconds of a clean check
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["check"] => check::run(),
        ["test"] => test::run(),
        ["clients"] => clients::run(None),
        ["clients", name] => clients::run(Some(name)),
        ["measure"] => measure::run(),
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
