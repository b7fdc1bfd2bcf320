//! `adjutant config`: shows, checks and changes settings.

use std::path::{Path, PathBuf};
use std::process::Command;

use adjutant_providers::Provider;
use clap::Subcommand;
use serde_json::{Map, Value, json};
use url::Url;

use crate::command::output::{lines, load_settings};
use crate::config::{
    self, Database, Draft, PROVIDER_SETTINGS, SentVariables, Sources, attachment_folders,
    find_setting, trust,
};
use crate::error::{CliError, Exit};
use crate::terminal::display::{clean_line, clip};
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::ask_yes_no;

/// Characters of an address at most in a question.
const ADDRESS_MAX: usize = 300;

/// Editors that are tried, in order, if `$VISUAL` and `$EDITOR` are not set.
const USUAL_EDITORS: [&str; 3] = ["nano", "vim", "vi"];

/// First lines of a new configuration file.
const NEW_FILE: &str = "\
# Settings of adjutant. `adjutant config show` lists them all, `adjutant config check` looks for mistakes.
";

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every setting and its value
    Show {
        /// Also where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Check every file and variable for mistakes; exit code 3 if there are any
    Check,
    /// Print the value of one setting; exit code 1 if it has none
    Get {
        /// The setting, such as llm.temperature
        key: String,
    },
    /// Write one setting into your file; comments and order stay
    #[command(
        after_help = "Examples:\n  adjutant config set model ollama/qwen3:8b\n  adjutant config set llm.timeout 60s\n  adjutant config set agent.confirm add_task,update_task\n  adjutant config set vault.path --unset\n"
    )]
    Set {
        /// The setting, such as llm.temperature
        key: String,
        /// The new value; lists with commas
        #[arg(required_unless_present = "unset", allow_hyphen_values = true)]
        value: Option<String>,
        /// Remove it, so that the default applies
        #[arg(long, conflicts_with = "value")]
        unset: bool,
    },
    /// Open your file in $EDITOR, and look for mistakes afterwards
    Edit,
    /// Print where settings, data and models are
    Path,
    /// Print the JSON Schema of the file, for editors
    Schema,
    /// Trust adjutant.toml, .env, AGENTS.md and CLAUDE.md of a folder as they are now; changed,
    /// they are not trusted any more
    Trust {
        /// The folder; without one, the current folder
        dir: Option<PathBuf>,
        /// Stop trusting them
        #[arg(long)]
        revoke: bool,
        /// List what is trusted
        #[arg(long, conflicts_with_all = ["dir", "revoke"])]
        list: bool,
    },
}

/// Shows and changes settings.
///
/// # Errors
/// The configuration cannot be read, or the change would make it invalid. `path` works even then.
pub(crate) async fn run(
    sources: &Sources,
    screen: &Screen,
    command: Config,
) -> Result<Exit, CliError> {
    match command {
        Config::Show { origin } => show(sources, screen, origin)?,
        Config::Check => return Ok(check(sources, screen)),
        Config::Get { key } => get(sources, screen, &key)?,
        Config::Set { key, value, unset } => {
            set(sources, screen, &key, value.filter(|_| !unset).as_deref())?;
        }
        Config::Edit => return edit(sources, screen),
        Config::Path => paths(sources, screen),
        Config::Schema => {
            let schema = config::schema();
            // Indented, because it is usually saved to a file that people open.
            screen.result(&schema, || format!("{schema:#}"));
        }
        Config::Trust { list: true, .. } => trusted(sources, screen),
        Config::Trust { dir, revoke, .. } => {
            let folder = dir.unwrap_or_else(|| sources.project.clone());
            let state = &sources.dirs.state;
            let files = if revoke {
                let mut files = trust::revoke(state, &folder)?;
                files.extend(attachment_folders::forget(state, &folder)?.then_some(folder));
                files
            } else {
                let files = trust::Candidates::read(&folder)?;
                ask_for_addresses(screen, &files).await?;
                files.trust(state)?
            };
            print_trust(screen, &files, revoke);
        }
    }
    Ok(Exit::Ok)
}

/// Checks every source by itself, then all of them together.
fn check(sources: &Sources, screen: &Screen) -> Exit {
    let mut problems: Vec<(&str, CliError)> = Vec::new();
    let mut warnings: Vec<String> = Vec::new();
    let mut checked_sources: Vec<Value> = Vec::new();
    for checked in sources.check() {
        let path = checked.path.map(|path| path.to_string_lossy().into_owned());
        checked_sources.push(json!({ "name": checked.name, "path": path, "there": checked.exists, "ok": checked.result.is_ok() }));
        match checked.result {
            Ok(found) => warnings.extend(found),
            Err(error) => problems.push((checked.name, error)),
        }
    }
    // Only if each is right by itself: the same mistake would be reported twice.
    if problems.is_empty()
        && let Err(error) = sources.load()
    {
        problems.push(("settings", error));
    }
    let ok = problems.is_empty();
    if screen.json() {
        let problems: Vec<Value> = problems
            .iter()
            .map(|(source, error)| {
                json!({ "source": source, "message": error.message, "cause": error.cause, "try": error.tries })
            })
            .collect();
        screen.answer_json(
            &json!({ "ok": ok, "sources": checked_sources, "problems": problems, "warnings": warnings }),
        );
    } else {
        problems.iter().for_each(|(_, error)| screen.error(error));
        warnings.iter().for_each(|warning| screen.note(warning));
        if ok {
            screen.answer_line("The configuration is right.");
        }
    }
    if ok { Exit::Ok } else { Exit::Configuration }
}

fn get(sources: &Sources, screen: &Screen, name: &str) -> Result<(), CliError> {
    let key = find_setting(name)?;
    let settings = sources.load()?;
    let shown = settings.shown.iter().find(|shown| shown.name == key.name);
    let value = shown.and_then(|shown| shown.value.as_ref());
    let (origin, unset) = (shown.map(|shown| &shown.origin), value.is_none());
    if unset && !screen.json() {
        return Err(CliError::unknown(format!("{} is not set", key.name))
            .because(format!("what applies: {}", key.unset)));
    }
    screen.result(
        &json!({ "name": key.name, "value": value, "origin": origin }),
        || clean_line(value.map_or("", String::as_str)),
    );
    Ok(())
}

fn set(
    sources: &Sources,
    screen: &Screen,
    name: &str,
    value: Option<&str>,
) -> Result<(), CliError> {
    let key = find_setting(name)?;
    // The user's own file, never a project's, which others share.
    let mut draft = Draft::open(&sources.user_file())?;
    let was_there = match value {
        // On the command line a relative path starts at the working directory; in the file it would
        // start at the file's folder.
        Some(text) => {
            let absolute = key
                .is_relative_path(text)
                .then(|| sources.project.join(text.trim()));
            let text = absolute
                .as_ref()
                .map_or(text.into(), |path| path.to_string_lossy());
            draft.set(key, &text)?;
            true
        }
        None => draft.unset(key),
    };
    if was_there {
        draft.write()?;
    }
    let file = draft.path().display().to_string();
    screen.result(
        &json!({ "name": key.name, "set": value.is_some(), "file": file }),
        || match (value, was_there) {
            (Some(_), _) => format!("{} is set in {file}.", key.name),
            (None, true) => format!("{} is no longer set in {file}.", key.name),
            (None, false) => format!("{} was not set in {file}.", key.name),
        },
    );
    // A variable that overrides the file would make the change seem lost, so a note says so.
    let settings = sources.load()?;
    let shown = settings.shown.iter().find(|shown| shown.name == key.name);
    if value.is_some()
        && let Some(shown) = shown.filter(|shown| !shown.origin.starts_with(&file))
    {
        screen.note(&format!("another source wins over it: {}", shown.origin));
    }
    Ok(())
}

/// Opens the configuration file in an editor, then checks it.
fn edit(sources: &Sources, screen: &Screen) -> Result<Exit, CliError> {
    let file = sources.user_file();
    let variables = &sources.variables;
    let named = |name: &str| variables.get(name).filter(|value| !value.trim().is_empty());
    let usual = || {
        let path = variables.get("PATH")?;
        let exists = |program: &&str| {
            std::env::split_paths(path).any(|folder| folder.join(program).is_file())
        };
        USUAL_EDITORS.into_iter().find(exists).map(str::to_owned)
    };
    let editor = named("VISUAL")
        .or_else(|| named("EDITOR"))
        .cloned()
        .or_else(usual);
    let editor = editor.ok_or_else(|| {
        CliError::usage("no editor is named")
            .or_try("EDITOR=nano adjutant config edit")
            .or_try("adjutant config set KEY VALUE")
    })?;
    // An editor would show an empty page; the new file names the commands that explain it.
    if !file.exists() {
        config::write_keeping_permissions(&file, NEW_FILE)?;
    }
    // Through a shell, as git does it: the variable may contain options.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("adjutant")
        .arg(&file)
        .status();
    match status {
        Ok(status) if status.success() => Ok(check(sources, screen)),
        Ok(status) => Err(CliError::failed(format!("{editor} ended with {status}"))),
        Err(error) => {
            Err(CliError::failed(format!("{editor} cannot be started")).because(error.to_string()))
        }
    }
}

/// Asks for confirmation of each address to which the settings of a folder send the user's
/// variables: a variable may hold a key, and trusting the folder's files is no consent to that.
///
/// # Errors
/// The settings are wrong, the user declines, or they cannot be asked.
async fn ask_for_addresses(screen: &Screen, files: &trust::Candidates) -> Result<(), CliError> {
    let sent = files.texts().map(|(file, text)| {
        let sent = config::sent_variables(&text, file)?;
        Ok(sent.into_iter().map(move |sent| (file, sent)))
    });
    let sent = sent.collect::<Result<Vec<_>, CliError>>()?;
    for (file, SentVariables { server, url, names }) in sent.into_iter().flatten() {
        let asked = Url::parse(&url)
            .map(|url| url.origin().ascii_serialization())
            .unwrap_or_default();
        // The host comes first and whole, because a long path could push it out of view.
        let address = clip(&format!("{asked} ({url})"), ADDRESS_MAX);
        let names = clean_line(&names.into_iter().collect::<Vec<_>>().join(", "));
        let file = shown_path(file);
        let question = format!(
            "? {file} says that the MCP server {server} is at {address}. Send it what is in {names}?"
        );
        // `-y` is no answer here: it is given before the address is known.
        if !screen.asks() {
            return Err(CliError::confirmation_needed(format!(
                "nothing was trusted: {file} sends {names} to {address}"
            ))
            .because(
                "sending a variable to an address that a folder's file names needs your confirmation for that address",
            )
            .or_try("run it again at a terminal, which asks")
            .or_try(format!(
                "[mcp.servers.{server}] in your own file, and not in the folder's (adjutant config edit)"
            )));
        }
        if !ask_yes_no(screen, &question, false).await {
            return Err(CliError::failed(format!(
                "nothing was trusted: {names} is not sent to {address}"
            )));
        }
    }
    Ok(())
}

/// Prints the files that are trusted now, or not any more.
fn print_trust(screen: &Screen, files: &[PathBuf], revoke: bool) {
    let paths: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
    let state = match revoke {
        true => "no longer trusted",
        false => "trusted as it is now",
    };
    screen.result(
        &json!({ "trusted": !revoke, "files": paths }),
        || match files {
            [] => "Nothing there was trusted.".to_owned(),
            files => lines(files, |file| format!("{state}: {}", shown_path(file))),
        },
    );
}

/// Formats a path for one line: a folder's name may contain characters that a terminal obeys.
fn shown_path(path: &Path) -> String {
    clean_line(&path.display().to_string())
}

/// Lists the folders and files that are trusted.
fn trusted(sources: &Sources, screen: &Screen) {
    let files = trust::list(&sources.dirs.state);
    let folders = attachment_folders::list(&sources.dirs.state);
    let mut rows = Vec::new();
    let mut text = Vec::new();
    for folder in &folders {
        rows.push(json!({ "folder": folder.to_string_lossy() }));
        text.push(format!(
            "{}    (its files may go along with a message by @NAME)",
            shown_path(folder)
        ));
    }
    for one in &files {
        rows.push(json!({ "file": one.file.to_string_lossy(), "unchanged": one.unchanged }));
        let changed = match one.unchanged {
            true => "",
            false => "    (changed or gone: not trusted any more)",
        };
        text.push(format!("{}{changed}", shown_path(&one.file)));
    }
    if rows.is_empty() && !screen.json() {
        return screen.note("no folder is trusted: adjutant config trust DIR");
    }
    screen.result(&rows, || text.join("\n"));
}

fn show(sources: &Sources, screen: &Screen, origin: bool) -> Result<(), CliError> {
    let settings = load_settings(sources, screen)?;
    let worth_a_line = || {
        settings
            .shown
            .iter()
            .filter(|shown| !shown.quiet || shown.value.is_some())
    };
    if screen.json() {
        let all: Map<String, Value> = worth_a_line()
            .map(|shown| {
                let value = json!({ "value": shown.value, "origin": shown.origin });
                (shown.name.to_string(), value)
            })
            .collect();
        screen.answer_json(&all);
        return Ok(());
    }
    for shown in worth_a_line() {
        let value = match &shown.value {
            Some(value) => clean_line(value),
            None => format!("({})", shown.unset),
        };
        let origin = match origin {
            true => format!("    # {}", clean_line(&shown.origin)),
            false => String::new(),
        };
        screen.answer_line(&format!("{:28} {value}{origin}", shown.name));
    }
    let providers: Vec<&str> = Provider::all().map(|provider| provider.name).collect();
    screen.note(
        "[budget] per_turn_, per_day_ and everyone_per_day_ with usd, tokens, model_calls, tool_calls and time: shown where they \
         are set",
    );
    screen.note(&format!(
        "[PROVIDER] {}: shown where they are set. Providers: {}",
        PROVIDER_SETTINGS.join(", "),
        providers.join(", ")
    ));
    screen.note(&format!(
        "[mcp.servers.NAME] {}: in your own file, or in one that is trusted; shown where they are set",
        config::server_fields().join(", ")
    ));
    Ok(())
}

fn paths(sources: &Sources, screen: &Screen) {
    let mut places = vec![
        ("config", sources.user_file()),
        ("env", sources.env_file()),
        ("keys", config::Credentials::path_in(&sources.dirs.config)),
    ];
    places.extend(sources.project_file().map(|file| ("project", file)));
    // If the settings are broken, the default place is shown: this command helps to mend them.
    let usual = || Database::Sqlite(sources.dirs.data.join("adjutant.db"));
    let database = sources
        .load()
        .map_or_else(|_| usual(), |settings| settings.database);
    if let Database::Sqlite(file) = &database {
        places.push(("store", file.clone()));
    }
    places.push(("data", sources.dirs.data.clone()));
    places.push(("cache", sources.dirs.cache.clone()));
    places.push(("state", sources.dirs.state.clone()));
    let mut rows: Vec<(&str, String, &str)> = Vec::new();
    for (name, path) in places {
        let there = if path.exists() { "" } else { "    (not there)" };
        rows.push((name, path.to_string_lossy().into_owned(), there));
    }
    if let Database::Postgres(_) = &database {
        rows.push(("store", database.to_string(), ""));
    }
    let all: Map<String, Value> = rows
        .iter()
        .map(|(name, place, _)| ((*name).to_owned(), json!(place)))
        .collect();
    screen.result(&all, || {
        lines(&rows, |(name, place, there)| {
            format!("{name:8} {}{there}", clean_line(place))
        })
    });
}
