//! Authentication by a trusted reverse proxy that names the user in a header.

use std::net::IpAddr;

use adjutant_core::UserId;
use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use super::name::user_id;
use crate::problem::Problem;

/// Log message for operators about a header that may be partly the client's.
const SEVERAL: &str = "the proxy's header was there twice, or held a comma: refused, because one of the names may be the \
                       client's own. Let the proxy set the header, not append to it";

/// A reverse proxy that authenticates users, known by its address. The header is ignored in
/// requests from anywhere else.
///
/// # Examples
///
/// ```
/// use adjutant_service::TrustedProxy;
///
/// let peers = ["10.0.0.7".to_owned(), "10.1.0.0/24".to_owned()];
/// assert!(TrustedProxy::new("X-Forwarded-User", &peers).is_ok());
/// assert!(TrustedProxy::new("X-Forwarded-User", &[]).is_err());
/// ```
#[derive(Debug, Clone)]
pub struct TrustedProxy {
    header: HeaderName,
    peers: Vec<IpNet>,
}

/// An error for proxy settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidProxy {
    /// The text is not a valid header name.
    #[error("{0:?} is not the name of a header")]
    Header(String),
    /// The text is neither an address nor a network.
    #[error("{0:?} is neither an address nor a network, such as 10.0.0.7 or 10.0.0.0/24")]
    Peer(String),
    /// The list of proxy addresses is empty, so every request would be refused.
    #[error("there is no address of a proxy, so every request would be refused")]
    NoPeers,
}

impl TrustedProxy {
    /// Creates the settings of a proxy at these addresses or networks, which names the user in
    /// `header`.
    ///
    /// # Errors
    /// [`InvalidProxy`] if the header name or an address is invalid, or there is no address.
    pub fn new(header: &str, peers: &[String]) -> Result<Self, InvalidProxy> {
        let name = header
            .trim()
            .parse()
            // The error only states that it is not a header name.
            .map_err(|_| InvalidProxy::Header(header.to_owned()))?;
        let peers = networks(peers)?;
        if peers.is_empty() {
            Err(InvalidProxy::NoPeers)
        } else {
            Ok(Self {
                header: name,
                peers,
            })
        }
    }

    pub(crate) fn user(
        &self,
        peer: Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Result<UserId, Problem> {
        let trusted = peer.is_some_and(|peer| {
            // An IPv4 address may arrive in its IPv6 form.
            let peer = peer.to_canonical();
            self.peers.iter().any(|network| network.contains(&peer))
        });
        if !trusted {
            return Err(Problem::forbidden("the service answers to its proxy only"));
        }
        // A proxy that appends instead of replacing would leave the client's own header in place,
        // as a second line or before a comma.
        let mut names = headers.get_all(&self.header).iter();
        let (first, second) = (names.next(), names.next());
        let name = first.ok_or_else(|| Problem::unauthorized("the proxy named no user"))?;
        if second.is_some() {
            return Err(
                Problem::unauthorized("the proxy named its user twice").with_operator_note(SEVERAL)
            );
        }
        // `HeaderValue::to_str` accepts ASCII only, and users have names with other letters.
        let name = std::str::from_utf8(name.as_bytes())
            .map_err(|_| Problem::unauthorized("the user's name is not UTF-8"))?;
        if name.contains(',') {
            return Err(
                Problem::unauthorized("the proxy named several users").with_operator_note(SEVERAL)
            );
        }
        user_id(name)
    }
}

/// Parses addresses and networks, such as `10.0.0.7` or `10.0.0.0/24`.
///
/// # Errors
/// [`InvalidProxy::Peer`] for the first that is neither.
pub fn networks(peers: &[String]) -> Result<Vec<IpNet>, InvalidProxy> {
    peers.iter().map(|peer| network(peer)).collect()
}

fn network(peer: &str) -> Result<IpNet, InvalidProxy> {
    let text = peer.trim();
    let one = text.parse::<IpAddr>().map(IpNet::from);
    one.or_else(|_| text.parse())
        // The error only states that the syntax is wrong.
        .map_err(|_| InvalidProxy::Peer(peer.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn user(peer: &str, values: &[&str]) -> Option<String> {
        let peers = [
            "10.0.0.0/24".to_owned(),
            "::1".to_owned(),
            "192.0.2.7".to_owned(),
        ];
        let proxy = TrustedProxy::new("X-Forwarded-User", &peers).unwrap();
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(
                "x-forwarded-user",
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        proxy
            .user(Some(peer.parse().unwrap()), &headers)
            .ok()
            .map(String::from)
    }

    #[test]
    fn only_the_proxy_can_name_a_user() {
        for peer in ["10.0.0.1", "::1", "192.0.2.7", "::ffff:10.0.0.1"] {
            assert_eq!(user(peer, &["ana"]).as_deref(), Some("ana"), "{peer}");
        }
        for peer in ["10.0.1.1", "127.0.0.1", "192.0.2.8", "::2"] {
            assert_eq!(user(peer, &["ana"]), None, "{peer}");
        }
    }

    #[test]
    fn a_proxy_header_names_exactly_one_user() {
        for values in [
            &[][..],
            &["ana", "eve"],
            &["ana", "ana"],
            &[""],
            &["  "],
            &["\u{a0}\u{2003}"],
            &["ana, eve"],
            &["ana,"],
            &["a\u{85}b"],
        ] {
            assert_eq!(user("10.0.0.1", values), None, "{values:?}");
        }
    }

    #[test]
    fn a_proxys_user_name_is_compared_byte_for_byte_and_local_is_refused() {
        let own = ["local\u{a0}", "Local", "local."];
        for name in [
            "ana\u{a0}",
            "\u{2003}ana",
            "Ana",
            "Зоя",
            "李雷",
            "e\u{301}va",
            "éva",
        ]
        .iter()
        .chain(&own)
        {
            assert_eq!(
                user("10.0.0.1", &[name]).as_deref(),
                Some(*name),
                "{name:?}"
            );
        }
        assert_eq!(user("10.0.0.1", &["local"]), None);
    }

    #[test]
    fn a_name_that_is_not_utf8_is_refused() {
        let proxy = TrustedProxy::new("x-user", &["::1".to_owned()]).unwrap();
        let headers = HeaderMap::from_iter([(
            proxy.header.clone(),
            HeaderValue::from_bytes(b"an\xe1").unwrap(),
        )]);
        assert!(proxy.user("::1".parse().ok(), &headers).is_err());
    }

    #[test]
    fn invalid_proxy_settings_are_named_in_the_error() {
        let fails = |header: &str, peers: &[&str]| {
            let peers: Vec<String> = peers.iter().map(|peer| (*peer).to_owned()).collect();
            TrustedProxy::new(header, &peers).unwrap_err()
        };
        assert_eq!(
            fails("x y", &["::1"]),
            InvalidProxy::Header("x y".to_owned())
        );
        assert_eq!(
            fails("x-user", &["proxy.local"]),
            InvalidProxy::Peer("proxy.local".to_owned())
        );
        assert_eq!(
            fails("x-user", &["10.0.0.0/99"]),
            InvalidProxy::Peer("10.0.0.0/99".to_owned())
        );
        assert_eq!(fails("x-user", &[]), InvalidProxy::NoPeers);
    }
}
