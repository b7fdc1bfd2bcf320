//! Files that are opened by their name alone.
//!
//! A file that somebody else may have put there can be a pipe that never answers or a device that
//! never ends. So product code opens files with `crates/memory/src/outside_file.rs`, and whatever
//! reads a file of its own in another way is listed here with the reason.

use super::cycles::token::{Token, tokens};
use super::files::File;

/// Calls that open or read a file without a look at its kind and size: module or type, function.
const CALLS: &[(&str, &str)] = &[("fs", "read"), ("fs", "read_to_string"), ("File", "open")];

/// Files that contain such calls, and whose files they read.
const EXPECTED: &[(&str, &str)] = &[
    (
        "crates/adjutant/src/model.rs",
        "the script that the program's author named",
    ),
    ("crates/cli/src/command/db/mod.rs", "the state folder"),
    (
        "crates/cli/src/command/doctor/machine.rs",
        "programs of the PATH, a few bytes",
    ),
    (
        "crates/cli/src/command/doctor/model.rs",
        "a file of weights, a few bytes at a time",
    ),
    (
        "crates/cli/src/command/eval/bench.rs",
        "a vault that the run made",
    ),
    (
        "crates/cli/src/command/eval/baseline.rs",
        "a file of results that an option names",
    ),
    (
        "crates/cli/src/command/eval/load.rs",
        "the cases that an option names",
    ),
    (
        "crates/cli/src/command/models/call/mod.rs",
        "the input that an option names",
    ),
    (
        "crates/cli/src/command/report/parts.rs",
        "our own log, line by line",
    ),
    ("crates/cli/src/command/serve/state.rs", "the state folder"),
    (
        "crates/cli/src/command/sessions/folder.rs",
        "the state folder",
    ),
    ("crates/cli/src/mcp_servers/pins.rs", "the state folder"),
    ("crates/cli/src/config/trust.rs", "the state folder"),
    ("crates/cli/src/policy/file.rs", "the state folder"),
    (
        "crates/cli/src/terminal/chat/external.rs",
        "a temporary file of our own",
    ),
    (
        "crates/cli/src/terminal/input/file.rs",
        "what an option names may be a pipe; read up to a bound",
    ),
    ("crates/embedded/src/", "files of weights and their folder"),
    ("crates/evaluation/src/", "question sets of the repository"),
    ("crates/training/src/", "sentences of the repository"),
    (
        "crates/mcp/src/client/process_group.rs",
        "files of the kernel",
    ),
    (
        "crates/memory/src/outside_file.rs",
        "what an option names may be a pipe; read up to a bound",
    ),
    (
        "crates/memory/src/vault/file.rs",
        "a folder, to make a rename durable",
    ),
    ("crates/memory/src/vault/lock.rs", "a folder, to lock it"),
    (
        "crates/restate/src/client.rs",
        "the token that the operator's setting names",
    ),
    (
        "crates/service/src/auth/jwks.rs",
        "the keys that the operator's setting names",
    ),
    ("crates/service/src/process.rs", "files of the kernel"),
    ("crates/store/src/", "our own database, files of the kernel"),
];

/// Returns the calls in product code that are not expected, and expectations that nothing meets.
pub(crate) fn unbounded(files: &[File]) -> Vec<String> {
    let reading: Vec<&str> = files
        .iter()
        .filter(|file| is_product(&file.path) && reads_by_name(product_part(&file.text)))
        .map(|file| file.path.as_str())
        .collect();
    let unexpected = reading
        .iter()
        .filter(|path| !EXPECTED.iter().any(|(known, _)| path.starts_with(known)))
        .map(|path| {
            format!(
                "{path}: a file is opened before its kind and size are known: use \
                 adjutant_memory::read_regular_file, or say in {} whose file it is",
                file!()
            )
        });
    let unmet = EXPECTED
        .iter()
        .filter(|(known, _)| !reading.iter().any(|path| path.starts_with(known)))
        .map(|(known, _)| {
            format!(
                "{known}: no file is opened there: remove it from {}",
                file!()
            )
        });
    unexpected.chain(unmet).collect()
}

fn is_product(path: &str) -> bool {
    // Crates that are for tests only.
    let is_for_tests = ["durability", "simulation"]
        .iter()
        .any(|name| path.starts_with(&format!("crates/{name}/")));
    path.starts_with("crates/")
        && path.contains("/src/")
        && path.ends_with(".rs")
        && !path.contains("tests")
        && !is_for_tests
}

/// Returns a source file without its unit tests, which are the last module of a file.
fn product_part(text: &str) -> &str {
    let tests = text
        .find("\n#[cfg(test)]\nmod ")
        .or(text.find("\n#[cfg(all(test"));
    tests.and_then(|end| text.get(..end)).unwrap_or(text)
}

fn reads_by_name(text: &str) -> bool {
    tokens(text).windows(3).any(|three| {
        matches!(three, [Token::Ident(of), Token::PathSeparator, Token::Ident(function)]
            if CALLS.contains(&(*of, *function)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        let file = File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        unbounded(&[file])
            .iter()
            .filter(|found| found.starts_with(path))
            .count()
    }

    #[test]
    fn a_file_opened_by_its_name_is_found_in_product_code() {
        let source = "crates/cli/src/new.rs";
        for call in [
            "std::fs::read(path)",
            "fs::read_to_string(path)",
            "tokio::fs::read(path)",
            "std::fs::File::open(path)",
        ] {
            assert_eq!(found(source, call), 1, "{call}");
            assert_eq!(found("crates/cli/tests/it/new.rs", call), 0, "{call}");
            let in_test = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{ {call} }}");
            assert_eq!(found(source, &in_test), 0, "{call}");
        }
        assert_eq!(found(source, "fs::read_dir(path)"), 0);
    }

    #[test]
    fn an_expectation_that_nothing_meets_is_named() {
        assert_eq!(found("crates/memory/src/vault/lock.rs", "fn a() {}"), 1);
        assert_eq!(found("crates/memory/src/vault/lock.rs", "File::open(x)"), 0);
    }
}
