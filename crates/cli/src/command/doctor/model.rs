//! Checks of the model: key, address, server, and the model itself.

use std::path::Path;
use std::time::Duration;

use adjutant_core::{LanguageModel as _, ModelError, TimeBound};
use adjutant_providers::Provider;
use adjutant_providers::scripted::ScriptedModel;
use anstream::ColorChoice;
use secrecy::ExposeSecret as _;

use super::{Check, Group};
use crate::command::models::test_request;
use crate::config::{Settings, read_named_text};
use crate::error::CliError;
use crate::model_choice::{self, Choice, Named, Override};
use crate::terminal::display::shell_quoted;
use crate::terminal::screen::{Screen, Verbosity};

const GROUP: Group = Group("model");
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
    let check = match choice {
        Choice::Demo => GROUP.ok(NAME, "demo: canned answers, no language model"),
        Choice::Scripted(file) => scripted(&file),
        Choice::EmbeddedFile(file) => own_file(&file),
        Choice::Embedded(name) => embedded(settings, name, named).await,
        #[cfg(feature = "ollama")]
        Choice::Vendor(provider, model) if crate::ollama::is(provider) => {
            let checks = super::ollama::checks(settings, provider, model).await;
            return checks.unwrap_or_else(|check| vec![check]);
        }
        Choice::Vendor(provider, model) => vendor(settings, provider, model, &quiet)
            .await
            .unwrap_or_else(|check| check),
    };
    vec![check]
}

fn not_a_model(error: &CliError) -> Check {
    let cause = error.cause.as_deref().unwrap_or_default();
    let remedy = match cause.strip_prefix("did you mean ") {
        Some(near) => format!("adjutant config set model {}", near.trim_end_matches('?')),
        None => "adjutant config set model PROVIDER/NAME    (adjutant models list)".to_owned(),
    };
    GROUP
        .fail(NAME, &error.message)
        .because(cause)
        .with_remedy(remedy)
}

fn scripted(file: &Path) -> Check {
    let script = read_named_text(file).map_err(|error| error.to_string());
    let model = script
        .and_then(|script| ScriptedModel::from_jsonl(&script).map_err(|error| error.to_string()));
    let file = file.display();
    match model {
        Ok(_) => GROUP.ok(NAME, format!("scripted: {file}")),
        Err(cause) => GROUP
            .fail(NAME, format!("the script {file} cannot be used"))
            .because(cause)
            .with_remedy(
                "adjutant config set model scripted:FILE    (another file), or correct it",
            ),
    }
}

/// Checks that a model file exists and begins like one.
fn own_file(file: &Path) -> Check {
    use std::io::Read as _;
    // The first bytes only: the file has gigabytes, and loading it would take minutes.
    let mut magic = [0; 4];
    let read = std::fs::File::open(file).and_then(|mut open| open.read_exact(&mut magic));
    let cause = match read {
        Ok(()) if &magic == b"GGUF" => {
            return GROUP.ok(NAME, format!("embedded: {}", file.display()));
        }
        Ok(()) => "it is not a GGUF file".to_owned(),
        Err(error) => error.to_string(),
    };
    GROUP.fail(NAME, format!("{} cannot be used as a model", file.display())).because(cause).with_remedy(
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
        let (why, remedy) = match named {
            Named::No => (
                "there is no key, no server on this machine, and ",
                format!("{pull}    (once), or adjutant keys set gemini"),
            ),
            _ => ("", pull.clone()),
        };
        let check = GROUP.fail(NAME, format!("{spec} is not downloaded"));
        check.because(format!("{why}{cause}")).with_remedy(remedy)
    };
    match model.state_in(&dir) {
        InstallState::Missing => missing("it was not fetched yet".to_owned()),
        InstallState::Partial { bytes } => missing(format!(
            "only {} of it were fetched",
            crate::terminal::display::size(bytes)
        )),
        InstallState::Damaged { bytes } => GROUP
            .fail(NAME, format!("{spec} is damaged"))
            .because(format!("its file has {bytes} bytes, not {}", model.bytes))
            .with_remedy(pull),
        InstallState::Installed => {
            let file = model.path_in(&dir);
            let (path, expected) = (file.clone(), model.sha256);
            // Gigabytes are read, which would block the runtime and the checks of MCP servers.
            let whole =
                tokio::task::spawn_blocking(move || digest(&path).map(|found| found == expected))
                    .await;
            let quoted = shell_quoted(&file.to_string_lossy());
            let file = file.display();
            let unreadable = || GROUP.fail(NAME, format!("{file} cannot be read"));
            match whole {
                Ok(Ok(true)) => GROUP.ok(NAME, format!("{spec} · whole")),
                Ok(Ok(false)) => GROUP
                    .fail(NAME, format!("{spec} is damaged"))
                    .because(format!("{file} has not the content it was published with"))
                    .with_remedy(format!("adjutant models rm {0} -y && {pull}", model.name)),
                Ok(Err(error)) => unreadable()
                    .because(error)
                    .with_remedy(format!("chmod u+r {quoted}")),
                Err(error) => unreadable().because(error).with_remedy(pull),
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
    GROUP
        .fail(NAME, "there is no language model to ask")
        .because("there is no key, and this adjutant was built without the embedded model")
        .with_remedy("adjutant keys set gemini")
}

/// Asks a provider for one word, which tests key, address and model name together. `Err` is the
/// failed check.
async fn vendor(
    settings: &Settings,
    provider: &'static Provider,
    model: Option<String>,
    screen: &Screen,
) -> Result<Check, Check> {
    let origin = |name: &str| {
        let shown = settings.shown.iter().find(|shown| shown.name == name);
        shown
            .map(|shown| shown.origin.as_str())
            .filter(|origin| *origin != "default")
    };
    let variable = provider.key_variable.unwrap_or_default();
    let name = provider.name;
    // A variable overrides the stored key: setting the stored one would change nothing.
    let new_key = match origin(variable) {
        Some(origin) if origin.starts_with("variable") => {
            format!("export {variable}=…, or unset it and adjutant keys set {name}")
        }
        Some(origin) if origin.ends_with(".env") => {
            format!("correct {origin}, or take it out and adjutant keys set {name}")
        }
        _ => format!("adjutant keys set {name}"),
    };
    if let Some(key) = settings.provider(provider).any_key()
        && let Some(cause) = crate::command::keys::malformed(key.expose_secret().trim())
    {
        let check = GROUP.fail(NAME, format!("the key for {name} cannot be one"));
        return Err(check.because(cause).with_remedy(new_key));
    }
    // One attempt: with retries, a provider that is busy would use up the whole patience.
    let over = Override {
        retries: Some(0),
        ..Override::default()
    };
    let choice = Choice::Vendor(provider, model);
    let model = model_choice::open_choice(settings, screen, choice, Named::Yes, &over)
        .await
        .map_err(|error| {
            GROUP.fail_with(NAME, &error, &format!("adjutant config edit    ([{name}])"))
        })?;
    let spec = model.id().to_string();
    let request = test_request().map_err(|error| GROUP.fail(NAME, error.message))?;
    let answer = tokio::time::timeout(PATIENCE, model.generate(&request))
        .await
        .unwrap_or_else(|_| {
            Err(ModelError::Timeout {
                provider: model.id().provider.clone(),
                waited: PATIENCE,
                bound: TimeBound::Total,
            })
        });
    let error = match answer {
        Ok(_) => return Ok(GROUP.ok(NAME, format!("{spec} answers"))),
        Err(error) => error,
    };
    let base_url = format!("{name}.base_url");
    let check = GROUP
        .fail(NAME, format!("{spec} does not answer"))
        .because(&error);
    Err(match &error {
        ModelError::Authentication { .. } => check.with_remedy(new_key),
        ModelError::NotFound { .. } => check.with_remedy(format!(
            "adjutant config set model {name}/NAME    (a model the provider has)"
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
        ModelError::RateLimited { .. } | ModelError::Server { .. } => GROUP
            .warn(NAME, format!("{spec} has no time now"))
            .because(&error)
            .with_remedy("try again later"),
        error => {
            let remedies = CliError::from_model_error(error).tries;
            let first = remedies.into_iter().next();
            check.with_remedy(first.unwrap_or_else(|| "adjutant models test".to_owned()))
        }
    })
}
