//! `adjutant init`: three questions, then a configuration that works.
//!
//! Nothing that is set already is changed, and nothing is written before the person has seen it and
//! said yes.

mod ask; // at a terminal
mod folder; // a folder, with Tab
mod found; // what there is to choose from

use std::path::{Path, PathBuf};

use adjutant_memory::{NotePath, Vault};
use clap::Args;
use secrecy::SecretString;

use crate::config::{Credentials, Draft, Sources, setting};
use crate::doctor;
use crate::error::{CliError, Exit};
use crate::model_choice::Choice;
use crate::screen::Screen;

/// Says that there is to be no vault.
const NONE: &str = "none";
/// Where memory goes, if nothing else is said.
const MEMORY: &str = "memory/facts.md";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  adjutant init\n  adjutant init --model ollama/qwen3:8b --vault ~/Notes --yes\n  adjutant init --vault none --yes      the model that is found, no memory\n"
)]
pub(crate) struct Init {
    /// The file of the vault where memory goes [default: memory/facts.md]
    #[arg(long, value_name = "FILE")]
    pub(crate) memory: Option<String>,
}

/// What is going to be written.
#[derive(Debug, Default)]
struct Plan {
    model: Option<String>,
    /// A key that was entered, with its provider's name and variable.
    key: Option<(&'static str, &'static str, SecretString)>,
    vault: Option<PathBuf>,
    memory: Option<String>,
}

/// Asks, shows, writes, and looks whether it works.
///
/// # Errors
/// Nobody can be asked and nothing was said; something does not fit, or is set already; Ctrl-C.
pub(crate) async fn run(
    sources: &Sources,
    screen: &Screen,
    options: Init,
    vault: Option<PathBuf>,
    yes: bool,
) -> Result<Exit, CliError> {
    let said = sources.model.is_some() || vault.is_some() || options.memory.is_some();
    if !screen.asks() && !said && !yes {
        return Err(
            CliError::usage("no one can be asked: this is not a terminal")
                .or_try("adjutant init --model MODEL --vault DIR --yes")
                .or_try("adjutant init --yes    takes what is found, and no vault"),
        );
    }
    // What is wrong already has to be mended by whoever wrote it.
    let draft = Draft::open(&sources.user_file())?;
    // The options are what is going to be written, and not settings of this run.
    let bare = Sources {
        model: None,
        vault: None,
        ..sources.clone()
    };
    let settings = bare.load()?;
    settings
        .warnings
        .iter()
        .for_each(|warning| screen.note(warning));
    let mut plan = Plan::default();
    let ask = screen.asks() && !yes;

    let model = setting("model")?;
    match (&sources.model, draft.said(model)?) {
        (Some(spec), _) => {
            Choice::parse(spec)?;
            plan.model = Some(spec.trim().to_owned());
        }
        (None, Some((value, line))) => {
            screen.note(&format!(
                "model is set already: {value} ({}:{line})",
                draft.path().display()
            ));
        }
        (None, None) if ask => {
            let chosen = ask::model(found::models(&settings, screen).await)?;
            plan.key = match chosen.key_of {
                Some(provider) => Some((
                    provider.name,
                    provider.key_variable.unwrap_or_default(),
                    crate::keys::checked(&crate::keys::ask(provider)?)?,
                )),
                None => None,
            };
            plan.model = chosen.spec;
        }
        (None, None) => {
            plan.model = found::models(&settings, screen)
                .await
                .into_iter()
                .next()
                .and_then(|first| first.spec)
        }
    }

    let key = setting("vault.path")?;
    match (vault, draft.said(key)?) {
        (Some(path), _) if path == Path::new(NONE) => {}
        (Some(path), _) => plan.vault = Some(folder(&sources.project, &path)?),
        (None, Some((value, line))) => {
            screen.note(&format!(
                "vault.path is set already: {value} ({}:{line})",
                draft.path().display()
            ));
        }
        (None, None) if ask => {
            plan.vault = ask::vault(&sources.project, found::vaults(&sources.variables), screen)?
        }
        // Nobody's notes are written to because they were found.
        (None, None) => {}
    }

    let key = setting("memory.path")?;
    let has_vault = plan.vault.is_some() || settings.memory.vault.is_some();
    match (options.memory, draft.said(key)?) {
        (Some(path), _) => plan.memory = Some(note(&path)?),
        (None, None) if ask && has_vault => plan.memory = Some(ask::memory()?),
        (None, None) if plan.vault.is_some() => plan.memory = Some(MEMORY.to_owned()),
        (None, _) => {}
    }
    write(sources, screen, draft, plan, ask)?;
    screen.note("Looking whether it works:");
    let exit = doctor::run(&bare, screen, None, false).await?;
    if exit == Exit::Ok {
        screen.note("adjutant    begins to talk");
    }
    Ok(exit)
}

/// Shows what is going to be written, asks, and writes it.
fn write(
    sources: &Sources,
    screen: &Screen,
    mut draft: Draft,
    plan: Plan,
    ask: bool,
) -> Result<(), CliError> {
    let mut lines = Vec::new();
    let vault = plan.vault.map(|path| path.to_string_lossy().into_owned());
    for (name, value) in [
        ("model", plan.model),
        ("vault.path", vault),
        ("memory.path", plan.memory),
    ] {
        let Some(value) = value else { continue };
        let key = setting(name)?;
        match draft.said(key)? {
            Some((old, _)) if old.to_string() == value => continue,
            Some((old, line)) => {
                return Err(CliError::configuration(format!(
                    "{name} is set already, and init changes nothing that is"
                ))
                .because(format!("{}:{line} says {old}", draft.path().display()))
                .or_try(format!("adjutant config set {name} {value}")));
            }
            None => {}
        }
        draft.set(key, &value)?;
        lines.push(format!("  {name} = {value}"));
    }
    if lines.is_empty() && plan.key.is_none() {
        screen.note(&format!(
            "nothing to write: {} says it all",
            draft.path().display()
        ));
        return Ok(());
    }
    screen.side_line(&format!("{} gets:", draft.path().display()));
    lines
        .iter()
        .for_each(|line| screen.side_line(&crate::display::clean_line(line)));
    if let Some((name, ..)) = &plan.key {
        screen.side_line(&format!(
            "{} gets the key for {name}",
            Credentials::path_in(&sources.dirs.config).display()
        ));
    }
    if ask && !ask::go_on()? {
        return Err(CliError::interrupted("nothing was written"));
    }
    if let Some((_, variable, key)) = &plan.key {
        Credentials::set(&sources.dirs.config, variable, key)?;
    }
    if !lines.is_empty() {
        draft.write()?;
    }
    Ok(())
}

/// A vault that a person named: a relative path starts where it is typed.
///
/// # Errors
/// It is no folder that can be read.
fn folder(here: &Path, path: &Path) -> Result<PathBuf, CliError> {
    let path = here.join(crate::config::home(path.to_owned()));
    let vault = Vault::open(&path).map_err(|error| {
        CliError::usage(format!("{} cannot be the vault", path.display()))
            .because(error.to_string())
            .or_try("--vault none, for no memory")
    })?;
    Ok(vault.root().to_owned())
}

/// A file of the vault.
///
/// # Errors
/// It cannot be one.
fn note(path: &str) -> Result<String, CliError> {
    match NotePath::parse(path) {
        Ok(_) => Ok(path.trim().to_owned()),
        Err(error) => Err(CliError::usage(error.to_string()).or_try(format!("--memory {MEMORY}"))),
    }
}
