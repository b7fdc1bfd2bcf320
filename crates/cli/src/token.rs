//! `adjutant token`: who may ask a service.

use adjutant_core::UserId;
use adjutant_core::port::TokenRecord;
use adjutant_service::new_token;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};

use crate::args::Token;
use crate::config::Settings;
use crate::display::{clip, json_line};
use crate::error::{CliError, Exit};
use crate::meant::{Kind, the_one};
use crate::screen::Screen;
use crate::store;

const TOKENS: Kind = Kind { one: "token", many: "tokens", list: "adjutant token list" };

/// Makes, lists or revokes tokens.
///
/// # Errors
/// The store cannot be used, or there is no (or more than one) such token.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Token,
    json: bool,
) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    match command {
        Token::Create { user, name } => {
            let user = UserId::new(user)
                .map_err(|error| CliError::usage(format!("--user cannot be that: {error}")))?;
            let token = new_token().map_err(|error| CliError::failed(error.to_string()))?;
            let kept = store.create_token(&user, name.trim(), &token.digest).await?;
            if json {
                let mut made = shown(&kept);
                made["token"] = token.secret.into();
                screen.answer_line(&json_line(&made));
            } else {
                screen.answer_line(&token.secret);
                screen.note(&format!(
                    "the token of {user}: it is shown this once; take it back with adjutant token revoke {}",
                    kept.id
                ));
            }
        }
        Token::List => {
            let tokens = store.tokens(None).await?;
            if json {
                screen.answer_line(&json_line(&tokens.iter().map(shown).collect::<Vec<_>>()));
            } else if tokens.is_empty() {
                screen.answer_line("There are no tokens.");
            } else {
                screen.answer_line(&table(&tokens));
            }
        }
        Token::Revoke { id } => {
            let token = the_one(store.tokens(None).await?, &id, |token| token.id.clone(), &TOKENS)?;
            let revoked = store.revoke_token(&token.id).await?;
            if json {
                screen.answer_line(&json_line(&json!({ "id": token.id, "revoked": revoked })));
            } else if revoked {
                screen.answer_line(&format!(
                    "The token {} of {} is refused from now on.",
                    token.id,
                    clip(token.user.as_str(), 60)
                ));
            } else {
                screen.answer_line(&format!("The token {} was revoked before.", token.id));
            }
        }
    }
    Ok(Exit::Ok)
}

fn shown(token: &TokenRecord) -> Value {
    json!({
        "id": token.id,
        "user": token.user,
        "name": token.name,
        "created_at": token.created_at,
        "revoked_at": token.revoked_at,
    })
}

fn table(tokens: &[TokenRecord]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    for token in tokens {
        let day = |at: jiff::Timestamp| at.strftime("%Y-%m-%d").to_string();
        table.add_row([
            token.id.clone(),
            clip(token.user.as_str(), 40),
            clip(&token.name, 40),
            day(token.created_at),
            token.revoked_at.map_or_else(String::new, |at| format!("revoked {}", day(at))),
        ]);
    }
    table.trim_fmt()
}
