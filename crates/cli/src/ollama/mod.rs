//! Access to an Ollama server: its address, its options, and the choice of a model.

mod address; // the address of the server
mod pull; // pulling and deleting models

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{LanguageModel, ModelError};
use adjutant_providers::Connection;
use adjutant_providers::ollama::{self, OllamaOptions, Server, Think};

use crate::command::doctor::connect;
use crate::config::Settings;

pub(crate) use address::{PATIENCE_WITH_A_NAMED_ONE, address, is, provider};
pub(crate) use pull::{check, pull, remove, server};

/// The preferred model, if it is installed and none was named.
const PREFERRED: &str = "qwen3:30b-a3b";

/// The model recommended to users without one: small enough for most machines, with tool calling.
pub(crate) const GOOD: &str = "qwen3:8b";

/// Time that a server which was not configured may take. One on this machine responds at once or
/// not at all.
pub(crate) const PATIENCE: Duration = Duration::from_millis(300);
/// Opens a model with the settings of its section. `asks` queries the server for the model's
/// context window first.
///
/// # Errors
/// Those of [`ollama::model_with`].
pub(crate) async fn model(
    settings: &Settings,
    name: &str,
    connection: Connection,
    asks: bool,
) -> Result<Arc<dyn LanguageModel>, ModelError> {
    let usual = OllamaOptions::default();
    let options = OllamaOptions {
        num_ctx: settings.ollama.context_size.unwrap_or(usual.num_ctx),
        keep_alive: settings.ollama.keep_alive.clone(),
        think: settings.ollama.think.as_deref().and_then(Think::of_word),
        ..usual
    };
    let model = match asks {
        true => ollama::model_asked(name, connection, options).await?,
        false => ollama::model_with(name, connection, options)?,
    };
    Ok(Arc::new(model))
}

/// Returns true if something listens at an address, as a quick check before anything else is set
/// up.
pub(crate) fn listens(address: &str) -> bool {
    let Ok(url) = ollama::base_url(address) else {
        return false;
    };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return false;
    };
    connect(host, port, PATIENCE).is_ok()
}

/// Returns true if two names are the same model: a missing tag means `latest`.
pub(crate) fn same_model(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.strip_suffix(":latest").unwrap_or(name).to_owned();
    plain(one) == plain(other)
}

/// Returns the server, if something listens at its address. Requests to it have the timeout of a
/// local server.
pub(crate) fn running(settings: &Settings) -> Option<Server> {
    // An invalid address counts as no server here; the code that connects reports it.
    let of_settings = address(settings).ok().flatten();
    let set = provider().and_then(|provider| settings.provider(provider).base_url);
    let there = listens(&set.or(of_settings).unwrap_or_default());
    there
        .then(|| server(settings))
        .and_then(Result::ok)
        .map(|server| server.within(PATIENCE_WITH_A_NAMED_ONE))
}

/// The choice of a model for a user who named none.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// This model.
    Model(String),
    /// The server has no model with tool calling.
    Nothing,
    /// The server does not respond, with the cause.
    NoServer(ModelError),
}

/// Returns the preferred model if it is installed, else the first one with tool calling.
pub(crate) async fn discover(connection: &Connection, patience: Duration) -> Found {
    let server = match Server::new(connection) {
        Ok(server) => server.within(patience),
        // A malformed address counts as a server that does not answer; the caller decides if that
        // is an error.
        Err(error) => return Found::NoServer(error),
    };
    let installed = match server.models().await {
        Ok(installed) => installed,
        Err(error) => return Found::NoServer(error),
    };
    let mut names: Vec<String> = installed.into_iter().map(|model| model.name).collect();
    // The preferred one first; the others stay in the server's order, newest first.
    names.sort_by_key(|name| name != PREFERRED);
    // One by one, because the list of models does not have their capabilities.
    for name in names {
        if server
            .show(&name)
            .await
            .is_ok_and(|model| model.can("tools"))
        {
            return Found::Model(name);
        }
    }
    Found::Nothing
}
