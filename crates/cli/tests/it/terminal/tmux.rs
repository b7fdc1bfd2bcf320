//! Generated answers of the real binary in tmux, which lays its lines out anew when its window gets
//! another size.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::grammar::{Answer, numbers};
use crate::harness::{Home, arg};
use crate::not_run::not_run;

/// Answers, in this many windows beside each other.
const CASES: u64 = 200;
const WINDOWS: u64 = 4;

/// Lines of a shell above each answer.
const ABOVE: usize = 20;

/// A tmux of its own, which ends with the test.
struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// Begins with a window in which a command runs.
    fn start(socket: PathBuf, columns: usize, rows: usize, command: &str) -> Self {
        let tmux = Self { socket };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        tmux.run(&[
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "-s",
            "main",
            "cat",
        ]);
        tmux.run(&["set-option", "-g", "history-limit", "20000"]);
        // The limit holds for windows that begin afterwards.
        tmux.run(&["new-window", "-t", "main:1", "sh", "-c", command]);
        tmux.run(&["kill-window", "-t", "main:0"]);
        tmux.run(&["resize-window", "-t", "main:1", "-x", &columns, "-y", &rows]);
        tmux
    }

    fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .args(args);
        command
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "tmux {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        // A server that is gone already is what is wanted.
        let _ = command
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .stderr(Stdio::null())
            .status();
    }
}

/// A script that shows one answer after the other, each at its cue.
fn script(home: &Home, cases: &[u64]) -> String {
    let program = home.command(&[]);
    let variables: Vec<String> = program
        .get_envs()
        .filter_map(|(name, value)| {
            Some(format!("{}={}", name.to_str()?, quoted(value?.to_str()?)))
        })
        .collect();
    let mut lines = vec![
        format!("export {}", variables.join(" ")),
        "export PATH=/usr/bin:/bin TERM=xterm-256color".to_owned(),
        format!("cd {}", quoted(arg(program.get_current_dir().unwrap()))),
    ];
    for case in cases {
        let answer = Answer::from_seed(*case);
        let mut number = numbers(*case);
        let pieces = [1, 3, 10, 80][number(4)];
        let mut line = json!({ "text": answer.source, "stream": pieces, "repeat": true });
        if number(4) == 0 {
            // Some take their time, so that the live line is drawn again and again.
            line["stream"] = json!(1 + answer.source.chars().count() / 12);
            line["pause_ms"] = json!(40);
        }
        let model = home.script(&[&line.to_string()]);
        lines.push(format!("tmux wait-for go{case}; clear; tmux clear-history"));
        lines.push(format!(
            "seq {} {}; printf 'begin%s\\n' {case}",
            100,
            99 + ABOVE
        ));
        let program = quoted(arg(std::path::Path::new(program.get_program())));
        lines.push(format!(
            "{program} -q -m {} hello; echo \"code $?\"; tmux wait-for -S done{case}",
            quoted(&model)
        ));
    }
    lines.push("tmux wait-for end".to_owned());
    let file = home.file("cases.sh", lines.join("\n"));
    format!("sh {}", quoted(arg(&file)))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Shows some of the cases and returns what is wrong with them.
fn shown(cases: &[u64]) -> Vec<String> {
    let home = Home::new();
    let tmux = Tmux::start(home.path("tmux"), 80, 24, &script(&home, cases));
    let mut wrong = Vec::new();
    for case in cases {
        let answer = Answer::from_seed(*case);
        let mut number = numbers(case ^ 0x7A);
        let size = |number: &mut dyn FnMut(usize) -> usize| {
            let (columns, rows) = (20 + number(181), 10 + number(51));
            tmux.run(&[
                "resize-window",
                "-t",
                "main:1",
                "-x",
                &columns.to_string(),
                "-y",
                &rows.to_string(),
            ]);
        };
        size(&mut number);
        tmux.run(&["wait-for", "-S", &format!("go{case}")]);
        if case % 2 == 1 {
            // Somewhere in the answer, or behind its end.
            size(&mut number);
            size(&mut number);
        }
        tmux.run(&["wait-for", &format!("done{case}")]);
        let seen = tmux.run(&["capture-pane", "-p", "-J", "-t", "main:1", "-S", "-"]);
        let begin = format!("begin{case}\n");
        let text: String = seen
            .lines()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect();
        let Some((above, below)) = text.split_once(&begin) else {
            wrong.push(format!("case {case}: what stood above is gone\n{text}"));
            continue;
        };
        let expected: String = (100..100 + ABOVE).map(|line| format!("{line}\n")).collect();
        let what = match below.split_once("code 0\n") {
            _ if above.trim_start() != expected => Some("what stood above has changed".to_owned()),
            None => Some("it did not end as it should".to_owned()),
            Some((answered, _)) => answer.differs_from(answered),
        };
        wrong.extend(what.map(|what| {
            format!(
                "case {case}: {what}\n--- written ---\n{}\n--- seen ---\n{text}",
                answer.source
            )
        }));
    }
    wrong
}

#[test]
fn in_tmux_the_screen_is_the_answer() {
    if Command::new("tmux").arg("-V").output().is_err() {
        return not_run(
            "adjutant-cli",
            "it needs tmux (Debian: apt-get install tmux)",
        );
    }
    let windows: Vec<_> = (0..WINDOWS)
        .map(|window| {
            let cases: Vec<u64> = (0..CASES).filter(|case| case % WINDOWS == window).collect();
            std::thread::spawn(move || shown(&cases))
        })
        .collect();
    let wrong: Vec<String> = windows
        .into_iter()
        .flat_map(|window| window.join().unwrap())
        .collect();
    let first = wrong.first().map_or("", String::as_str);
    let all: Vec<&str> = wrong
        .iter()
        .filter_map(|wrong| wrong.lines().next())
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {CASES} failed:\n{}\nThe first:\n{first}",
        wrong.len(),
        all.join("\n")
    );
}

#[test]
fn a_paste_without_marks_is_one_message_in_tmux() {
    if Command::new("tmux").arg("-V").output().is_err() {
        return not_run(
            "adjutant-cli",
            "it needs tmux (Debian: apt-get install tmux)",
        );
    }
    let home = Home::new();
    let model = home.script(&[r#"{"text": "It is read.", "repeat": true}"#]);
    let program = home.command(&["-m", &model]);
    let variables: Vec<String> = program
        .get_envs()
        .filter_map(|(name, value)| {
            Some(format!("{}={}", name.to_str()?, quoted(value?.to_str()?)))
        })
        .collect();
    let chat = format!(
        "export {}; export PATH=/usr/bin:/bin TERM=xterm-256color; cd {}; {} -m {}; echo \"code $?\"; cat",
        variables.join(" "),
        quoted(arg(program.get_current_dir().unwrap())),
        quoted(arg(std::path::Path::new(program.get_program()))),
        quoted(&model),
    );
    let tmux = Tmux::start(home.path("tmux"), 80, 24, &chat);
    let shows = |words: &str| {
        let begun = std::time::Instant::now();
        loop {
            let seen = tmux.run(&["capture-pane", "-p", "-J", "-t", "main:1", "-S", "-"]);
            if seen.contains(words) {
                return;
            }
            assert!(begun.elapsed().as_secs() < 300, "no {words:?} in {seen}");
            std::thread::yield_now();
        }
    };
    shows("/help");
    shows("you>");
    let lines: Vec<String> = (1..=500).map(|number| format!("line {number}")).collect();
    let file = home.file("lines", lines.join("\n") + "\n");
    tmux.run(&["load-buffer", arg(&file)]);
    // Without `-p`: no marks, and an Enter at the end of each line, the last one too.
    tmux.run(&["paste-buffer", "-t", "main:1"]);
    shows("It is read.");
    tmux.run(&["send-keys", "-t", "main:1", "C-d"]);
    shows("code 0");
    let (_, decisions) = home.json(&["log", "list"]);
    let messages: Vec<&str> = decisions
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["message"].as_str().unwrap())
        .collect();
    assert_eq!(messages, [lines.join("\n")]);
}
