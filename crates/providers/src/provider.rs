//! [`Provider`]: the names, environment variables and defaults of a vendor.
//!
//! The rows are in the vendors' folders; `registry.rs` puts them together.

use adjutant_core::ModelError;
use serde_json::Value;
use url::Url;

use crate::adapter::HttpModel;
use crate::connection::{Connection, model_id};
use crate::error::{ErrorBody, Vendor};

/// A vendor, or a server that speaks a vendor's API.
///
/// # Examples
/// ```
/// use adjutant_providers::Provider;
///
/// let provider = Provider::find("claude").unwrap();
/// assert_eq!(provider.name, "anthropic");
/// assert_eq!(provider.key_variable, Some("ANTHROPIC_API_KEY"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Provider {
    /// The part before the slash in `PROVIDER/MODEL`.
    pub name: &'static str,
    /// Other names that users write for it.
    pub aliases: &'static [&'static str],
    /// The environment variable that holds its API key; `None` if it takes no key.
    pub key_variable: Option<&'static str>,
    /// True if requests without a key are refused.
    pub needs_key: bool,
    /// A sentence on where to get a key, for errors about a missing or refused one; may be empty.
    pub key_advice: &'static str,
    /// The environment variable that holds another base URL.
    pub base_url_variable: Option<&'static str>,
    /// The environment variable that holds the model's name.
    pub model_variable: Option<&'static str>,
    /// The base URL of its API; empty if the user has to give one.
    pub base_url: &'static str,
    /// The model to use if none is named; `None` if one has to be named.
    pub default_model: Option<&'static str>,
    /// True if it runs on the user's own machine: nothing is paid, and no data leaves it.
    pub local: bool,
    /// True if the vendor stores requests and answers unless a request forbids it. Every request
    /// there then carries `store: false`; other vendors may refuse the field.
    pub stores_unless_told: bool,
    /// Attempts after the first if a request fails.
    pub retries: u32,
    /// Returns the provider state that a call with this thought signature would have. For
    /// transcripts recorded by other programs. `None` if calls of this vendor carry no state.
    pub call_state: Option<fn(signature: &str) -> Value>,
    /// Opens one of its models. Checks the configuration; sends no request.
    pub open: fn(
        provider: &Provider,
        model: &str,
        connection: Connection,
    ) -> Result<HttpModel, ModelError>,
}

impl Provider {
    /// Returns the model of this name, and the advice that errors about it contain.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if the name is blank.
    pub(crate) fn vendor(
        &self,
        name: &str,
        parse_error: fn(u16, &str) -> ErrorBody,
    ) -> Result<Vendor, ModelError> {
        Ok(Vendor {
            model: model_id(self.name, name)?,
            key_advice: self.key_advice,
            model_advice: String::new(),
            parse_error,
        })
    }

    /// Returns the base URL of the API: the connection's, else the vendor's own.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if there is neither.
    pub(crate) fn base(&self, connection: &Connection) -> Result<Url, ModelError> {
        connection.base(self.name, self.base_url)
    }

    /// Returns true for the address of another server than the vendor's own: a proxy, or a server with
    /// the vendor's API and models of anybody.
    pub(crate) fn is_elsewhere(&self, base: &Url) -> bool {
        let own = Url::parse(self.base_url).ok();
        own.is_none_or(|own| own.host() != base.host())
    }

    /// Opens a model of this vendor. Sends no request.
    ///
    /// # Errors
    /// [`ModelError::Authentication`] if it needs a key and has none, [`ModelError::BadRequest`]
    /// for a blank model name or a base URL that is not http(s) or missing.
    pub fn model(&self, name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
        (self.open)(self, name, connection)
    }
}
