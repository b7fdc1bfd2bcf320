//! Whether a key may go where a file of the working directory says.
//!
//! Whoever wrote that file may be a stranger, and a person who trusted it may have looked at it for
//! its other lines: the address itself is what is agreed to.

use adjutant_providers::Provider;

use super::Override;
use crate::config::{Settings, Withheld};
use crate::display::clip;
use crate::error::CliError;
use crate::lines::says_yes;
use crate::screen::Screen;

/// The longest address that is shown.
const SHOWN_MAX: usize = 300;

/// Asks whether the key may be sent there, unless that was said before or is not in question.
///
/// # Errors
/// It may not, or nobody can be asked.
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
        "? {} says that {} is at {}. Send your key there ({})?  [y] yes  [N] no: ",
        clip(&withheld.address_origin, SHOWN_MAX),
        provider.name,
        shown(provider, &withheld.address),
        clip(&withheld.origin, SHOWN_MAX),
    );
    if !screen.asks() || !says_yes(screen, &question, false).await {
        return Err(refused(provider, &withheld));
    }
    // Asked at the same time, the answers are the same.
    let _ = withheld.agreed.set(());
    Ok(())
}

/// Returns why the key is not sent, and what can be done about it.
pub(super) fn refused(provider: &Provider, withheld: &Withheld) -> CliError {
    CliError::configuration(format!(
        "your key for {} is not sent to {}",
        provider.name,
        shown(provider, &withheld.address)
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

/// Returns the address as it is asked, so that nothing in front of its host can be taken for it.
fn shown(provider: &Provider, address: &str) -> String {
    let asked = provider
        .address(address)
        .map(|url| url.origin().ascii_serialization());
    let text = asked.map_or_else(
        |_| address.to_owned(),
        |asked| format!("{asked} ({address})"),
    );
    clip(&text, SHOWN_MAX)
}
