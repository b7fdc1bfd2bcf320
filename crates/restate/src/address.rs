//! The address of a Restate server, as `--dispatch` takes it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use url::{Host, Url};

use crate::identity::{InvalidKey, PublicKey};

/// Restate's own default ports, and the one its SDKs listen on. Source: docs.restate.dev,
/// "Networking" (checked 2026-11-22).
const INGRESS_PORT: u16 = 8080;
const ADMIN_PORT: u16 = 9070;
const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9080);

/// The address of a Restate server, and of this process as its worker: `restate://HOST[:PORT]` is
/// the ingress, followed by what differs from the defaults, such as
/// `?admin=HOST:9070&listen=0.0.0.0:9080&advertise=http://worker-1:9080`. `restates://` connects
/// over TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestateAddress {
    /// URL of the ingress: scheme, host and port.
    pub(crate) ingress: Url,
    /// URL of the admin API; `None`: the worker is registered by other means.
    pub(crate) admin: Option<Url>,
    /// Path of the file with the bearer token for both. The token itself is never stored here.
    pub(crate) token_file: Option<PathBuf>,
    /// The socket address on which Restate's calls arrive.
    pub(crate) listen: SocketAddr,
    /// The URL under which Restate reaches this process; `None`: `listen`.
    pub(crate) advertise: Option<Url>,
    /// Public keys of the signatures of Restate's calls; empty: unsigned calls are accepted.
    pub(crate) keys: Vec<PublicKey>,
}

/// A text that is not the address of a Restate server, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an address of Restate: {0}; it looks like restate://HOST:8080, or restates://HOST:8080 with TLS"
)]
pub struct InvalidAddress(String);

impl FromStr for RestateAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let wrong = |why: &str| InvalidAddress(why.to_owned());
        let url: Url = text
            .parse()
            .map_err(|error| InvalidAddress(format!("{error}")))?;
        let scheme = match url.scheme() {
            "restate" => "http",
            "restates" => "https",
            _ => return Err(wrong("it does not begin with restate:// or restates://")),
        };
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| wrong("there is no host"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(
                "it takes no user and no password; token_file= takes a file with a token",
            ));
        }
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(wrong(
                "nothing but ?admin=, token_file=, listen=, advertise= and key= comes after the port",
            ));
        }
        let at = |port: u16| {
            let url = format!("{scheme}://{host}:{port}");
            url.parse()
                .map_err(|error| InvalidAddress(format!("{host:?}: {error}")))
        };
        let mut address = Self {
            ingress: at(url.port().unwrap_or(INGRESS_PORT))?,
            admin: Some(at(ADMIN_PORT)?),
            token_file: None,
            listen: LISTEN,
            advertise: None,
            keys: Vec::new(),
        };
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "admin" if value == "none" => address.admin = None,
                "admin" => address.admin = Some(parse_admin(&value, scheme)?),
                "token_file" if value.is_empty() => {
                    return Err(wrong("token_file= takes the path of a file"));
                }
                "token_file" => address.token_file = Some(PathBuf::from(value.as_ref())),
                "listen" => {
                    address.listen = value.parse().map_err(|error| {
                        InvalidAddress(format!("listen= takes an address and a port: {error}"))
                    })?;
                }
                "advertise" => {
                    let place = value
                        .parse()
                        .ok()
                        .filter(|url: &Url| matches!(url.scheme(), "http" | "https"));
                    address.advertise =
                        Some(place.ok_or_else(|| wrong("advertise= takes an http address"))?);
                }
                "key" => {
                    let key = value
                        .parse()
                        .map_err(|error: InvalidKey| InvalidAddress(error.to_string()))?;
                    address.keys.push(key);
                }
                other => {
                    let known = "admin, token_file, listen, advertise, key";
                    return Err(InvalidAddress(format!("{other}= is none of {known}")));
                }
            }
        }
        if address.listen.ip().is_unspecified() && address.advertise.is_none() {
            return Err(wrong(
                "a worker that listens on every address needs advertise=, the address where Restate finds it",
            ));
        }
        let readable = |url: &Url| url.scheme() == "http" && !is_loopback(url);
        if let (Some(_), Some(url)) = (
            &address.token_file,
            address.urls().find(|url| readable(url)),
        ) {
            return Err(InvalidAddress(format!(
                "a token would go to {url} where anybody on the way can read it; use restates://, and https:// in admin="
            )));
        }
        Ok(address)
    }
}

impl RestateAddress {
    /// Returns the address of the ingress.
    #[must_use]
    pub fn ingress(&self) -> &str {
        self.ingress.as_str()
    }

    /// Returns the address of the admin API. `None`: `admin=none`.
    #[must_use]
    pub fn admin(&self) -> Option<&str> {
        self.admin.as_ref().map(Url::as_str)
    }

    /// Returns the URL at which Restate calls a worker with this address. `None`: the system
    /// chooses the port.
    pub(crate) fn url(&self) -> Option<Url> {
        match &self.advertise {
            Some(url) => Some(url.clone()),
            None if self.listen.port() == 0 => None,
            None => Url::parse(&format!("http://{}", self.listen)).ok(),
        }
    }

    /// Returns the URLs of the ingress and the admin API.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &Url> {
        std::iter::once(&self.ingress).chain(&self.admin)
    }
}

/// Parses `HOST:PORT`, with the scheme of the ingress, or a URL with its own scheme.
fn parse_admin(text: &str, scheme: &str) -> Result<Url, InvalidAddress> {
    let wrong = || InvalidAddress("admin= takes HOST:PORT, or http(s)://HOST:PORT".to_owned());
    let (whole, ported) = if text.starts_with("http://") || text.starts_with("https://") {
        (text.to_owned(), true)
    } else {
        let ported = text
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        (format!("{scheme}://{text}"), ported)
    };
    let Ok(url) = whole.parse::<Url>() else {
        return Err(wrong());
    };
    let has_no_login = url.username().is_empty() && url.password().is_none();
    let plain =
        has_no_login && url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if plain && ported {
        Ok(url)
    } else {
        Err(wrong())
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

impl fmt::Display for RestateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.ingress.scheme() == "https" {
            "restates"
        } else {
            "restate"
        };
        let host = self.ingress.host_str().unwrap_or_default();
        // `Url` drops a port that is the scheme's default.
        write!(
            f,
            "{scheme}://{host}:{}",
            self.ingress.port_or_known_default().unwrap_or(INGRESS_PORT)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> RestateAddress {
        text.parse().unwrap()
    }

    fn admin(text: &str) -> String {
        parsed(text).admin.unwrap().to_string()
    }

    #[test]
    fn what_is_not_said_is_restates_default() {
        let address = parsed("restate://restate.internal");
        assert_eq!(address.ingress.as_str(), "http://restate.internal:8080/");
        assert_eq!(
            address.admin.unwrap().as_str(),
            "http://restate.internal:9070/"
        );
        assert_eq!(
            (address.listen, address.advertise, address.token_file),
            (LISTEN, None, None)
        );
        assert_eq!(
            parsed("restate://[::1]:1/").ingress.as_str(),
            "http://[::1]:1/"
        );
        assert_eq!(parsed("restate://[::1]:1").to_string(), "restate://[::1]:1");
        assert_eq!(parsed("restate://h:80").to_string(), "restate://h:80");
    }

    #[test]
    fn everything_can_be_said() {
        let address = parsed(
            "restate://127.0.0.1:18080?admin=10.0.0.1:1&listen=0.0.0.0:9080&advertise=http://worker:9080",
        );
        assert_eq!(address.ingress.as_str(), "http://127.0.0.1:18080/");
        assert_eq!(address.admin.unwrap().as_str(), "http://10.0.0.1:1/");
        assert_eq!(address.listen.to_string(), "0.0.0.0:9080");
        assert_eq!(address.advertise.unwrap().as_str(), "http://worker:9080/");
        assert_eq!(parsed("restate://h?admin=none").admin, None);
        let keys = [
            "publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp",
            "publickeyv1_AfQwmwfgEZhrWpvv8N52SHpRtZqGGaFr4AZN6qtYWSiY",
        ];
        let address = parsed(&format!("restate://h?key={}&key={}", keys[0], keys[1]));
        assert_eq!(address.keys, keys.map(|key| key.parse().unwrap()));
    }

    #[test]
    fn tls_is_for_both_unless_the_admin_says_otherwise() {
        let address = parsed("restates://x.env.restate.cloud");
        assert_eq!(
            address.ingress.as_str(),
            "https://x.env.restate.cloud:8080/"
        );
        assert_eq!(address.to_string(), "restates://x.env.restate.cloud:8080");
        assert_eq!(parsed("restates://h:443").to_string(), "restates://h:443");
        assert_eq!(
            address.admin.unwrap().as_str(),
            "https://x.env.restate.cloud:9070/"
        );
        assert_eq!(admin("restates://h?admin=i:1"), "https://i:1/");
        assert_eq!(
            admin("restates://h?admin=http://127.0.0.1:1"),
            "http://127.0.0.1:1/"
        );
        assert_eq!(
            admin("restate://h?admin=https://i:9070/"),
            "https://i:9070/"
        );
    }

    #[test]
    fn a_token_goes_nowhere_in_the_clear_but_to_this_machine() {
        for text in [
            "restates://h?token_file=/run/token",
            "restates://h?token_file=/run/token&admin=http://127.0.0.1:1",
            "restate://localhost?token_file=/run/token",
            "restate://[::1]?token_file=/run/token",
            "restate://127.0.0.2?token_file=/run/token&admin=https://h:9070",
            "restate://127.0.0.1?token_file=/run/token&admin=none",
        ] {
            assert_eq!(
                parsed(text).token_file,
                Some(PathBuf::from("/run/token")),
                "{text}"
            );
            assert!(!parsed(text).to_string().contains("token"), "{text}");
        }
        for text in [
            "restate://h?token_file=/run/token",
            "restate://10.0.0.1?token_file=/run/token",
            "restate://127.0.0.1.example.org?token_file=/run/token",
            "restates://h?token_file=/run/token&admin=http://h:9070",
            "restate://localhost?token_file=/run/token&admin=h:9070",
        ] {
            let error = text.parse::<RestateAddress>().unwrap_err().to_string();
            assert!(error.contains("use restates://"), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("http://127.0.0.1:8080", "restate://"),
            ("restate://", "host"),
            ("restate://user:secret@h", "no user"),
            ("restate://h/path", "after the port"),
            ("restate://h?admin=h", "HOST:PORT"),
            ("restate://h?admin=h:1/x", "HOST:PORT"),
            ("restate://h?admin=https://h:1/x", "HOST:PORT"),
            ("restate://h?admin=https://me:secret@h:1", "HOST:PORT"),
            ("restate://h?admin=ftp://h:1", "HOST:PORT"),
            ("restate://h?token_file=", "token_file="),
            ("restate://h?listen=9080", "listen="),
            ("restate://h?listen=0.0.0.0:9080", "advertise="),
            ("restate://h?advertise=worker:9080", "advertise="),
            ("restate://h?key=", "publickeyv1_"),
            (
                "restate://h?key=ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp",
                "publickeyv1_",
            ),
            ("restate://h?colour=red", "colour="),
        ] {
            let error = text.parse::<RestateAddress>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
