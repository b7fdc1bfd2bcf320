//! `POST /v1/notes/links`: resolves links to notes in answers to Obsidian addresses.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::JsonBody;
use crate::memory::memory_of;
use crate::problem::Problem;
use crate::state::Shared;
use crate::text_length::at_most;
use crate::user::User;

/// Most links in one request.
const LINKS_MAX: usize = 100;
/// Longest link, in Unicode characters.
const LINK_CHARS_MAX: usize = 1_000;

/// Links to notes, as they are written in an answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"links": ["Plans/House#Roof", "Gone"]}))]
struct Links {
    /// The text of each `[[…]]`, without the part after `|`.
    #[schema(max_items = 100)]
    links: Vec<String>,
}

/// Addresses that open notes in Obsidian.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"addresses": ["obsidian://open?vault=Notes&file=Plans%2FHouse%23Roof", null]}))]
struct Addresses {
    /// For each link an `obsidian://` address, or `null` if the vault has no such note.
    addresses: Vec<Option<String>>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(links))
}

/// Returns the addresses that open linked notes in Obsidian.
///
/// For the owner of the vault. The vault's folder is read at each request and not changed.
#[utoipa::path(post, path = "/v1/notes/links", operation_id = "find_note_links", tag = "memory", request_body = Links, responses(
    (status = 200, description = "The addresses, in the order of the links.", body = Addresses),
    (status = 404, description = "The caller has no vault."),
    (status = 409, description = "The vault is missing."),
))]
async fn links(
    State(app): State<Shared>,
    User(user): User,
    JsonBody(Links { links }): JsonBody<Links>,
) -> Result<Json<Addresses>, Problem> {
    let notes = memory_of(&app, &user).and_then(|memory| memory.notes());
    let notes = notes.ok_or_else(|| Problem::unknown("vault"))?;
    if links.len() > LINKS_MAX {
        return Err(Problem::invalid(format!(
            "links has at most {LINKS_MAX} of them"
        )));
    }
    for link in &links {
        at_most("a link", link, LINK_CHARS_MAX)?;
    }
    let addresses = notes.addresses(links).await?;
    Ok(Json(Addresses { addresses }))
}
