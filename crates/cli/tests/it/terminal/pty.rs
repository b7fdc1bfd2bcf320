//! A terminal with a person in front of it: the real binary on a pseudo-terminal, and a screen that
//! shows what it prints.
//!
//! Nothing here sleeps: a test that waits is woken by each output, and fails after a minute.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use expectrl::process::Process as _;
use expectrl::process::unix::{PtyStream, Signal, UnixProcess, WaitStatus};

use crate::harness::Home;

/// For machines that stand still.
const PATIENCE: Duration = Duration::from_secs(300);

/// The terminal's replies to queries of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As they all do.
    Usual,
    /// It reports Shift-Enter as a key other than Enter.
    Kitty,
    /// It answers nothing, as a script that only reads does.
    Silent,
}

pub(crate) struct Terminal {
    process: UnixProcess,
    keys: PtyStream,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

struct Seen {
    raw: Vec<u8>,
    screen: vt100::Parser<Answers>,
    ended: bool,
}

/// Replies that the terminal has to give.
struct Answers {
    kind: Kind,
    open: Vec<u8>,
}

impl vt100::Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        command: char,
    ) {
        let answer = match (self.kind, first, command) {
            (Kind::Silent, ..) => return,
            (_, None, 'n')
                if params
                    .first()
                    .is_some_and(|param| param.first() == Some(&6)) =>
            {
                let (row, column) = screen.cursor_position();
                format!("\x1b[{};{}R", row + 1, column + 1)
            }
            (_, None, 'c') => "\x1b[?62;c".to_owned(),
            (Kind::Kitty, Some(b'?'), 'u') => "\x1b[?0u".to_owned(),
            _ => return,
        };
        self.open.extend_from_slice(answer.as_bytes());
    }
}

/// Wraps a command so that it begins on a terminal of this size that echoes, as terminals do.
///
/// `ptyprocess` gives a terminal another size and no echo, and does so when the process runs
/// already. So the shell in between waits for a line, which the caller sends once the process is
/// started, and then sets both before the program can ask.
pub(crate) fn in_terminal(command: &Command, columns: u16, rows: u16) -> Command {
    let begin =
        format!("read -r begin && stty echo cols {columns} rows {rows} && exec \"$0\" \"$@\"");
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &begin])
        .arg(command.get_program())
        .args(command.get_args());
    shell.env_clear().envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    shell
        .current_dir(command.get_current_dir().unwrap())
        .stdin(Stdio::inherit());
    shell
}

impl Terminal {
    /// `adjutant` with these arguments, on a terminal of 80 columns and 50 rows.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        Self::of(home.command(args), Kind::Usual)
    }

    /// The same with a command of one's own.
    pub(crate) fn of(command: Command, kind: Kind) -> Self {
        Self::with_columns(command, kind, 80)
    }

    /// The same on a terminal of another width.
    pub(crate) fn with_columns(mut command: Command, kind: Kind, columns: u16) -> Self {
        if command.get_envs().all(|(name, _)| name != "TERM") {
            command.env("TERM", "xterm-256color");
        }
        let mut process = UnixProcess::spawn_command(in_terminal(&command, columns, 50)).unwrap();
        let (mut output, mut answers) = (
            process.open_stream().unwrap(),
            process.open_stream().unwrap(),
        );
        let mut keys = process.open_stream().unwrap();
        keys.write_all(b"\n").and_then(|()| keys.flush()).unwrap();
        let callbacks = Answers {
            kind,
            open: Vec::new(),
        };
        let screen = vt100::Parser::new_with_callbacks(size(50), size(columns), 1_000, callbacks);
        let seen = Arc::new((
            Mutex::new(Seen {
                raw: Vec::new(),
                screen,
                ended: false,
            }),
            Condvar::new(),
        ));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut piece = [0; 65_536];
            loop {
                // The end of the process is an error of its terminal.
                let length = output.read(&mut piece).unwrap_or(0);
                let (lock, changed) = &*shared;
                let mut seen = lock.lock().unwrap();
                seen.ended = length == 0;
                let printed = piece.get(..length).unwrap_or_default();
                seen.raw.extend_from_slice(printed);
                seen.screen.process(printed);
                let open = std::mem::take(&mut seen.screen.callbacks_mut().open);
                changed.notify_all();
                drop(seen);
                if length == 0 {
                    return;
                }
                // A process that is gone wants no answer.
                let _ = answers.write_all(&open).and_then(|()| answers.flush());
            }
        });
        Self {
            process,
            keys,
            seen,
        }
    }

    /// Presses keys.
    pub(crate) fn keys(&mut self, keys: &str) -> &mut Self {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
        self
    }

    /// Types a line and presses Enter, as a person does: at a prompt the line is seen before Enter is
    /// pressed. Keys that arrive all at once are a paste.
    #[track_caller]
    pub(crate) fn line(&mut self, line: &str) -> &mut Self {
        let is_at_prompt = self.screen().trim_end().ends_with("you>");
        self.keys(line);
        if is_at_prompt && !line.trim().is_empty() {
            let typed: Vec<char> = line.trim().chars().collect();
            // A long line is wrapped.
            let end: String = typed[typed.len().saturating_sub(9)..].iter().collect();
            self.waits(line, |screen| {
                let contents = screen.contents();
                let last = contents.rsplit("you>").next().unwrap_or_default();
                let unwrapped: String = last.split('\n').collect();
                last.contains(&end) || unwrapped.contains(&end)
            });
        }
        self.keys("\r")
    }

    /// Pastes with the markers of bracketed paste.
    pub(crate) fn paste(&mut self, text: &str) -> &mut Self {
        self.keys("\x1b[200~").keys(text).keys("\x1b[201~")
    }

    /// Waits until the words are on the screen, in one line or wrapped: paths of temporary files are
    /// longer on some machines.
    #[track_caller]
    pub(crate) fn sees(&mut self, words: &str) -> &mut Self {
        self.waits(words, |screen| {
            let contents = screen.contents();
            let unwrapped: Vec<&str> = contents.split_whitespace().collect();
            contents.contains(words) || unwrapped.join(" ").contains(words)
        })
    }

    /// Waits until a line of the screen ends with an empty prompt, below these words.
    #[track_caller]
    pub(crate) fn prompts_after(&mut self, words: &str) -> &mut Self {
        self.waits(&format!("{words} … you>"), |screen| {
            let contents = screen.contents();
            let below = contents.rfind(words).and_then(|at| contents.get(at..));
            below.is_some_and(|below| below.trim_end().ends_with("you>"))
                && screen.bracketed_paste()
        })
    }

    #[track_caller]
    pub(crate) fn waits(
        &mut self,
        what: &str,
        there: impl Fn(&vt100::Screen) -> bool,
    ) -> &mut Self {
        let (lock, changed) = &*self.seen;
        let seen = lock.lock().unwrap();
        let (seen, late) = changed
            .wait_timeout_while(seen, PATIENCE, |seen| {
                !there(seen.screen.screen()) && !seen.ended
            })
            .unwrap();
        let contents = seen.screen.screen().contents();
        assert!(
            there(seen.screen.screen()),
            "no {what:?} (late: {}):\n{contents}",
            late.timed_out()
        );
        drop(seen);
        self
    }

    /// Returns the text on the screen.
    pub(crate) fn screen(&self) -> String {
        self.seen.0.lock().unwrap().screen.screen().contents()
    }

    /// Everything that was printed, as it was.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.0.lock().unwrap().raw).into_owned()
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) -> &mut Self {
        self.seen
            .0
            .lock()
            .unwrap()
            .screen
            .set_size(size(rows), size(columns));
        self.process.set_window_size(columns, rows).unwrap();
        self
    }

    pub(crate) fn signal(&mut self, signal: Signal) -> &mut Self {
        self.process.signal(signal).unwrap();
        self
    }

    pub(crate) fn echoes(&self) -> bool {
        self.process.get_echo().unwrap()
    }

    /// The memory that the process holds, in KiB, as Linux reports it.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.pid())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Waits for the end, and gives the exit code; that of shells for a signal.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> i32 {
        let (lock, changed) = &*self.seen;
        let seen = changed
            .wait_timeout_while(lock.lock().unwrap(), PATIENCE, |seen| !seen.ended)
            .unwrap()
            .0;
        let (ended, contents) = (seen.ended, seen.screen.screen().contents());
        drop(seen);
        assert!(ended, "it does not end:\n{contents}");
        match self.process.wait().unwrap() {
            WaitStatus::Exited(_, code) => code,
            WaitStatus::Signaled(_, signal, _) => 128 + signal as i32,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for the end, and gives what is on the screen then.
    #[track_caller]
    pub(crate) fn ends_with(&mut self, code: i32) -> String {
        let ended = self.ends();
        let contents = self.screen();
        assert_eq!(ended, code, "{contents}");
        self.owns_no_screen();
        contents
    }

    /// No alternate screen, no mouse, no cleared scrollback: what was there before stays, and the
    /// terminal's own copying works.
    #[track_caller]
    pub(crate) fn owns_no_screen(&self) {
        let raw = self.raw();
        for taken in [
            "\x1b[?1049",
            "\x1b[?1047",
            "\x1b[?47",
            "\x1b[?1000",
            "\x1b[?1002",
            "\x1b[?1003",
            "\x1b[?1006",
            "\x1b[?1015",
            "\x1b[3J",
            "\x1bc",
        ] {
            assert!(!raw.contains(taken), "{taken:?} in {raw:?}");
        }
    }
}

fn size(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).unwrap()
}
