//! `adjutant init`: creates a working configuration with three questions.
//!
//! Existing settings are never changed, and nothing is written before the user has seen and
//! confirmed it.

mod choices; // models and vaults to choose from
mod folder_question; // the question for a folder
mod questions; // questions at a terminal
mod validate; // checks of the vault and the file of facts

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use secrecy::SecretString;

use crate::command::output::load_settings;
use crate::command::{doctor, keys};
use crate::config::{Credentials, Draft, Sources, find_setting};
use crate::error::{CliError, Exit};
use crate::model_choice::Choice;
use crate::terminal::display::{clean_line, shell_quoted, shown_path};
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::{YesNo, choose_yes_no};
use validate::{MEMORY, folder, note};

/// The answer that chooses no vault.
const NONE: &str = "none";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  adjutant init\n  adjutant init --model ollama/qwen3:8b --vault ~/Notes --yes\n  adjutant init --vault none --yes      the model that is found, no memory\n"
)]
pub(crate) struct Init {
    /// The file of the vault where memory goes [default: memory/facts.md]
    #[arg(long, value_name = "FILE")]
    pub(crate) memory: Option<String>,
}

/// The configuration to be written.
#[derive(Debug, Default)]
struct Plan {
    model: Option<String>,
    /// A key that was entered, with its provider's name and variable.
    key: Option<(&'static str, &'static str, SecretString)>,
    vault: Option<PathBuf>,
    memory: Option<String>,
}

/// Asks, shows, writes, and checks the result.
///
/// # Errors
/// The user cannot be asked and gave no options; an option is invalid or set already; Ctrl-C.
pub(crate) async fn run(
    sources: &Sources,
    screen: &Screen,
    options: Init,
    vault: Option<PathBuf>,
    yes: bool,
) -> Result<Exit, CliError> {
    let has_options = sources.model.is_some() || vault.is_some() || options.memory.is_some();
    if !screen.asks() && !has_options && !yes {
        return Err(
            CliError::usage("this command asks questions, and this is not a terminal")
                .or_try("adjutant init --model MODEL --vault DIR --yes")
                .or_try("adjutant init --yes    takes what is found, and no vault"),
        );
    }
    // An invalid file has to be repaired by its author first.
    let draft = Draft::open(&sources.user_file())?;
    // The options are values to write, not settings of this run.
    let bare = Sources {
        model: None,
        vault: None,
        ..sources.clone()
    };
    let settings = load_settings(&bare, screen)?;
    let mut plan = Plan::default();
    let ask = screen.asks() && !yes;

    let model = find_setting("model")?;
    match (&sources.model, draft.get(model)?) {
        (Some(spec), _) => {
            Choice::parse(spec)?;
            plan.model = Some(spec.trim().to_owned());
        }
        (None, Some(set)) => note_set("model", &set.value, &set.origin, screen),
        (None, None) if ask => {
            let chosen = questions::model(choices::models(&settings, screen).await, screen)?;
            if let Some(provider) = chosen.key_of {
                let variable = provider.key_variable.unwrap_or_default();
                let key = keys::check_key(&keys::ask(provider)?)?;
                plan.key = Some((provider.name, variable, key));
            }
            plan.model = chosen.spec;
        }
        (None, None) => {
            let best = choices::models(&settings, screen).await.into_iter().next();
            plan.model = best.and_then(|best| best.spec);
        }
    }

    let key = find_setting("vault.path")?;
    match (vault, draft.get(key)?) {
        (Some(path), _) if path == Path::new(NONE) => {}
        (Some(path), _) => plan.vault = Some(folder(&sources.project, &path)?),
        (None, Some(set)) => note_set("vault.path", &set.value, &set.origin, screen),
        (None, None) if ask => {
            let found = choices::vaults(&sources.variables);
            plan.vault = questions::vault(&sources.project, found, screen)?;
        }
        // A vault that was found is never used without the user's choice.
        (None, None) => {}
    }

    let key = find_setting("memory.path")?;
    let has_vault = plan.vault.is_some() || settings.memory.vault.is_some();
    match (options.memory, draft.get(key)?) {
        (Some(path), _) => plan.memory = Some(note(&path)?),
        (None, None) if ask && has_vault => plan.memory = Some(questions::memory(screen)?),
        (None, None) if plan.vault.is_some() => plan.memory = Some(MEMORY.to_owned()),
        (None, _) => {}
    }
    write(sources, screen, draft, plan, ask).await?;
    screen.note("Checking that it works:");
    let exit = doctor::run(&bare, screen, None).await?;
    if exit == Exit::Ok {
        screen.note("adjutant    begins to talk");
    }
    Ok(exit)
}

/// Notes that a setting is kept as it is.
fn note_set(name: &str, value: &impl Display, origin: &impl Display, screen: &Screen) {
    screen.note(&format!("{name} is set already: {value} ({origin})"));
}

/// Shows the configuration, asks for confirmation, and writes it.
async fn write(
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
        let key = find_setting(name)?;
        match draft.get(key)? {
            Some(old) if old.value.to_string() == value => continue,
            Some(old) => {
                return Err(CliError::configuration(format!(
                    "{name} is set already, and init changes nothing that is"
                ))
                .because(format!("{} says {}", old.origin, old.value))
                .or_try(format!(
                    "adjutant config set {name} {}",
                    shell_quoted(&value)
                )));
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
    screen.side_line(&format!("{} gets:", shown_path(draft.path())));
    lines
        .iter()
        .for_each(|line| screen.side_line(&clean_line(line)));
    if let Some((name, ..)) = &plan.key {
        screen.side_line(&format!(
            "{} gets the key for {name}",
            shown_path(&Credentials::path_in(&sources.dirs.config))
        ));
    }
    if ask && choose_yes_no(screen, "Write it?", true).await != YesNo::Yes {
        return Err(CliError::interrupted("nothing was written"));
    }
    // The key first: if it cannot be stored, no setting names a model that has none.
    if let Some((_, variable, key)) = &plan.key {
        Credentials::set(&sources.dirs.config, variable, key)?;
    }
    if !lines.is_empty() {
        draft.write()?;
    }
    Ok(())
}
