//! `adjutant token`: access tokens of a service's users.

use std::time::Duration;

use adjutant_core::UserId;
use adjutant_core::port::{TokenGrant, TokenRecord};
use adjutant_service::new_token;
use comfy_table::{ContentArrangement, Table, presets};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::args::{Holds, Token};
use crate::clock::now;
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::id_prefix::{Kind, the_one};
use crate::store;
use crate::terminal::display::{clip, plural};
use crate::terminal::screen::Screen;

const TOKENS: Kind = Kind {
    one: "token",
    many: "tokens",
    list: "adjutant token list",
};

/// Creates, lists or revokes tokens.
///
/// # Errors
/// The store cannot be used, or there is no such token or several.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Token,
) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    match command {
        Token::Create {
            user,
            name,
            expires,
            grant,
        } => {
            let user = UserId::new(user)
                .map_err(|error| CliError::usage(format!("--user cannot be that: {error}")))?;
            let token = new_token().map_err(|error| CliError::failed(error.to_string()))?;
            let holds = expires.map_or(settings.serve.token_expiry, |Holds(time)| time);
            let grant = TokenGrant {
                role: grant,
                expires_at: holds.map(from_now).transpose()?,
                ..TokenGrant::token(user.clone(), name.trim())
            };
            let kept = store.create_token(&grant, &token.digest).await?;
            if screen.json() {
                let mut made = to_json(&kept);
                made["token"] = token.secret.into();
                screen.answer_json(&made);
            } else {
                screen.answer_line(&token.secret);
                screen.note(&format!(
                    "the token of {user}: it is shown this once, and {}; take it back with adjutant token revoke {}",
                    match kept.grant.expires_at {
                        Some(expiry) => format!("holds until {}", day(expiry)),
                        None => "does not expire".to_owned(),
                    },
                    kept.id
                ));
            }
        }
        Token::List => {
            let tokens = store.tokens(None).await?;
            if screen.json() {
                screen.answer_json(&tokens.iter().map(to_json).collect::<Vec<_>>());
            } else if tokens.is_empty() {
                screen.answer_line("There are no tokens.");
            } else {
                screen.answer_line(&table(&tokens));
            }
        }
        Token::Revoke { id: None, user } => {
            let user = UserId::new(user.unwrap_or_default())
                .map_err(|error| CliError::usage(format!("--user cannot be that: {error}")))?;
            let revoked = store.revoke_tokens_of(&user, None).await?;
            if screen.json() {
                screen.answer_json(&json!({ "user": user, "revoked": revoked }));
            } else {
                let what = plural(revoked, "token or session", "tokens and sessions");
                screen.answer_line(&format!("{what} of {user}: refused from now on."));
            }
        }
        Token::Revoke { id: Some(id), .. } => {
            let token = the_one(
                store.tokens(None).await?,
                &id,
                |token| token.id.clone(),
                &TOKENS,
            )?;
            let revoked = store.revoke_token(&token.id).await?;
            if screen.json() {
                screen.answer_json(&json!({ "id": token.id, "revoked": revoked }));
            } else if revoked {
                screen.answer_line(&format!(
                    "The token {} of {} is refused from now on.",
                    token.id,
                    clip(token.grant.user.as_str(), 60)
                ));
            } else {
                screen.answer_line(&format!("The token {} was revoked before.", token.id));
            }
        }
    }
    Ok(Exit::Ok)
}

fn to_json(token: &TokenRecord) -> Value {
    json!({
        "id": token.id,
        "user": token.grant.user,
        "name": token.grant.name,
        "kind": token.grant.kind.as_str(),
        "role": token.grant.role.as_str(),
        "created_at": token.created_at,
        "expires_at": token.grant.expires_at,
        "used_at": token.used_at,
        "revoked_at": token.revoked_at,
    })
}

fn table(tokens: &[TokenRecord]) -> String {
    let now = now();
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    for token in tokens {
        let grant = &token.grant;
        let end = match (token.revoked_at, grant.expires_at) {
            (Some(at), _) => format!("revoked {}", day(at)),
            (None, Some(at)) if at <= now => format!("expired {}", day(at)),
            (None, Some(at)) => format!("expires {}", day(at)),
            (None, None) => String::new(),
        };
        table.add_row([
            token.id.clone(),
            grant.kind.as_str().to_owned(),
            clip(grant.user.as_str(), 40),
            grant.role.as_str().to_owned(),
            clip(&grant.name, 40),
            day(token.created_at),
            token
                .used_at
                .map_or_else(|| "never used".to_owned(), |at| format!("used {}", day(at))),
            end,
        ]);
    }
    table.trim_fmt()
}

fn day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

fn from_now(time: Duration) -> Result<Timestamp, CliError> {
    now()
        .checked_add(time)
        .map_err(|_| CliError::usage("--expires is too long"))
}
