//! An answer typed at the terminal: one key, or a line.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::lines::Interrupts;
use crate::tty::{Ahead, Mode, forget_typed};

/// How long a key waits for others: alone it is an answer, followed by others it is the beginning
/// of a word. Longer than between two keys of somebody who types, shorter than anybody minds.
const ALONE_AFTER: Duration = Duration::from_millis(300);

/// How often the thread looks whether anybody still waits.
const LOOK: Duration = Duration::from_millis(100);

/// The longest answer, in characters.
const CHARS_MAX: usize = 200;

/// What came of asking.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// An answer; empty: Enter alone.
    Words(String),
    /// Ctrl-C or Esc.
    Interrupted,
    /// Ctrl-D.
    Ended,
}

/// Tells the thread that nobody waits any more.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Asks. What was typed before is forgotten: it answers something else.
///
/// # Errors
/// The terminal cannot be read key by key.
pub(super) async fn ask(
    question: &str,
    single: &'static [char],
    interrupts: &mut Interrupts,
) -> std::io::Result<Typed> {
    // Keys come one by one, and Ctrl-C is still a signal. Ends here, also if the thread is a moment
    // late.
    let _mode = Mode::turn(Ahead::Keys);
    forget_typed();
    let waits = Arc::new(AtomicBool::new(true));
    let waiting = Waiting(Arc::clone(&waits));
    let question = question.to_owned();
    let mut reader = tokio::task::spawn_blocking(move || {
        // What somebody else read of the keyboard and did not use.
        while event::poll(Duration::ZERO)? {
            event::read()?;
        }
        echo(&question);
        let typed = read(single, &waits);
        echo("\n");
        typed
    });
    tokio::select! {
        typed = &mut reader => typed.unwrap_or_else(|error| Err(std::io::Error::other(error))),
        () = interrupts.next() => {
            drop(waiting);
            // It ends the line of the question before anything else is told.
            let _ = reader.await;
            Ok(Typed::Interrupted)
        }
    }
}

fn read(single: &[char], waits: &AtomicBool) -> std::io::Result<Typed> {
    let mut answer = Answer::default();
    while waits.load(Ordering::Acquire) {
        let alone = answer.is_one_of(single);
        if !event::poll(if alone { ALONE_AFTER } else { LOOK })? {
            if alone {
                return Ok(Typed::Words(answer.words));
            }
            continue;
        }
        if let Event::Key(key) = event::read()?
            && let Some(typed) = answer.key(key)
        {
            return Ok(typed);
        }
    }
    Ok(Typed::Interrupted)
}

/// What was typed so far.
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
            KeyCode::Esc => return Some(Typed::Interrupted),
            KeyCode::Char('d') if control && self.words.is_empty() => return Some(Typed::Ended),
            // A line's end that is sent as Ctrl-J or Ctrl-M.
            KeyCode::Char('j' | 'm') if control => return Some(self.take()),
            KeyCode::Enter => return Some(self.take()),
            KeyCode::Backspace if self.words.pop().is_some() => echo("\u{8} \u{8}"),
            KeyCode::Char(c)
                if !control
                    && !key.modifiers.contains(KeyModifiers::ALT)
                    && self.words.chars().count() < CHARS_MAX =>
            {
                self.words.push(c);
                echo(&crate::display::clean(c.encode_utf8(&mut [0; 4])));
            }
            _ => {}
        }
        None
    }

    fn take(&mut self) -> Typed {
        Typed::Words(std::mem::take(&mut self.words))
    }
}

/// The terminal shows nothing by itself.
fn echo(text: &str) {
    let mut err = std::io::stderr().lock();
    // Whoever closed it sees nothing.
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
    fn one_key_or_a_line() {
        let words = |words: &str| Some(Typed::Words(words.to_owned()));
        assert_eq!(typed("\r").1, words(""));
        assert_eq!(typed("yes\r").1, words("yes"));
        assert_eq!(typed("nop\u{8}\n").1, words("no"));
        assert_eq!(typed("ye\u{3}").1, Some(Typed::Interrupted));
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
