//! The address of a database.

use std::fmt;
use std::path::PathBuf;

use url::Url;

/// Where everything is kept. Shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database; the whole address, password and all.
    Postgres(String),
}

impl Database {
    /// What an address may be, as the end of "must be …".
    pub(crate) const EXPECTED: &str =
        "postgres://USER@HOST:PORT/DATABASE, sqlite:FILE, or the path of an SQLite file";

    /// Reads `postgres://…`, `sqlite:PATH` or a path. `None`: another kind of database, or nothing
    /// at all.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
        {
            return Some(Self::Postgres(text.to_owned()));
        }
        let path = match text.strip_prefix("sqlite:") {
            Some(path) => path.strip_prefix("//").unwrap_or(path),
            None if text.contains("://") => return None,
            None => text,
        };
        (!path.is_empty()).then(|| Self::Sqlite(PathBuf::from(path)))
    }

    /// Returns whether nothing else has to be known to open it: the address has a password, or it
    /// is a file.
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
            Self::Postgres(address) => f.write_str(&masked(address)),
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The address without what opens the database. One that cannot be taken apart is not shown at all.
fn masked(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else {
        return "postgres://…".to_owned();
    };
    // Neither can fail: an address that begins with postgres:// has a place for both.
    if url.password().is_some() {
        let _ = url.set_password(Some("xxx"));
    }
    let public: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| {
            let secret = name.to_lowercase().contains("password");
            (
                name.into_owned(),
                if secret {
                    "xxx".to_owned()
                } else {
                    value.into_owned()
                },
            )
        })
        .collect();
    let query: Vec<String> = public
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    url.set_query(None);
    if query.is_empty() {
        url.to_string()
    } else {
        format!("{url}?{}", query.join("&"))
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
