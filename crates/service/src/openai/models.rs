//! `GET /v1/models`: the agent, and the same model without its tools.

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

/// Since when there are these models: the day this address was made, in seconds since 1970.
const SINCE: i64 = 1_795_305_600;

/// Which of the two a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The agent.
    Agent,
    /// Its model without tools and without the agent's instruction.
    Plain,
}

/// All models.
#[derive(Debug, Serialize, ToSchema)]
struct ModelList {
    object: &'static str,
    data: Vec<Model>,
}

/// One of them.
#[derive(Debug, Serialize, ToSchema)]
struct Model {
    id: String,
    object: &'static str,
    /// In seconds since 1970.
    created: i64,
    owned_by: &'static str,
}

impl Model {
    fn of(agent: &Agent, which: Which) -> Self {
        Self {
            id: name(agent, which),
            object: "model",
            created: SINCE,
            owned_by: "adjutant",
        }
    }
}

/// What a model is called.
pub(super) fn name(agent: &Agent, which: Which) -> String {
    named(agent.display_name(), which)
}

fn named(agent: &str, which: Which) -> String {
    match which {
        Which::Agent => agent.to_owned(),
        Which::Plain => format!("{agent}-plain"),
    }
}

/// The model of that name.
pub(super) fn find(agent: &Agent, wanted: &str) -> Result<Which, Problem> {
    let known = [Which::Agent, Which::Plain];
    let is_meant = |which: &Which| {
        // By the name its conversations are kept under too, which every user's assistant has.
        name(agent, *which) == wanted || named(agent.name().as_str(), *which) == wanted
    };
    known.into_iter().find(is_meant).ok_or_else(|| {
        let names = known
            .map(|which| format!("`{}`", name(agent, which)))
            .join(" and ");
        let detail = format!("the model `{wanted}` does not exist; there are {names}");
        about(
            "model",
            Problem::new(
                StatusCode::NOT_FOUND,
                "model_not_found",
                "Not found",
                detail,
            ),
        )
    })
}

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
}

/// The models: the agent, and the same model without tools for an interface's own texts such as
/// titles.
///
/// The list has the form that clients of OpenAI's interface read.
#[utoipa::path(get, path = "/v1/models", operation_id = "list_models", tag = "openai", responses(
    (status = 200, description = "The models.", body = ModelList),
    (status = 401, description = "Without a token.", body = ErrorBody),
    (status = 429, description = "Too much at once.", body = ErrorBody),
    (status = 500, description = "Something went wrong on our side.", body = ErrorBody),
    (status = 503, description = "The store is not available.", body = ErrorBody),
))]
async fn list(State(app): State<Shared>, User(user): User) -> Json<ModelList> {
    let agent = app.agent.for_user(&user);
    let data = [Which::Agent, Which::Plain].map(|which| Model::of(&agent, which));
    Json(ModelList {
        object: "list",
        data: data.into(),
    })
}

/// One of the models.
///
/// It has the form that clients of OpenAI's interface read.
#[utoipa::path(get, path = "/v1/models/{id}", operation_id = "get_model", tag = "openai", params(("id" = String, Path, description = "Its name.")), responses(
    (status = 200, description = "The model.", body = Model),
    (status = 401, description = "Without a token.", body = ErrorBody),
    (status = 404, description = "There is no such model.", body = ErrorBody),
    (status = 429, description = "Too much at once.", body = ErrorBody),
    (status = 500, description = "Something went wrong on our side.", body = ErrorBody),
    (status = 503, description = "The store is not available.", body = ErrorBody),
))]
async fn one(
    State(app): State<Shared>,
    User(user): User,
    Path(id): Path<String>,
) -> Result<Json<Model>, Problem> {
    let agent = app.agent.for_user(&user);
    find(&agent, &id).map(|which| Json(Model::of(&agent, which)))
}
