//! Terminals of 40 and of 80 columns: no line breaks within a word, a size or a name.

use super::*;

fn start(home: &Home, columns: u16, args: &[&str]) -> Terminal {
    Terminal::with_columns(home.command(args), Kind::Usual, columns)
}

impl Terminal {
    /// Fails unless each of the words is whole in one line of the screen.
    #[track_caller]
    fn has_whole(&self, words: &[&str]) {
        let screen = self.screen();
        for word in words {
            let is_whole = screen.lines().any(|line| line.contains(word));
            assert!(is_whole, "{word:?} is divided in:\n{screen}");
        }
    }
}

#[test]
fn the_parts_of_the_header_stay_whole() {
    for columns in [40, 80] {
        let home = Home::new();
        let mut terminal = start(&home, columns, &["-m", "demo"]);
        terminal.prompts_after("/help");
        terminal.has_whole(&[
            concat!("adjutant ", env!("CARGO_PKG_VERSION"), " · scripted/demo"),
            "ctx 131072",
            "no vault (adjutant init)",
            "/help · Ctrl-D quits",
        ]);
        terminal.quits();
    }
}

#[test]
fn the_questions_of_init_stay_whole() {
    for columns in [40, 80] {
        let home = Home::new();
        let mut command_line = start(&home, columns, &["init"]);
        command_line.sees("embedded/").sees("decide each time");
        let screen = command_line.screen();
        // Each line of the choice has a mark or an indentation, its help brackets.
        for line in screen.lines().filter(|line| !line.trim().is_empty()) {
            let begins = ["? ", "> ", "  ", "v ", "^ ", "["];
            assert!(
                begins.iter().any(|begin| line.starts_with(begin)),
                "{columns}: {line:?} in:\n{screen}"
            );
        }
        command_line.keys(CTRL_C);
        command_line.ends_with(130);
    }
}

#[test]
fn a_question_stays_whole() {
    for columns in [40, 80] {
        let home = Home::new();
        let mut terminal = start(&home, columns, &["ask", "-m", "embedded", "hello"]);
        terminal.sees("[Y/n]");
        terminal.has_whole(&["Download", "qwen2.5-coder-1.5b", "1.1 GB", "once", "[Y/n]"]);
        terminal.keys("n");
        terminal.ends_with(3);
    }
}
