//! The connection to a provider: its address, key, timeout and retries.

use adjutant_providers::{Connection, Provider, Transport};

use super::consent;
use super::overrides::Override;
use crate::config::Settings;
use crate::error::CliError;
#[cfg(feature = "ollama")]
use crate::ollama;

/// Builds the connection to a provider. The more specific setting wins: command, provider's
/// section, `llm`, provider's default.
///
/// # Errors
/// A required key is missing, the address is invalid, or a file of the working directory names the
/// address and the user did not consent to sending the key there.
pub(crate) fn connection(
    settings: &Settings,
    provider: &'static Provider,
    over: &Override,
) -> Result<Connection, CliError> {
    let set = settings.provider(provider);
    let base_url = base_url(settings, provider, over)?;
    let key = match &set.withheld {
        Some(withheld) if over.base_url.is_some() || withheld.agreed.get().is_some() => {
            Some(withheld.key.clone())
        }
        Some(withheld) => return Err(consent::refused(provider, withheld)),
        None => set.key,
    };
    let key = match (key, &base_url) {
        (Some(key), _) => Some(key),
        // The user's own host may need no key, but the header is sent in any case.
        (None, Some(_)) if provider.needs_key => Some("none".to_owned().into()),
        (None, None) if provider.needs_key => return Err(no_key(settings, provider)),
        (None, _) => None,
    };
    let base_url = base_url
        .map(|text| provider.address(&text))
        .transpose()
        .map_err(|cause| cannot_be_used(provider, format!("its base URL: {cause}")))?;
    if base_url.is_none() && provider.base_url.is_empty() {
        return Err(no_address(provider));
    }
    let transport =
        Transport::new().map_err(|error| cannot_be_used(provider, error.to_string()))?;
    Ok(Connection {
        api_key: key,
        base_url,
        timeout: set.timeout.or(settings.llm.timeout),
        retries: over
            .retries
            .or(set.retries)
            .or(settings.llm.retries)
            .unwrap_or(provider.retries),
        ..Connection::new(transport)
    })
}

/// Returns the configured address, if it is not the provider's default.
pub(super) fn base_url(
    settings: &Settings,
    provider: &Provider,
    over: &Override,
) -> Result<Option<String>, CliError> {
    if let Some(url) = over
        .base_url
        .clone()
        .or_else(|| settings.provider(provider).base_url)
    {
        return Ok(Some(url));
    }
    #[cfg(feature = "ollama")]
    if ollama::is(provider) {
        return ollama::address(settings).map_err(|cause| cannot_be_used(provider, cause));
    }
    Ok(None)
}

fn no_address(provider: &Provider) -> CliError {
    let error = cannot_be_used(provider, "its address is not set".to_owned());
    let error = match provider.base_url_variable {
        Some(variable) => error.or_try(format!("{variable}=https://… adjutant …")),
        None => error,
    };
    error.or_try(format!(
        "base_url = \"https://…\" under [{}] in the configuration",
        provider.name
    ))
}

pub(super) fn cannot_be_used(provider: &Provider, cause: String) -> CliError {
    CliError::configuration(format!("{} cannot be used", provider.name)).because(cause)
}

fn no_key(settings: &Settings, provider: &Provider) -> CliError {
    let mut error = CliError::no_key(format!("there is no key for {}", provider.name));
    if let Some(variable) = provider.key_variable {
        let file = settings.dirs.config.join(".env");
        error = error
            .or_try(format!("adjutant keys set {}", provider.name))
            .or_try(format!("{variable}=… adjutant …"))
            .or_try(format!("write {variable}=… into {}", file.display()));
    }
    if !provider.key_advice.is_empty() {
        error = error.or_try(provider.key_advice);
    }
    error.or_try("adjutant -m embedded …    runs on this machine, without a key")
}
