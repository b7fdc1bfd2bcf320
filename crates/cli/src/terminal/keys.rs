//! Reads an answer at the terminal: a single key, or a short line.

use std::io::Write as _;
use std::time::Duration;

use adjutant_core::CancellationToken;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::terminal::display::clean;
use crate::terminal::tty::{self, BracketedPaste, Mode, forget_typed};

/// Time a key waits for more: alone it is an answer, followed by others it begins a word. Longer
/// than the pause between two typed keys, too short to be noticed.
const ALONE_AFTER: Duration = Duration::from_millis(300);

/// Interval at which the reading thread checks if the question was withdrawn.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Characters of an answer at most.
const CHARS_MAX: usize = 200;

/// Result of reading an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// An answer; empty for Enter alone.
    Text(String),
    /// Esc.
    Escaped,
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D.
    Ended,
}

/// Prints a question and reads the answer. Discards what was typed before, which cannot be meant
/// for it. A paste that the terminal marks is no answer. When `stopped` ends, the question is
/// withdrawn, as at Ctrl-C.
///
/// # Errors
/// The terminal cannot be read key by key.
pub(super) async fn ask(
    question: &str,
    single: &'static [char],
    stopped: impl Future<Output = ()>,
) -> std::io::Result<Typed> {
    // The modes are restored when this function returns, even if the thread ends a moment later.
    let _modes = (Mode::keys(), BracketedPaste::on());
    forget_typed();
    // Cancelled when this future is dropped, which ends the thread.
    let withdrawn = CancellationToken::new();
    let guard = withdrawn.clone().drop_guard();
    let question = question.to_owned();
    let mut reader = tokio::task::spawn_blocking(move || {
        // Input that another reader took from the keyboard and did not use.
        while event::poll(Duration::ZERO)? {
            event::read()?;
        }
        echo(&question);
        let typed = read_answer(&question, single, &withdrawn);
        echo("\n");
        typed
    });
    tokio::select! {
        typed = &mut reader => typed.unwrap_or_else(|error| Err(std::io::Error::other(error))),
        () = stopped => {
            drop(guard);
            // The thread ends the line of the question, which has to happen before anything else is
            // printed.
            let _ = reader.await;
            Ok(Typed::Interrupted)
        }
    }
}

fn read_answer(
    question: &str,
    single: &[char],
    withdrawn: &CancellationToken,
) -> std::io::Result<Typed> {
    let mut answer = Answer::default();
    while !withdrawn.is_cancelled() {
        // A key that may begin a word is an answer only if no other key follows at once.
        let alone = answer.is_one_of(single);
        if !event::poll(if alone { ALONE_AFTER } else { CHECK_INTERVAL })? {
            if alone {
                return Ok(Typed::Text(answer.words));
            }
            continue;
        }
        let Event::Key(key) = event::read()? else {
            continue;
        };
        if is_ctrl_z(key) {
            // Without a shell to return to, the key does nothing. Else the shell has printed below
            // the question.
            if tty::suspend() {
                echo(&format!("{question}{}", clean(&answer.words)));
            }
        } else if let Some(typed) = answer.key(key) {
            return Ok(typed);
        }
    }
    Ok(Typed::Interrupted)
}

fn is_ctrl_z(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('z')
        && key.modifiers.contains(KeyModifiers::CONTROL)
        && key.kind != KeyEventKind::Release
}

/// The characters typed so far.
#[derive(Debug, Default)]
struct Answer {
    words: String,
}

impl Answer {
    fn is_one_of(&self, single: &[char]) -> bool {
        let mut chars = self.words.chars();
        matches!((chars.next(), chars.next()), (Some(key), None) if single.contains(&key.to_ascii_lowercase()))
    }

    fn key(&mut self, key: KeyEvent) -> Option<Typed> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Some(Typed::Interrupted),
            KeyCode::Esc => return Some(Typed::Escaped),
            KeyCode::Char('d') if control && self.words.is_empty() => return Some(Typed::Ended),
            // Some terminals send Enter as Ctrl-J or Ctrl-M.
            KeyCode::Char('j' | 'm') if control => return Some(self.finish()),
            KeyCode::Enter => return Some(self.finish()),
            KeyCode::Backspace if self.words.pop().is_some() => echo("\u{8} \u{8}"),
            KeyCode::Char(c)
                if !control
                    && !key.modifiers.contains(KeyModifiers::ALT)
                    && self.words.chars().count() < CHARS_MAX =>
            {
                self.words.push(c);
                echo(&clean(c.encode_utf8(&mut [0; 4])));
            }
            _ => {}
        }
        None
    }

    fn finish(&mut self) -> Typed {
        Typed::Text(std::mem::take(&mut self.words))
    }
}

/// Echoes typed text: in this mode the terminal does not.
fn echo(text: &str) {
    let mut err = std::io::stderr().lock();
    // If the terminal is closed, there is nothing to echo to.
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str) -> (Answer, Option<Typed>) {
        let mut answer = Answer::default();
        for c in keys.chars() {
            let key = match c {
                '\r' => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
                '\u{8}' => KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE),
                '\u{3}' => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
                '\u{1b}' => KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
                '\u{4}' => KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL),
                '\n' => KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL),
                c => KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE),
            };
            if let Some(typed) = answer.key(key) {
                return (answer, Some(typed));
            }
        }
        (answer, None)
    }

    #[test]
    fn a_question_takes_one_key_or_a_line() {
        let words = |words: &str| Some(Typed::Text(words.to_owned()));
        assert_eq!(typed("\r").1, words(""));
        assert_eq!(typed("yes\r").1, words("yes"));
        assert_eq!(typed("nop\u{8}\n").1, words("no"));
        assert_eq!(typed("ye\u{3}").1, Some(Typed::Interrupted));
        assert_eq!(typed("\u{1b}").1, Some(Typed::Escaped));
        assert_eq!(typed("\u{4}").1, Some(Typed::Ended));
        for (keys, alone) in [
            ("y", true),
            ("Y", true),
            ("yo", false),
            ("x", false),
            ("", false),
            ("yo\u{8}", true),
        ] {
            let (answer, end) = typed(keys);
            assert_eq!(
                (answer.is_one_of(&['y', 'n']), end),
                (alone, None),
                "{keys:?}"
            );
        }
    }

    #[test]
    fn an_answer_has_an_end() {
        assert_eq!(typed(&"y".repeat(9_999)).0.words.len(), CHARS_MAX);
    }
}
