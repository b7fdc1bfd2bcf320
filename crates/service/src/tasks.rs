//! `/v1/tasks`: the tasks of whoever asks, for the panel beside a conversation.

use adjutant_core::port::StoreError;
use adjutant_core::{TaskFilter, TaskId, UserId};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::paging::Limit;
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
    /// The last ones, at most so many. Unless it is given, all are listed.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// Go on with the tasks before the last page: its `next_cursor`.
    #[param(value_type = Option<String>, pattern = "^[1-9][0-9]{0,17}$")]
    cursor: Option<TaskId>,
}

/// Which of them.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(
    dead_code,
    reason = "it describes adjutant_core's filter, which knows nothing of OpenAPI"
)]
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
    /// Where the tasks before these are. `null`: there are none.
    next_cursor: Option<String>,
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
    let Some(tasks) = app.tasks.get() else {
        return Ok(None);
    };
    Ok(Some(
        tasks
            .list(user, filter)
            .await?
            .into_iter()
            .map(TaskView::from)
            .collect(),
    ))
}

/// The tasks of whoever asks.
///
/// They are changed by tools only: `POST /v1/tools/{name}/invoke`, or in a conversation.
#[utoipa::path(get, path = "/v1/tasks", operation_id = "list_tasks", tag = "tasks", params(ListQuery), responses(
    (status = 200, description = "The tasks.", body = TaskList),
    (status = 404, description = "This service keeps no tasks."),
))]
async fn list(
    State(app): State<Shared>,
    User(user): User,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<TaskList>, Problem> {
    let Query(query) = query?;
    let unknown = || Problem::unknown("list: this service keeps no tasks");
    let failed = |error: StoreError| Problem::store(&error);
    let ListQuery {
        status,
        limit,
        cursor,
    } = query;
    if limit.is_none() && cursor.is_none() {
        let tasks = tasks_of(&app, &user, status)
            .await
            .map_err(failed)?
            .ok_or_else(unknown)?;
        return Ok(Json(TaskList {
            tasks,
            next_cursor: None,
        }));
    }
    let limit = limit.unwrap_or_default().get();
    let tasks = app.tasks.get().ok_or_else(unknown)?;
    // One more tells whether there is another page.
    let mut found = tasks
        .list_last(&user, status, cursor, limit + 1)
        .await
        .map_err(failed)?;
    let left_out = found
        .len()
        .saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    let page = found.split_off(left_out);
    let next_cursor = page
        .first()
        .filter(|_| left_out > 0)
        .map(|first| first.id.to_string());
    Ok(Json(TaskList {
        tasks: page.into_iter().map(TaskView::from).collect(),
        next_cursor,
    }))
}
