//! Opens the model that a turn began with, if that needs no download and no question.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{LanguageModel, ModelId};
use adjutant_providers::Provider;

use super::{Choice, Override, connection, make};
use crate::config::Settings;
use crate::error::CliError;
use crate::terminal::screen::Screen;

/// Time that a local server may take to accept a connection.
const PATIENCE: Duration = Duration::from_millis(300);

/// Opens the model with this id.
///
/// # Errors
/// The reason why it is unavailable, as the end of a sentence.
pub(crate) async fn open_original(
    settings: &Settings,
    screen: &Screen,
    id: Option<&ModelId>,
) -> Result<Arc<dyn LanguageModel>, String> {
    let id = id.ok_or("the model was not recorded")?;
    let opened = match Choice::parse(&id.to_string()) {
        Ok(Choice::Vendor(provider, Some(name))) => vendor(settings, provider, &name)
            .await
            .map(|model| super::with_tool_calling(settings, model)),
        #[cfg(feature = "embedded")]
        Ok(Choice::Embedded(Some(name))) => {
            crate::embedded::find_installed(settings, screen, &name)
                .await
                .and_then(|(name, file)| super::in_process(settings, &name, file))
        }
        #[cfg(not(feature = "embedded"))]
        Ok(Choice::Embedded(Some(_))) => {
            let _ = screen;
            Err(super::no_embedded(super::Named::Yes))
        }
        _ => return Err("it ran from a file that was not recorded".to_owned()),
    };
    opened.map_err(|error| {
        error.cause.map_or(error.message.clone(), |cause| {
            format!("{}: {cause}", error.message)
        })
    })
}

/// Returns true if `-m` accepts the id as a name, which it does not for scripts and files.
pub(crate) fn is_name(id: &ModelId) -> bool {
    Choice::parse(&id.to_string()).is_ok()
}

async fn vendor(
    settings: &Settings,
    provider: &'static Provider,
    name: &str,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    // An address of the working directory gets no key here, because that would need the user's
    // consent.
    let over = Override::for_conversation();
    let connection = connection(settings, provider, &over)?;
    // Checked first: with a server that does not run, the turn would end with that error instead of
    // staying open.
    let address = connection
        .base_url
        .as_ref()
        .map_or(provider.base_url, |url| url.as_str());
    if provider.local && !listens(address) {
        return Err(CliError::configuration(format!(
            "nothing listens at {address}"
        )));
    }
    make(settings, provider, name, connection, &over)
        .await
        .map_err(|error| CliError::from_model_error(&error))
}

fn listens(address: &str) -> bool {
    let Ok(url) = address.parse::<url::Url>() else {
        return false;
    };
    let addresses = url.socket_addrs(|| None).unwrap_or_default();
    addresses
        .iter()
        .any(|address| TcpStream::connect_timeout(address, PATIENCE).is_ok())
}
