//! An emulated terminal that rewraps its lines when it is resized.

use std::sync::{Arc, Mutex};

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions as _;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::test::TermSize;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::Processor;

#[derive(Clone)]
pub(crate) struct Emulator(Arc<Mutex<State>>);

struct State {
    term: Term<VoidListener>,
    parser: Processor,
    /// Rows added to every order to move the cursor up, to prove that the test finds such a
    /// mistake.
    up_too_far: usize,
}

impl Emulator {
    pub(crate) fn new(columns: usize, rows: usize, up_too_far: usize) -> Self {
        let config = Config {
            scrolling_history: 10_000,
            ..Config::default()
        };
        let term = Term::new(config, &TermSize::new(columns, rows), VoidListener);
        Self(Arc::new(Mutex::new(State {
            term,
            parser: Processor::new(),
            up_too_far,
        })))
    }

    pub(crate) fn resize(&self, columns: usize, rows: usize) {
        self.0
            .lock()
            .unwrap()
            .term
            .resize(TermSize::new(columns, rows));
    }

    pub(crate) fn size(&self) -> impl Fn() -> (usize, usize) + Send + Sync + 'static {
        let state = Arc::clone(&self.0);
        move || {
            let state = state.lock().unwrap();
            (state.term.columns(), state.term.screen_lines())
        }
    }

    pub(crate) fn print(&self, text: &str) {
        let state = &mut *self.0.lock().unwrap();
        // A terminal driver translates newlines so.
        let mut text = text.replace("\r\n", "\n").replace('\n', "\r\n");
        if state.up_too_far > 0 {
            for up in (1..9_usize).rev() {
                text = text.replace(
                    &format!("\u{1b}[{up}A"),
                    &format!("\u{1b}[{}A", up + state.up_too_far),
                );
            }
        }
        state.parser.advance(&mut state.term, text.as_bytes());
    }

    /// Returns the lines of scrollback and screen, each joined from the rows it was wrapped into.
    pub(crate) fn lines(&self) -> Vec<String> {
        let state = self.0.lock().unwrap();
        let grid = state.term.grid();
        let (mut lines, mut line) = (Vec::new(), String::new());
        for row in grid.topmost_line().0..=grid.bottommost_line().0 {
            let row = &grid[Line(row)];
            let mut wraps = false;
            for column in 0..grid.columns() {
                let cell = &row[Column(column)];
                wraps = cell.flags.contains(Flags::WRAPLINE);
                if !cell
                    .flags
                    .intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER)
                {
                    line.push(cell.c);
                    line.extend(cell.zerowidth().unwrap_or_default());
                }
            }
            if !wraps {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
        }
        lines
    }
}

impl std::io::Write for Emulator {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.print(std::str::from_utf8(bytes).map_err(std::io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
