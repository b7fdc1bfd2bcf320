//! Generated titles: replaces the title made of a conversation's first message by one that the
//! model wrote.

mod answer; // the title in the model's answer

use std::time::Duration;

use adjutant_core::{
    ConversationKey, GenerateRequest, GenerationConfig, InputBody, MaxTokens, Message, Role, title,
    transcript,
};
use serde_json::json;
use tokio::time::Instant;

use crate::clock::millis;
use crate::daily_budget::ReserveError;
use crate::stream::Emitter;
use crate::{Agent, RunError};

/// The instruction of the model call that writes a title.
const PROMPT: &str = include_str!("../../../prompts/title.md");
/// Unicode characters of each side's message that the model is shown.
const SHOWN_CHARS: usize = 1_500;
/// Limit of visible output. A title needs few tokens; thinking is not counted here.
const TOKENS_MAX: u32 = 60;
/// Limit of the model call. Short, because no caller waits for the title.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Agent {
    /// Lets the model write a title for a conversation whose title is still made of the message of
    /// its last turn, and stores it. A title that a user gave is never replaced, not even one given
    /// while the model writes. The call is booked on the budgets of the day and is not part of the
    /// conversation. `None`: the title stays as it is, because it was changed before, the call does
    /// not fit the budgets, or the model failed or wrote no title.
    ///
    /// # Errors
    /// [`RunError`] if the store fails.
    pub async fn generate_title(&self, key: &ConversationKey) -> Result<Option<String>, RunError> {
        let inner = self.inner();
        let summary = inner.conversations.summary(key).await?;
        let Some(summary) = summary.filter(|summary| !summary.named) else {
            return Ok(None);
        };
        let Some(last) = inner.journal.load_turns(key, None, 1).await? else {
            return Ok(None);
        };
        let messages = transcript(&last.events);
        let of = |role: Role| {
            messages
                .iter()
                .filter(move |message| message.role == role && !message.content.trim().is_empty())
        };
        let (Some(question), Some(answer)) =
            (of(Role::User).next(), of(Role::Assistant).next_back())
        else {
            return Ok(None);
        };
        // The title was made of an earlier message: it had its one attempt.
        let made = title(&InputBody::message(question.content.clone()));
        if made.as_ref() != Some(&summary.title) {
            return Ok(None);
        }
        let request = request(&inner.config, &question.content, &answer.content);
        let worker = inner.worker.as_str().into();
        let reservation = match inner
            .reserve_for_request((&key.user, worker), None, &request, Some(TIMEOUT))
            .await
        {
            Ok(reservation) => reservation,
            Err(ReserveError::Exceeded(_)) => return Ok(None),
            Err(ReserveError::Store(error)) => return Err(error.into()),
        };
        let began = Instant::now();
        let reply = inner
            .generate_silently(request, Some(TIMEOUT), &Emitter::Silent)
            .await;
        reservation.settle_outside_turns(inner, &reply, millis(began));
        let Some(found) = reply.ok().and_then(|reply| answer::parse(&reply.text())) else {
            return Ok(None);
        };
        // Compares the old title in the store, so that a title given meanwhile is not overwritten.
        let is_changed = inner
            .conversations
            .retitle(key, &summary.title, &found)
            .await?;
        Ok(is_changed.then_some(found))
    }
}

fn request(config: &GenerationConfig, question: &str, answer: &str) -> GenerateRequest {
    let begin = |text: &str| text.chars().take(SHOWN_CHARS).collect::<String>();
    let material = json!({ "person": begin(question), "assistant": begin(answer) }).to_string();
    let messages = [Message::system(PROMPT.trim_end()), Message::user(material)];
    GenerateRequest {
        config: GenerationConfig {
            max_tokens: MaxTokens::new(TOKENS_MAX).ok(),
            ..config.clone()
        },
        ..GenerateRequest::new(messages.into_iter().flatten().collect())
    }
}
