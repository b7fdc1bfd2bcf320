//! Which model answers: what was named, else what there is. Never another one silently.

use std::path::PathBuf;
use std::sync::Arc;

use adjutant_core::{LanguageModel, nearest};
use adjutant_providers::scripted::ScriptedModel;

use crate::bounded::Bounded;
use crate::config::Settings;
use crate::error::CliError;
use crate::screen::Screen;

/// Names people may use for a provider.
const PROVIDERS: &[&str] = &["gemini", "google", "embedded", "scripted", "demo"];

/// Who is to answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choice {
    /// Google's; `None`: the configured model, else the provider's default.
    Gemini(Option<String>),
    /// In this process; `None`: the configured model, else the usual one.
    Embedded(Option<String>),
    /// In this process, from a file of the person's own.
    EmbeddedFile(PathBuf),
    /// Canned answers from a file.
    Scripted(PathBuf),
    /// The shipped canned answers.
    Demo,
}

impl Choice {
    /// Reads `PROVIDER`, `PROVIDER/MODEL` or `PROVIDER:FILE`.
    ///
    /// # Errors
    /// No such provider, or a form it does not have.
    pub(crate) fn parse(spec: &str) -> Result<Self, CliError> {
        let spec = spec.trim();
        let end = spec.find(['/', ':']).unwrap_or(spec.len());
        let (provider, rest) = spec.split_at(end);
        let rest = match rest.split_at_checked(1) {
            None => None,
            Some((_, "")) => return Err(unusable(spec, "nothing follows the provider's name")),
            Some((separator, name)) => Some((separator, name.to_owned())),
        };
        match (provider, rest) {
            ("gemini" | "google", None) => Ok(Self::Gemini(None)),
            ("gemini" | "google", Some(("/", name))) => Ok(Self::Gemini(Some(name))),
            ("embedded", None) => Ok(Self::Embedded(None)),
            ("embedded", Some(("/", name))) => Ok(Self::Embedded(Some(name))),
            ("embedded", Some((_, file))) => Ok(Self::EmbeddedFile(PathBuf::from(file))),
            ("scripted", Some((":", file))) => Ok(Self::Scripted(PathBuf::from(file))),
            ("scripted", _) => Err(unusable(spec, "a script is a file: scripted:FILE")),
            ("demo", None) => Ok(Self::Demo),
            (provider, Some(_)) if PROVIDERS.contains(&provider) => {
                Err(unusable(spec, "that provider is not written like this"))
            }
            (unknown, _) => Err(unknown_provider(spec, unknown)),
        }
    }

    /// What was named; else gemini if there is a key or a model of it; else the model in this process. The second value
    /// says whether it was named.
    ///
    /// # Errors
    /// The name is not one.
    pub(crate) fn of(settings: &Settings) -> Result<(Self, bool), CliError> {
        match &settings.model {
            Some(spec) => Ok((Self::parse(spec)?, true)),
            None if settings.gemini.key.is_some() => Ok((Self::Gemini(None), false)),
            None => Ok((Self::Embedded(None), settings.embedded_model.is_some())),
        }
    }
}

/// The model to run with, fetched first if it has to be and may be.
///
/// # Errors
/// The name is not one, its key is missing, its file is not there or not usable.
pub(crate) async fn open(settings: &Settings, screen: &Screen) -> Result<Arc<dyn LanguageModel>, CliError> {
    let (choice, named) = Choice::of(settings)?;
    match choice {
        Choice::Gemini(name) => gemini(settings, name),
        Choice::Embedded(name) => embedded(settings, screen, name, named).await,
        Choice::EmbeddedFile(file) => embedded_file(settings, screen, file),
        Choice::Scripted(file) => scripted(settings, &file),
        Choice::Demo => {
            let model = ScriptedModel::demo().map_err(|error| CliError::failed(error.to_string()))?;
            Ok(Arc::new(model))
        }
    }
}

fn scripted(settings: &Settings, file: &std::path::Path) -> Result<Arc<dyn LanguageModel>, CliError> {
    let unusable = |cause: String| {
        CliError::configuration(format!("the script {} cannot be used", file.display())).because(cause)
    };
    let script = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    let mut model = ScriptedModel::from_jsonl(&script).map_err(|error| unusable(error.to_string()))?;
    if let Some(retries) = settings.llm.retries {
        model = model.with_retries(retries);
    }
    Ok(Bounded::shared(model, settings.llm.timeout))
}

#[cfg(feature = "gemini")]
fn gemini(settings: &Settings, name: Option<String>) -> Result<Arc<dyn LanguageModel>, CliError> {
    use adjutant_providers::Transport;
    use adjutant_providers::gemini::{Gemini, GeminiConfig};

    let Some(key) = settings.gemini.key.clone() else {
        return Err(CliError::configuration("there is no key for gemini")
            .or_try("GEMINI_API_KEY=… adjutant …    (keys: https://aistudio.google.com/apikey)")
            .or_try(format!("write GEMINI_API_KEY=… into {}", settings.dirs.config.join(".env").display()))
            .or_try("adjutant -m embedded …    runs on this machine, without a key"));
    };
    let unusable = |cause: String| CliError::configuration("gemini cannot be used").because(cause);
    let transport = Transport::new().map_err(|error| unusable(error.to_string()))?;
    let mut config = GeminiConfig::new(key, transport);
    if let Some(model) = name.or_else(|| settings.gemini.model.clone()) {
        config.model = model;
    }
    if let Some(base_url) = &settings.gemini.base_url {
        let url =
            base_url.parse().map_err(|error| unusable(format!("gemini.base_url {base_url:?}: {error}")))?;
        config.base_url = Some(url);
    }
    if let Some(timeout) = settings.llm.timeout {
        config.timeout = timeout;
    }
    if let Some(retries) = settings.llm.retries {
        config.retries = retries;
    }
    Ok(Arc::new(Gemini::new(config).map_err(|error| unusable(error.to_string()))?))
}

#[cfg(not(feature = "gemini"))]
fn gemini(_: &Settings, _: Option<String>) -> Result<Arc<dyn LanguageModel>, CliError> {
    Err(CliError::configuration("this adjutant was built without gemini")
        .or_try("cargo install with the feature gemini"))
}

#[cfg(feature = "embedded")]
async fn embedded(
    settings: &Settings,
    screen: &Screen,
    name: Option<String>,
    named: bool,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    let (name, file) =
        crate::models::installed(settings, screen, name.or_else(|| settings.embedded_model.clone()), named)
            .await?;
    in_process(settings, screen, &name, file)
}

#[cfg(feature = "embedded")]
fn embedded_file(
    settings: &Settings,
    screen: &Screen,
    file: PathBuf,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    let unusable = |cause: &str| {
        CliError::configuration(format!("{} cannot be used as a model", file.display())).because(cause)
    };
    match std::fs::metadata(&file) {
        Err(error) => return Err(unusable(&error.to_string())),
        Ok(data) if !data.is_file() => return Err(unusable("it is not a file")),
        Ok(_) => {}
    }
    let name = file.file_stem().map_or_else(|| "file".to_owned(), |stem| stem.to_string_lossy().into_owned());
    in_process(settings, screen, &name, file)
}

/// How long the model in this process may take over one answer. Source: `DESIGN.md` 4.
#[cfg(feature = "embedded")]
const EMBEDDED_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);

#[cfg(feature = "embedded")]
fn in_process(
    settings: &Settings,
    screen: &Screen,
    name: &str,
    file: PathBuf,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    let cache = settings.dirs.cache.join("prefix");
    let read_before = std::fs::read_dir(&cache).is_ok_and(|mut files| files.next().is_some());
    if !read_before {
        screen.note(
            "the model reads its instructions for the first time: this answer takes longer than the next",
        );
    }
    let model = adjutant_embedded::EmbeddedModel::with_prefix_cache(name, file, cache)
        .map_err(|error| CliError::configuration(error.to_string()))?;
    // Reads the file while the database is opened and the person types.
    model.warm_up();
    Ok(Bounded::shared(model, Some(settings.llm.timeout.unwrap_or(EMBEDDED_TIMEOUT))))
}

#[cfg(not(feature = "embedded"))]
async fn embedded(
    _: &Settings,
    _: &Screen,
    _: Option<String>,
    named: bool,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    let error = if named {
        CliError::configuration("this adjutant was built without the embedded model")
    } else {
        CliError::configuration("there is no key, and this adjutant was built without the embedded model")
    };
    Err(error.or_try("GEMINI_API_KEY=… adjutant …").or_try("cargo install with the feature embedded"))
}

#[cfg(not(feature = "embedded"))]
fn embedded_file(_: &Settings, _: &Screen, _: PathBuf) -> Result<Arc<dyn LanguageModel>, CliError> {
    Err(CliError::configuration("this adjutant was built without the embedded model")
        .or_try("cargo install with the feature embedded"))
}

fn unusable(spec: &str, cause: &str) -> CliError {
    CliError::configuration(format!("{spec:?} is not a model's name"))
        .because(cause)
        .or_try("-m gemini/NAME, -m embedded/NAME, -m embedded:FILE.gguf, -m scripted:FILE, -m demo")
}

fn unknown_provider(spec: &str, unknown: &str) -> CliError {
    let error = CliError::configuration(format!("there is no provider {unknown:?}"));
    // A model's name alone is the likeliest mistake.
    if unknown.starts_with("gemini-") {
        return error.because(format!("did you mean gemini/{spec}?"));
    }
    match nearest(unknown, PROVIDERS.iter().copied()) {
        Some(near) => {
            let rest = spec.get(unknown.len()..).unwrap_or_default();
            error.because(format!("did you mean {near}{rest}?"))
        }
        None => error.because(format!("there are {}", PROVIDERS.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_documented() {
        let read = |spec: &str| Choice::parse(spec).unwrap();
        assert_eq!(read("gemini"), Choice::Gemini(None));
        assert_eq!(read("google/gemini-x"), Choice::Gemini(Some("gemini-x".to_owned())));
        assert_eq!(read("gemini/tuned/mine"), Choice::Gemini(Some("tuned/mine".to_owned())));
        assert_eq!(read("embedded"), Choice::Embedded(None));
        assert_eq!(read("embedded/qwen"), Choice::Embedded(Some("qwen".to_owned())));
        assert_eq!(read("embedded:/a/b.gguf"), Choice::EmbeddedFile("/a/b.gguf".into()));
        assert_eq!(read("scripted:a/b.jsonl"), Choice::Scripted("a/b.jsonl".into()));
        assert_eq!(read(" demo "), Choice::Demo);
    }

    #[test]
    fn an_unknown_provider_is_an_error_with_the_nearest() {
        for (spec, hint) in [
            ("gemni", "gemini"),
            ("embeded/x", "embedded/x"),
            ("gemini-2.5-pro", "gemini/gemini-2.5-pro"),
            ("skripted:f", "scripted:f"),
            ("zzz", "there are gemini"),
            ("", "there are gemini"),
        ] {
            let error = Choice::parse(spec).unwrap_err();
            assert_eq!(error.exit as u8, 3, "{spec}");
            assert!(error.cause.as_ref().unwrap().contains(hint), "{spec}: {error:?}");
        }
    }

    #[test]
    fn half_a_name_is_an_error() {
        for spec in ["gemini/", "embedded:", "scripted", "scripted/x", "demo/x", "gemini:x"] {
            assert_eq!(Choice::parse(spec).unwrap_err().exit as u8, 3, "{spec}");
        }
    }
}
