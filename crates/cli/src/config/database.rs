//! The address of a database.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use url::Url;

/// A database that holds tasks, conversations and logs. Shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, by its whole address with the password.
    Postgres(String),
}

impl Database {
    /// The forms of an address, as the end of "must be …".
    pub(crate) const EXPECTED: &str =
        "postgres://USER@HOST:PORT/DATABASE, sqlite:FILE, or the path of an SQLite file";

    /// Parses `postgres://…`, `sqlite:PATH` or a path. `None`: the text is empty, or names another
    /// kind of database.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Some(Self::Postgres(text.to_owned()));
        }
        // `sqlite:///var/a.db` is a URL with an empty host, `sqlite:a.db` has none.
        let path = match text.strip_prefix("sqlite:") {
            Some(path) => path.strip_prefix("//").unwrap_or(path),
            None if text.contains("://") => return None,
            None => text,
        };
        (!path.is_empty()).then(|| Self::Sqlite(PathBuf::from(path)))
    }

    /// Returns true if no password from elsewhere is used to open it: the address has one, or it is
    /// a file.
    pub(crate) fn has_password(&self) -> bool {
        match self {
            Self::Sqlite(_) => true,
            Self::Postgres(address) => Url::parse(address).is_ok_and(|url| {
                url.password().is_some() || url.query_pairs().any(|(name, _)| name == "password")
            }),
        }
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(address) => f.write_str(&mask_password(address)),
        }
    }
}

impl fmt::Debug for Database {
    // Not derived: `Settings` has `Debug`, and the address may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Replaces passwords in an address. An address that cannot be parsed is not shown at all.
fn mask_password(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else {
        return "postgres://…".to_owned();
    };
    // Cannot fail: an address that begins with postgres:// has a place for a password.
    if url.password().is_some() {
        let _ = url.set_password(Some("xxx"));
    }
    let mask = |(name, value): (Cow<'_, str>, Cow<'_, str>)| {
        let secret = name.to_lowercase().contains("password");
        format!("{name}={}", if secret { "xxx" } else { &value })
    };
    let query: Vec<String> = url.query_pairs().map(mask).collect();
    url.set_query(None);
    match query.is_empty() {
        true => url.to_string(),
        false => format!("{url}?{}", query.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_says_which_database() {
        let file = |path: &str| Some(Database::Sqlite(path.into()));
        assert_eq!(Database::parse("sqlite:a.db"), file("a.db"));
        assert_eq!(Database::parse("sqlite:///var/a.db"), file("/var/a.db"));
        assert_eq!(Database::parse(" /var/a.db "), file("/var/a.db"));
        for address in ["postgres://u@h/d", "postgresql:///d?host=/run"] {
            assert_eq!(
                Database::parse(address),
                Some(Database::Postgres(address.to_owned()))
            );
        }
        for address in ["", "sqlite:", "mysql://u:p@h/d", "postgresq://h/d"] {
            assert_eq!(Database::parse(address), None, "{address}");
        }
    }

    #[test]
    fn no_password_is_ever_shown() {
        for (address, shown) in [
            (
                "postgres://ana:s3cret@db:5432/tasks",
                "postgres://ana:xxx@db:5432/tasks",
            ),
            (
                "postgres://db/tasks?user=ana&password=s3cret",
                "postgres://db/tasks?user=ana&password=xxx",
            ),
            (
                "postgres:///tasks?host=/run/pg&user=ana",
                "postgres:///tasks?host=/run/pg&user=ana",
            ),
            ("postgres://ana:s3cret@[oops/tasks", "postgres://…"),
        ] {
            let database = Database::parse(address).unwrap();
            assert_eq!(
                (
                    database.to_string().as_str(),
                    format!("{database:?}").as_str()
                ),
                (shown, shown)
            );
        }
    }
}
