//! [`Model`]: a language model of any provider, chosen by name or by the environment.

use std::sync::Arc;

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    ActionScores, BoxFuture, Capabilities, GenerateRequest, GenerateResponse, LanguageModel,
    ModelError, ModelId, Utterance,
};
use adjutant_providers::scripted::ScriptedModel;

/// A language model of any provider, chosen at run time.
///
/// # Examples
///
/// ```
/// use adjutant::{LanguageModel as _, Model};
///
/// let model = Model::named("demo")?;
/// assert_eq!(model.id().to_string(), "scripted/demo");
/// # Ok::<(), adjutant::ModelFromEnvError>(())
/// ```
#[derive(Clone)]
pub struct Model(Arc<dyn LanguageModel>);

/// An error in the environment variables that configure a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFromEnvError {
    /// No variable of the environment configures a model.
    #[error("no model is configured: set {ways}")]
    NotConfigured {
        /// The variables that configure a model.
        ways: String,
    },
    /// `ADJUTANT_MODEL` names a provider that this build does not have.
    #[error("ADJUTANT_MODEL is {name:?}; this build knows {known}")]
    Unknown {
        /// The value of the variable.
        name: String,
        /// The values that this build accepts.
        known: String,
    },
    /// A provider without a default model is named, but no model.
    #[error("which model of {provider}? Set ADJUTANT_MODEL to {provider}/NAME")]
    NoModel {
        /// Name of the provider without a default model.
        provider: &'static str,
    },
    /// A variable holds an invalid address.
    #[error("{variable}: {reason}")]
    Address {
        /// Name of the environment variable.
        variable: &'static str,
        /// The reason why its value is not an address.
        reason: String,
    },
    /// The script of a scripted model cannot be read or parsed.
    #[error("the script {file} cannot be used: {reason}")]
    Script {
        /// Path of the script, or `demo`.
        file: String,
        /// The error of reading or parsing it.
        reason: String,
    },
    /// The model adapter cannot be created, such as for a missing key.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The HTTP client cannot be created on this machine.
    #[cfg(feature = "_http")]
    #[error(transparent)]
    Transport(#[from] adjutant_providers::TransportError),
    /// The model file cannot be opened by the embedded engine.
    #[cfg(feature = "embedded")]
    #[error("the model file {file} cannot be used: {reason}")]
    ModelFile {
        /// Path of the GGUF file.
        file: String,
        /// The error of opening it.
        reason: String,
    },
}

impl Model {
    /// Wraps any language model, to store models of different providers in one type.
    pub fn new(model: impl LanguageModel) -> Self {
        Self(Arc::new(model))
    }

    /// Returns the model that `ADJUTANT_MODEL` names: `PROVIDER` or `PROVIDER/NAME` for a provider
    /// of this build, `scripted:FILE`, `demo`, `embedded:FILE.gguf`. Without it, the first provider
    /// whose key is in the environment: Gemini, OpenAI, Anthropic, then the others.
    ///
    /// A provider's key, model and base URL come from its own variables, such as `GEMINI_API_KEY`,
    /// `GEMINI_MODEL` and `GEMINI_BASE_URL`; `Provider` has their names.
    ///
    /// # Errors
    /// [`ModelFromEnvError`]; it names the ways to configure one. There is no silent fallback.
    pub fn from_env() -> Result<Self, ModelFromEnvError> {
        if let Some(name) = variable("ADJUTANT_MODEL") {
            return Self::named(name.trim());
        }
        #[cfg(feature = "_http")]
        // The first vendor with a key wins, in the order that the table of providers gives.
        if let Some(model) = vendor::with_key()? {
            return Ok(model);
        }
        Err(ModelFromEnvError::NotConfigured { ways: ways() })
    }

    /// Opens the model of a name, as `ADJUTANT_MODEL` may have it: `PROVIDER/NAME` or `PROVIDER`
    /// for a provider of this build, in upper or lower case, `scripted:FILE`, `demo`,
    /// `embedded:FILE.gguf`. Key and address come from the provider's variables in the environment.
    ///
    /// ```no_run
    /// # #[cfg(feature = "openai")] {
    /// let model = adjutant::Model::named("openai/gpt-4")?;
    /// assert_eq!(adjutant::LanguageModel::id(&model).to_string(), "openai/gpt-4");
    /// # }
    /// # Ok::<(), adjutant::ModelFromEnvError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelFromEnvError`]; it says which names there are, or that the key is missing.
    pub fn named(name: &str) -> Result<Self, ModelFromEnvError> {
        if name == "demo" {
            return script(
                name,
                ScriptedModel::demo().map_err(|error| error.to_string()),
            );
        }
        if let Some(file) = name.strip_prefix("scripted:") {
            let read = std::fs::read_to_string(file).map_err(|error| error.to_string());
            let model = read.and_then(|text| {
                ScriptedModel::from_jsonl(&text).map_err(|error| error.to_string())
            });
            return script(file, model);
        }
        #[cfg(feature = "embedded")]
        if let Some(file) = name.strip_prefix("embedded:") {
            let stem = std::path::Path::new(file)
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or(file);
            return adjutant_embedded::EmbeddedModel::new(stem, file)
                .map(Self::new)
                .map_err(|error| ModelFromEnvError::ModelFile {
                    file: file.to_owned(),
                    reason: error.to_string(),
                });
        }
        #[cfg(feature = "_http")]
        if let Some(model) = vendor::named(name)? {
            return Ok(model);
        }
        Err(ModelFromEnvError::Unknown {
            name: name.to_owned(),
            known: known(),
        })
    }
}

fn script(file: &str, model: Result<ScriptedModel, String>) -> Result<Model, ModelFromEnvError> {
    model
        .map(Model::new)
        .map_err(|reason| ModelFromEnvError::Script {
            file: file.to_owned(),
            reason,
        })
}

/// Returns the values of `ADJUTANT_MODEL` that this build accepts, for error messages.
fn known() -> String {
    let mut known: Vec<String> = Vec::new();
    #[cfg(feature = "_http")]
    known.extend(
        adjutant_providers::Provider::all().map(|provider| format!("{}/NAME", provider.name)),
    );
    known.extend(["scripted:FILE", "demo"].map(str::to_owned));
    if cfg!(feature = "embedded") {
        known.push("embedded:FILE.gguf".to_owned());
    }
    known.join(", ")
}

/// Returns the variables that configure a model in this build, for error messages.
fn ways() -> String {
    let mut ways: Vec<String> = Vec::new();
    #[cfg(feature = "_http")]
    ways.extend(
        vendor::choosable()
            .filter_map(|provider| provider.key_variable)
            .map(str::to_owned),
    );
    ways.push(format!("ADJUTANT_MODEL to one of {}", known()));
    ways.join(", or ")
}

/// Models of the providers' table.
#[cfg(feature = "_http")]
mod vendor {
    use adjutant_providers::{Connection, Provider, Transport};

    use super::{Model, ModelFromEnvError, variable};

    /// Returns the providers that are chosen by their key alone, in order of preference.
    pub(super) fn choosable() -> impl Iterator<Item = &'static Provider> {
        Provider::by_preference().filter(|provider| provider.default_model.is_some())
    }

    /// Returns the model of the first provider that has a key.
    pub(super) fn with_key() -> Result<Option<Model>, ModelFromEnvError> {
        let has_key = |provider: &&Provider| provider.key_variable.and_then(variable).is_some();
        choosable()
            .find(has_key)
            .map(|provider| open(provider, None))
            .transpose()
    }

    /// Returns the model `PROVIDER/NAME`, or the default model of `PROVIDER`.
    pub(super) fn named(name: &str) -> Result<Option<Model>, ModelFromEnvError> {
        let (provider, model) = match name.split_once('/') {
            Some((provider, model)) => (provider, Some(model)),
            None => (name, None),
        };
        Provider::find(provider)
            .map(|provider| open(provider, model))
            .transpose()
    }

    fn open(provider: &'static Provider, model: Option<&str>) -> Result<Model, ModelFromEnvError> {
        // Most specific first: the name that was asked for, the variable, the default of the table.
        let name = model
            .map(str::to_owned)
            .or_else(|| provider.model_variable.and_then(variable))
            .or_else(|| provider.default_model.map(str::to_owned))
            .ok_or(ModelFromEnvError::NoModel {
                provider: provider.name,
            })?;
        let mut connection = Connection {
            api_key: provider.key_variable.and_then(variable).map(Into::into),
            retries: provider.retries,
            ..Connection::new(Transport::new()?)
        };
        if let Some((variable, value)) = provider
            .base_url_variable
            .and_then(|name| Some((name, variable(name)?)))
        {
            let url = provider.address(&value);
            connection.base_url =
                Some(url.map_err(|reason| ModelFromEnvError::Address { variable, reason })?);
        }
        Ok(Model::new(provider.model(&name, connection)?))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "`from_env` says that it reads the environment, and nothing else does"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .filter(|value| !value.trim().is_empty())
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Model({})", self.0.id())
    }
}

impl LanguageModel for Model {
    fn id(&self) -> &ModelId {
        self.0.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, std::result::Result<GenerateResponse, ModelError>> {
        self.0.generate(request)
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, std::result::Result<DeltaStream, ModelError>> {
        self.0.stream(request)
    }

    fn prepare(&self, request: &GenerateRequest) {
        self.0.prepare(request);
    }

    fn count_tokens(&self, text: &str) -> Option<u32> {
        self.0.count_tokens(text)
    }

    fn score_actions<'a>(
        &'a self,
        utterance: Utterance<'a>,
    ) -> BoxFuture<'a, std::result::Result<Option<ActionScores>, ModelError>> {
        self.0.score_actions(utterance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_opened_or_the_error_says_what_could_be() {
        assert_eq!(
            Model::named("demo").unwrap().id().to_string(),
            "scripted/demo"
        );
        let error = Model::named("nobody/x").unwrap_err().to_string();
        assert!(
            error.contains("\"nobody/x\"") && error.contains("scripted:FILE"),
            "{error}"
        );
        assert!(matches!(
            Model::named("scripted:nowhere.jsonl"),
            Err(ModelFromEnvError::Script { .. })
        ));
    }

    /// A budget of money refuses a model whose price is not known.
    #[cfg(feature = "_http")]
    #[test]
    fn every_default_model_has_a_price() {
        let prices = adjutant_runtime::Prices::builtin();
        let defaults = adjutant_providers::Provider::all()
            .filter_map(|row| Some((row.name, row.default_model?)));
        let usage = adjutant_core::Usage {
            input_tokens: Some(1_000),
            output_tokens: Some(1_000),
            ..adjutant_core::Usage::default()
        };
        for (provider, name) in defaults {
            let model = adjutant_core::ModelId::new(provider, name).unwrap();
            for (cached, day) in [(500, "2026-11-23"), (0, "2099-01-01")] {
                let usage = adjutant_core::Usage {
                    cached_tokens: Some(cached),
                    ..usage
                };
                assert!(
                    prices.cost(&model, &usage, day.parse().unwrap()).is_some(),
                    "{model} on {day}"
                );
            }
        }
    }

    #[cfg(feature = "openai")]
    #[test]
    fn a_row_of_the_table_is_opened_by_its_name() {
        assert_eq!(
            Model::named("vllm/a/b").unwrap().id().to_string(),
            "vllm/a/b"
        );
        assert_eq!(
            Model::named("vLLM/a/b").unwrap().id().to_string(),
            "vllm/a/b"
        );
        let error = ModelFromEnvError::NotConfigured { ways: ways() }.to_string();
        assert!(
            error.contains("OPENAI_API_KEY, or ") && error.contains("groq/NAME"),
            "{error}"
        );
    }
}
