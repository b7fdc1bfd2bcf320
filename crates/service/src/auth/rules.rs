//! Rules for users' roles and for the lifetimes of sessions and tokens.

use std::time::Duration;

use adjutant_core::UserId;
use adjutant_core::port::Role;
use axum::http::HeaderMap;

use crate::problem::Problem;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Lifetimes of sessions and tokens, and the rules that give users roles.
#[derive(Debug, Clone)]
pub struct AccessRules {
    /// Time without use after which a browser session expires. Default 30 days.
    pub session_idle: Duration,
    /// Longest lifetime of a browser session, also if it is used. Default 180 days.
    pub session_max: Duration,
    /// Longest lifetime of a token that a user creates. Default 365 days.
    pub token_max: Duration,
    /// Interval at which the access of a stream's reader is checked again. Default 15 seconds.
    pub recheck: Duration,
    /// Rules that give users more rights than those of a user.
    pub roles: RoleRules,
}

impl Default for AccessRules {
    fn default() -> Self {
        Self {
            session_idle: 30 * DAY,
            session_max: 180 * DAY,
            token_max: 365 * DAY,
            recheck: Duration::from_secs(15),
            roles: RoleRules::default(),
        }
    }
}

/// Rules that give rights to users named by an issuer, a provider or a proxy. Default: all of them
/// are plain users.
#[derive(Debug, Clone, Default)]
pub struct RoleRules {
    /// Names of users who are operators.
    pub operators: Vec<String>,
    /// Claim of a JSON Web Token with the user's roles or groups, such as `groups` or
    /// `realm_access.roles`.
    pub claim: Option<String>,
    /// Header in which a proxy sends the user's roles or groups, separated by commas.
    pub header: Option<String>,
    /// Roles or groups that make a user an operator.
    pub operator_roles: Vec<String>,
    /// Roles or groups that may read the metrics and nothing else, unless the user is an operator.
    pub metrics_roles: Vec<String>,
}

impl RoleRules {
    /// Returns the role of a user with these roles or groups at the issuer or proxy.
    pub(crate) fn role(&self, user: &UserId, named: &[String]) -> Role {
        let any = |roles: &[String]| named.iter().any(|role| roles.contains(role));
        // Names are compared byte for byte, as user ids are.
        if self.operators.iter().any(|name| name == user.as_str()) || any(&self.operator_roles) {
            Role::Operator
        } else if any(&self.metrics_roles) {
            Role::Metrics
        } else {
            Role::User
        }
    }

    /// Returns the role of a user that a proxy named.
    ///
    /// # Errors
    /// A problem 401 if the header occurs twice: one of them may be the client's own.
    pub(crate) fn for_proxy_user(
        &self,
        user: &UserId,
        headers: &HeaderMap,
    ) -> Result<Role, Problem> {
        let mut named = Vec::new();
        if let Some(header) = &self.header {
            let mut lines = headers.get_all(header).iter();
            let line = lines
                .next()
                .and_then(|line| line.to_str().ok())
                .unwrap_or_default();
            if lines.next().is_some() {
                return Err(Problem::unauthorized("the proxy named roles twice"));
            }
            named = line.split(',').map(|role| role.trim().to_owned()).collect();
        }
        Ok(self.role(user, &named))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> RoleRules {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        RoleRules {
            operators: list(&["ana"]),
            claim: None,
            header: Some("X-Groups".to_owned()),
            operator_roles: list(&["admins"]),
            metrics_roles: list(&["monitoring"]),
        }
    }

    #[test]
    fn the_highest_named_role_counts() {
        let role = |user: &str, said: &[&str]| {
            let said: Vec<String> = said.iter().map(|word| (*word).to_owned()).collect();
            rules().role(&UserId::new(user).unwrap(), &said)
        };
        for (user, said, expected) in [
            ("ana", &[][..], Role::Operator),
            ("ana", &["monitoring"], Role::Operator),
            ("Ana", &[], Role::User),
            ("eve", &["admins", "monitoring"], Role::Operator),
            ("eve", &["monitoring"], Role::Metrics),
            ("eve", &["Admins", "admin", "operator"], Role::User),
            ("eve", &[], Role::User),
        ] {
            assert_eq!(role(user, said), expected, "{user} {said:?}");
        }
        assert_eq!(
            RoleRules::default().role(&UserId::new("eve").unwrap(), &["operator".to_owned()]),
            Role::User
        );
    }

    #[test]
    fn a_proxy_says_roles_in_one_header() {
        let role = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-groups", line.parse().unwrap());
            }
            rules()
                .for_proxy_user(&UserId::new("eve").unwrap(), &headers)
                .ok()
        };
        assert_eq!(role(&["users, admins"]), Some(Role::Operator));
        assert_eq!(role(&["users"]), Some(Role::User));
        assert_eq!(role(&[]), Some(Role::User));
        assert_eq!(role(&["users", "admins"]), None);
    }
}
