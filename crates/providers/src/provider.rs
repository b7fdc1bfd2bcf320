//! The vendors by name: what whoever chooses a model needs to know of each.

use adjutant_core::{ModelError, nearest};
use serde_json::Value;
use url::Url;

use crate::adapter::HttpModel;
use crate::connection::{Connection, model_id};

/// A vendor, or a server that speaks a vendor's language.
#[derive(Debug, Clone, Copy)]
pub struct Provider {
    /// Its name in `PROVIDER/MODEL`.
    pub name: &'static str,
    /// Other names people use for it.
    pub aliases: &'static [&'static str],
    /// The environment variable that holds its key; `None`: it has none.
    pub key_variable: Option<&'static str>,
    /// Whether nothing works without a key.
    pub needs_key: bool,
    /// What to do about a missing or refused key, as a sentence; may be empty.
    pub key_advice: &'static str,
    /// The environment variable that names another host.
    pub base_url_variable: Option<&'static str>,
    /// The environment variable that names the model.
    pub model_variable: Option<&'static str>,
    /// Its address; empty: there is none until the person gives one.
    pub base_url: &'static str,
    /// The model if none is named; `None`: it has to be named.
    pub default_model: Option<&'static str>,
    /// Runs on the user's own machine: nothing is paid, nothing leaves.
    pub local: bool,
    /// Attempts after the first.
    pub retries: u32,
    /// The state of a call that carries this signature, as the vendor's own answers would have left
    /// it; for transcripts that come from elsewhere. `None`: calls of this vendor carry none.
    pub call_state: Option<fn(signature: &str) -> Value>,
    /// A model of it. Checks the configuration; sends nothing.
    pub open: fn(
        provider: &Provider,
        model: &str,
        connection: Connection,
    ) -> Result<HttpModel, ModelError>,
}

/// Who comes first; the others follow in the order of the table.
const PREFERRED: &[&str] = &["gemini", "openai", "anthropic"];

impl Provider {
    /// Every vendor of this build.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        let tables: &'static [&'static [Self]] = &[
            #[cfg(feature = "gemini")]
            crate::gemini::PROVIDERS,
            #[cfg(feature = "openai")]
            crate::openai::PROVIDERS,
            #[cfg(feature = "anthropic")]
            crate::anthropic::PROVIDERS,
            #[cfg(feature = "ollama")]
            crate::ollama::PROVIDERS,
        ];
        tables.iter().copied().flatten()
    }

    /// The same in the order in which one is chosen if several have a key and none was named.
    pub fn by_preference() -> impl Iterator<Item = &'static Self> {
        let rank = |provider: &Self| PREFERRED.iter().position(|name| *name == provider.name);
        let mut all: Vec<&Self> = Self::all().collect();
        all.sort_by_key(|provider| rank(provider).unwrap_or(PREFERRED.len()));
        all.into_iter()
    }

    /// Returns the vendor of that name or alias, in upper or lower case.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().find(|provider| {
            provider
                .names()
                .any(|known| known.eq_ignore_ascii_case(name))
        })
    }

    /// The name nearest to a misspelt one.
    #[must_use]
    pub fn nearest(name: &str) -> Option<&'static str> {
        nearest(name, Self::all().flat_map(Self::names))
    }

    /// Its name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name].into_iter().chain(self.aliases.iter().copied())
    }

    /// Reads an address as people write it for this provider: a URL; for Ollama also `host` or
    /// `host:port`, as `OLLAMA_HOST` has it.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub fn address(&self, text: &str) -> Result<Url, String> {
        #[cfg(feature = "ollama")]
        if self.name == crate::ollama::PROVIDERS[0].name {
            return crate::ollama::base_url(text).map_err(|error| error.to_string());
        }
        text.trim()
            .parse()
            .map_err(|error| format!("{text:?} is not a URL: {error}"))
    }

    /// Where its API is: the connection's base URL, else the vendor's own.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if there is neither.
    pub(crate) fn base(&self, connection: &Connection) -> Result<Url, ModelError> {
        match &connection.base_url {
            Some(url) => Ok(url.clone()),
            None => match self.base_url.parse() {
                Ok(url) => Ok(url),
                Err(_) => Err(ModelError::BadRequest {
                    provider: model_id(self.name, self.name)?.provider,
                    message: format!(
                        "{} has no address of its own: a base URL is needed",
                        self.name
                    ),
                }),
            },
        }
    }

    /// A model of this vendor.
    ///
    /// # Errors
    /// [`ModelError::Authentication`] if it needs a key and has none, [`ModelError::BadRequest`]
    /// for a blank model name or a base URL that is not http(s) or missing.
    pub fn model(&self, name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
        (self.open)(self, name, connection)
    }
}
