//! `adjutant token`: access tokens of a service's users.

use std::time::Duration;

use adjutant_core::port::{TokenGrant, TokenRecord, TokenScope, TokenScopes};
use adjutant_service::new_token;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::args::{Holds, Token};
use crate::clock::now;
use crate::command::output::{kind, print_list, table, user_option};
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::id_prefix::{Kind, the_one};
use crate::store;
use crate::terminal::display::{clip, plural};
use crate::terminal::screen::Screen;

const TOKENS: Kind = kind("token", "tokens", "adjutant token list");

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
            scopes,
        } => {
            let user = user_option(&user)?;
            let scopes = named_scopes(&scopes)?;
            let token = new_token().map_err(|error| CliError::failed(error.to_string()))?;
            let holds = expires.map_or(settings.serve.token_expiry, |Holds(time)| time);
            let grant = TokenGrant {
                role: grant,
                scopes,
                expires_at: holds.map(from_now).transpose()?,
                ..TokenGrant::token(user.clone(), name.trim())
            };
            let record = store.create_token(&grant, &token.digest).await?;
            if screen.json() {
                let mut created = to_json(&record);
                created["token"] = token.secret.into();
                screen.answer_json(&created);
            } else {
                // Alone on standard output, so that a script can take it; it cannot be shown again,
                // because only its digest is stored.
                screen.answer_line(&token.secret);
                screen.note(&format!(
                    "the token of {user}: it is shown this once, {}and {}; take it back with adjutant token revoke {}",
                    match record.grant.scopes {
                        TokenScopes::ALL => String::new(),
                        some => format!("may {}, ", words_of(some)),
                    },
                    match record.grant.expires_at {
                        Some(expiry) => format!("holds until {}", day(expiry)),
                        None => "does not expire".to_owned(),
                    },
                    record.id
                ));
            }
        }
        Token::List => {
            let tokens = store.tokens(None).await?;
            let json: Vec<Value> = tokens.iter().map(to_json).collect();
            print_list(screen, &json, "There are no tokens.", || {
                format_table(&tokens)
            });
        }
        Token::Revoke { id: None, user } => {
            let user = user_option(&user.unwrap_or_default())?;
            let revoked = store.revoke_tokens_of(&user, None).await?;
            screen.result(&json!({ "user": user, "revoked": revoked }), || {
                let count = plural(revoked, "token or session", "tokens and sessions");
                format!("{count} of {user}: refused from now on.")
            });
        }
        Token::Revoke { id: Some(id), .. } => {
            let tokens = store.tokens(None).await?;
            let token = the_one(tokens, &id, |token| token.id.clone(), &TOKENS)?;
            let revoked = store.revoke_token(&token.id).await?;
            screen.result(&json!({ "id": token.id, "revoked": revoked }), || {
                let id = &token.id;
                let user = clip(token.grant.user.as_str(), 60);
                match revoked {
                    true => format!("The token {id} of {user} is refused from now on."),
                    false => format!("The token {id} was revoked before."),
                }
            });
        }
    }
    Ok(Exit::Ok)
}

/// Returns the fields of a token as `--json` and exports have them, without its secret.
pub(super) fn to_json(token: &TokenRecord) -> Value {
    json!({
        "id": token.id,
        "user": token.grant.user,
        "name": token.grant.name,
        "kind": token.grant.kind.as_str(),
        "role": token.grant.role.as_str(),
        "scopes": token.grant.scopes.iter().map(TokenScope::as_str).collect::<Vec<_>>(),
        "created_at": token.created_at,
        "expires_at": token.grant.expires_at,
        "used_at": token.used_at,
        "revoked_at": token.revoked_at,
    })
}

fn format_table(tokens: &[TokenRecord]) -> String {
    let now = now();
    let rows = tokens.iter().map(|token| {
        let grant = &token.grant;
        let end = match (token.revoked_at, grant.expires_at) {
            (Some(at), _) => format!("revoked {}", day(at)),
            (None, Some(at)) if at <= now => format!("expired {}", day(at)),
            (None, Some(at)) => format!("expires {}", day(at)),
            (None, None) => String::new(),
        };
        let used = token
            .used_at
            .map_or_else(|| "never used".to_owned(), |at| format!("used {}", day(at)));
        [
            token.id.clone(),
            grant.kind.as_str().to_owned(),
            clip(grant.user.as_str(), 40),
            grant.role.as_str().to_owned(),
            match grant.scopes {
                TokenScopes::ALL => String::new(),
                some => words_of(some),
            },
            clip(&grant.name, 40),
            day(token.created_at),
            used,
            end,
        ]
    });
    table(&[], rows)
}

/// Returns the scopes of a new token: those that were named, or all.
fn named_scopes(named: &[TokenScope]) -> Result<TokenScopes, CliError> {
    if named.is_empty() {
        return Ok(TokenScopes::ALL);
    }
    let scopes: TokenScopes = named.iter().copied().collect();
    if !scopes.are_usable() {
        return Err(CliError::usage("--scope answer needs --scope write too"));
    }
    Ok(scopes)
}

fn words_of(scopes: TokenScopes) -> String {
    let names: Vec<&str> = scopes.iter().map(TokenScope::as_str).collect();
    names.join("+")
}

fn day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

fn from_now(time: Duration) -> Result<Timestamp, CliError> {
    now()
        .checked_add(time)
        // The sum fails only beyond the last date of the calendar.
        .map_err(|_| CliError::usage("--expires is too long"))
}
