//! Resources: the user's conversations as text.

use std::fmt::Write as _;

use adjutant_core::port::{ConversationFilter, Cursor, StoreError};
use adjutant_core::{ConversationId, Role, TranscriptMessage, UserId, transcript};
use adjutant_runtime::Agent;
use jiff::Timestamp;
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use tracing::warn;
use uuid::Uuid;

/// Prefix of the URI of a conversation.
const THREADS: &str = "adjutant://threads/";
const MARKDOWN: &str = "text/markdown";
/// Format of the time at which a conversation was last used.
const TIME: &str = "%Y-%m-%d %H:%M:%S UTC";

/// Lists the user's conversations, the newest input first. `cursor`: the URI of the last one that
/// the client has.
pub(super) async fn list(
    agent: &Agent,
    user: &UserId,
    cursor: Option<&str>,
    page: usize,
) -> Result<ListResourcesResult, ErrorData> {
    let after = match cursor {
        None => None,
        Some(uri) => Some(place_of(agent, user, uri).await?),
    };
    let limit = u32::try_from(page).unwrap_or(u32::MAX);
    // One more than the page shows if there are more.
    let filter = ConversationFilter {
        after,
        ..ConversationFilter::newest(limit.saturating_add(1))
    };
    let listed = agent
        .conversations()
        .list(agent.name(), user, &filter)
        .await
        .map_err(failed)?;
    let more = listed.len() > page;
    let resources = listed.iter().take(page).map(|conversation| {
        // Clients show the name in their lists, and some the title.
        let title = title_of(&conversation.title, conversation.updated_at);
        let last_used = conversation.updated_at.strftime(TIME);
        Resource::new(format!("{THREADS}{}", conversation.id), title.clone())
            .with_title(title)
            .with_description(format!("A conversation, last used {last_used}"))
            .with_mime_type(MARKDOWN)
    });
    let resources: Vec<Resource> = resources.collect();
    let next = resources
        .last()
        .filter(|_| more)
        .map(|last| last.uri.clone());
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = next;
    Ok(result)
}

/// Returns the template of a conversation's URI.
pub(super) fn templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(vec![
        ResourceTemplate::new(format!("{THREADS}{{thread_id}}"), "thread")
            .with_title("A conversation")
            .with_description(
                "What was said in a conversation of the user's, and what was called for it",
            )
            .with_mime_type(MARKDOWN),
    ])
}

/// Reads one of the user's conversations.
pub(super) async fn read(
    agent: &Agent,
    user: &UserId,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let key = agent.key_for(user.clone(), id_of(uri)?);
    let summary = agent.conversations().summary(&key).await.map_err(failed)?;
    let summary = summary.ok_or_else(|| unknown(uri))?;
    let events = agent.journal().load(&key).await.map_err(failed)?.events;
    let title = title_of(&summary.title, summary.updated_at);
    let text = written(&title, &transcript(&events));
    Ok(ReadResourceResult::new(vec![
        ResourceContents::text(text, uri).with_mime_type(MARKDOWN),
    ]))
}

/// Returns the title of a conversation; one without a title is named by its time.
fn title_of(title: &str, updated_at: Timestamp) -> String {
    match title.trim() {
        "" => format!("Conversation of {}", updated_at.strftime(TIME)),
        title => title.to_owned(),
    }
}

/// Formats a conversation as Markdown: messages, calls with their tools, and results as the model
/// got them.
fn written(title: &str, messages: &[TranscriptMessage]) -> String {
    let mut text = format!("# {title}\n");
    for message in messages {
        let who = match message.role {
            Role::System => continue,
            Role::User => "User",
            Role::Assistant => "Assistant",
            Role::Tool => "Result",
        };
        if !message.content.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n**{who}:** {}\n", message.content);
        }
        for call in &message.tool_calls {
            let arguments = serde_json::Value::Object(call.arguments.clone());
            let _ = write!(text, "\n**Call:** `{}` `{arguments}`\n", call.tool);
        }
    }
    text
}

async fn place_of(agent: &Agent, user: &UserId, uri: &str) -> Result<Cursor, ErrorData> {
    // A cursor is opaque to the client, so the error does not say what is wrong inside of it.
    let key = agent.key_for(user.clone(), id_of(uri).map_err(|_| no_cursor())?);
    let summary = agent.conversations().summary(&key).await.map_err(failed)?;
    summary
        .map(|summary| summary.cursor())
        .ok_or_else(no_cursor)
}

fn no_cursor() -> ErrorData {
    ErrorData::invalid_params("there is no such cursor; start again without", None)
}

fn id_of(uri: &str) -> Result<ConversationId, ErrorData> {
    let id = uri
        .strip_prefix(THREADS)
        .and_then(|id| Uuid::try_parse(id).ok());
    id.map(ConversationId).ok_or_else(|| unknown(uri))
}

/// Returns the error for an unknown URI. It is the same for other users' conversations.
fn unknown(uri: &str) -> ErrorData {
    let data = serde_json::json!({ "uri": uri });
    ErrorData::resource_not_found("there is no such resource", Some(data))
}

/// Returns the error for a client, which learns nothing about the store.
fn failed(error: StoreError) -> ErrorData {
    warn!(%error, "a conversation could not be read for an MCP client");
    ErrorData::internal_error(
        "the service cannot reach its data right now; try again",
        None,
    )
}
