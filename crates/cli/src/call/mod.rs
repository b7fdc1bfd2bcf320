//! `adjutant models call`: one request to a model, passed on as it is, and its answer as one JSON
//! object.
//!
//! No agent, no tools of ours, no journal: what goes out is what came in. `docs/models-call.md` is
//! its reference.

mod answer; // what is printed
mod input; // what is read
mod transcript; // what was said, with ids and signatures as they were given

use std::io::{IsTerminal as _, Read};
use std::path::Path;

use adjutant_core::{Delta, GenerateRequest, GenerateResponse, LanguageModel, ModelError};
use adjutant_providers::Provider;
use futures::StreamExt as _;

pub(crate) use answer::Answer;
use input::Input;

use crate::args::Call;
use crate::config::Sources;
use crate::display::{clean, clip, json_line};
use crate::error::{CliError, Exit};
use crate::model_choice::{self, Choice, Named, Override};
use crate::screen::Screen;
use crate::talk;

/// Bytes of input that are taken.
const INPUT_MAX: u64 = 64 * 1024 * 1024;

/// Makes the call and prints the answer.
///
/// # Errors
/// No call could be made: the input, the settings or the model's name cannot be used.
pub(crate) async fn run(
    sources: &Sources,
    screen: &Screen,
    options: Call,
) -> Result<Exit, CliError> {
    let input = Input::parse(&read(options.input.as_deref())?)?;
    let settings = sources.load()?;
    settings
        .warnings
        .iter()
        .for_each(|warning| screen.note(warning));
    let flag = sources.model.as_deref().map(Choice::parse).transpose()?;
    let choice = match flag.clone() {
        Some(choice) => Some(choice),
        None => input.provider.as_deref().map(Choice::parse).transpose()?,
    };
    let (choice, named) = match choice {
        Some(choice) => (choice, Named::Yes),
        None => Choice::of(&settings, screen).await?,
    };
    // `-m` with a model has the last word.
    let (choice, named) = match &input.model {
        Some(model) if !flag.is_some_and(|flag| flag.has_model()) => {
            with_model(choice, named, model, &input)
        }
        Some(_) | None => (choice, named),
    };
    let call_state = if let Choice::Vendor(provider, _) = &choice {
        provider.call_state
    } else {
        None
    };
    // One attempt is the promise of a raw call.
    let over = Override {
        base_url: options.base_url,
        retries: Some(options.retries),
        ..Override::default()
    };
    let model = model_choice::open_choice(&settings, screen, (choice, named), &over).await?;
    let request = transcript::request(&input, model.id(), call_state)?;
    screen.note(&talk::header(&*model));
    let mut said = String::new();
    let result = if options.stream || input.stream {
        stream(&*model, &request, screen, &mut said).await
    } else {
        model.generate(&request).await
    };
    let (answer, exit) = match result {
        Ok(response) => {
            response.losses.iter().for_each(|loss| screen.note(loss));
            Answer::of(response)
        }
        Err(error) => {
            screen.error(&shown(&error));
            Answer::of_failure(said, &error)
        }
    };
    screen.answer_line(&json_line(&answer));
    Ok(exit)
}

/// The bytes of the input: a file's, or standard input's.
fn read(file: Option<&Path>) -> Result<Vec<u8>, CliError> {
    let stdin = std::io::stdin();
    let (what, bytes) = match file {
        Some(path) if path != Path::new("-") => {
            let what = path.display().to_string();
            let bytes = std::fs::File::open(path).and_then(all);
            (what, bytes)
        }
        None if stdin.is_terminal() => {
            return Err(CliError::usage("there is no input")
                .or_try("--input FILE, or a pipe; adjutant models call --help has the format"));
        }
        Some(_) | None => ("standard input".to_owned(), all(stdin.lock())),
    };
    let bytes = bytes.map_err(|error| {
        CliError::usage(format!("{what} cannot be read")).because(error.to_string())
    })?;
    if bytes.len() as u64 > INPUT_MAX {
        return Err(CliError::usage(format!(
            "{what} is longer than {INPUT_MAX} bytes"
        )));
    }
    Ok(bytes)
}

/// One byte more than may be, so that too much is noticed and never held.
fn all(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(INPUT_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The choice with the model of the input, unless the input means another provider's.
fn with_model(choice: Choice, named: Named, model: &str, input: &Input) -> (Choice, Named) {
    let provider = input
        .provider
        .as_deref()
        .map(|name| name.split('/').next().unwrap_or(name));
    let means = |name: &str| match provider {
        None => true,
        Some(said) => {
            said == name || Provider::find(said).is_some_and(|provider| provider.name == name)
        }
    };
    match choice {
        Choice::Vendor(provider, _) if means(provider.name) => {
            (Choice::Vendor(provider, Some(model.to_owned())), Named::Yes)
        }
        Choice::Embedded(_) if means("embedded") => {
            (Choice::Embedded(Some(model.to_owned())), Named::Yes)
        }
        choice => (choice, named),
    }
}

/// Asks for the answer piece by piece. `said` is what came of it, whatever happens; who watches
/// standard error sees it come.
async fn stream(
    model: &dyn LanguageModel,
    request: &GenerateRequest,
    screen: &Screen,
    said: &mut String,
) -> Result<GenerateResponse, ModelError> {
    let mut deltas = model.stream(request).await?;
    let live = screen.shows_progress();
    let mut result = None;
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Text(words)) => {
                if live {
                    screen.side(&clean(&words));
                }
                said.push_str(&words);
            }
            Ok(Delta::Retrying {
                attempt, reason, ..
            }) => {
                screen.note(&format!("attempt {attempt} failed: {reason}"));
            }
            Ok(Delta::Finished(response)) => {
                result = Some(Ok(response));
                break;
            }
            Ok(_) => {}
            Err(error) => {
                result = Some(Err(error));
                break;
            }
        }
    }
    if live && !said.is_empty() {
        screen.side("\n");
    }
    result.unwrap_or_else(|| {
        let (provider, reason) = (
            model.id().provider.clone(),
            "it stopped before its end".to_owned(),
        );
        Err(ModelError::Truncated { provider, reason })
    })
}

/// A failure for a person; what could not be read is shown, since no log keeps it.
fn shown(error: &ModelError) -> CliError {
    let shown = CliError::of_model_error(error);
    match error.raw().map(|raw| clip(raw, 500)) {
        Some(raw) if !raw.is_empty() => CliError {
            tries: Vec::new(),
            ..shown.because(raw)
        },
        Some(_) | None => shown,
    }
}
