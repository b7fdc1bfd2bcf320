//! The address of an Ollama server, and its row in the table of providers.

use std::time::Duration;

use adjutant_providers::Provider;
use adjutant_providers::ollama;

use crate::config::Settings;

/// Its name in the table of providers.
const NAME: &str = "ollama";

/// Time that a configured server may take.
pub(crate) const PATIENCE_WITH_A_NAMED_ONE: Duration = Duration::from_secs(5);

/// Returns its row in the table of providers.
pub(crate) fn provider() -> Option<&'static Provider> {
    Provider::find(NAME)
}

pub(crate) fn is(provider: &Provider) -> bool {
    provider.name == NAME
}

/// Returns its address from the settings `host` and `port`.
///
/// # Errors
/// The reason why they are invalid.
pub(crate) fn address(settings: &Settings) -> Result<Option<String>, String> {
    let set = &settings.ollama;
    // Without either, the address of the provider's own setting or default applies.
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
