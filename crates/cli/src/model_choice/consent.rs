//! Consent to send a key to an address that a file of the working directory names.
//!
//! That file may be a stranger's, and a user who trusted it may have looked at other lines only, so
//! consent is asked for the address itself.

use adjutant_providers::Provider;

use super::overrides::Override;
use crate::config::{Settings, WithheldKey};
use crate::error::CliError;
use crate::terminal::display::clip;
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::ask_yes_no;

/// Characters of an address at most.
const SHOWN_MAX: usize = 300;

/// Asks if the key may be sent to the address, unless that was answered before or is not in
/// question.
///
/// # Errors
/// The user declines or cannot be asked.
pub(super) async fn ask(
    settings: &Settings,
    screen: &Screen,
    provider: &Provider,
    over: &Override,
) -> Result<(), CliError> {
    let Some(withheld) = settings.provider(provider).withheld else {
        return Ok(());
    };
    if over.base_url.is_some() || withheld.agreed.get().is_some() {
        return Ok(());
    }
    let question = format!(
        "? {} says that {} is at {}. Send your key there ({})?",
        clip(&withheld.address_origin, SHOWN_MAX),
        provider.name,
        format_address(provider, &withheld.address),
        clip(&withheld.origin, SHOWN_MAX),
    );
    if !screen.asks() || !ask_yes_no(screen, &question, false).await {
        return Err(refused(provider, &withheld));
    }
    // If two callers ask at the same time, both get the same answer.
    let _ = withheld.agreed.set(());
    Ok(())
}

/// Returns the error of a key that is not sent, with remedies.
pub(super) fn refused(provider: &Provider, withheld: &WithheldKey) -> CliError {
    CliError::configuration(format!(
        "your key for {} is not sent to {}",
        provider.name,
        format_address(provider, &withheld.address)
    ))
    .because(format!(
        "{}, a file of this folder, names the address, and the key is from elsewhere ({})",
        withheld.address_origin, withheld.origin
    ))
    .or_try("say yes to the address, where you can be asked")
    .or_try(format!(
        "adjutant config set {}.base_url URL    and take it out of the folder's file",
        provider.name
    ))
}

/// Formats the address so that text in front of its host cannot be taken for the host.
fn format_address(provider: &Provider, address: &str) -> String {
    let asked = provider
        .address(address)
        .map(|url| url.origin().ascii_serialization());
    let text = asked.map_or_else(
        |_| address.to_owned(),
        |asked| format!("{asked} ({address})"),
    );
    clip(&text, SHOWN_MAX)
}
