//! `GET /v1/tasks`: the caller's tasks.

use adjutant_core::UserId;
use adjutant_core::port::StoreError;
use adjutant_tools::{TaskFilter, TaskId};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::QueryParams;
use crate::paging::Limit;
use crate::problem::Problem;
use crate::state::{App, Shared};
use crate::user::User;
use crate::wire::TaskView;

/// Filter and page of the list of tasks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// `all` (the default), `pending` or `completed`.
    #[serde(default)]
    #[param(inline, value_type = Option<Status>)]
    status: TaskFilter,
    /// Largest number of tasks; the last ones are returned. Default: all.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// `next_cursor` of the previous page, to get the tasks before it.
    #[param(value_type = Option<String>, pattern = "^[1-9][0-9]{0,17}$")]
    cursor: Option<TaskId>,
}

/// State of the tasks to list.
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

/// The caller's tasks, or a page of them.
#[derive(Debug, Serialize, ToSchema)]
struct TaskList {
    /// The tasks, ordered by number.
    tasks: Vec<TaskView>,
    /// Cursor of the tasks before these. `null`: there are none.
    next_cursor: Option<String>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Returns a user's tasks, or `None` if this service has no task store.
pub(crate) async fn list_tasks(
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

/// Lists the caller's tasks.
///
/// Tasks are changed by tools only: with `POST /v1/tools/{name}/invoke`, or in a conversation.
#[utoipa::path(get, path = "/v1/tasks", operation_id = "list_tasks", tag = "tasks", params(ListQuery), responses(
    (status = 200, description = "The tasks.", body = TaskList),
    (status = 404, description = "This service has no task store."),
))]
async fn list(
    State(app): State<Shared>,
    User(user): User,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<TaskList>, Problem> {
    let unknown = || Problem::unknown("list: this service keeps no tasks");
    let ListQuery {
        status,
        limit,
        cursor,
    } = query;
    if limit.is_none() && cursor.is_none() {
        let tasks = list_tasks(&app, &user, status).await?.ok_or_else(unknown)?;
        return Ok(Json(TaskList {
            tasks,
            next_cursor: None,
        }));
    }
    let limit = limit.unwrap_or_default().get();
    let tasks = app.tasks.get().ok_or_else(unknown)?;
    // One more shows if there is another page.
    let mut found = tasks.list_last(&user, status, cursor, limit + 1).await?;
    // The list ends with the last task, so the extra one is at its beginning.
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
