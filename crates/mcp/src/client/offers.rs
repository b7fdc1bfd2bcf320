//! Prompts and resources of a server, for a person. No model reads them.

use rmcp::Peer;
use rmcp::model::{
    ErrorCode, GetPromptRequestParams, JsonObject, PaginatedRequestParams,
    ReadResourceRequestParams,
};
use rmcp::service::{RoleClient, ServiceError};
use serde_json::{Value, json};

use super::failure::message;

/// Most entries of a list.
const ENTRIES_MAX: usize = 1_000;
/// Most pages of a list.
const PAGES_MAX: usize = 100;

/// Lists the prompts of a server, as the protocol has them. One without the method has none.
///
/// # Errors
/// A description of the failure.
pub(super) async fn prompts(peer: &Peer<RoleClient>) -> Result<Vec<Value>, String> {
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let Some(page) = or_none(peer.list_prompts(Some(params)).await)? else {
            break;
        };
        all.extend(page.prompts.iter().map(|prompt| json!(prompt)));
        cursor = page.next_cursor;
        if cursor.is_none() || all.len() >= ENTRIES_MAX {
            break;
        }
    }
    all.truncate(ENTRIES_MAX);
    Ok(all)
}

/// Lists the resources of a server, and its templates of resources, as the protocol has them. One
/// without the method has none.
///
/// # Errors
/// A description of the failure.
pub(super) async fn resources(peer: &Peer<RoleClient>) -> Result<Vec<Value>, String> {
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let Some(page) = or_none(peer.list_resources(Some(params)).await)? else {
            break;
        };
        all.extend(page.resources.iter().map(|resource| json!(resource)));
        cursor = page.next_cursor;
        if cursor.is_none() || all.len() >= ENTRIES_MAX {
            break;
        }
    }
    let templates = or_none(peer.list_resource_templates(None).await)?;
    let templates = templates.map(|page| page.resource_templates);
    let templates = templates.unwrap_or_default();
    all.extend(templates.iter().map(|template| json!(template)));
    all.truncate(ENTRIES_MAX);
    Ok(all)
}

/// Fetches a prompt: its messages, as the protocol has them.
///
/// # Errors
/// A description of the failure.
pub(super) async fn prompt(
    peer: &Peer<RoleClient>,
    name: &str,
    arguments: JsonObject,
) -> Result<Value, String> {
    let params = GetPromptRequestParams::new(name).with_arguments(arguments);
    let prompt = peer.get_prompt(params).await;
    prompt
        .map(|prompt| json!(prompt))
        .map_err(|error| message(&error))
}

/// Reads a resource: its contents, as the protocol has them.
///
/// # Errors
/// A description of the failure.
pub(super) async fn resource(peer: &Peer<RoleClient>, uri: &str) -> Result<Value, String> {
    let read = peer
        .read_resource(ReadResourceRequestParams::new(uri))
        .await;
    read.map(|read| json!(read))
        .map_err(|error| message(&error))
}

/// Returns `None` for a method that the server does not have.
fn or_none<T>(answer: Result<T, ServiceError>) -> Result<Option<T>, String> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => Ok(None),
        Err(error) => Err(message(&error)),
    }
}
