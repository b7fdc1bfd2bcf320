//! An Ollama server: where it is, how its models are run, and which of them answers if none was
//! named.

mod pull; // having a model fetched

use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{LanguageModel, ModelError};
use adjutant_providers::ollama::{self, OllamaOptions, Server, Think};
use adjutant_providers::{Connection, Provider};

use crate::config::Settings;

pub(crate) use pull::{check, pull, remove, server};

/// Its name in the table of providers.
const NAME: &str = "ollama";

/// The model that is preferred if it is there and none was named.
const PREFERRED: &str = "qwen3:30b-a3b";

/// The model to fetch, for somebody who has none: small enough for most machines, and it can call
/// tools.
pub(crate) const GOOD: &str = "qwen3:8b";

/// How long a server nobody named may take to answer. One on this machine is there at once or not
/// at all.
pub(crate) const PATIENCE: Duration = Duration::from_millis(300);
/// How long one that somebody named may take.
pub(crate) const PATIENCE_WITH_A_NAMED_ONE: Duration = Duration::from_secs(5);

/// Its row in the table of providers.
pub(crate) fn provider() -> Option<&'static Provider> {
    Provider::find(NAME)
}

pub(crate) fn is(provider: &Provider) -> bool {
    provider.name == NAME
}

/// Its address by the settings `host` and `port`.
///
/// # Errors
/// Why they are none, in words.
pub(crate) fn address(settings: &Settings) -> Result<Option<String>, String> {
    let set = &settings.ollama;
    if set.host.is_none() && set.port.is_none() {
        return Ok(None);
    }
    let host = set.host.as_deref().unwrap_or("localhost");
    let mut url = ollama::base_url(host).map_err(|error| error.to_string())?;
    if set.port.is_some() && url.set_port(set.port).is_err() {
        return Err(format!("{host:?} takes no port"));
    }
    Ok(Some(url.to_string()))
}

/// A model with the settings of its section. `asks`: the server is asked first what the model is,
/// so that its window is known.
///
/// # Errors
/// As [`ollama::model_with`].
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

/// Whether something listens at an address. A quick look before anything else is set up.
pub(crate) fn listens(address: &str) -> bool {
    let Ok(url) = ollama::base_url(address) else {
        return false;
    };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return false;
    };
    let host = host.trim_matches(['[', ']']);
    let Ok(mut addresses) = (host, port).to_socket_addrs() else {
        return false;
    };
    addresses.any(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
}

/// Whether two names are one model's: without a tag, the tag is `latest`.
pub(crate) fn same_model(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.strip_suffix(":latest").unwrap_or(name).to_owned();
    plain(one) == plain(other)
}

/// The server, if something listens where it should be. Each answer is waited for as long as for
/// one on this machine.
pub(crate) fn running(settings: &Settings) -> Option<Server> {
    let of_settings = address(settings).ok().flatten();
    let set = provider().and_then(|provider| settings.provider(provider).base_url);
    let there = listens(&set.or(of_settings).unwrap_or_default());
    there
        .then(|| server(settings))
        .and_then(Result::ok)
        .map(|server| server.within(PATIENCE_WITH_A_NAMED_ONE))
}

/// What a server has for somebody who named no model.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// This one.
    Model(String),
    /// It answers, and has no model that can call tools.
    Nothing,
    /// It does not answer, and why.
    NoServer(ModelError),
}

/// The preferred model if the server has it, else its first one that can call tools.
pub(crate) async fn discover(connection: &Connection, patience: Duration) -> Found {
    let server = match Server::new(connection) {
        Ok(server) => server.within(patience),
        Err(error) => return Found::NoServer(error),
    };
    let installed = match server.models().await {
        Ok(installed) => installed,
        Err(error) => return Found::NoServer(error),
    };
    let mut names: Vec<String> = installed.into_iter().map(|model| model.name).collect();
    // The preferred one first; otherwise the server's own order, the newest first.
    names.sort_by_key(|name| name != PREFERRED);
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
