//! Chooses and opens the model of a run: the named one, else one that is available. A named model is
//! never replaced silently.

mod choice; // the choice as users write it
mod connection; // address, key, timeout and retries
mod consent; // consent to send a key to an address of the working directory
mod open_turn; // the model of an open turn
mod overrides; // connection options of a command

use std::path::PathBuf;
use std::sync::Arc;

use adjutant_core::{LanguageModel, ModelError};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_providers::{Connection, FallbackModel, Provider};
use adjutant_weak::{ConstrainedModel, is_small_model};

use crate::config::{ProviderSettings, Settings, ToolCalling, read_named_text};
use crate::error::CliError;
#[cfg(feature = "ollama")]
use crate::ollama::{self, Found};
use crate::terminal::screen::Screen;

use connection::{base_url, cannot_be_used};

pub(crate) use choice::{Choice, Named, key_variables};
pub(crate) use connection::connection;
pub(crate) use open_turn::{is_name, open_original};
pub(crate) use overrides::Override;

impl Choice {
    /// Chooses the model: the named one; else the first provider with a key and a model; else
    /// Ollama, if it runs and has a model with tool calling; else the embedded one.
    ///
    /// # Errors
    /// The name is invalid.
    pub(crate) async fn choose(
        settings: &Settings,
        screen: &Screen,
    ) -> Result<(Self, Named), CliError> {
        if let Some(spec) = &settings.model {
            return Ok((Self::parse(spec)?, Named::Yes));
        }
        let with_key =
            || Provider::by_preference().filter(|row| settings.provider(row).any_key().is_some());
        let has_model =
            |row: &&Provider| row.default_model.is_some() || settings.provider(row).model.is_some();
        if let Some(provider) = with_key().find(has_model) {
            return Ok((Self::Vendor(provider, None), Named::No));
        }
        if let Some(provider) = with_key().find(|row| row.needs_key) {
            screen.note(&format!(
                "there is a key for {0}, which needs a model's name: -m {0}/NAME",
                provider.name
            ));
        }
        if settings.embedded_model.is_some() {
            return Ok((Self::Embedded(None), Named::Yes));
        }
        #[cfg(feature = "ollama")]
        if let Some(choice) = running_ollama(settings, screen).await? {
            return Ok((choice, Named::No));
        }
        Ok((Self::Embedded(None), Named::No))
    }
}

/// Chooses a running local server that was not named, if it has a model.
#[cfg(feature = "ollama")]
async fn running_ollama(settings: &Settings, screen: &Screen) -> Result<Option<Choice>, CliError> {
    let Some(provider) = ollama::provider() else {
        return Ok(None);
    };
    let over = Override::default();
    let set = settings.provider(provider);
    if !ollama::listens(&base_url(settings, provider, &over)?.unwrap_or_default()) {
        return Ok(None);
    }
    if set.model.is_some() {
        return Ok(Some(Choice::Vendor(provider, set.model)));
    }
    consent::ask(settings, screen, provider, &over).await?;
    let connection = connection(settings, provider, &over)?;
    Ok(
        match ollama::discover(&connection, ollama::PATIENCE).await {
            Found::Model(name) => Some(Choice::Vendor(provider, Some(name))),
            Found::Nothing => {
                screen.note(&format!(
                    "Ollama runs and has no model that can call tools: adjutant models pull {}",
                    ollama::GOOD
                ));
                None
            }
            Found::NoServer(_) => None,
        },
    )
}

/// Opens the chosen model, downloading it if needed and permitted, with the models of `fallback`
/// behind it.
///
/// # Errors
/// A name is invalid, its key is missing, its file cannot be used, or two models cannot replace
/// each other.
pub(crate) async fn open(
    settings: &Settings,
    screen: &Screen,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    let first = open_alone(settings, screen).await?;
    if settings.fallback.is_empty() {
        return Ok(first);
    }
    // The cause that an error has is worth more than the place, so that is a remedy then.
    let in_fallback = |error: CliError| match error.cause {
        None => error.because("in fallback"),
        Some(_) => error.or_try("fallback in the configuration (adjutant config show --origin)"),
    };
    let mut others = Vec::new();
    for spec in &settings.fallback {
        let choice = Choice::parse(spec).map_err(in_fallback)?;
        let other = open_choice(settings, screen, choice, Named::Yes, &Override::default()).await;
        others.push(with_tool_calling(settings, other.map_err(in_fallback)?));
    }
    let model = FallbackModel::new(first, others)
        .map_err(|error| CliError::configuration(error.to_string()).because("in fallback"))?;
    Ok(Arc::new(model))
}

/// Opens the chosen model without fallbacks.
///
/// # Errors
/// Those of [`open`].
pub(crate) async fn open_alone(
    settings: &Settings,
    screen: &Screen,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    let (choice, named) = Choice::choose(settings, screen).await?;
    let model = open_choice(
        settings,
        screen,
        choice,
        named,
        &Override::for_conversation(),
    )
    .await?;
    Ok(with_tool_calling(settings, model))
}

/// Returns the model with constrained tool calling, if the settings say so.
fn with_tool_calling(settings: &Settings, model: Arc<dyn LanguageModel>) -> Arc<dyn LanguageModel> {
    let is_constrained = match settings.llm.tool_calling {
        ToolCalling::Free => false,
        ToolCalling::Constrained => true,
        // Models that replace each other call tools in one way.
        ToolCalling::Auto => is_small_model(&model.id().name) && settings.fallback.is_empty(),
    };
    match is_constrained && !model.capabilities().weak_tools {
        true => Arc::new(ConstrainedModel::new(model)),
        false => model,
    }
}

/// Opens the model of a choice.
///
/// # Errors
/// Its key is missing, its file cannot be used, or it has no other host.
pub(crate) async fn open_choice(
    settings: &Settings,
    screen: &Screen,
    choice: Choice,
    named: Named,
    over: &Override,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    if let (Some(_), false) = (&over.base_url, matches!(choice, Choice::Vendor(..))) {
        return Err(CliError::usage(
            "--base-url belongs to a provider that is reached over the network",
        ));
    }
    match choice {
        Choice::Vendor(provider, name) => vendor(settings, screen, provider, name, over).await,
        #[cfg(feature = "embedded")]
        Choice::Embedded(name) => {
            let name = name.or_else(|| settings.embedded_model.clone());
            let (name, file) =
                crate::embedded::ensure_installed(settings, screen, name, named).await?;
            in_process(settings, &name, file)
        }
        #[cfg(feature = "embedded")]
        Choice::EmbeddedFile(file) => embedded_file(settings, file),
        #[cfg(not(feature = "embedded"))]
        Choice::Embedded(_) | Choice::EmbeddedFile(_) => Err(no_embedded(named)),
        Choice::Scripted(file) => scripted(settings, &file, over),
        Choice::Demo => {
            let model =
                ScriptedModel::demo().map_err(|error| CliError::failed(error.to_string()))?;
            Ok(Arc::new(model))
        }
    }
}

/// Opens a vendor's model.
async fn vendor(
    settings: &Settings,
    screen: &Screen,
    provider: &'static Provider,
    name: Option<String>,
    over: &Override,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    consent::ask(settings, screen, provider, over).await?;
    let connection = connection(settings, provider, over)?;
    let set = settings.provider(provider);
    let name = match name
        .or(set.model)
        .or_else(|| provider.default_model.map(str::to_owned))
    {
        Some(name) => name,
        None => installed(provider, &connection).await?,
    };
    #[cfg(feature = "ollama")]
    if ollama::is(provider) && over.asks && (screen.asks() || settings.bounds.in_chat) {
        ollama::check(settings, screen, &name).await?;
    }
    make(settings, provider, &name, connection, over)
        .await
        .map_err(|error| {
            let cause = match error {
                // The provider and the category of the error are in the message already.
                ModelError::BadRequest { message, .. } => message,
                error => error.to_string(),
            };
            cannot_be_used(provider, cause)
        })
}

/// Builds a vendor's model. A local server may be queried for its capabilities first.
#[cfg_attr(
    not(feature = "ollama"),
    expect(unused_variables, reason = "only a server of Ollama is queried")
)]
async fn make(
    settings: &Settings,
    provider: &Provider,
    name: &str,
    connection: Connection,
    over: &Override,
) -> Result<Arc<dyn LanguageModel>, ModelError> {
    #[cfg(feature = "ollama")]
    if ollama::is(provider) {
        return ollama::model(settings, name, connection, over.asks).await;
    }
    Ok(Arc::new(provider.model(name, connection)?))
}

/// Returns the model for a provider without a default, if none was named: one that is installed
/// there.
async fn installed(provider: &Provider, connection: &Connection) -> Result<String, CliError> {
    #[cfg(feature = "ollama")]
    if ollama::is(provider) {
        return match ollama::discover(connection, ollama::PATIENCE_WITH_A_NAMED_ONE).await {
            Found::Model(name) => Ok(name),
            Found::Nothing => Err(CliError::configuration(
                "Ollama has no model that can call tools",
            )
            .or_try(format!("adjutant models pull {}", ollama::GOOD))
            .or_try(format!("ollama pull {}", ollama::GOOD))),
            Found::NoServer(error) => Err(CliError::from_model_error(&error)
                .or_try("ollama serve")
                .or_try("say where it is: OLLAMA_HOST=host:port")),
        };
    }
    let _ = connection;
    Err(
        CliError::configuration(format!("which model of {}?", provider.name))
            .or_try(format!("-m {}/NAME", provider.name))
            .or_try(format!(
                "model = \"NAME\" under [{}] in the configuration",
                provider.name
            )),
    )
}

fn scripted(
    settings: &Settings,
    file: &std::path::Path,
    over: &Override,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    let unusable = |cause: String| {
        CliError::configuration(format!("the script {} cannot be used", file.display()))
            .because(cause)
    };
    let script = read_named_text(file).map_err(|error| unusable(error.to_string()))?;
    let mut model =
        ScriptedModel::from_jsonl(&script).map_err(|error| unusable(error.to_string()))?;
    if let Some(retries) = over.retries.or(settings.llm.retries) {
        model = model.with_retries(retries);
    }
    if let Some(timeout) = settings.llm.timeout {
        model = model.with_timeout(timeout);
    }
    Ok(Arc::new(model))
}

#[cfg(feature = "embedded")]
fn embedded_file(settings: &Settings, file: PathBuf) -> Result<Arc<dyn LanguageModel>, CliError> {
    let unusable = |cause: &str| {
        CliError::configuration(format!("{} cannot be used as a model", file.display()))
            .because(cause)
    };
    // The model is loaded in the background, where an error would come with the first message only.
    match std::fs::metadata(&file) {
        Err(error) => return Err(unusable(&error.to_string())),
        Ok(data) if !data.is_file() => return Err(unusable("it is not a file")),
        Ok(_) => {}
    }
    let name = file.file_stem().map_or_else(
        || "file".to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    );
    in_process(settings, &name, file)
}

#[cfg(feature = "embedded")]
fn in_process(
    settings: &Settings,
    name: &str,
    file: PathBuf,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    let cache = settings.dirs.cache.join("prefix");
    let model = adjutant_embedded::EmbeddedModel::with_prefix_cache(name, file, cache)
        .map_err(|error| CliError::configuration(error.to_string()))?;
    // Reads the file while the database is opened and the user types.
    model.warm_up();
    Ok(Arc::new(model))
}

/// Returns the error of a program that was built without embedded models.
#[cfg(not(feature = "embedded"))]
fn no_embedded(named: Named) -> CliError {
    let without = "this adjutant was built without the embedded model";
    let error = match named {
        Named::Yes => CliError::configuration(without),
        Named::No => CliError::configuration(format!("there is no key, and {without}")),
    };
    key_variables()
        .into_iter()
        .fold(error, CliError::or_try)
        .or_try("cargo install with the feature embedded")
}

impl Settings {
    /// Returns the settings of a provider.
    pub(crate) fn provider(&self, provider: &Provider) -> ProviderSettings {
        self.providers
            .get(provider.name)
            .cloned()
            .unwrap_or_default()
    }
}
