//! `/v1/notes/links`: where the notes that an answer links to are opened.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::length::at_most;
use crate::memory::memory_of;
use crate::object::Object;
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;

/// Links that are looked up at once.
const LINKS_MAX: usize = 100;
/// Unicode characters of one.
const LINK_CHARS_MAX: usize = 1_000;

/// Links to notes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"links": ["Plans/House#Roof", "Gone"]}))]
struct Links {
    /// Each as it stands in `[[…]]` before the `|`.
    #[schema(max_items = 100)]
    links: Vec<String>,
}

/// The addresses of notes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"addresses": ["obsidian://open?vault=Notes&file=Plans%2FHouse%23Roof", null]}))]
struct Addresses {
    /// For each link the address at which Obsidian opens its note; `null` if it is no note of the
    /// vault.
    addresses: Vec<Option<String>>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(links))
}

/// The addresses at which Obsidian opens the notes that an answer links to.
///
/// For the owner of the vault. Nothing is changed; the folder is read fresh.
#[utoipa::path(post, path = "/v1/notes/links", operation_id = "find_note_links", tag = "memory", request_body = Links, responses(
    (status = 200, description = "The addresses, in the order of the links.", body = Addresses),
    (status = 404, description = "Whoever asks has no notes here."),
    (status = 409, description = "The vault is not there at the moment."),
))]
async fn links(
    State(app): State<Shared>,
    User(user): User,
    body: Result<Json<Object<Links>>, JsonRejection>,
) -> Result<Json<Addresses>, Problem> {
    let notes = memory_of(&app, &user).and_then(|memory| memory.notes());
    let notes = notes.ok_or_else(|| Problem::unknown("vault"))?;
    let Json(Object(Links { links })) = body?;
    if links.len() > LINKS_MAX {
        return Err(Problem::invalid(format!(
            "links has at most {LINKS_MAX} of them"
        )));
    }
    for link in &links {
        at_most("a link", link, LINK_CHARS_MAX)?;
    }
    let addresses = notes
        .addresses(links)
        .await
        .map_err(crate::memory::problem)?;
    Ok(Json(Addresses { addresses }))
}
