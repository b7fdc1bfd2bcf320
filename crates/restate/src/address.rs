use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use url::Url;

/// Restate's own default ports, and the one its SDKs listen on. Source: docs.restate.dev, "Networking" (checked 2026-11-22).
const INGRESS_PORT: u16 = 8080;
const ADMIN_PORT: u16 = 9070;
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9080);

/// Where Restate is, and where it finds this process: `restate://HOST[:PORT]`, the address of its ingress, then what differs
/// from the defaults, such as `?admin=HOST:9070&listen=0.0.0.0:9080&advertise=http://worker-1:9080`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestateAddress {
    /// `HOST:PORT`.
    pub(crate) ingress: String,
    /// `HOST:PORT`; `None`: somebody else registers the workers.
    pub(crate) admin: Option<String>,
    /// Where Restate's calls arrive.
    pub(crate) listen: SocketAddr,
    /// What Restate calls that place; `None`: as it is listened on.
    pub(crate) advertise: Option<Url>,
}

/// It is no address of a Restate server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an address of Restate: {0}; it looks like restate://HOST:8080")]
pub struct InvalidAddress(String);

impl FromStr for RestateAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let wrong = |why: &str| InvalidAddress(why.to_owned());
        let url: Url = text.parse().map_err(|error| InvalidAddress(format!("{error}")))?;
        if url.scheme() != "restate" {
            return Err(wrong("it does not begin with restate://"));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("there is no host"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it takes no user and no password"));
        }
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(wrong("nothing but ?admin=, listen= and advertise= comes after the port"));
        }
        let mut address = Self {
            ingress: format!("{host}:{}", url.port().unwrap_or(INGRESS_PORT)),
            admin: Some(format!("{host}:{ADMIN_PORT}")),
            listen: LISTEN,
            advertise: None,
        };
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "admin" if value == "none" => address.admin = None,
                "admin" => address.admin = Some(authority(&value)?),
                "listen" => {
                    address.listen =
                        value.parse().map_err(|_| wrong("listen= takes an address and a port"))?;
                }
                "advertise" => {
                    let place =
                        value.parse().ok().filter(|url: &Url| matches!(url.scheme(), "http" | "https"));
                    address.advertise = Some(place.ok_or_else(|| wrong("advertise= takes an http address"))?);
                }
                other => return Err(InvalidAddress(format!("{other}= is none of admin, listen, advertise"))),
            }
        }
        if address.listen.ip().is_unspecified() && address.advertise.is_none() {
            return Err(wrong(
                "whoever listens everywhere also says where Restate finds it, with advertise=",
            ));
        }
        Ok(address)
    }
}

/// `HOST:PORT` as it was given, if it is one.
fn authority(text: &str) -> Result<String, InvalidAddress> {
    let url: Option<Url> = format!("http://{text}").parse().ok();
    let plain = url.is_some_and(|url| {
        url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty()
    });
    let ported = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if plain && ported {
        Ok(text.to_owned())
    } else {
        Err(InvalidAddress(format!("{text:?} is no HOST:PORT")))
    }
}

impl fmt::Display for RestateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "restate://{}", self.ingress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> RestateAddress {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_not_said_is_restates_default() {
        let address = parsed("restate://restate.internal");
        assert_eq!(address.ingress, "restate.internal:8080");
        assert_eq!(address.admin.as_deref(), Some("restate.internal:9070"));
        assert_eq!((address.listen, address.advertise), (LISTEN, None));
        assert_eq!(parsed("restate://[::1]:1/").ingress, "[::1]:1");
        assert_eq!(parsed("restate://[::1]:1").to_string(), "restate://[::1]:1");
    }

    #[test]
    fn everything_can_be_said() {
        let address = parsed(
            "restate://127.0.0.1:18080?admin=10.0.0.1:1&listen=0.0.0.0:9080&advertise=http://worker:9080",
        );
        assert_eq!(address.ingress, "127.0.0.1:18080");
        assert_eq!(address.admin.as_deref(), Some("10.0.0.1:1"));
        assert_eq!(address.listen.to_string(), "0.0.0.0:9080");
        assert_eq!(address.advertise.unwrap().as_str(), "http://worker:9080/");
        assert_eq!(parsed("restate://h?admin=none").admin, None);
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
            ("restate://h?listen=9080", "listen="),
            ("restate://h?listen=0.0.0.0:9080", "advertise="),
            ("restate://h?advertise=worker:9080", "advertise="),
            ("restate://h?colour=red", "colour="),
        ] {
            let error = text.parse::<RestateAddress>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
