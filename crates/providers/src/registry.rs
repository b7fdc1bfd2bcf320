//! Every vendor of this build, by name. Above the vendors' folders: they know [`Provider`], but not
//! each other.

use adjutant_core::nearest;
use url::Url;

use crate::provider::Provider;

/// Vendors in order of preference; the others follow in the order of the table.
const PREFERRED: &[&str] = &["gemini", "openai", "anthropic"];

impl Provider {
    /// Returns every vendor of this build.
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

    /// Returns every vendor in the order in which one is chosen if several have a key and the user
    /// named none.
    pub fn by_preference() -> impl Iterator<Item = &'static Self> {
        let rank = |provider: &Self| PREFERRED.iter().position(|name| *name == provider.name);
        let mut all: Vec<&Self> = Self::all().collect();
        // A stable sort, so that the others keep the order of the table.
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

    /// Returns the provider name or alias most similar to a misspelt one, for suggestions.
    #[must_use]
    pub fn nearest(name: &str) -> Option<&'static str> {
        nearest(name, Self::all().flat_map(Self::names))
    }

    /// Returns its name, then its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name].into_iter().chain(self.aliases.iter().copied())
    }

    /// Parses a base URL as users write it for this provider: a URL; for Ollama also `host` or
    /// `host:port`, as in `OLLAMA_HOST`.
    ///
    /// # Errors
    /// A message that says what is wrong with the text.
    pub fn address(&self, text: &str) -> Result<Url, String> {
        #[cfg(feature = "ollama")]
        // Ollama's users write `host:port`, which is no URL.
        if self.name == crate::ollama::PROVIDERS[0].name {
            return crate::ollama::base_url(text).map_err(|error| error.to_string());
        }
        text.trim()
            .parse()
            .map_err(|error| format!("{text:?} is not a URL: {error}"))
    }
}
