//! Measures startup time and memory of the terminal for `BENCHMARKS.md`; asserts nothing about
//! them.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::ECHO;
use super::pty::{Kind, Terminal};
use crate::harness::Home;

const RUNS: usize = 21;

/// The same command with the binary that `ADJUTANT_BIN` names, if it does: the one that ships.
#[expect(clippy::disallowed_methods, reason = "whoever measures says what")]
fn shipped(command: Command) -> Command {
    let Some(program) = std::env::var_os("ADJUTANT_BIN").map(PathBuf::from) else {
        return command;
    };
    let mut other = Command::new(program);
    other.args(command.get_args()).env_clear();
    other.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    other.current_dir(command.get_current_dir().unwrap());
    other
}

fn figures(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let (first, median, last) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{what}: median {median:.1?}, {first:.1?} to {last:.1?} of {}",
        times.len()
    );
}

#[test]
#[ignore = "a measurement; see BENCHMARKS.md"]
fn how_fast_it_is() {
    let home = Home::new();
    let version = (0..RUNS).map(|_| {
        let began = Instant::now();
        assert!(
            shipped(home.command(&["--version"]))
                .output()
                .unwrap()
                .status
                .success()
        );
        began.elapsed()
    });
    figures("adjutant --version", version.collect());
    let vault = home.path("Notes");
    std::fs::create_dir_all(vault.join("memory")).unwrap();
    let model = home.script(&[ECHO]);
    for (what, args) in [
        ("the prompt", vec!["-m", model.as_str()]),
        (
            "the prompt, with a vault",
            vec!["-m", model.as_str(), "--vault", vault.to_str().unwrap()],
        ),
    ] {
        let mut resident = Vec::new();
        let prompt = (0..RUNS).map(|_| {
            let began = Instant::now();
            let mut terminal = Terminal::of(shipped(home.command(&args)), Kind::Usual);
            terminal.prompts_after("/help");
            let took = began.elapsed();
            resident.push(terminal.resident_kib());
            terminal.quits();
            took
        });
        figures(what, prompt.collect());
        resident.sort_unstable();
        println!(
            "    resident memory there: median {} MB",
            resident[RUNS / 2] / 1024
        );
    }
}
