//! `/v1/tasks`: the tasks of whoever asks, for the panel beside a conversation.

use adjutant_core::port::StoreError;
use adjutant_core::{TaskFilter, UserId};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::Problem;
use crate::state::{App, Shared};
use crate::user::User;
use crate::wire::TaskView;

/// Which tasks to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// `all` (which it is unless said otherwise), `pending` or `completed`.
    #[serde(default)]
    #[param(inline, value_type = Option<Status>)]
    status: TaskFilter,
}

/// Which of them.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes adjutant_core's filter, which knows nothing of OpenAPI")]
enum Status {
    All,
    Pending,
    Completed,
}

/// A user's tasks.
#[derive(Debug, Serialize, ToSchema)]
struct TaskList {
    /// By number.
    tasks: Vec<TaskView>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list))
}

/// The tasks of a user. `None`: this service keeps none.
pub(crate) async fn tasks_of(
    app: &App,
    user: &UserId,
    filter: TaskFilter,
) -> Result<Option<Vec<TaskView>>, StoreError> {
    let Some(tasks) = app.tasks.get() else { return Ok(None) };
    Ok(Some(tasks.list(user, filter).await?.into_iter().map(TaskView::from).collect()))
}

/// The tasks of whoever asks. They are changed by tools only: `POST /v1/tools/{name}/invoke`, or in a conversation.
#[utoipa::path(get, path = "/v1/tasks", tag = "tasks", params(ListQuery), responses(
    (status = 200, description = "The tasks.", body = TaskList),
    (status = 404, description = "This service keeps no tasks."),
))]
async fn list(
    State(app): State<Shared>,
    User(user): User,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<TaskList>, Problem> {
    let Query(query) = query?;
    match tasks_of(&app, &user, query.status).await {
        Ok(Some(tasks)) => Ok(Json(TaskList { tasks })),
        Ok(None) => Err(Problem::unknown("list: this service keeps no tasks")),
        Err(error) => Err(Problem::store(&error)),
    }
}
