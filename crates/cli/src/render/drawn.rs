//! Standard error as the live line draws on it.

use std::io::{Result, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::{cursor, queue, terminal};
use indicatif::TermLike;

/// Columns where the terminal does not say.
const COLUMNS: u16 = 80;

/// A terminal whose lines are not filled with blanks up to its edge, which is how indicatif gets to the next one: when the
/// terminal gets narrower, a full line becomes two, and the first of them would stay behind.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    /// Whether what is written next begins a line.
    filled: AtomicBool,
}

impl TermLike for Drawn {
    fn width(&self) -> u16 {
        terminal::size().map_or(COLUMNS, |(columns, _)| if columns == 0 { COLUMNS } else { columns })
    }

    fn height(&self) -> u16 {
        terminal::size().map_or(24, |(_, rows)| if rows == 0 { 24 } else { rows })
    }

    fn move_cursor_up(&self, n: usize) -> Result<()> {
        self.filled.store(false, Ordering::Relaxed);
        up_to(n, |n| queue!(std::io::stderr(), cursor::MoveUp(n)))
    }

    fn move_cursor_down(&self, n: usize) -> Result<()> {
        up_to(n, |n| queue!(std::io::stderr(), cursor::MoveDown(n)))
    }

    fn move_cursor_right(&self, n: usize) -> Result<()> {
        up_to(n, |n| queue!(std::io::stderr(), cursor::MoveRight(n)))
    }

    fn move_cursor_left(&self, n: usize) -> Result<()> {
        up_to(n, |n| queue!(std::io::stderr(), cursor::MoveLeft(n)))
    }

    fn write_line(&self, s: &str) -> Result<()> {
        self.write_str(s)?;
        self.filled.store(false, Ordering::Relaxed);
        std::io::stderr().write_all(b"\n")
    }

    fn write_str(&self, s: &str) -> Result<()> {
        if s.chars().all(|c| c == ' ') {
            self.filled.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let mut err = std::io::stderr().lock();
        if self.filled.swap(false, Ordering::Relaxed) {
            err.write_all(b"\n")?;
        }
        err.write_all(s.as_bytes())
    }

    fn clear_line(&self) -> Result<()> {
        self.filled.store(false, Ordering::Relaxed);
        queue!(std::io::stderr(), cursor::MoveToColumn(0))?;
        queue!(std::io::stderr(), terminal::Clear(terminal::ClearType::CurrentLine))
    }

    fn flush(&self) -> Result<()> {
        std::io::stderr().flush()
    }
}

/// Moving by nothing is an order to move by one.
fn up_to(n: usize, go: impl FnOnce(u16) -> Result<()>) -> Result<()> {
    if n == 0 { Ok(()) } else { go(u16::try_from(n).unwrap_or(u16::MAX)) }
}
