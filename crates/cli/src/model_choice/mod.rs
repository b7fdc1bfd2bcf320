//! Chooses and opens the model of a run: the named one, else one that is available. A named model is
//! never replaced silently.

mod consent; // consent to send a key to an address of the working directory
mod open_turn; // the model of an open turn

use std::path::PathBuf;
use std::sync::Arc;

use adjutant_core::{LanguageModel, ModelError, nearest};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_providers::{Connection, FallbackModel, Provider, Transport};

use crate::config::{ProviderSettings, Settings};
use crate::error::CliError;
#[cfg(feature = "ollama")]
use crate::ollama::{self, Found};
use crate::terminal::screen::Screen;

pub(crate) use open_turn::{is_name, open_original};

/// Providers that are no vendors.
const OURS: &[&str] = &["embedded", "scripted", "demo"];

/// The choice of a model.
#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// A vendor's model; `None` for the configured one, else the provider's default.
    Vendor(&'static Provider, Option<String>),
    /// An embedded model; `None` for the configured one, else the default one.
    Embedded(Option<String>),
    /// An embedded model in a file of the user's.
    EmbeddedFile(PathBuf),
    /// Scripted answers from a file.
    Scripted(PathBuf),
    /// Scripted answers that are built in.
    Demo,
}

/// The origin of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// The user named it.
    Yes,
    /// It was found available.
    No,
}

/// Connection options of a command, which override all settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Override {
    /// Base URL of another host.
    pub(crate) base_url: Option<String>,
    /// Number of retries.
    pub(crate) retries: Option<u32>,
    /// True if a local server may be queried about its model first, which a raw call of one request
    /// must not do.
    #[cfg_attr(
        not(feature = "ollama"),
        expect(dead_code, reason = "only a server of Ollama is queried beforehand")
    )]
    pub(crate) asks: bool,
}

impl Override {
    /// Creates the options of a conversation: those of the settings, and a local server may be
    /// queried.
    fn for_conversation() -> Self {
        Self {
            asks: true,
            ..Self::default()
        }
    }
}

impl Choice {
    /// Parses `PROVIDER`, `PROVIDER/MODEL` or `PROVIDER:FILE`.
    ///
    /// # Errors
    /// There is no such provider, or it does not take this form.
    pub(crate) fn parse(spec: &str) -> Result<Self, CliError> {
        let spec = spec.trim();
        let end = spec.find(['/', ':']).unwrap_or(spec.len());
        let (provider, rest) = spec.split_at(end);
        let rest = match rest.split_at_checked(1) {
            None => None,
            Some((_, "")) => return Err(unusable(spec, "nothing follows the provider's name")),
            Some((separator, name)) => Some((separator, name.to_owned())),
        };
        if let Some(vendor) = Provider::find(provider) {
            return match rest {
                None => Ok(Self::Vendor(vendor, None)),
                Some(("/", model)) => Ok(Self::Vendor(vendor, Some(model))),
                Some((_, model)) => Err(unusable(
                    spec,
                    &format!("a model stands behind a slash: {provider}/{model}"),
                )),
            };
        }
        match (provider, rest) {
            ("embedded", None) => Ok(Self::Embedded(None)),
            ("embedded", Some(("/", name))) => Ok(Self::Embedded(Some(name))),
            ("embedded", Some((_, file))) => Ok(Self::EmbeddedFile(PathBuf::from(file))),
            ("scripted", Some((":", file))) => Ok(Self::Scripted(PathBuf::from(file))),
            ("scripted", _) => Err(unusable(spec, "a script is a file: scripted:FILE")),
            ("demo", None) => Ok(Self::Demo),
            ("demo", Some(_)) => Err(unusable(spec, "the demo has one model")),
            (unknown, _) => Err(unknown_provider(spec, unknown)),
        }
    }

    /// Returns true if the choice names a model, not only a provider.
    pub(crate) fn has_model(&self) -> bool {
        match self {
            Self::Vendor(_, model) | Self::Embedded(model) => model.is_some(),
            Self::EmbeddedFile(_) | Self::Scripted(_) | Self::Demo => true,
        }
    }

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
        others.push(other.map_err(in_fallback)?);
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
    open_choice(
        settings,
        screen,
        choice,
        named,
        &Override::for_conversation(),
    )
    .await
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

/// Builds the connection to a provider. The more specific setting wins: command, provider's
/// section, `llm`, provider's default.
///
/// # Errors
/// A required key is missing, the address is invalid, or a file of the working directory names the
/// address and the user did not consent to sending the key there.
pub(crate) fn connection(
    settings: &Settings,
    provider: &'static Provider,
    over: &Override,
) -> Result<Connection, CliError> {
    let set = settings.provider(provider);
    let base_url = base_url(settings, provider, over)?;
    let key = match &set.withheld {
        Some(withheld) if over.base_url.is_some() || withheld.agreed.get().is_some() => {
            Some(withheld.key.clone())
        }
        Some(withheld) => return Err(consent::refused(provider, withheld)),
        None => set.key,
    };
    let key = match (key, &base_url) {
        (Some(key), _) => Some(key),
        // The user's own host may need no key, but the header is sent in any case.
        (None, Some(_)) if provider.needs_key => Some("none".to_owned().into()),
        (None, None) if provider.needs_key => return Err(no_key(settings, provider)),
        (None, _) => None,
    };
    let base_url = base_url
        .map(|text| provider.address(&text))
        .transpose()
        .map_err(|cause| cannot_be_used(provider, format!("its base URL: {cause}")))?;
    if base_url.is_none() && provider.base_url.is_empty() {
        return Err(no_address(provider));
    }
    let transport =
        Transport::new().map_err(|error| cannot_be_used(provider, error.to_string()))?;
    Ok(Connection {
        api_key: key,
        base_url,
        timeout: set.timeout.or(settings.llm.timeout),
        retries: over
            .retries
            .or(set.retries)
            .or(settings.llm.retries)
            .unwrap_or(provider.retries),
        ..Connection::new(transport)
    })
}

/// Returns the configured address, if it is not the provider's default.
fn base_url(
    settings: &Settings,
    provider: &Provider,
    over: &Override,
) -> Result<Option<String>, CliError> {
    if let Some(url) = over
        .base_url
        .clone()
        .or_else(|| settings.provider(provider).base_url)
    {
        return Ok(Some(url));
    }
    #[cfg(feature = "ollama")]
    if ollama::is(provider) {
        return ollama::address(settings).map_err(|cause| cannot_be_used(provider, cause));
    }
    Ok(None)
}

fn no_address(provider: &Provider) -> CliError {
    let error = cannot_be_used(provider, "its address is not set".to_owned());
    let error = match provider.base_url_variable {
        Some(variable) => error.or_try(format!("{variable}=https://… adjutant …")),
        None => error,
    };
    error.or_try(format!(
        "base_url = \"https://…\" under [{}] in the configuration",
        provider.name
    ))
}

fn cannot_be_used(provider: &Provider, cause: String) -> CliError {
    CliError::configuration(format!("{} cannot be used", provider.name)).because(cause)
}

fn no_key(settings: &Settings, provider: &Provider) -> CliError {
    let mut error = CliError::no_key(format!("there is no key for {}", provider.name));
    if let Some(variable) = provider.key_variable {
        let file = settings.dirs.config.join(".env");
        error = error
            .or_try(format!("adjutant keys set {}", provider.name))
            .or_try(format!("{variable}=… adjutant …"))
            .or_try(format!("write {variable}=… into {}", file.display()));
    }
    if !provider.key_advice.is_empty() {
        error = error.or_try(provider.key_advice);
    }
    error.or_try("adjutant -m embedded …    runs on this machine, without a key")
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
    let script = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
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

/// Returns the variables of keys, the preferred providers first, one line each.
pub(crate) fn key_variables() -> Vec<String> {
    Provider::by_preference()
        .filter(|provider| provider.default_model.is_some())
        .filter_map(|provider| provider.key_variable)
        .take(3)
        .map(|variable| format!("{variable}=… adjutant …"))
        .collect()
}

fn unusable(spec: &str, cause: &str) -> CliError {
    CliError::no_such_model(format!("{spec:?} is not a model's name"))
        .because(cause)
        .or_try(
            "-m PROVIDER/NAME, -m embedded:FILE.gguf, -m scripted:FILE, -m demo (adjutant --help)",
        )
}

fn unknown_provider(spec: &str, unknown: &str) -> CliError {
    let error = CliError::no_such_model(format!("there is no provider {unknown:?}"));
    // The most likely mistake is a model's name without its provider.
    if let Some(provider) = provider_of_model(spec) {
        return error.because(format!("did you mean {provider}/{spec}?"));
    }
    // Names like `qwen3:8b` are Ollama's.
    let tagged = spec.contains(':')
        && !spec.contains('/')
        && nearest(unknown, OURS.iter().copied()).is_none();
    if let Some(provider) = Provider::find("ollama").filter(|_| tagged) {
        return error.because(format!("did you mean {}/{spec}?", provider.name));
    }
    let known = OURS
        .iter()
        .copied()
        .chain(Provider::all().flat_map(Provider::names));
    match nearest(unknown, known) {
        Some(near) => {
            let rest = spec.get(unknown.len()..).unwrap_or_default();
            error.because(format!("did you mean {near}{rest}?"))
        }
        None => {
            let names: Vec<&str> = Provider::all()
                .map(|provider| provider.name)
                .chain(OURS.iter().copied())
                .collect();
            error.because(format!("there are {}", names.join(", ")))
        }
    }
}

/// Returns the provider whose default model begins with the same word.
fn provider_of_model(model: &str) -> Option<&'static str> {
    let first = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
    let word = first(model);
    let alike = |provider: &&Provider| {
        provider
            .default_model
            .is_some_and(|model| first(model) == word)
    };
    // A server on this machine has models of all makers, whose names say nothing about it.
    let makers = || Provider::by_preference().filter(|provider| !provider.local);
    (model.contains('-') && !word.is_empty())
        .then(|| makers().find(alike))?
        .map(|provider| provider.name)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(spec: &str) -> String {
        match Choice::parse(spec).unwrap() {
            Choice::Vendor(provider, model) => {
                format!("{} {}", provider.name, model.as_deref().unwrap_or("-"))
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn every_row_of_the_table_can_be_named_with_and_without_a_model() {
        for provider in Provider::all() {
            for name in provider.names() {
                assert_eq!(read(name), format!("{} -", provider.name));
                assert_eq!(
                    read(&format!("{name}/a/b:c")),
                    format!("{} a/b:c", provider.name)
                );
            }
        }
    }

    #[test]
    fn names_are_parsed_as_documented() {
        assert_eq!(read("embedded"), "Embedded(None)");
        assert_eq!(read("embedded/qwen"), "Embedded(Some(\"qwen\"))");
        assert_eq!(read("embedded:/a/b.gguf"), "EmbeddedFile(\"/a/b.gguf\")");
        assert_eq!(read("scripted:a/b.jsonl"), "Scripted(\"a/b.jsonl\")");
        assert_eq!(read(" demo "), "Demo");
    }

    #[cfg(feature = "gemini")]
    #[test]
    fn an_unknown_provider_is_an_error_with_the_nearest() {
        assert_eq!(read("google/gemini-x"), "gemini gemini-x");
        for (spec, hint) in [
            ("gemni", "did you mean gemini?"),
            ("embeded/x", "did you mean embedded/x?"),
            ("gemini-2.5-pro", "did you mean gemini/gemini-2.5-pro?"),
            ("skripted:f", "did you mean scripted:f?"),
            #[cfg(feature = "ollama")]
            ("qwen3:8b", "did you mean ollama/qwen3:8b?"),
            #[cfg(feature = "openai")]
            ("gpt-5", "did you mean openai/gpt-5?"),
            #[cfg(feature = "anthropic")]
            ("claude-x", "did you mean anthropic/claude-x?"),
            ("zzz", "there are gemini"),
            ("", "there are gemini"),
        ] {
            let error = Choice::parse(spec).unwrap_err();
            assert_eq!(error.exit as u8, 3, "{spec}");
            assert!(
                error.cause.as_ref().unwrap().contains(hint),
                "{spec}: {error:?}"
            );
        }
    }

    #[test]
    fn half_a_name_is_an_error() {
        for spec in ["embedded/", "embedded:", "scripted", "scripted/x", "demo/x"] {
            assert_eq!(Choice::parse(spec).unwrap_err().exit as u8, 3, "{spec}");
        }
        for provider in Provider::all() {
            for end in ["/", ":x"] {
                assert_eq!(
                    Choice::parse(&format!("{}{end}", provider.name))
                        .unwrap_err()
                        .exit as u8,
                    3
                );
            }
        }
    }
}
