//! Checks of the model: key, address, server, and the model itself.

use std::path::Path;
use std::time::Duration;

use adjutant_core::{GenerateRequest, LanguageModel as _, Message, ModelError, TimeBound};
use adjutant_providers::Provider;
use adjutant_providers::scripted::ScriptedModel;
use anstream::ColorChoice;

use super::Check;
use crate::config::Settings;
use crate::error::CliError;
use crate::model_choice::{self, Choice, Named, Override};
use crate::terminal::screen::{Screen, Verbosity};

const GROUP: &str = "model";
const NAME: &str = "model";

/// Time that a provider may take for an answer of one word.
const PATIENCE: Duration = Duration::from_secs(20);

/// Checks the model in use and its server.
pub(super) async fn checks(settings: &Settings) -> Vec<Check> {
    // Notes printed while a model is chosen would repeat what the findings say.
    let quiet = Screen::new(ColorChoice::Never, Verbosity::Quiet, true);
    let (choice, named) = match Choice::choose(settings, &quiet).await {
        Ok(choice) => choice,
        Err(error) => return vec![not_a_model(&error)],
    };
    match choice {
        Choice::Demo => {
            vec![Check::ok(
                GROUP,
                NAME,
                "demo: canned answers, no language model",
            )]
        }
        Choice::Scripted(file) => vec![scripted(&file)],
        Choice::EmbeddedFile(file) => vec![own_file(&file)],
        Choice::Embedded(name) => vec![embedded(settings, name, named).await],
        #[cfg(feature = "ollama")]
        Choice::Vendor(provider, model) if crate::ollama::is(provider) => {
            super::ollama::checks(settings, provider, model).await
        }
        Choice::Vendor(provider, model) => vec![vendor(settings, provider, model, &quiet).await],
    }
}

fn not_a_model(error: &CliError) -> Check {
    let check = Check::fail(GROUP, NAME, error.message.clone());
    let cause = error.cause.clone().unwrap_or_default();
    match cause
        .strip_prefix("did you mean ")
        .map(|near| near.trim_end_matches('?').to_owned())
    {
        Some(near) => check
            .because(cause)
            .with_remedy(format!("adjutant config set model {near}")),
        None => check
            .because(cause)
            .with_remedy("adjutant config set model PROVIDER/NAME    (adjutant models list)"),
    }
}

fn scripted(file: &Path) -> Check {
    let script = std::fs::read_to_string(file).map_err(|error| error.to_string());
    match script
        .and_then(|script| ScriptedModel::from_jsonl(&script).map_err(|error| error.to_string()))
    {
        Ok(_) => Check::ok(GROUP, NAME, format!("scripted: {}", file.display())),
        Err(cause) => Check::fail(
            GROUP,
            NAME,
            format!("the script {} cannot be used", file.display()),
        )
        .because(cause)
        .with_remedy("adjutant config set model scripted:FILE    (another file), or correct it"),
    }
}

/// Checks that a model file exists and begins like one.
fn own_file(file: &Path) -> Check {
    use std::io::Read as _;
    let mut magic = [0; 4];
    let read = std::fs::File::open(file).and_then(|mut open| open.read_exact(&mut magic));
    let cause = match read {
        Ok(()) if &magic == b"GGUF" => {
            return Check::ok(GROUP, NAME, format!("embedded: {}", file.display()));
        }
        Ok(()) => "it is not a GGUF file".to_owned(),
        Err(error) => error.to_string(),
    };
    Check::fail(GROUP, NAME, format!("{} cannot be used as a model", file.display())).because(cause).with_remedy(
        "adjutant config set model embedded    (the usual one), or name another file: embedded:FILE.gguf",
    )
}

#[cfg(feature = "embedded")]
async fn embedded(settings: &Settings, name: Option<String>, named: Named) -> Check {
    use adjutant_embedded::catalogue::InstallState;
    let model =
        match crate::embedded::find_model(name.as_deref().or(settings.embedded_model.as_deref())) {
            Ok(model) => model,
            Err(error) => return not_a_model(&error),
        };
    let dir = settings.dirs.models();
    let spec = format!("embedded/{}", model.name);
    let pull = format!("adjutant models pull {}", model.name);
    let missing = |cause: String| {
        let why = if named == Named::No {
            "there is no key, no server on this machine, and "
        } else {
            ""
        };
        Check::fail(GROUP, NAME, format!("{spec} is not here"))
            .because(format!("{why}{cause}"))
            .with_remedy(if named == Named::No {
                format!("{pull}    (once), or adjutant keys set gemini")
            } else {
                pull.clone()
            })
    };
    match model.state_in(&dir) {
        InstallState::Missing => missing("it was not fetched yet".to_owned()),
        InstallState::Partial { bytes } => missing(format!(
            "only {} of it were fetched",
            crate::terminal::display::size(bytes)
        )),
        InstallState::Damaged { bytes } => Check::fail(GROUP, NAME, format!("{spec} is damaged"))
            .because(format!("its file has {bytes} bytes, not {}", model.bytes))
            .with_remedy(pull),
        InstallState::Installed => {
            let file = model.path_in(&dir);
            let (path, expected) = (file.clone(), model.sha256);
            let whole =
                tokio::task::spawn_blocking(move || digest(&path).map(|found| found == expected))
                    .await;
            match whole {
                Ok(Ok(true)) => Check::ok(GROUP, NAME, format!("{spec} · whole")),
                Ok(Ok(false)) => Check::fail(GROUP, NAME, format!("{spec} is damaged"))
                    .because(format!(
                        "{} has not the content it was published with",
                        file.display()
                    ))
                    .with_remedy(format!("adjutant models rm {0} -y && {pull}", model.name)),
                Ok(Err(error)) => {
                    Check::fail(GROUP, NAME, format!("{} cannot be read", file.display()))
                        .because(error.to_string())
                        .with_remedy(format!("chmod u+r {}", file.display()))
                }
                Err(error) => {
                    Check::fail(GROUP, NAME, format!("{} cannot be read", file.display()))
                        .because(error.to_string())
                        .with_remedy(pull)
                }
            }
        }
    }
}

/// Computes the SHA-256 of a file, as lower-case hexadecimal.
#[cfg(feature = "embedded")]
fn digest(path: &Path) -> std::io::Result<String> {
    use sha2::{Digest as _, Sha256};
    use std::io::Read as _;
    let mut file = std::fs::File::open(path)?;
    let (mut hasher, mut part) = (Sha256::new(), vec![0; 1024 * 1024]);
    loop {
        match file.read(&mut part)? {
            0 => break,
            length => hasher.update(&part[..length]),
        }
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[cfg(not(feature = "embedded"))]
async fn embedded(_: &Settings, _: Option<String>, _: Named) -> Check {
    Check::fail(GROUP, NAME, "there is no language model to ask")
        .because("there is no key, and this adjutant was built without the embedded model")
        .with_remedy("adjutant keys set gemini")
}

/// Asks a provider for one word, which tests key, address and model name together.
async fn vendor(
    settings: &Settings,
    provider: &'static Provider,
    model: Option<String>,
    screen: &Screen,
) -> Check {
    let origin = |name: &str| {
        let shown = settings.shown.iter().find(|shown| shown.name == name);
        shown
            .map(|shown| shown.origin.clone())
            .filter(|origin| origin != "default")
    };
    let variable = provider.key_variable.unwrap_or_default();
    // A variable overrides the stored key: setting the stored one would change nothing.
    let new_key = match origin(variable) {
        Some(origin) if origin.starts_with("variable") => {
            format!(
                "export {variable}=…, or unset it and adjutant keys set {}",
                provider.name
            )
        }
        Some(origin) if origin.ends_with(".env") => {
            format!(
                "correct {origin}, or take it out and adjutant keys set {}",
                provider.name
            )
        }
        _ => format!("adjutant keys set {}", provider.name),
    };
    if let Some(key) = settings.provider(provider).any_key()
        && let Some(cause) =
            crate::command::keys::malformed(secrecy::ExposeSecret::expose_secret(key).trim())
    {
        return Check::fail(
            GROUP,
            NAME,
            format!("the key for {} cannot be one", provider.name),
        )
        .because(cause)
        .with_remedy(new_key);
    }
    let over = Override {
        retries: Some(0),
        ..Override::default()
    };
    let provider_choice = Choice::Vendor(provider, model);
    let model =
        match model_choice::open_choice(settings, screen, provider_choice, Named::Yes, &over).await
        {
            Ok(model) => model,
            Err(error) => {
                return Check::from_error(
                    GROUP,
                    NAME,
                    &error,
                    &format!("adjutant config edit    ([{}])", provider.name),
                );
            }
        };
    let spec = model.id().to_string();
    let question = match Message::user("Answer with the word: ready") {
        Ok(question) => question,
        Err(error) => return Check::fail(GROUP, NAME, error.to_string()),
    };
    let asked = GenerateRequest::new(vec![question]);
    let answer = tokio::time::timeout(PATIENCE, model.generate(&asked))
        .await
        .unwrap_or_else(|_| {
            let (provider, bound) = (model.id().provider.clone(), TimeBound::Total);
            Err(ModelError::Timeout {
                provider,
                waited: PATIENCE,
                bound,
            })
        });
    let error = match answer {
        Ok(_) => return Check::ok(GROUP, NAME, format!("{spec} answers")),
        Err(error) => error,
    };
    let base_url = format!("{}.base_url", provider.name);
    let check =
        Check::fail(GROUP, NAME, format!("{spec} does not answer")).because(error.to_string());
    match &error {
        ModelError::Authentication { .. } => check.with_remedy(new_key),
        ModelError::NotFound { .. } => check.with_remedy(format!(
            "adjutant config set model {}/NAME    (a model the provider has)",
            provider.name
        )),
        ModelError::Network { .. } | ModelError::Timeout { .. } => match origin(&base_url) {
            Some(origin) => check.with_remedy(format!(
                "start the server there, or correct {base_url} ({origin})"
            )),
            None => check.with_remedy(
                "look at your connection (proxy, firewall), or work offline: adjutant -m embedded",
            ),
        },
        // The provider was reached and accepted the key; it is only busy.
        ModelError::RateLimited { .. } | ModelError::Server { .. } => {
            Check::warn(GROUP, NAME, format!("{spec} has no time now"))
                .because(error.to_string())
                .with_remedy("try again later")
        }
        error => {
            let shown = CliError::from_model_error(error);
            let first = shown.tries.first().cloned();
            check.with_remedy(first.unwrap_or_else(|| "adjutant models test".to_owned()))
        }
    }
}
