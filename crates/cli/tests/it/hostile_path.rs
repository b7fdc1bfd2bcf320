//! Paths whose names hold what a terminal obeys: no command prints them as they are.

use crate::harness::{Home, Run, arg};

/// Control characters of seven and of eight bits, and one that reverses what follows.
const NAME: &str = "a\u{1b}[31mb\u{9b}31mc\u{202e}d\re";

#[track_caller]
fn check(run: &Run) {
    let obeyed = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    for text in [&run.stdout, &run.stderr] {
        assert!(!text.contains(obeyed), "{run:?}");
    }
    assert!(
        !(run.stdout.is_empty() && run.stderr.is_empty()),
        "nothing was said: {run:?}"
    );
}

#[test]
fn an_error_names_a_path_without_what_a_terminal_obeys() {
    let home = Home::new();
    let gone = home.path(NAME);
    let gone = arg(&gone);
    let model = format!("scripted:{gone}");
    let weights = format!("embedded:{gone}");
    let mention = format!("read @\"./{NAME}\"");
    let system = format!("@{gone}");
    for args in [
        &["-m", "demo", "-f", gone, "read"][..],
        &["-m", "demo", &mention],
        &["-m", "demo", "--system", &system, "hello"],
        &["-m", "demo", "--role", NAME, "hello"],
        &["-m", "demo", "--vault", gone, "hello"],
        &["-m", "demo", "--env-file", gone, "hello"],
        &["-m", &model, "hello"],
        &["-m", &weights, "hello"],
        &["init", "-m", "demo", "--vault", gone, "--yes"],
        &["mcp", "import", gone],
        &["eval", "-m", "demo", gone],
        &["config", "get", NAME],
        &["config", "set", "vault.path", gone],
        &["models", "rm", NAME, "-y"],
        &["sessions", "show", NAME],
        &["tasks", "done", NAME],
        &["doctor", "--vault", gone],
    ] {
        check(&home.run(args));
    }
}

#[test]
fn a_path_that_was_written_is_shown_without_what_a_terminal_obeys() {
    let home = Home::new();
    home.add_task("buy milk");
    home.run(&["-m", "demo", "hello"]).succeeds();
    let folder = home.path(NAME);
    std::fs::create_dir(&folder).unwrap();
    let place = |name: &str| arg(&folder.join(name)).to_owned();
    let (_, sessions) = home.json(&["sessions", "list"]);
    let session = sessions[0]["id"].as_str().unwrap();
    for args in [
        &["db", "backup", &place("copy.db")][..],
        &["sessions", "export", session, "-o", &place("talk.md")],
        &["report", "-o", &place("report.zip")],
        &["man", &place("pages")],
    ] {
        check(&home.run(args).succeeds());
        // Input that is there already is named too.
        check(&home.run(args));
    }
}
