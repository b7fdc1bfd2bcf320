//! Generated titles: replaces the title made of a conversation's first message by one that the
//! model wrote.

mod answer; // the title in the model's answer

use std::time::Duration;

use adjutant_core::{
    ConversationKey, GenerateRequest, GenerationConfig, InputBody, MaxTokens, Message, Role,
    TranscriptMessage, title, transcript,
};
use serde_json::{Value, json};
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
    /// Lets the model write a title for a conversation whose title is still made of a message of the
    /// person, and stores it. The model is asked once, after the turn that follows the one whose
    /// message is the title: the first words are title enough for a conversation of one turn, which
    /// then costs no second request. A title that a user gave is never replaced, not even one given
    /// while the model writes. The call is booked on the budgets of the day and is not part of the
    /// conversation. `None`: the title stays as it is, because there is no second turn yet, it was
    /// changed before, the call does not fit the budgets, or the model failed or wrote no title.
    ///
    /// # Errors
    /// [`RunError`] if the store fails.
    pub async fn generate_title(&self, key: &ConversationKey) -> Result<Option<String>, RunError> {
        let inner = self.inner();
        let summary = inner.conversations.summary(key).await?;
        let Some(summary) = summary.filter(|summary| !summary.named) else {
            return Ok(None);
        };
        let Some(last) = inner.journal.load_turns(key, None, 2).await? else {
            return Ok(None);
        };
        let exchanges = exchanges(&transcript(&last.events));
        let [(first, _), _] = exchanges.as_slice() else {
            return Ok(None);
        };
        // The title was made of an earlier message: it had its one attempt.
        if title(&InputBody::message(first.clone())).as_ref() != Some(&summary.title) {
            return Ok(None);
        }
        let request = request(&inner.config, &exchanges);
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

/// Returns the message of the person and the last answer of each turn that has both.
fn exchanges(messages: &[TranscriptMessage]) -> Vec<(String, String)> {
    let mut exchanges = Vec::new();
    for turn in messages.chunk_by(|one, next| one.turn == next.turn) {
        let of = |role: Role| {
            turn.iter()
                .filter(move |message| message.role == role && !message.content.trim().is_empty())
                .map(|message| message.content.clone())
        };
        exchanges.extend(of(Role::User).next().zip(of(Role::Assistant).next_back()));
    }
    exchanges
}

fn request(config: &GenerationConfig, exchanges: &[(String, String)]) -> GenerateRequest {
    let begin = |text: &str| text.chars().take(SHOWN_CHARS).collect::<String>();
    let material = exchanges
        .iter()
        .map(|(question, answer)| json!({ "person": begin(question), "assistant": begin(answer) }));
    let material = Value::Array(material.collect()).to_string();
    let messages = [Message::system(PROMPT.trim_end()), Message::user(material)];
    GenerateRequest {
        config: GenerationConfig {
            max_tokens: MaxTokens::new(TOKENS_MAX).ok(),
            ..config.clone()
        },
        ..GenerateRequest::new(messages.into_iter().flatten().collect())
    }
}
