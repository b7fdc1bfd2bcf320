//! `adjutant chat`: a conversation, line by line.

use std::time::{Duration, Instant};

use adjutant_core::{Message, Role, Usage, nearest};
use adjutant_runtime::RunContext;

use crate::config::Settings;
use crate::db;
use crate::display::clip;
use crate::error::{CliError, Exit};
use crate::input::checked;
use crate::screen::{Screen, dim};
use crate::talk::Talk;

const PROMPT: &str = "you> ";

/// A second Ctrl-C on an empty line within this time quits.
const QUIT_WITHIN: Duration = Duration::from_secs(2);

/// Messages shown when a conversation is taken up again: the last three turns.
const SHOWN_AGAIN: usize = 6;

/// What can be typed, and what it does.
const COMMANDS: &[(&str, &str)] = &[
    ("/help", "this list"),
    ("/new", "start a new conversation"),
    ("/usage", "tokens of this session"),
    ("/quit", "end; so does Ctrl-D, or Ctrl-C twice"),
    ("/exit", "the same"),
];

/// Talks until the person leaves.
///
/// # Errors
/// No assistant could be started. Once it runs, what goes wrong is told and the talk goes on.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    continues: bool,
    yes: Vec<String>,
) -> Result<Exit, CliError> {
    let mut talk = Talk::start(screen, settings, yes, true).await?;
    db::remove_old(settings, &*talk.store, screen).await;
    let left = until_left(&mut talk, continues).await;
    talk.leave().await;
    left
}

async fn until_left(talk: &mut Talk<'_>, continues: bool) -> Result<Exit, CliError> {
    let screen = talk.screen;
    let mut context = talk.context(continues).await?;
    if screen.asks() {
        screen.note("/help · Ctrl-D quits");
    }
    show_again(screen, &context);
    let mut session = Session { usage: Usage::default(), turns: 0 };
    let mut interrupted: Option<Instant> = None;
    loop {
        if screen.asks() {
            screen.side(PROMPT);
        }
        let line = tokio::select! {
            line = talk.lines.next() => line,
            () = talk.interrupts.next() => {
                if interrupted.is_some_and(|at| at.elapsed() < QUIT_WITHIN) {
                    screen.side("\n");
                    return Ok(Exit::Interrupted);
                }
                interrupted = Some(Instant::now());
                screen.side_line("");
                screen.note("Ctrl-C again, or Ctrl-D, quits");
                continue;
            }
        };
        interrupted = None;
        let line = line
            .map_err(|error| CliError::failed("standard input cannot be read").because(error.to_string()))?;
        let Some(line) = line else {
            if screen.asks() {
                screen.side("\n");
            }
            return Ok(Exit::Ok);
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match session.line(talk, &mut context, line).await {
            Ok(Next::Prompt) => {}
            Ok(Next::Leave) => return Ok(Exit::Ok),
            Err(error) if error.exit == Exit::Interrupted => return Err(error),
            Err(error) => screen.error(&error),
        }
    }
}

/// What happens after a line.
enum Next {
    Prompt,
    Leave,
}

/// What is counted from start to end.
struct Session {
    usage: Usage,
    turns: u32,
}

impl Session {
    async fn line(
        &mut self,
        talk: &mut Talk<'_>,
        context: &mut RunContext,
        line: Vec<u8>,
    ) -> Result<Next, CliError> {
        let prompt = checked(line, "the line")?;
        if let Some(notice) = &prompt.notice {
            talk.screen.note(notice);
        }
        let text = prompt.text.trim();
        if !text.starts_with('/') {
            let response = talk.say(context, text).await?;
            self.usage = self.usage.plus(response.usage);
            self.turns += 1;
            return Ok(Next::Prompt);
        }
        let screen = talk.screen;
        match text {
            "/quit" | "/exit" => return Ok(Next::Leave),
            "/help" => {
                for (command, meaning) in COMMANDS {
                    screen.side_line(&format!("  {command:8} {meaning}"));
                }
            }
            "/new" => {
                *context = RunContext::new(talk.user.clone());
                screen.note("a new conversation");
            }
            "/usage" => screen.side_line(&self.words()),
            unknown => {
                let word = unknown.split_whitespace().next().unwrap_or(unknown);
                let error = CliError::usage(format!("there is no command {}", clip(word, 40)));
                let near = nearest(word, COMMANDS.iter().map(|(command, _)| *command));
                return Err(error.or_try(near.unwrap_or("/help")));
            }
        }
        Ok(Next::Prompt)
    }

    fn words(&self) -> String {
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        format!(
            "{} turns · {} tokens in · {} tokens out",
            self.turns,
            count(self.usage.input_tokens),
            count(self.usage.output_tokens)
        )
    }
}

/// The last turns of a conversation that goes on, one line each.
fn show_again(screen: &Screen, context: &RunContext) {
    let said: Vec<(Role, String)> = context
        .history
        .iter()
        .filter(|message| matches!(message.role(), Role::User | Role::Assistant))
        .map(|message: &Message| (message.role(), clip(&message.text(), 160)))
        .filter(|(_, text)| !text.is_empty())
        .collect();
    for (role, text) in said.iter().skip(said.len().saturating_sub(SHOWN_AGAIN)) {
        let who = if *role == Role::User { "you> " } else { "     " };
        screen.side_line(&dim(&format!("{who}{text}")));
    }
    for call in &context.pending {
        screen.side_line(&format!("? {}  waits for a yes or no", clip(&call.preview, 200)));
    }
}
