//! `GET /v1/tasks`: the caller's tasks.

use adjutant_core::port::StoreError;
use adjutant_tools::{Task, TaskFilter, TaskId};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::QueryParams;
use crate::paging::Limit;
use crate::problem::Problem;
use crate::state::Shared;
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

/// Lists the caller's tasks.
///
/// Tasks are changed by tools only: with `POST /v1/tools/{name}/invoke`, or in a conversation.
#[utoipa::path(get, path = "/v1/tasks", operation_id = "list_tasks", tag = "tasks", params(ListQuery), responses(
    (status = 200, description = "The tasks.", body = TaskList),
    (status = 404, description = "This service has no task store."),
    (status = 409, description = "Too many requests over all of the caller's data wait already (`busy_with_your_data`); only without `limit`."),
))]
async fn list(
    State(app): State<Shared>,
    User(user): User,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Response, Problem> {
    let ListQuery {
        status,
        limit,
        cursor,
    } = query;
    let tasks = app.tasks.get();
    let tasks =
        tasks.ok_or_else(|| Problem::unknown("task list: this service has no task store"))?;
    if limit.is_none() && cursor.is_none() {
        let (tasks, owner) = (tasks.clone(), user.clone());
        let all = async move {
            let found = tasks.list(&owner, status).await?;
            Ok::<_, StoreError>(TaskList::new(found, None).into_response())
        };
        return app.whole_data.run(&user, all).await;
    }
    let limit = limit.unwrap_or_default();
    // One more shows if there is another page.
    let shown = limit.get() + 1;
    let mut found = tasks.list_last(&user, status, cursor, shown).await?;
    // The list ends with the last task, so the extra one is at its beginning.
    let left_out = found.len().saturating_sub(limit.entries());
    let page = found.split_off(left_out);
    let first = page.first().filter(|_| left_out > 0);
    let next_cursor = first.map(|first| first.id.to_string());
    Ok(TaskList::new(page, next_cursor).into_response())
}

impl TaskList {
    fn new(tasks: Vec<Task>, next_cursor: Option<String>) -> Json<Self> {
        Json(Self {
            tasks: tasks.into_iter().map(TaskView::from).collect(),
            next_cursor,
        })
    }
}
