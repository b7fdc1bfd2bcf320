//! Titles of conversations: in the model's words instead of the person's first ones.

use std::time::Duration;

use adjutant_core::{
    ConversationKey, GenerateRequest, GenerationConfig, InputBody, MaxTokens, Message, Role,
    clean_line, given_title, title, transcript,
};
use serde_json::json;
use tokio::time::Instant;

use crate::clock::millis;
use crate::stream::Emitter;
use crate::{Agent, RunError};

/// The instruction of the model that finds a title.
const PROMPT: &str = include_str!("../../../prompts/title.md");
/// So much of what was said is shown, in Unicode characters of each side.
const SHOWN_CHARS: usize = 1_500;
/// Tokens of the answer. A name has a few; a model that thinks is allowed to do so beside them.
const TOKENS_MAX: u32 = 60;
/// Nobody waits for it, and nothing is lost with it.
const TIME: Duration = Duration::from_secs(30);

impl Agent {
    /// Has the model find a title for a conversation whose title was made of the message of its
    /// last turn, and gives it to it. A title that a person gave is never replaced, not even one
    /// that they give meanwhile. The call is booked on the budgets of the day and is no part of the
    /// conversation. `None`: the title stays as it is, because there is nothing to do, because it
    /// does not fit the budgets, or because the model failed or wrote no title.
    ///
    /// # Errors
    /// [`RunError`] if the store fails.
    pub async fn name_it(&self, key: &ConversationKey) -> Result<Option<String>, RunError> {
        let inner = self.inner();
        let summary = inner.conversations.summary(key).await?;
        let Some(summary) = summary.filter(|summary| !summary.named) else {
            return Ok(None);
        };
        let Some(last) = inner.journal.load_turns(key, None, 1).await? else {
            return Ok(None);
        };
        let said = transcript(&last.events);
        let of = |role: Role| {
            said.iter()
                .filter(move |said| said.role == role && !said.content.trim().is_empty())
        };
        let (Some(asked), Some(answer)) = (of(Role::User).next(), of(Role::Assistant).next_back())
        else {
            return Ok(None);
        };
        // One try: later turns do not make the title.
        let made = title(&InputBody::message(asked.content.clone()));
        if made.as_ref() != Some(&summary.title) {
            return Ok(None);
        }
        let request = request(&inner.config, &asked.content, &answer.content);
        let worker = inner.worker.as_str().into();
        let Ok(set_aside) = inner
            .set_aside_beside((&key.user, worker), &request, TIME)
            .await?
        else {
            return Ok(None);
        };
        let began = Instant::now();
        let reply = inner
            .whole_answer(request, Some(TIME), &Emitter::Nobody)
            .await;
        set_aside.settle_beside(inner, &reply, millis(began));
        let Some(found) = reply.ok().and_then(|reply| read(&reply.text())) else {
            return Ok(None);
        };
        let is_named = inner
            .conversations
            .retitle(key, &summary.title, &found)
            .await?;
        Ok(is_named.then_some(found))
    }
}

fn request(config: &GenerationConfig, asked: &str, answer: &str) -> GenerateRequest {
    let begin = |text: &str| text.chars().take(SHOWN_CHARS).collect::<String>();
    let material = json!({ "person": begin(asked), "assistant": begin(answer) }).to_string();
    let messages = [Message::system(PROMPT.trim_end()), Message::user(material)];
    GenerateRequest {
        config: GenerationConfig {
            max_tokens: MaxTokens::new(TOKENS_MAX).ok(),
            ..config.clone()
        },
        ..GenerateRequest::new(messages.into_iter().flatten().collect())
    }
}

/// The title in what a model wrote: its first line with words, without the marks that models put
/// around it.
fn read(text: &str) -> Option<String> {
    let line = text
        .lines()
        .map(clean_line)
        .find(|line| line.chars().any(char::is_alphanumeric))?;
    let line = line.trim().trim_start_matches(['#', '-', '*', '>', ' ']);
    let labels = ["title:", "titel:", "name:"];
    let label = labels.iter().find(|label| {
        line.get(..label.len())
            .is_some_and(|at| at.eq_ignore_ascii_case(label))
    });
    let line = label
        .and_then(|label| line.get(label.len()..))
        .unwrap_or(line);
    let is_mark = |c: char| {
        matches!(
            c,
            '"' | '\'' | '“' | '”' | '„' | '«' | '»' | '*' | '_' | '`' | '.'
        ) || c.is_whitespace()
    };
    // As long as one that is made of a message.
    title(&InputBody::message(given_title(
        line.trim_matches(is_mark),
    )?))
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_title_is_read_out_of_what_models_write() {
        for (text, title) in [
            ("Buying milk", Some("Buying milk")),
            (
                "\n\n**\"Buying milk.\"**\nIt is about milk.",
                Some("Buying milk"),
            ),
            ("# Title: Einkauf für Samstag", Some("Einkauf für Samstag")),
            ("„Einkauf“", Some("Einkauf")),
            ("Buy\u{1b}[2J\u{200b} milk", Some("Buy[2J milk")),
            ("C++ and R&D", Some("C++ and R&D")),
            ("…", None),
            ("", None),
            ("Title:", None),
        ] {
            assert_eq!(read(text).as_deref(), title, "{text:?}");
        }
        assert!(read(&"long ".repeat(30)).is_some_and(|title| title.chars().count() <= 60));
        // A model that talks on has not found one.
        assert_eq!(read(&"long ".repeat(100)), None);
    }
}
