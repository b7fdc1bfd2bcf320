//! [`Connection`]: the key, base URL, timeout and retries of requests to a vendor.

use std::time::Duration;

use adjutant_core::{ModelError, ModelId, ProviderId};
use reqwest::header::{AUTHORIZATION, HeaderName};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::http::Transport;

/// The settings of requests to a vendor: key, base URL, timeout, retries, sockets.
///
/// # Examples
/// ```
/// use adjutant_providers::{Connection, Transport};
///
/// let connection = Connection {
///     retries: 3,
///     ..Connection::new(Transport::new()?).with_key("sk-1234".into())
/// };
/// # Ok::<(), adjutant_providers::TransportError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Connection {
    /// The API key, if the vendor wants one. Sent as a header, never logged.
    pub api_key: Option<SecretString>,
    /// Another host with the same API, with or without the version segment the vendor's paths begin
    /// with. Default: the vendor's own.
    pub base_url: Option<Url>,
    /// Longest silence of the server, before its answer begins as well as in the middle of it. An
    /// answer of any length may take any time as long as something comes.
    ///
    /// Default `None`: chosen by the server. A vendor over the network: 15 minutes if the model
    /// thinks or may, else 30 s; before the status of a streamed answer at most three eighths of the
    /// caller's time, so that a second attempt fits in. A self-hosted server (Ollama, or an OpenAI- or Anthropic-shaped
    /// one on this machine or a private network): 120 s, and 10 minutes before the first piece,
    /// while it reads the prompt.
    pub timeout: Option<Duration>,
    /// Attempts after the first if a request fails. Default 1. An overload is waited for beyond them,
    /// unless this is 0.
    pub retries: u32,
    /// The connection pool to use; a clone shares it.
    pub transport: Transport,
}

impl Connection {
    /// Returns the default settings, without a key.
    #[must_use]
    pub fn new(transport: Transport) -> Self {
        Self {
            api_key: None,
            base_url: None,
            timeout: None,
            retries: 1,
            transport,
        }
    }

    /// Returns the connection with this API key in place of any other.
    #[must_use]
    pub fn with_key(self, api_key: SecretString) -> Self {
        Self {
            api_key: Some(api_key),
            ..self
        }
    }

    /// Returns the API key, trimmed.
    ///
    /// # Errors
    /// [`ModelError::Authentication`] with `advice` if there is none.
    pub(crate) fn key(
        &self,
        provider: &ProviderId,
        advice: &str,
    ) -> Result<SecretString, ModelError> {
        self.optional_key()
            .ok_or_else(|| ModelError::Authentication {
                provider: provider.clone(),
                message: format!("there is no key. {advice}"),
            })
    }

    /// Returns the API key, trimmed; `None` if it is missing or blank.
    pub(crate) fn optional_key(&self) -> Option<SecretString> {
        let key = self.api_key.as_ref()?.expose_secret().trim();
        (!key.is_empty()).then(|| key.to_owned().into())
    }

    /// Returns the base URL that was set, else `default`, that of the provider.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if there is neither.
    pub(crate) fn base(&self, provider: &str, default: &str) -> Result<Url, ModelError> {
        if let Some(url) = &self.base_url {
            return Ok(url.clone());
        }
        // The only defaults that do not parse are empty.
        default.parse().or_else(|_| {
            Err(ModelError::BadRequest {
                provider: model_id(provider, provider)?.provider,
                message: format!("{provider} has no address of its own: a base URL is needed"),
            })
        })
    }
}

/// Returns the id of a model, its name trimmed.
///
/// # Errors
/// [`ModelError::BadRequest`] if it is blank.
pub(crate) fn model_id(provider: &str, name: &str) -> Result<ModelId, ModelError> {
    #[expect(
        clippy::expect_used,
        reason = "the adapters' own names, none of which is blank"
    )]
    let provider = ProviderId::new(provider).expect("a name");
    match name.trim() {
        "" => Err(ModelError::BadRequest {
            provider,
            message: "the model's name is blank".to_owned(),
        }),
        name => Ok(ModelId {
            provider,
            name: name.to_owned(),
        }),
    }
}

/// Returns the authorization header with the key as a bearer token.
pub(crate) fn bearer(key: &SecretString) -> (HeaderName, SecretString) {
    (
        AUTHORIZATION,
        format!("Bearer {}", key.expose_secret()).into(),
    )
}

/// Returns `base` with `version` and then `path` appended. A base that already ends in a version,
/// this or another (`/v1`, `/v1beta`, `/api/paas/v4`), gets no second one. A query of the base
/// stays.
///
/// # Errors
/// [`ModelError::BadRequest`] unless the base is http(s).
pub(crate) fn endpoint(
    provider: &ProviderId,
    base: &Url,
    version: &str,
    path: &[&str],
) -> Result<Url, ModelError> {
    let mut url = base.clone();
    let last = base
        .path()
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    // Vendors with the same API number it otherwise, so any version in the base is left alone.
    let versioned = version.is_empty() || last == version || is_version(last);
    if let (true, Ok(mut segments)) = (
        matches!(base.scheme(), "http" | "https"),
        url.path_segments_mut(),
    ) {
        // A base with a slash at its end has an empty last segment.
        segments.pop_if_empty();
        if !versioned {
            segments.push(version);
        }
        segments.extend(path);
    } else {
        return Err(ModelError::BadRequest {
            provider: provider.clone(),
            message: format!(
                "the base URL must begin with http:// or https://, which {base} does not"
            ),
        });
    }
    Ok(url)
}

/// Returns true for path segments like `v1`, `v1beta`, `v4`.
fn is_version(segment: &str) -> bool {
    segment
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_there_once() {
        let provider = ProviderId::new("acme").unwrap();
        let url = |base: &str| {
            endpoint(
                &provider,
                &base.parse().unwrap(),
                "v1",
                &["chat", "completions"],
            )
        };
        for (base, expected) in [
            ("https://a.example", "https://a.example/v1/chat/completions"),
            (
                "https://a.example/",
                "https://a.example/v1/chat/completions",
            ),
            (
                "https://a.example/v1",
                "https://a.example/v1/chat/completions",
            ),
            (
                "https://a.example/v1/",
                "https://a.example/v1/chat/completions",
            ),
            (
                "https://a.example/x/",
                "https://a.example/x/v1/chat/completions",
            ),
            (
                "https://a.example/v1beta",
                "https://a.example/v1beta/chat/completions",
            ),
            (
                "https://a.example/api/paas/v4",
                "https://a.example/api/paas/v4/chat/completions",
            ),
            (
                "https://a.example/vllm",
                "https://a.example/vllm/v1/chat/completions",
            ),
            (
                "http://a.example/?q=1",
                "http://a.example/v1/chat/completions?q=1",
            ),
        ] {
            assert_eq!(url(base).unwrap().as_str(), expected);
        }
        assert_eq!(url("ftp://a.example").unwrap_err().code(), "bad_request");
        assert_eq!(url("mailto:a@a.example").unwrap_err().code(), "bad_request");
    }
}
