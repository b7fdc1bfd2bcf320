//! `/v1/settings`: the caller's settings, whatever program they use.

use std::collections::BTreeSet;

use adjutant_core::port::{UserSettingStore, UserSettings};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::JsonBody;
use crate::problem::Problem;
use crate::state::{App, Shared};
use crate::time_zone;
use crate::user::User;

/// The settings of the caller.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"time_zone": "Europe/Berlin", "allowed_tools": ["mail__list_mails"]}))]
struct Settings {
    /// Time zone of the user, by its name in the IANA database: the time of a message is stated in it
    /// if the request names none. `null`: not known, and such a message has no time.
    time_zone: Option<String>,
    /// Tools of MCP servers whose calls the user always allows, by an answer with `always`.
    allowed_tools: BTreeSet<String>,
}

/// A change of settings. Those that it leaves out stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"time_zone": "Europe/Berlin"}))]
struct SettingsChange {
    /// Time zone of the user, by its name in the IANA database; `null` removes it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    time_zone: Option<Option<String>>,
    /// Tools that stay allowed; those that are left out ask again. Only an answer to a pending call
    /// adds one.
    #[schema(max_items = 1000)]
    allowed_tools: Option<BTreeSet<String>>,
}

/// Distinguishes a setting that is `null` from one that is left out.
fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(value).map(Some)
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(show, change))
}

/// Returns the caller's settings.
///
/// A setting that was never stored is `null`.
#[utoipa::path(get, path = "/v1/settings", operation_id = "get_settings", tag = "session", responses(
    (status = 200, description = "The settings.", body = Settings),
    (status = 404, description = "This service stores no settings."),
))]
async fn show(State(app): State<Shared>, User(user): User) -> Result<Json<Settings>, Problem> {
    let settings = store(&app)?.user_settings(&user).await?;
    Ok(Json(Settings::from(settings)))
}

/// Changes the caller's settings.
///
/// The page stores the browser's time zone here, so that the time of what the same user writes in
/// other programs is known too.
#[utoipa::path(patch, path = "/v1/settings", operation_id = "change_settings", tag = "session", request_body = SettingsChange,
    responses(
        (status = 200, description = "The settings, changed.", body = Settings),
        (status = 404, description = "This service stores no settings."),
        (status = 422, description = "A value is unknown; nothing was changed."),
    ))]
async fn change(
    State(app): State<Shared>,
    User(user): User,
    JsonBody(change): JsonBody<SettingsChange>,
) -> Result<Json<Settings>, Problem> {
    let store = store(&app)?;
    let mut settings = store.user_settings(&user).await?;
    if let Some(name) = change.time_zone {
        time_zone::parse(name.as_deref())?;
        settings.time_zone = name;
    }
    if let Some(tools) = change.allowed_tools {
        // A request is not the answer of a person who was shown what the tool does.
        let allowed = &settings.allowed_tools;
        if let Some(other) = tools.iter().find(|tool| !allowed.contains_key(*tool)) {
            return Err(Problem::invalid(format!(
                "{other:?} is not among allowed_tools: only an answer to a pending call adds a tool"
            )));
        }
        settings
            .allowed_tools
            .retain(|tool, _| tools.contains(tool));
    }
    store.put_user_settings(&user, &settings).await?;
    Ok(Json(Settings::from(settings)))
}

fn store(app: &App) -> Result<&dyn UserSettingStore, Problem> {
    let store = app.agent.user_settings();
    store
        .map(AsRef::as_ref)
        .ok_or_else(|| Problem::unknown("storage of settings here"))
}

impl From<UserSettings> for Settings {
    fn from(settings: UserSettings) -> Self {
        Self {
            time_zone: settings.time_zone,
            allowed_tools: settings.allowed_tools.into_keys().collect(),
        }
    }
}
