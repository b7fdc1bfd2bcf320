//! Standard error as the live line draws on it.

use std::io::{Result, Stderr, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crossterm::{cursor, queue, terminal};
use indicatif::TermLike;

/// Columns where the terminal does not say.
const COLUMNS: u16 = 80;

/// A terminal whose lines are not filled with blanks up to its edge, which is how indicatif gets to the next one: when the
/// terminal gets narrower, a full line becomes two, and the first of them would stay behind.
#[derive(Debug)]
pub(super) struct Drawn<W> {
    out: Mutex<W>,
    /// Texts since the beginning of a drawing. indicatif writes two for each line, the line and what fills it, and counts on
    /// as many lines when it clears them: which of the two it is cannot be told from the text, since a line may be empty.
    texts: AtomicUsize,
}

impl Drawn<Stderr> {
    pub(super) fn on_stderr() -> Self {
        Self::on(std::io::stderr())
    }
}

impl<W: Write> Drawn<W> {
    fn on(out: W) -> Self {
        Self { out: Mutex::new(out), texts: AtomicUsize::new(0) }
    }

    fn to_out<R>(&self, write: impl FnOnce(&mut W) -> R) -> R {
        write(&mut self.out.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Moves the cursor. Moving by nothing is an order to move by one, so nothing is written then.
    fn go<C: crossterm::Command>(&self, n: usize, order: impl FnOnce(u16) -> C) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        self.to_out(|out| queue!(out, order(u16::try_from(n).unwrap_or(u16::MAX))))
    }
}

impl<W: Write + std::fmt::Debug + Send + Sync> TermLike for Drawn<W> {
    fn width(&self) -> u16 {
        terminal::size().map_or(COLUMNS, |(columns, _)| if columns == 0 { COLUMNS } else { columns })
    }

    fn height(&self) -> u16 {
        terminal::size().map_or(24, |(_, rows)| if rows == 0 { 24 } else { rows })
    }

    /// Begins a drawing too: indicatif moves to the first of its lines before it writes any.
    fn move_cursor_up(&self, n: usize) -> Result<()> {
        self.texts.store(0, Ordering::Relaxed);
        self.go(n, cursor::MoveUp)
    }

    fn move_cursor_down(&self, n: usize) -> Result<()> {
        self.go(n, cursor::MoveDown)
    }

    fn move_cursor_right(&self, n: usize) -> Result<()> {
        self.go(n, cursor::MoveRight)
    }

    fn move_cursor_left(&self, n: usize) -> Result<()> {
        self.go(n, cursor::MoveLeft)
    }

    fn write_line(&self, s: &str) -> Result<()> {
        self.to_out(|out| writeln!(out, "{s}"))
    }

    fn write_str(&self, s: &str) -> Result<()> {
        let before = self.texts.fetch_add(1, Ordering::Relaxed);
        if before % 2 == 1 {
            return Ok(());
        }
        self.to_out(|out| {
            if before > 0 {
                out.write_all(b"\n")?;
            }
            out.write_all(s.as_bytes())
        })
    }

    fn clear_line(&self) -> Result<()> {
        self.to_out(|out| {
            queue!(out, cursor::MoveToColumn(0), terminal::Clear(terminal::ClearType::CurrentLine))
        })
    }

    fn flush(&self) -> Result<()> {
        self.to_out(Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

    use super::Drawn;

    #[derive(Debug, Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_without_text_are_lines() {
        let written = Written::default();
        let mut out = written.clone();
        let seen = || {
            let mut terminal = vt100::Parser::new(NonZero::new(24).unwrap(), NonZero::new(80).unwrap(), 0);
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            terminal.process(text.replace('\n', "\r\n").as_bytes());
            terminal.screen().contents()
        };
        std::io::Write::write_all(&mut out, b"final\n").unwrap();
        let target = ProgressDrawTarget::term_like(Box::new(Drawn::on(out)));
        let bar = ProgressBar::with_draw_target(None, target)
            .with_style(ProgressStyle::with_template("{msg}waiting").unwrap());
        for tail in ["one\n\ntwo\n", "\n", "  \n\n", "", &format!("{}\n\n", "x".repeat(79))] {
            bar.set_message(tail.to_owned());
            bar.force_draw();
            let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
            assert_eq!(lines(&seen()), lines(&format!("final\n{tail}waiting")));
        }
        bar.finish_and_clear();
        assert_eq!(seen().trim_end(), "final");
    }
}
