//! Questions that `y` or `n` answers.

use adjutant_core::{Reading, read_words};

use crate::error::CliError;
use crate::terminal::display::{clean, fold};
use crate::terminal::keys::{self, Typed};
use crate::terminal::lines::Lines;
use crate::terminal::screen::Screen;

/// Keys that answer such a question by themselves.
const YES_NO: &[char] = &['y', 'n'];

/// The answer to a yes-or-no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum YesNo {
    Yes,
    No,
    /// Ctrl-C.
    Interrupted,
}

/// Asks a yes-or-no question, like [`choose_yes_no`]. Ctrl-C is passed on as the signal that it is
/// elsewhere.
pub(crate) async fn ask_yes_no(screen: &Screen, question: &str, enter: bool) -> bool {
    match choose_yes_no(screen, question, enter).await {
        YesNo::Yes => true,
        YesNo::No => false,
        YesNo::Interrupted => interrupt().await,
    }
}

/// Asks a yes-or-no question. One key answers it, or a word; Enter alone gives the default `enter`,
/// which is shown in capitals. Esc and the end of input are no. A pasted text is no answer.
///
/// Where the user cannot be asked, a line of standard input is the answer, and an unclear one is
/// no.
pub(crate) async fn choose_yes_no(screen: &Screen, question: &str, enter: bool) -> YesNo {
    let keys = if enter { "[Y/n]" } else { "[y/N]" };
    let question = format!("{} {keys} ", clean(question));
    if !screen.asks() {
        return read(&line(screen, &question).await, enter).unwrap_or(YesNo::No);
    }
    // A live line that is redrawn would overwrite what is typed.
    screen.end_live();
    let folded = fold(&question, screen.columns());
    loop {
        let typed = match keys::ask(&folded, YES_NO, std::future::pending()).await {
            Ok(Typed::Text(words)) => Some(words),
            Ok(Typed::Escaped | Typed::Ended) => return YesNo::No,
            Ok(Typed::Interrupted) => return YesNo::Interrupted,
            // Whatever the cause, the user can still type a line.
            Err(_) => line(screen, &question).await,
        };
        match read(&typed, enter) {
            Some(answer) => return answer,
            None => screen.side_line("  Please answer y or n."),
        }
    }
}

/// Asks a yes-or-no question that a command needs a yes to; Enter alone is no.
///
/// # Errors
/// `needed` if the user cannot be asked, a failure with the message `declined` if they say no.
pub(crate) async fn require_yes(
    screen: &Screen,
    question: &str,
    needed: CliError,
    declined: &str,
) -> Result<(), CliError> {
    if !screen.asks() {
        return Err(needed);
    }
    match ask_yes_no(screen, question, false).await {
        true => Ok(()),
        false => Err(CliError::failed(declined)),
    }
}

/// Returns the next line of standard input; `None` if there is none, or it cannot be read.
async fn line(screen: &Screen, question: &str) -> Option<String> {
    let line = Lines::new().answer(screen, question).await.ok().flatten();
    line.map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// Returns the meaning of an answer; `None` for an unclear one. Without an answer nothing is agreed
/// to.
fn read(typed: &Option<String>, enter: bool) -> Option<YesNo> {
    match typed.as_deref().map(str::trim) {
        None => Some(YesNo::No),
        Some("") if enter => Some(YesNo::Yes),
        Some("") => Some(YesNo::No),
        Some(words) => match read_words(words) {
            Reading::Yes => Some(YesNo::Yes),
            Reading::No => Some(YesNo::No),
            Reading::Unclear => None,
        },
    }
}

/// Sends this process the signal of Ctrl-C, which is a key while a question waits. It ends the
/// process, unless somebody listens for it: they drop the question.
async fn interrupt() -> bool {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, getpid, kill_process};
        if kill_process(getpid(), Signal::INT).is_ok() {
            std::future::pending::<()>().await;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_letter_a_word_or_the_default() {
        let answer = |words: &str| Some(words.to_owned());
        for (enter, default) in [(true, YesNo::Yes), (false, YesNo::No)] {
            assert_eq!(read(&answer("y"), enter), Some(YesNo::Yes));
            assert_eq!(read(&answer(" Yes "), enter), Some(YesNo::Yes));
            assert_eq!(read(&answer("n"), enter), Some(YesNo::No));
            assert_eq!(read(&answer(""), enter), Some(default));
            assert_eq!(read(&answer("perhaps"), enter), None);
            assert_eq!(read(&None, enter), Some(YesNo::No));
        }
    }
}
