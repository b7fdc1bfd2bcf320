//! `adjutant models`: lists, downloads, deletes and tests models.

pub(crate) mod call; // adjutant models call

use std::time::{Duration, Instant};

use adjutant_core::{GenerateRequest, LanguageModel as _, Message};
use adjutant_providers::Provider;
use serde_json::{Value, json};

use crate::args::Models;
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::model_choice::{self, Choice, Override};
use crate::terminal::display::{clip, json_line, millis, tokens};
use crate::terminal::lines::ask_yes_no;
use crate::terminal::screen::Screen;

/// Lists, downloads, deletes or tests models.
///
/// # Errors
/// There is no such model, no source to download it from, no place to store it, or no answer from
/// it.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Models,
    yes: bool,
) -> Result<Exit, CliError> {
    match command {
        Models::List => list(settings, screen)?,
        Models::Pull { name } => match Place::parse(settings, name.as_deref())? {
            Place::Embedded(name) => pull_embedded(settings, screen, name).await?,
            #[cfg(feature = "ollama")]
            Place::Ollama(name) => {
                crate::ollama::pull(settings, screen, &name).await?;
                let spec = format!("ollama/{name}");
                screen.answer_line(&match screen.json() {
                    true => json_line(&json!({ "name": spec })),
                    false => format!("{spec} is ready."),
                });
            }
        },
        Models::Rm { name } => {
            let place = Place::parse(settings, Some(&name))?;
            if !yes
                && !confirm(
                    screen,
                    &format!("Delete the model {}? [y/N] ", clip(&name, 200)),
                )
                .await?
            {
                return Err(CliError::interrupted("nothing was deleted"));
            }
            match place {
                Place::Embedded(name) => {
                    remove_embedded(settings, screen, &name.unwrap_or_default())?
                }
                #[cfg(feature = "ollama")]
                Place::Ollama(name) => crate::ollama::remove(settings, screen, &name).await?,
            }
        }
        Models::Test { base_url } => return test(settings, screen, base_url).await,
        // Handled by `command::run`, because its answer is printed whatever happens.
        Models::Call(_) => {}
    }
    Ok(Exit::Ok)
}

/// The place of a model that can be downloaded.
enum Place {
    /// Embedded in this process; `None` for the default model.
    Embedded(Option<String>),
    #[cfg(feature = "ollama")]
    Ollama(String),
}

impl Place {
    /// Finds the place by the model's name: `embedded/NAME`, `ollama/NAME`, or a name of the
    /// catalogue. Any other name is Ollama's, if such a server is in use or runs, or if the name
    /// has a tag.
    ///
    /// # Errors
    /// The named model cannot be downloaded.
    fn parse(settings: &Settings, name: Option<&str>) -> Result<Self, CliError> {
        let used = settings.model.as_deref().map(Choice::parse).transpose()?;
        let Some(name) = name else {
            return Ok(match used {
                #[cfg(feature = "ollama")]
                Some(Choice::Vendor(provider, Some(name))) if crate::ollama::is(provider) => {
                    Self::Ollama(name)
                }
                _ => Self::Embedded(None),
            });
        };
        if let Some(name) = name.strip_prefix("embedded/") {
            return Ok(Self::Embedded(Some(name.to_owned())));
        }
        #[cfg(feature = "ollama")]
        {
            if let Some(name) = name.strip_prefix("ollama/") {
                return Ok(Self::Ollama(name.to_owned()));
            }
            let in_use =
                matches!(used, Some(Choice::Vendor(provider, _)) if crate::ollama::is(provider));
            let known = in_catalogue(name);
            if !known
                && (in_use || name.contains(':') || crate::ollama::running(settings).is_some())
            {
                return Ok(Self::Ollama(name.to_owned()));
            }
        }
        Ok(Self::Embedded(Some(name.to_owned())))
    }
}

/// Asks a yes-or-no question with the default no.
///
/// # Errors
/// The user cannot be asked.
async fn confirm(screen: &Screen, question: &str) -> Result<bool, CliError> {
    if !screen.asks() {
        return Err(
            CliError::confirmation_needed("deleting a model needs a yes")
                .or_try("run it again with -y"),
        );
    }
    Ok(ask_yes_no(screen, question, false).await)
}

#[cfg(feature = "embedded")]
async fn pull_embedded(
    settings: &Settings,
    screen: &Screen,
    name: Option<String>,
) -> Result<(), CliError> {
    crate::embedded::pull(settings, screen, name).await
}

#[cfg(feature = "embedded")]
fn remove_embedded(settings: &Settings, screen: &Screen, name: &str) -> Result<(), CliError> {
    crate::embedded::remove(settings, screen, name)
}

#[cfg(all(feature = "embedded", feature = "ollama"))]
fn in_catalogue(name: &str) -> bool {
    adjutant_embedded::catalogue::KnownModel::find(name).is_some()
}

#[cfg(not(feature = "embedded"))]
async fn pull_embedded(_: &Settings, _: &Screen, _: Option<String>) -> Result<(), CliError> {
    Err(CliError::configuration(
        "this adjutant was built without the embedded model",
    ))
}

#[cfg(not(feature = "embedded"))]
fn remove_embedded(_: &Settings, _: &Screen, _: &str) -> Result<(), CliError> {
    Err(CliError::configuration(
        "this adjutant was built without the embedded model",
    ))
}

#[cfg(all(not(feature = "embedded"), feature = "ollama"))]
fn in_catalogue(_: &str) -> bool {
    false
}

fn list(settings: &Settings, screen: &Screen) -> Result<(), CliError> {
    let embedded = embedded(settings)?;
    if screen.json() {
        let providers: Vec<Value> = Provider::all()
            .map(|provider| {
                let set = settings.provider(provider);
                json!({
                    "name": provider.name,
                    "aliases": provider.aliases,
                    "model": set.model.as_deref().or(provider.default_model),
                    "base_url": set.base_url.as_deref().or(Some(provider.base_url)).filter(|url| !url.is_empty()),
                    "key_variable": provider.key_variable,
                    "key_set": set.any_key().is_some(),
                    "key_needed": provider.needs_key,
                    "local": provider.local,
                })
            })
            .collect();
        let embedded: Vec<Value> = embedded.into_iter().map(|(_, json)| json).collect();
        screen.answer_json(&json!({ "providers": providers, "embedded": embedded }));
        return Ok(());
    }
    for provider in Provider::all() {
        let set = settings.provider(provider);
        let key = match (provider.key_variable, set.any_key()) {
            (Some(variable), Some(_)) => format!("{variable} is set"),
            (Some(variable), None) if provider.needs_key => format!("needs {variable}"),
            (_, None) | (None, _) if provider.local => "on this machine".to_owned(),
            (Some(variable), None) => format!("{variable} if it wants a key"),
            (None, _) => String::new(),
        };
        let model = set
            .model
            .as_deref()
            .or(provider.default_model)
            .unwrap_or("NAME");
        let spec = format!("{}/{model}", provider.name);
        screen.answer_line(&format!("{:44} {key}", clip(&spec, 200)));
    }
    for (line, _) in embedded {
        screen.answer_line(&line);
    }
    Ok(())
}

/// Returns the embedded models, each as a line and as JSON.
#[cfg(feature = "embedded")]
fn embedded(settings: &Settings) -> Result<Vec<(String, Value)>, CliError> {
    crate::embedded::list(settings)
}

#[cfg(not(feature = "embedded"))]
fn embedded(_: &Settings) -> Result<Vec<(String, Value)>, CliError> {
    Ok(Vec::new())
}

/// Asks the model for one word, which tests key, address and name together.
async fn test(
    settings: &Settings,
    screen: &Screen,
    base_url: Option<String>,
) -> Result<Exit, CliError> {
    let over = Override {
        base_url,
        retries: Some(0),
        ..Override::default()
    };
    let (choice, named) = Choice::choose(settings, screen).await?;
    let model = model_choice::open_choice(settings, screen, choice, named, &over).await?;
    let began = Instant::now();
    let answer = model.generate(&test_request()?).await;
    let answer = answer.map_err(|error| CliError::from_model_error(&error))?;
    let ms = whole_millis(began.elapsed());
    let name = model.id().to_string();
    if screen.json() {
        let usage = answer.usage;
        screen.answer_json(&json!({
            "model": name, "answered_by": answer.model.to_string(), "text": answer.text(), "usage": usage, "ms": ms,
        }));
        return Ok(Exit::Ok);
    }
    let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), tokens);
    screen.answer_line(&format!(
        "{name} answers: {} · {} in · {} out · {}",
        clip(&answer.text(), 60),
        count(answer.usage.input_tokens),
        count(answer.usage.output_tokens),
        millis(ms)
    ));
    Ok(Exit::Ok)
}

/// Creates the request that tests a model: an answer of one word costs next to nothing.
///
/// # Errors
/// None in practice: the message is a constant.
pub(crate) fn test_request() -> Result<GenerateRequest, CliError> {
    let question = Message::user("Answer with the word: ready");
    let question = question.map_err(|error| CliError::failed(error.to_string()))?;
    Ok(GenerateRequest::new(vec![question]))
}

fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
