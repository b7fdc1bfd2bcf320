//! Parses the address of a server as `OLLAMA_HOST` and users write it.

use url::{Host, Url};

/// The default port of an Ollama server.
const PORT: u16 = 11434;

/// A text that is no address of an Ollama server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an Ollama host: write host:port or http://host:port")]
pub struct InvalidHost(pub String);

/// Parses the address to connect to from a value of `OLLAMA_HOST`: `host`, `host:port`, `:port`, or
/// a URL with http or https.
///
/// Without a scheme it is http, and without a port 11434; with a scheme, a missing port is the
/// scheme's default, as in Ollama's clients. Blank text is the default server. An address to listen
/// on (`0.0.0.0`, `[::]`) cannot be connected to: it becomes this machine's.
///
/// # Examples
/// ```
/// use adjutant_providers::ollama::base_url;
///
/// assert_eq!(base_url("gpu-box")?.as_str(), "http://gpu-box:11434/");
/// assert_eq!(base_url("0.0.0.0:8080")?.as_str(), "http://127.0.0.1:8080/");
/// # Ok::<(), adjutant_providers::ollama::InvalidHost>(())
/// ```
///
/// # Errors
/// [`InvalidHost`] if it cannot be parsed, or has another scheme.
pub fn base_url(host: &str) -> Result<Url, InvalidHost> {
    let invalid = || InvalidHost(host.to_owned());
    let text = host.trim().trim_matches(['"', '\'']).trim();
    // `Url` takes `host:port` for a scheme and a path, so the scheme is added first.
    let (text, has_scheme) = match text.split_once("://") {
        Some(_) => (text.to_owned(), true),
        None if text.is_empty() || text.starts_with([':', '/']) => {
            (format!("http://127.0.0.1{text}"), false)
        }
        None => (format!("http://{text}"), false),
    };
    // The cause is dropped: it is about the URL that was made of the text, not about the text.
    let mut url: Url = text.parse().map_err(|_| invalid())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(invalid());
    }
    // `Url` drops an explicit port that is the scheme's default.
    let authority = text
        .split("://")
        .nth(1)
        .and_then(|rest| rest.split('/').next())
        .unwrap_or_default();
    if !has_scheme && url.port().is_none() && !authority.ends_with(":80") {
        url.set_port(Some(PORT)).map_err(|()| invalid())?;
    }
    // `OLLAMA_HOST` is also the address a server listens on; one cannot connect to all interfaces.
    let everywhere = match url.host() {
        Some(Host::Ipv4(address)) if address.is_unspecified() => Some("127.0.0.1"),
        Some(Host::Ipv6(address)) if address.is_unspecified() => Some("[::1]"),
        _ => None,
    };
    if let Some(here) = everywhere {
        url.set_host(Some(here)).map_err(|_| invalid())?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_ollama_reads_them() {
        for (host, expected) in [
            ("", "http://127.0.0.1:11434/"),
            ("  ", "http://127.0.0.1:11434/"),
            ("localhost", "http://localhost:11434/"),
            ("1.2.3.4", "http://1.2.3.4:11434/"),
            (":56789", "http://127.0.0.1:56789/"),
            ("1.2.3.4:56789", "http://1.2.3.4:56789/"),
            ("gpu.lan:80", "http://gpu.lan/"),
            ("http://1.2.3.4", "http://1.2.3.4/"),
            ("http://1.2.3.4:11434", "http://1.2.3.4:11434/"),
            ("https://example.com", "https://example.com/"),
            ("https://example.com:56789", "https://example.com:56789/"),
            ("example.com/path", "http://example.com:11434/path"),
            (
                "https://example.com:56789/path/",
                "https://example.com:56789/path/",
            ),
            ("0.0.0.0", "http://127.0.0.1:11434/"),
            ("0.0.0.0:8000", "http://127.0.0.1:8000/"),
            ("http://0.0.0.0:11434", "http://127.0.0.1:11434/"),
            ("[::]:11434", "http://[::1]:11434/"),
            ("[::1]", "http://[::1]:11434/"),
            ("\"localhost:1\"", "http://localhost:1/"),
        ] {
            assert_eq!(base_url(host).unwrap().as_str(), expected, "{host:?}");
        }
    }

    #[test]
    fn what_is_no_host_is_an_error() {
        for host in [
            "ftp://a.example",
            "a b",
            "localhost:port",
            "http://",
            "localhost:99999",
            "://x",
        ] {
            let error = base_url(host).unwrap_err();
            assert!(error.to_string().contains("host:port"), "{error}");
        }
    }
}
