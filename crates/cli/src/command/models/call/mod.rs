//! `adjutant models call`: one request to a model, passed on unchanged, and its answer as one JSON
//! object.
//!
//! There is no agent, no built-in tool and no journal. `docs/models-call.md` is the reference.

mod answer; // output
mod input; // input
mod transcript; // translation of the transcript

use std::io::{IsTerminal as _, Read};
use std::path::Path;
use std::sync::Arc;

use adjutant_core::{Delta, GenerateRequest, GenerateResponse, LanguageModel, ModelError};
use adjutant_providers::Provider;
use adjutant_weak::{ConstrainedModel, WeakTools};
use futures::StreamExt as _;

pub(crate) use answer::Answer;
use input::Input;

use crate::args::Call;
use crate::command::output::load_settings;
use crate::config::Sources;
use crate::error::{CliError, Exit};
use crate::model_choice::{self, Choice, Named, Override};
use crate::terminal::display::{clean, clip};
use crate::terminal::screen::Screen;
use crate::terminal::session;

/// Bytes of input at most.
const INPUT_MAX: u64 = 64 * 1024 * 1024;

/// Makes the call and prints the answer.
///
/// # Errors
/// No call could be made: the input, the settings or the model's name are invalid.
pub(crate) async fn run(
    sources: &Sources,
    screen: &Screen,
    options: Call,
) -> Result<Exit, CliError> {
    let input = Input::parse(&read_input(options.input.as_deref())?)?;
    let settings = load_settings(sources, screen)?;
    let flag = sources.model.as_deref().map(Choice::parse).transpose()?;
    let choice = match flag.clone() {
        Some(choice) => Some(choice),
        None => input.provider.as_deref().map(Choice::parse).transpose()?,
    };
    // A program that names no model gets the user's, as a conversation would.
    let (choice, named) = match choice {
        Some(choice) => (choice, Named::Yes),
        None => Choice::choose(&settings, screen).await?,
    };
    // `-m` with a model overrides the input.
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
    // A raw call promises a single attempt.
    let over = Override {
        base_url: options.base_url,
        retries: Some(options.retries),
        ..Override::default()
    };
    let model = model_choice::open_choice(&settings, screen, choice, named, &over).await?;
    let request = transcript::request(&input, model.id(), call_state)?;
    let constrained = Some(WeakTools::new()).filter(|_| options.constrained);
    let (model, sent) = match &constrained {
        Some(tools) => {
            let model: Arc<dyn LanguageModel> = match model.capabilities().weak_tools {
                true => model,
                false => Arc::new(ConstrainedModel::new(model)),
            };
            (model, tools.encode(&request, &[], None))
        }
        None => (model, request.clone()),
    };
    screen.note_parts(&session::header(&*model));
    let mut partial = String::new();
    let result = if options.stream || input.stream {
        stream(&*model, &sent, screen, &mut partial).await
    } else {
        model.generate(&sent).await
    };
    let (answer, exit) = match result {
        Ok(response) => {
            let response = match &constrained {
                Some(tools) => tools.decode(response, &request, &[], None),
                None => response,
            };
            response.losses.iter().for_each(|loss| screen.note(loss));
            Answer::from_response(response)
        }
        Err(error) => {
            screen.error(&describe_failure(&error));
            Answer::from_failure(partial, &error)
        }
    };
    screen.answer_json(&answer);
    Ok(exit)
}

/// Reads the input from a file or standard input.
fn read_input(file: Option<&Path>) -> Result<Vec<u8>, CliError> {
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

/// Reads everything, and one byte more than allowed, so that a too long input is detected without
/// holding all of it.
fn all(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(INPUT_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the choice with the model of the input, unless the input names another provider.
fn with_model(choice: Choice, named: Named, model: &str, input: &Input) -> (Choice, Named) {
    let provider = input
        .provider
        .as_deref()
        .map(|name| name.split('/').next().unwrap_or(name));
    let means = |name: &str| match provider {
        None => true,
        Some(given) => {
            given == name || Provider::find(given).is_some_and(|provider| provider.name == name)
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

/// Streams the answer; at a terminal it is shown on standard error. `partial` receives the text,
/// even if the call fails.
async fn stream(
    model: &dyn LanguageModel,
    request: &GenerateRequest,
    screen: &Screen,
    partial: &mut String,
) -> Result<GenerateResponse, ModelError> {
    let mut deltas = model.stream(request).await?;
    // Standard output has one JSON object and nothing else, so the text goes to standard error.
    let live = screen.shows_progress();
    let mut result = None;
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Text(words)) => {
                if live {
                    screen.side(&clean(&words));
                }
                partial.push_str(&words);
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
    if live && !partial.is_empty() {
        screen.side("\n");
    }
    // A stream without an end is an error, though its text may look complete.
    result.unwrap_or_else(|| {
        Err(ModelError::Truncated {
            provider: model.id().provider.clone(),
            reason: "it stopped before its end".to_owned(),
            source: None,
        })
    })
}

/// Converts a failure for a person. An unreadable response is included, because no log keeps it.
fn describe_failure(error: &ModelError) -> CliError {
    let shown = CliError::from_model_error(error);
    match error.raw().map(|raw| clip(raw, 500)) {
        Some(raw) if !raw.is_empty() => CliError {
            tries: Vec::new(),
            ..shown.because(raw)
        },
        Some(_) | None => shown,
    }
}
