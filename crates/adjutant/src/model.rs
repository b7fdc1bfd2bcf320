use std::sync::Arc;

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    BoxFuture, Capabilities, GenerateRequest, GenerateResponse, LanguageModel, ModelError, ModelId,
};
use adjutant_providers::scripted::ScriptedModel;

/// Some language model, whichever the environment names.
#[derive(Clone)]
pub struct Model(Arc<dyn LanguageModel>);

/// Why [`Model::from_env`] found no model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFromEnvError {
    /// Nothing is named.
    #[error(
        "no model is configured: set GEMINI_API_KEY, or ADJUTANT_MODEL to gemini/NAME, scripted:FILE or demo \
         (with the feature `embedded` also embedded:FILE.gguf)"
    )]
    NotConfigured,
    /// `ADJUTANT_MODEL` names something this build does not have.
    #[error("ADJUTANT_MODEL is {name:?}; this build knows {known}")]
    Unknown {
        /// What it says.
        name: String,
        /// What it may say.
        known: String,
    },
    /// The script cannot be read.
    #[error("the script {file} cannot be used: {reason}")]
    Script {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The model cannot be made.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// No connection can be made from this machine at all.
    #[cfg(feature = "gemini")]
    #[error(transparent)]
    Transport(#[from] adjutant_providers::TransportError),
    /// The model file cannot be used.
    #[cfg(feature = "embedded")]
    #[error("the model file {file} cannot be used: {reason}")]
    ModelFile {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
}

impl Model {
    /// Wraps a model.
    pub fn new(model: impl LanguageModel) -> Self {
        Self(Arc::new(model))
    }

    /// The model that `ADJUTANT_MODEL` names (`gemini`, `gemini/NAME`, `scripted:FILE`, `demo`, `embedded:FILE.gguf`),
    /// or, without it, Gemini if there is a `GEMINI_API_KEY` (model `GEMINI_MODEL`, or the vendor's current Flash model).
    ///
    /// # Errors
    /// [`ModelFromEnvError`]; it names the ways to configure one. There is no silent fallback.
    pub fn from_env() -> Result<Self, ModelFromEnvError> {
        let named = variable("ADJUTANT_MODEL");
        let Some(name) = named else {
            return match variable("GEMINI_API_KEY") {
                Some(_) => Self::named("gemini"),
                None => Err(ModelFromEnvError::NotConfigured),
            };
        };
        Self::named(&name)
    }

    fn named(name: &str) -> Result<Self, ModelFromEnvError> {
        if name == "demo" {
            return script(name, ScriptedModel::demo().map_err(|error| error.to_string()));
        }
        if let Some(file) = name.strip_prefix("scripted:") {
            let read = std::fs::read_to_string(file).map_err(|error| error.to_string());
            let model =
                read.and_then(|text| ScriptedModel::from_jsonl(&text).map_err(|error| error.to_string()));
            return script(file, model);
        }
        #[cfg(feature = "gemini")]
        if let Some(model) = gemini(name)? {
            return Ok(model);
        }
        #[cfg(feature = "embedded")]
        if let Some(file) = name.strip_prefix("embedded:") {
            let stem = std::path::Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file);
            return adjutant_embedded::EmbeddedModel::new(stem, file).map(Self::new).map_err(|error| {
                ModelFromEnvError::ModelFile { file: file.to_owned(), reason: error.to_string() }
            });
        }
        let known = [
            Some("scripted:FILE"),
            Some("demo"),
            cfg!(feature = "gemini").then_some("gemini/NAME"),
            cfg!(feature = "embedded").then_some("embedded:FILE.gguf"),
        ];
        let known = known.into_iter().flatten().collect::<Vec<_>>().join(", ");
        Err(ModelFromEnvError::Unknown { name: name.to_owned(), known })
    }
}

fn script(file: &str, model: Result<ScriptedModel, String>) -> Result<Model, ModelFromEnvError> {
    model.map(Model::new).map_err(|reason| ModelFromEnvError::Script { file: file.to_owned(), reason })
}

#[cfg(feature = "gemini")]
fn gemini(name: &str) -> Result<Option<Model>, ModelFromEnvError> {
    use adjutant_providers::gemini::{Gemini, GeminiConfig};

    let model = match name.split_once('/') {
        Some(("gemini" | "google", model)) => Some(model.to_owned()),
        None if matches!(name, "gemini" | "google") => variable("GEMINI_MODEL"),
        Some(_) | None => return Ok(None),
    };
    let key = secrecy::SecretString::from(variable("GEMINI_API_KEY").unwrap_or_default());
    let transport = adjutant_providers::Transport::new()?;
    let mut config = GeminiConfig::new(key, transport);
    config.model = model.unwrap_or(config.model);
    Ok(Some(Model::new(Gemini::new(config)?)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "`from_env` says that it reads the environment, and nothing else does"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
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

    fn count_tokens(&self, text: &str) -> Option<u32> {
        self.0.count_tokens(text)
    }
}
