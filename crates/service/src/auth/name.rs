//! User names that an issuer or a proxy gave.

use adjutant_core::UserId;
use serde_json::Value;

use super::jwt::Claims;
use crate::problem::Problem;

/// Longest user name, in bytes.
const USER_ID_MAX: usize = 255;

/// The e-mail claim, which is trustworthy only if the issuer has verified the address.
const EMAIL: &str = "email";

/// Log message for operators about a refused name.
const LOCAL_REFUSED: &str = "a proxy or an issuer named the user \"local\", who is whoever works on this machine: refused. Give \
                             that account another name there";

/// Converts a name from outside to a user id, byte for byte: names that differ in anything are
/// different users. The name of the local user is refused; only tokens of this service authenticate
/// them.
pub(super) fn user_id(name: &str) -> Result<UserId, Problem> {
    // Control characters could forge lines of the log.
    if name.len() > USER_ID_MAX || name.chars().any(char::is_control) {
        return Err(Problem::unauthorized(
            "the user's name is too long or no text",
        ));
    }
    let user = UserId::new(name).map_err(|_| Problem::unauthorized("the user's name is empty"))?;
    if user == UserId::local() {
        let detail = "no proxy and no issuer may name the user of the machine itself";
        return Err(Problem::unauthorized(detail).with_operator_note(LOCAL_REFUSED));
    }
    Ok(user)
}

/// Returns the user that verified claims name, in `sub` or in the configured claim. An e-mail
/// address counts only if the issuer has verified it: otherwise a user could enter another's
/// address.
pub(super) fn user_of(claims: &Claims, chosen: Option<&str>) -> Result<UserId, Problem> {
    let Some(claim) = chosen else {
        return user_id(&claims.sub);
    };
    let verified = claims.others.get("email_verified");
    // Some providers send the claim as a string.
    if claim == EMAIL
        && !verified.is_some_and(|claim| *claim == Value::Bool(true) || *claim == "true")
    {
        return Err(Problem::unauthorized(
            "the issuer does not say that the e-mail address was verified",
        ));
    }
    match claims.texts(claim).as_slice() {
        [name] => user_id(name),
        _ => Err(Problem::unauthorized(
            "the token lacks the claim that names the user",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(claims: Value, chosen: Option<&str>) -> Option<String> {
        user_of(&serde_json::from_value(claims).unwrap(), chosen)
            .ok()
            .map(String::from)
    }

    #[test]
    fn a_subject_is_compared_byte_for_byte_and_local_is_refused() {
        for sub in [
            "ana",
            " ana",
            "ana ",
            "ana\u{a0}",
            "\u{2003}ana",
            "Ana",
            " local",
            "Зоя",
            "李雷",
            "ana, eve",
        ] {
            assert_eq!(
                named(json!({ "sub": sub }), None).as_deref(),
                Some(sub),
                "{sub:?}"
            );
        }
        for sub in [
            "local",
            "",
            " ",
            "\u{a0}",
            "a\u{85}b",
            "a\nb",
            &"a".repeat(300),
        ] {
            assert_eq!(named(json!({ "sub": sub }), None), None, "{sub:?}");
        }
    }

    #[test]
    fn a_configured_claim_names_the_user_if_it_is_one_verified_text() {
        let claims = |change: Value| {
            let mut claims = json!({"sub": "7", "email": "a@example.com", "email_verified": true, "name": ["x", "y"]});
            claims
                .as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            claims
        };
        let by_email = |change: Value| named(claims(change), Some("email"));
        assert_eq!(by_email(json!({})).as_deref(), Some("a@example.com"));
        assert_eq!(
            by_email(json!({"email_verified": "true"})).as_deref(),
            Some("a@example.com")
        );
        for change in [
            json!({"email_verified": false}),
            json!({"email_verified": null}),
            json!({"email_verified": "false"}),
            json!({"email": "local"}),
            json!({"email": ["a", "b"]}),
            json!({"email": ""}),
        ] {
            assert_eq!(by_email(change.clone()), None, "{change}");
        }
        assert_eq!(named(claims(json!({})), Some("name")), None);
        assert_eq!(named(claims(json!({})), Some("nickname")), None);
    }
}
