//! Routes with which users list, create and revoke their own tokens and browser sessions.

use std::time::Duration;

use adjutant_core::UserId;
use adjutant_core::port::{
    Role, TokenGrant, TokenKind, TokenRecord, TokenScope, TokenScopes, TokenStore,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::{JsonBody, PathParam};
use crate::problem::Problem;
use crate::state::{App, Shared};
use crate::text_length::at_most;
use crate::token::new_token;
use crate::user::{Operator, SignedIn};

/// Longest name of a token, in characters.
const NAME_MAX: usize = 100;
/// Most valid tokens of one user, so that a client cannot fill the store.
const TOKENS_MAX: usize = 100;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A token, or a browser session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"id": "8c1f0a2b3c4d", "kind": "token", "name": "Open WebUI", "role": "user", "scopes": ["read", "write"],
    "created_at": "2026-11-26T09:00:00Z", "expires_at": "2027-02-24T09:00:00Z", "used_at": "2026-11-26T09:20:00Z", "current": false}))]
struct Access {
    /// Id for revoking it.
    id: String,
    /// `token`, for a program, or `session`, of a signed-in browser.
    kind: &'static str,
    /// Name given by the owner; of a session, the browser's `User-Agent`, cut to 200 characters.
    name: String,
    /// `operator`, `user` or `metrics` (may only read the metrics).
    role: &'static str,
    /// Uses that it permits: `read`, `write` and `answer` (to answer pending calls).
    scopes: Vec<&'static str>,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of expiry. Null: it does not expire.
    expires_at: Option<Timestamp>,
    /// Time of the last use, to about a minute. Null: never used.
    used_at: Option<Timestamp>,
    /// True if this request was made with it.
    current: bool,
}

/// The caller's tokens and sessions, and the longest lifetime of a new token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"tokens": [], "days_max": 365}))]
struct AllAccess {
    /// The valid ones, oldest first.
    tokens: Vec<Access>,
    /// Longest lifetime of a new token, in days.
    days_max: u64,
}

/// A request for a new token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "Open WebUI", "days": 90}))]
struct NewAccess {
    /// Purpose of the token, on one line.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Lifetime in days. Default: the longest allowed.
    #[schema(minimum = 1)]
    days: Option<u64>,
    /// `user`, `metrics`, or `operator` if the caller is one. Default `user`.
    #[schema(pattern = "^(user|metrics|operator)$")]
    role: Option<String>,
    /// Uses that it permits: `read`, `write` and `answer` (to answer pending calls, which needs
    /// `write` too). Default: all that the caller may.
    scopes: Option<Vec<String>>,
}

/// A newly created token.
#[derive(Debug, Serialize, ToSchema)]
struct MadeAccess {
    /// The secret; it is shown only here.
    token: String,
    #[serde(flatten)]
    access: Access,
}

/// Result of revoking a user's access.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"revoked": 3}))]
struct Revoked {
    /// Number of tokens and sessions that were revoked.
    revoked: u64,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, make))
        .routes(routes!(revoke))
        .routes(routes!(revoke_all))
}

/// Lists the caller's valid tokens and sessions.
///
/// Each with its name, role, last use and expiry; the one that this request used is marked.
#[utoipa::path(get, path = "/v1/tokens", tag = "session", operation_id = "list_tokens", responses(
    (status = 200, description = "Tokens and sessions, without their secrets.", body = AllAccess),
    (status = 404, description = "This service does not authenticate users by tokens."),
))]
async fn list(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
) -> Result<Json<AllAccess>, Problem> {
    let now = app.agent.now();
    let current = caller.token.as_ref().map(|shown| shown.record.id.as_str());
    let known = tokens(&app)?.tokens(Some(&caller.user)).await?;
    let holds = known
        .into_iter()
        .filter(|record| record.refused(now).is_none());
    let tokens = holds
        .map(|record| Access::from_record(record, current))
        .collect();
    Ok(Json(AllAccess {
        tokens,
        days_max: app.access.token_max.as_secs() / DAY.as_secs(),
    }))
}

/// Creates a token for a program of the caller.
///
/// It has no more rights than the caller and no longer lifetime than the service allows; a token
/// that is created with a token expires with it.
#[utoipa::path(post, path = "/v1/tokens", tag = "session", operation_id = "make_token", request_body = NewAccess, responses(
    (status = 201, description = "The token, with its secret.", body = MadeAccess),
    (status = 403, description = "The caller lacks the rights that the token should have."),
    (status = 404, description = "This service does not authenticate users by tokens."),
    (status = 409, description = "The user has the maximum number of tokens."),
    (status = 422, description = "The name, role or lifetime is invalid."),
))]
async fn make(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
    JsonBody(NewAccess {
        name,
        days,
        role,
        scopes,
    }): JsonBody<NewAccess>,
) -> Result<(StatusCode, Json<MadeAccess>), Problem> {
    let tokens = tokens(&app)?;
    at_most("name", &name, NAME_MAX)?;
    let name = name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::invalid(
            "name has to state the purpose of the token, on one line",
        ));
    }
    let role = match role.as_deref().map(str::parse::<Role>) {
        None => Role::User,
        Some(role) => role.map_err(|error| Problem::invalid(error.to_string()))?,
    };
    if !caller.role.includes(role) {
        return Err(Problem::forbidden(
            "only an operator can create a token with the role operator or metrics",
        ));
    }
    let scopes = match scopes {
        None => caller.scopes,
        Some(names) => parse_scopes(&names)?,
    };
    if !caller.scopes.includes(scopes) {
        return Err(Problem::forbidden(
            "a token has no scope that the one it is created with lacks",
        ));
    }
    let max = app.access.token_max;
    // A number of days beyond `u32` saturates: it is above the limit in any case.
    let wanted = days.map_or(max, |days| {
        DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX))
    });
    if wanted.is_zero() || wanted > max {
        let most = max.as_secs() / DAY.as_secs();
        return Err(Problem::invalid(format!(
            "days is a number from 1 to {most} (serve.token_max)"
        )));
    }
    let now = app.agent.now();
    let known = tokens.tokens(Some(&caller.user)).await?;
    let holds = |record: &&TokenRecord| {
        record.grant.kind == TokenKind::Token && record.refused(now).is_none()
    };
    if known.iter().filter(holds).count() >= TOKENS_MAX {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "too_many_tokens",
            "Too many tokens",
            format!("a user has at most {TOKENS_MAX} valid tokens; revoke one first"),
        ));
    }
    let expiry = now.saturating_add(wanted).unwrap_or(Timestamp::MAX);
    // A token created with a token must not outlive it, or a leaked one could be renewed forever. A
    // browser session may end earlier than the tokens created in it.
    let parent = caller
        .token
        .as_ref()
        .map(|shown| &shown.record)
        .filter(|it| it.grant.kind == TokenKind::Token);
    let last = parent
        .and_then(|parent| parent.grant.expires_at)
        .into_iter()
        .chain(caller.until)
        .min();
    let grant = TokenGrant {
        role,
        scopes,
        expires_at: Some(last.map_or(expiry, |last| last.min(expiry))),
        parent: parent.map(|parent| parent.id.clone()),
        ..TokenGrant::token(caller.user, name)
    };
    let made = new_token().map_err(|error| Problem::internal_error(&error))?;
    let record = tokens.create_token(&grant, &made.digest).await?;
    let made = MadeAccess {
        token: made.secret,
        access: Access::from_record(record, None),
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revokes a token of the caller, or signs one of their browsers out.
///
/// It is refused from the next request on, and so are tokens that were created with it.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "session", operation_id = "revoke_token",
    params(("id" = String, Path, description = "The token's id.")),
    responses(
        (status = 204, description = "It was revoked."),
        (status = 404, description = "The caller has no valid token with this id."),
    ))]
async fn revoke(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
    PathParam(id): PathParam,
) -> Result<StatusCode, Problem> {
    let tokens = tokens(&app)?;
    let known = tokens.tokens(Some(&caller.user)).await?;
    // The store revokes by id alone, so the owner is checked here.
    let is_theirs = known.iter().any(|record| record.id == id);
    if is_theirs && tokens.revoke_token(&id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::unknown("token"))
}

/// Revokes all tokens and sessions of a user.
///
/// For operators: a user left, or a device was lost. The user can sign in again unless the OpenID
/// Connect provider, or the operator who creates tokens, denies it.
#[utoipa::path(delete, path = "/v1/admin/access/{user}", tag = "operations", operation_id = "revoke_access_of_user",
    params(("user" = String, Path, description = "The user's name.")),
    responses(
        (status = 200, description = "The number of revoked tokens and sessions.", body = Revoked),
        (status = 403, description = "The caller is not an operator."),
        (status = 404, description = "This service does not authenticate users by tokens."),
    ))]
async fn revoke_all(
    State(app): State<Shared>,
    _: Operator,
    PathParam(user): PathParam,
) -> Result<Json<Revoked>, Problem> {
    // A name that cannot be valid belongs to no user.
    let user = UserId::new(user).map_err(|_| Problem::unknown("user"))?;
    let revoked = tokens(&app)?.revoke_tokens_of(&user, None).await;
    Ok(Json(Revoked { revoked: revoked? }))
}

fn tokens(app: &App) -> Result<&dyn TokenStore, Problem> {
    let tokens = app.auth.tokens().ok_or_else(|| {
        Problem::unknown("list of tokens: this service does not authenticate users by tokens")
    })?;
    Ok(&**tokens)
}

/// Parses the scopes of a new token.
fn parse_scopes(names: &[String]) -> Result<TokenScopes, Problem> {
    let scopes: Result<TokenScopes, _> = names
        .iter()
        .map(|name| name.parse::<TokenScope>())
        .collect();
    let scopes = scopes.map_err(|error| Problem::invalid(error.to_string()))?;
    if !scopes.are_usable() {
        return Err(Problem::invalid(
            "scopes names at least one, and write beside answer",
        ));
    }
    Ok(scopes)
}

impl Access {
    fn from_record(record: TokenRecord, current: Option<&str>) -> Self {
        let grant = record.grant;
        Self {
            current: current == Some(record.id.as_str()),
            id: record.id,
            kind: grant.kind.as_str(),
            name: grant.name,
            role: grant.role.as_str(),
            scopes: grant.scopes.iter().map(TokenScope::as_str).collect(),
            created_at: record.created_at,
            expires_at: grant.expires_at,
            used_at: record.used_at,
        }
    }
}
