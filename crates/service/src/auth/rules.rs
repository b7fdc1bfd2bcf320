//! The roles of those who sign in, and the lifetimes of their sessions and tokens.

use std::time::Duration;

use adjutant_core::UserId;
use adjutant_core::port::Role;
use axum::http::HeaderMap;

use crate::problem::Problem;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// For how long sessions and tokens hold, and who is more than a user.
#[derive(Debug, Clone)]
pub struct AccessRules {
    /// A browser's session ends when it was not used for so long. Default 30 days.
    pub session_idle: Duration,
    /// A browser's session ends after so long, however much it is used. Default 180 days.
    pub session_max: Duration,
    /// The longest time that a token may hold which somebody makes for themselves. Default 365
    /// days.
    pub token_max: Duration,
    /// Interval at which the access of whoever reads a stream is checked again. Default 15 seconds.
    pub recheck: Duration,
    /// The rules by which somebody is more than a user.
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

/// The rules by which those whom an issuer, a provider or a proxy names are more than users.
/// Default: nobody is.
#[derive(Debug, Clone, Default)]
pub struct RoleRules {
    /// Users who are operators, by the names they sign in with.
    pub operators: Vec<String>,
    /// The claim of a signed token that has roles or groups, such as `groups` or
    /// `realm_access.roles`.
    pub claim: Option<String>,
    /// The header in which a proxy says them, with commas between them.
    pub header: Option<String>,
    /// Roles or groups that make an operator.
    pub operator_roles: Vec<String>,
    /// Roles or groups that read the figures and nothing else, unless they are an operator's too.
    pub metrics_roles: Vec<String>,
}

impl RoleRules {
    /// Returns the role of a user of whom somebody else said these roles or groups.
    pub(crate) fn role(&self, user: &UserId, said: &[String]) -> Role {
        let any = |wanted: &[String]| said.iter().any(|role| wanted.contains(role));
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
    /// The header was there twice, so one of them may be the client's own.
    pub(crate) fn of_proxy(&self, user: &UserId, headers: &HeaderMap) -> Result<Role, Problem> {
        let mut said = Vec::new();
        if let Some(header) = &self.header {
            let mut lines = headers.get_all(header).iter();
            let line = lines
                .next()
                .and_then(|line| line.to_str().ok())
                .unwrap_or_default();
            if lines.next().is_some() {
                return Err(Problem::unauthorized("the proxy named roles twice"));
            }
            said = line.split(',').map(|role| role.trim().to_owned()).collect();
        }
        Ok(self.role(user, &said))
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
    fn the_highest_role_that_was_said_counts() {
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
                .of_proxy(&UserId::new("eve").unwrap(), &headers)
                .ok()
        };
        assert_eq!(role(&["users, admins"]), Some(Role::Operator));
        assert_eq!(role(&["users"]), Some(Role::User));
        assert_eq!(role(&[]), Some(Role::User));
        assert_eq!(role(&["users", "admins"]), None);
    }
}
