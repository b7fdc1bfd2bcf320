//! `adjutant models`: lists, downloads, deletes and tests models.

pub(crate) mod call; // adjutant models call

use std::time::Instant;

use adjutant_core::{GenerateRequest, LanguageModel as _, Message};
use adjutant_providers::Provider;
use serde_json::{Value, json};

use crate::args::Models;
use crate::command::output::counted;
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::model_choice::{self, Choice, Override};
use crate::terminal::display::{clip, millis};
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::ask_yes_no;

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
            #[cfg(feature = "embedded")]
            Place::Embedded(name) => crate::embedded::pull(settings, screen, name).await?,
            #[cfg(not(feature = "embedded"))]
            Place::Embedded(_) => return Err(no_embedded_model()),
            #[cfg(feature = "ollama")]
            Place::Ollama(name) => {
                crate::ollama::pull(settings, screen, &name).await?;
                let spec = format!("ollama/{name}");
                screen.result(&json!({ "name": spec }), || format!("{spec} is ready."));
            }
        },
        Models::Rm { name } => {
            // Before the question: a name that is wrong should not be confirmed first.
            let place = Place::parse(settings, Some(&name))?;
            if !yes {
                if !screen.asks() {
                    return Err(CliError::confirmation_needed(
                        "deleting a model needs your confirmation",
                    )
                    .or_try("run it again with -y"));
                }
                let question = format!("? Delete the model {}", clip(&name, 200));
                if !ask_yes_no(screen, &question, false).await {
                    return Err(CliError::interrupted("nothing was deleted"));
                }
            }
            match place {
                #[cfg(feature = "embedded")]
                Place::Embedded(name) => {
                    crate::embedded::remove(settings, screen, &name.unwrap_or_default())?
                }
                #[cfg(not(feature = "embedded"))]
                Place::Embedded(_) => return Err(no_embedded_model()),
                #[cfg(feature = "ollama")]
                Place::Ollama(name) => crate::ollama::remove(settings, screen, &name).await?,
            }
        }
        // A server that is not in the settings can be tried before its address is written there.
        Models::Test { base_url } => return test(settings, screen, base_url).await,
        // Handled by `command::run`, because its answer is printed whatever happens.
        Models::Call(_) => {}
    }
    Ok(Exit::Ok)
}

/// The place of a model that can be downloaded.
enum Place {
    /// Embedded in this process; `None` for the default model.
    #[cfg_attr(
        not(feature = "embedded"),
        expect(
            dead_code,
            reason = "without the embedded model, its name does not matter"
        )
    )]
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
            #[cfg(feature = "embedded")]
            let known = adjutant_embedded::catalogue::KnownModel::find(name).is_some();
            #[cfg(not(feature = "embedded"))]
            let known = false;
            if !known
                && (in_use || name.contains(':') || crate::ollama::running(settings).is_some())
            {
                return Ok(Self::Ollama(name.to_owned()));
            }
        }
        Ok(Self::Embedded(Some(name.to_owned())))
    }
}

#[cfg(not(feature = "embedded"))]
fn no_embedded_model() -> CliError {
    CliError::configuration("this adjutant was built without the embedded model")
}

fn list(settings: &Settings, screen: &Screen) -> Result<(), CliError> {
    // Each as a line and as JSON.
    #[cfg(feature = "embedded")]
    let embedded = crate::embedded::list(settings)?;
    #[cfg(not(feature = "embedded"))]
    let embedded: Vec<(String, Value)> = Vec::new();
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
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let name = model.id().to_string();
    let (text, usage) = (answer.text(), answer.usage);
    screen.result(
        &json!({
            "model": name, "answered_by": answer.model.to_string(), "text": text, "usage": usage, "ms": ms,
        }),
        || {
            let (input, output) = (counted(usage.input_tokens), counted(usage.output_tokens));
            let (text, time) = (clip(&text, 60), millis(ms));
            format!("{name} answers: {text} · {input} in · {output} out · {time}")
        },
    );
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
