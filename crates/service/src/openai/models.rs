//! `GET /v1/models`: the agent, and its language model without tools.

use adjutant_runtime::Agent;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ErrorBody, about};
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;

/// Creation time of the models: the day on which this route was introduced, in seconds since 1970.
const CREATED: i64 = 1_795_305_600;

/// The two models of this API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelKind {
    /// The agent with its tools.
    Agent,
    /// The language model without tools and without the agent's instruction.
    Plain,
}

impl ModelKind {
    const ALL: [Self; 2] = [Self::Agent, Self::Plain];
}

/// The list of models.
#[derive(Debug, Serialize, ToSchema)]
struct ModelList {
    /// Always `list`.
    object: &'static str,
    /// The models.
    data: Vec<Model>,
}

/// A model that requests can name.
#[derive(Debug, Serialize, ToSchema)]
struct Model {
    /// Name of the model.
    id: String,
    /// Always `model`.
    object: &'static str,
    /// Creation time, in seconds since 1970.
    created: i64,
    /// Always `adjutant`.
    owned_by: &'static str,
}

impl Model {
    fn new(agent: &Agent, kind: ModelKind) -> Self {
        Self {
            id: name(agent, kind),
            object: "model",
            created: CREATED,
            owned_by: "adjutant",
        }
    }
}

/// Returns the name of a model.
pub(super) fn name(agent: &Agent, kind: ModelKind) -> String {
    model_name(agent.display_name(), kind)
}

fn model_name(agent: &str, kind: ModelKind) -> String {
    match kind {
        ModelKind::Agent => agent.to_owned(),
        ModelKind::Plain => format!("{agent}-plain"),
    }
}

/// Returns the model with this name.
pub(super) fn find(agent: &Agent, wanted: &str) -> Result<ModelKind, Problem> {
    let is_meant = |kind: &ModelKind| {
        // The internal name is accepted too: it is the same for all users, whatever they call their
        // agent.
        name(agent, *kind) == wanted || model_name(agent.name().as_str(), *kind) == wanted
    };
    ModelKind::ALL.into_iter().find(is_meant).ok_or_else(|| {
        let names = ModelKind::ALL.map(|kind| format!("`{}`", name(agent, kind)));
        let detail = format!(
            "the model `{wanted}` does not exist; there are {}",
            names.join(" and ")
        );
        let (status, code) = (StatusCode::NOT_FOUND, "model_not_found");
        about("model", Problem::new(status, code, "Not found", detail))
    })
}

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get_model))
}

/// Lists the models: the agent, and its language model without tools for an interface's own
/// requests, such as titles.
///
/// The format is that of OpenAI's API.
#[utoipa::path(get, path = "/v1/models", operation_id = "list_models", tag = "openai", responses(
    (status = 200, description = "The models.", body = ModelList),
))]
async fn list(State(app): State<Shared>, User(user): User) -> Json<ModelList> {
    let agent = app.agent.for_user(&user);
    let data = ModelKind::ALL.map(|kind| Model::new(&agent, kind));
    Json(ModelList {
        object: "list",
        data: data.into(),
    })
}

/// Returns a model.
///
/// The format is that of OpenAI's API.
#[utoipa::path(get, path = "/v1/models/{id}", operation_id = "get_model", tag = "openai", params(("id" = String, Path, description = "Name of the model.")), responses(
    (status = 200, description = "The model.", body = Model),
    (status = 404, description = "There is no such model.", body = ErrorBody),
))]
async fn get_model(
    State(app): State<Shared>,
    User(user): User,
    Path(id): Path<String>,
) -> Result<Json<Model>, Problem> {
    let agent = app.agent.for_user(&user);
    find(&agent, &id).map(|kind| Json(Model::new(&agent, kind)))
}
