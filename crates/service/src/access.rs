//! A user's means of access: their tokens and browser sessions, which they list and revoke
//! themselves.

use std::time::Duration;

use adjutant_core::UserId;
use adjutant_core::port::{Role, TokenGrant, TokenKind, TokenRecord, TokenStore};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::length::at_most;
use crate::object::Object;
use crate::problem::Problem;
use crate::state::{App, Shared};
use crate::token::new_token;
use crate::user::{Operator, SignedIn};

/// Characters of a token's name.
const NAME_MAX: usize = 100;
/// Tokens that one user may have at once, so that a client cannot fill the list.
const TOKENS_MAX: usize = 100;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A token, or a browser that is signed in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"id": "8c1f0a2b3c4d", "kind": "token", "name": "Open WebUI", "role": "user",
    "created_at": "2026-11-26T09:00:00Z", "expires_at": "2027-02-24T09:00:00Z", "used_at": "2026-11-26T09:20:00Z", "current": false}))]
struct Access {
    id: String,
    /// `token`, for a program; or `session`, of a browser that is signed in.
    kind: &'static str,
    /// The name its owner gave it; of a session, the browser's `User-Agent`, cut to 200 characters.
    name: String,
    /// `operator`, `user` or `metrics` (reads the figures and nothing else).
    role: &'static str,
    created_at: Timestamp,
    /// From when on it is refused. Null: it does not expire.
    expires_at: Option<Timestamp>,
    /// Time of its last use, to about a minute. Null: never used.
    used_at: Option<Timestamp>,
    /// True if this request was made with it.
    current: bool,
}

/// The caller's tokens and sessions, and the longest lifetime of a new token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"tokens": [], "days_max": 365}))]
struct AllAccess {
    /// Those that are valid at the moment, oldest first.
    tokens: Vec<Access>,
    /// The most days that a new token may hold.
    days_max: u64,
}

/// A request for a new token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "Open WebUI", "days": 90}))]
struct NewAccess {
    /// The token's purpose, on one line.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// For how many days it holds. Default: as many as may be.
    #[schema(minimum = 1)]
    days: Option<u64>,
    /// `user`, `metrics`, or `operator` if who asks is one. Default `user`.
    #[schema(pattern = "^(user|metrics|operator)$")]
    role: Option<String>,
}

/// A token that was made.
#[derive(Debug, Serialize, ToSchema)]
struct MadeAccess {
    /// The secret: shown this once.
    token: String,
    #[serde(flatten)]
    access: Access,
}

/// The number of tokens and sessions that were revoked.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"revoked": 3}))]
struct Revoked {
    revoked: u64,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, make))
        .routes(routes!(revoke))
        .routes(routes!(revoke_all))
}

/// Lists the tokens and sessions of who asks that hold at the moment.
///
/// Each with its name, its role, its last use and its end; the one that asks is marked.
#[utoipa::path(get, path = "/v1/tokens", tag = "session", operation_id = "list_tokens", responses(
    (status = 200, description = "Tokens and sessions, without their secrets.", body = AllAccess),
    (status = 404, description = "This service does not know its users by tokens.", body = Problem,
        content_type = "application/problem+json"),
))]
async fn list(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
) -> Result<Json<AllAccess>, Problem> {
    let now = app.agent.now();
    let current = caller.token.as_ref().map(|shown| shown.record.id.as_str());
    let known = tokens(&app)?
        .tokens(Some(&caller.user))
        .await
        .map_err(|error| Problem::store(&error))?;
    let holds = known
        .into_iter()
        .filter(|record| record.refused(now).is_none());
    let tokens = holds.map(|record| Access::of(record, current)).collect();
    Ok(Json(AllAccess {
        tokens,
        days_max: app.access.token_max.as_secs() / DAY.as_secs(),
    }))
}

/// Makes a token for a program of who asks.
///
/// It opens no more than what they have shown does, and holds no longer than the service allows;
/// one that is made with a token ends with that token.
#[utoipa::path(post, path = "/v1/tokens", tag = "session", operation_id = "make_token", request_body = NewAccess, responses(
    (status = 201, description = "The token, with its secret.", body = MadeAccess),
    (status = 403, description = "Who asks has not the rights it was to have.", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "This service does not know its users by tokens.", body = Problem,
        content_type = "application/problem+json"),
    (status = 409, description = "There are as many as may be.", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "It cannot be that.", body = Problem, content_type = "application/problem+json"),
))]
async fn make(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
    body: Result<Json<Object<NewAccess>>, JsonRejection>,
) -> Result<(StatusCode, Json<MadeAccess>), Problem> {
    let store = |error| Problem::store(&error);
    let tokens = tokens(&app)?;
    let Json(Object(NewAccess { name, days, role })) = body?;
    at_most("name", &name, NAME_MAX)?;
    let name = name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::invalid(
            "name says what the token is for, on one line",
        ));
    }
    let role = match role.as_deref().map(str::parse::<Role>) {
        None => Role::User,
        Some(role) => role.map_err(|error| Problem::invalid(error.to_string()))?,
    };
    if !caller.role.includes(role) {
        return Err(Problem::forbidden(
            "only an operator makes a token for operators, or one that reads the figures",
        ));
    }
    let max = app.access.token_max;
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
    let known = tokens.tokens(Some(&caller.user)).await.map_err(store)?;
    let holds = |record: &&TokenRecord| {
        record.grant.kind == TokenKind::Token && record.refused(now).is_none()
    };
    if known.iter().filter(holds).count() >= TOKENS_MAX {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "too_many_tokens",
            "There are as many tokens as may be",
            format!("{TOKENS_MAX} tokens of one user hold at the same time; revoke one first"),
        ));
    }
    let expiry = now.saturating_add(wanted).unwrap_or(Timestamp::MAX);
    // What a program made with its own token holds no longer than that one; a person's session may
    // end before.
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
        expires_at: Some(last.map_or(expiry, |last| last.min(expiry))),
        parent: parent.map(|parent| parent.id.clone()),
        ..TokenGrant::token(caller.user, name)
    };
    let made = new_token().map_err(|_| Problem::internal())?;
    let record = tokens
        .create_token(&grant, &made.digest)
        .await
        .map_err(store)?;
    let made = MadeAccess {
        token: made.secret,
        access: Access::of(record, None),
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revokes a token of who asks, or signs one of their browsers out.
///
/// It is refused from the next request on, and so is what was made with it.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "session", operation_id = "revoke_token",
    params(("id" = String, Path, description = "The token's id.")),
    responses(
        (status = 204, description = "It is refused from now on."),
        (status = 404, description = "Who asks has no such token that holds.", body = Problem, content_type = "application/problem+json"),
    ))]
async fn revoke(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let store = |error| Problem::store(&error);
    let (tokens, Path(id)) = (tokens(&app)?, id?);
    let known = tokens.tokens(Some(&caller.user)).await.map_err(store)?;
    let is_theirs = known.iter().any(|record| record.id == id);
    if is_theirs && tokens.revoke_token(&id).await.map_err(store)? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::unknown("token"))
}

/// Revokes all tokens and sessions of a user.
///
/// For an operator: somebody left, or a device was lost. The user can sign in anew, unless the
/// provider or the token's maker says no.
#[utoipa::path(delete, path = "/v1/admin/access/{user}", tag = "operations", operation_id = "revoke_access_of_user",
    params(("user" = String, Path, description = "The user's name.")),
    responses(
        (status = 200, description = "How many were revoked.", body = Revoked),
        (status = 403, description = "Who asks is no operator.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "This service does not know its users by tokens.", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn revoke_all(
    State(app): State<Shared>,
    _: Operator,
    user: Result<Path<String>, PathRejection>,
) -> Result<Json<Revoked>, Problem> {
    let Path(user) = user?;
    let user = UserId::new(user).map_err(|_| Problem::unknown("user"))?;
    let revoked = tokens(&app)?.revoke_tokens_of(&user, None).await;
    Ok(Json(Revoked {
        revoked: revoked.map_err(|error| Problem::store(&error))?,
    }))
}

fn tokens(app: &App) -> Result<&dyn TokenStore, Problem> {
    let tokens = app
        .auth
        .tokens()
        .ok_or_else(|| Problem::unknown("list of tokens: users are known another way here"))?;
    Ok(&**tokens)
}

impl Access {
    fn of(
        TokenRecord {
            id,
            grant,
            created_at,
            used_at,
            ..
        }: TokenRecord,
        current: Option<&str>,
    ) -> Self {
        Self {
            current: current == Some(id.as_str()),
            id,
            kind: grant.kind.as_str(),
            name: grant.name,
            role: grant.role.as_str(),
            created_at,
            expires_at: grant.expires_at,
            used_at,
        }
    }
}
