//! Checks of notes and memory: access to the vault, and the files in it that have an effect.

use std::path::Path;
use std::sync::Arc;

use adjutant_core::UserId;
use adjutant_memory::{
    DailyNotes, DailySource, InMemoryLedger, Memory, NOTE_BYTES_MAX, Vault, read_regular_file,
};
use serde_json::{Map, Value};

use super::{Check, Group};
use crate::clock;
use crate::config::Settings;
use crate::memory::{self, OwnVault};
use crate::terminal::display::{plural, shell_quoted};

const GROUP: Group = Group("memory");

/// Settings files of Obsidian that have an effect here.
const FOLLOWED: [&str; 4] = ["app.json", "daily-notes.json", "templates.json", PLUGINS];
/// The only one of them that contains a list.
const PLUGINS: &str = "community-plugins.json";

/// Checks the vault and the facts in it, and the vaults of other users of the service.
pub(super) async fn checks(settings: &Settings) -> Vec<Check> {
    let mut checks = own_vault(settings)
        .await
        .unwrap_or_else(|check| vec![check]);
    if !settings.memory.users.is_empty() {
        checks.extend(user_vaults(settings).unwrap_or_else(|check| vec![check]));
    }
    checks
}

/// Checks the vaults of other users of the service. `Err` is the only check.
fn user_vaults(settings: &Settings) -> Result<Vec<Check>, Check> {
    let vaults = memory::vaults(settings)
        .map_err(|error| GROUP.fail_with("vault.users", &error, "adjutant config path"))?;
    let user_vaults = vaults.into_iter().filter(|own| !own.is_of_machine());
    let check = |own: OwnVault| match Vault::open(&own.path) {
        Ok(vault) => Check {
            name: own.setting,
            ..writable(&vault)
        },
        Err(error) => GROUP
            .fail("vault.users", format!("{}: {error}", own.user))
            .because("nothing is remembered of this user")
            .with_remedy(format!(
                "mkdir -p {}, or another folder in vault.users",
                shell_quoted(&own.path.to_string_lossy())
            )),
    };
    Ok(user_vaults.map(check).collect())
}

/// Checks the vault of `vault.path`. `Err` is the only check.
async fn own_vault(settings: &Settings) -> Result<Vec<Check>, Check> {
    let path = settings.memory.vault.as_ref().ok_or_else(|| {
        let facts = match settings.memory.in_database {
            true => "none: facts are kept in the database",
            false => "none, and memory.database is false: nothing is remembered",
        };
        GROUP.ok("vault", facts)
    })?;
    let vault = Vault::open(path).map_err(|error| {
        GROUP.fail("vault", error.to_string()).with_remedy(format!(
            "mkdir -p {0}, or adjutant config set vault.path FOLDER",
            shell_quoted(&path.to_string_lossy())
        ))
    })?;
    let vault = vault.with_excluded(settings.memory.exclude.clone());
    let mut checks = vec![writable(&vault)];
    checks.extend(obsidian(settings, &vault));
    checks.extend(excluded(&vault));
    checks.push(facts(settings, vault).await);
    Ok(checks)
}

fn writable(vault: &Vault) -> Check {
    let root = vault.root();
    #[cfg(unix)]
    {
        // Checked without creating a file: Obsidian and sync programs would see it, even for a
        // moment.
        use rustix::fs::Access;
        if let Err(error) =
            rustix::fs::access(root, Access::WRITE_OK | Access::READ_OK | Access::EXEC_OK)
        {
            return GROUP
                .fail("vault", format!("{} cannot be written", root.display()))
                .because(error)
                .with_remedy(format!(
                    "chmod u+rwx {}",
                    shell_quoted(&root.to_string_lossy())
                ));
        }
    }
    GROUP.ok("vault", format!("{} · {}", vault.name(), root.display()))
}

/// Checks the settings that Obsidian wrote. Unreadable ones are ignored, here as by the assistant.
fn obsidian(settings: &Settings, vault: &Vault) -> Option<Check> {
    let folder = vault.root().join(".obsidian");
    let files = FOLLOWED.iter().map(|name| folder.join(name));
    for file in files {
        if let Some(cause) = broken(&file) {
            let quoted = shell_quoted(&file.to_string_lossy());
            let broken = shell_quoted(&format!("{}.broken", file.to_string_lossy()));
            let file = file.display();
            let check = GROUP.fail("Obsidian's settings", format!("{file} cannot be read"));
            let remedy = format!("mv {quoted} {broken}    (Obsidian writes it anew)");
            return Some(check.because(cause).with_remedy(remedy));
        }
    }
    folder.is_dir().then(|| daily(settings, vault))
}

/// Checks whose daily-note settings apply, where today's note is, and which plugins are ignored.
fn daily(settings: &Settings, vault: &Vault) -> Check {
    const NAME: &str = "daily notes";
    let options = &settings.memory.options();
    let now = clock::zoned();
    let daily = vault.daily_notes(&options.daily, options.locale, &now);
    let path = match daily.path(&now) {
        Ok(path) => path,
        Err(error) => {
            let message = "today's note cannot have the name that the format gives it";
            return GROUP.fail(NAME, message).because(error).with_remedy(
                "change the format in Obsidian, or adjutant config set vault.daily FORMAT",
            );
        }
    };
    let whose = match daily.source {
        DailySource::Setting => "set by vault.daily",
        DailySource::PeriodicNotes => "set by Periodic Notes",
        _ => "set by Obsidian",
    };
    let language = if daily.has_names() {
        format!(" · {} names", daily.locale.name())
    } else {
        String::new()
    };
    let shown = format!("{whose} · today {path}{language}");
    if let Some(notice) = daily.notices.first() {
        return GROUP
            .warn(NAME, shown)
            .because(notice.as_str())
            .with_remedy(
                "adjutant config set vault.locale CODE, or mend the plugin's settings in Obsidian",
            );
    }
    match template_trouble(vault, &daily) {
        Some((cause, remedy)) => GROUP.warn(NAME, shown).because(cause).with_remedy(remedy),
        None => GROUP.ok(NAME, shown),
    }
}

/// Returns the parts of a daily-note template that cannot be filled in, with a remedy.
fn template_trouble(vault: &Vault, daily: &DailyNotes) -> Option<(String, &'static str)> {
    let name = daily.settings.template.as_deref()?;
    match vault.template_has_code(name) {
        Some(false) => None,
        Some(true) => Some((
            format!("the template {name} has code of Templater (<% %>), which is not run here"),
            "let Obsidian make the day's note, or write {{date}}, {{time}} and {{title}} in the template",
        )),
        None => Some((
            format!("the template {name} cannot be read; daily notes begin without it"),
            "choose another template in the plugin's settings in Obsidian",
        )),
    }
}

fn broken(file: &Path) -> Option<String> {
    // Larger files are ignored by the assistant, so they are not read here either.
    let text = match read_regular_file(file, NOTE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(error.to_string()),
    };
    let Ok(text) = String::from_utf8(text) else {
        return Some("it is not UTF-8 text".to_owned());
    };
    let text = text.trim_start_matches('\u{FEFF}');
    if text.trim().is_empty() {
        return None;
    }
    let read = if file.ends_with(PLUGINS) {
        serde_json::from_str::<Vec<Value>>(text).map(drop)
    } else {
        serde_json::from_str::<Map<String, Value>>(text).map(drop)
    };
    match read {
        Ok(()) => None,
        Err(error) => Some(format!("it is not JSON: {error}")),
    }
}

/// Says how many notes are kept from the assistant, if any are.
fn excluded(vault: &Vault) -> Option<Check> {
    const NAME: &str = "excluded notes";
    match vault.excluded_notes() {
        Ok(0) => None,
        Ok(number) => {
            let notes = plural(number as u64, "note is", "notes are");
            Some(GROUP.ok(NAME, format!("{notes} kept from the assistant")))
        }
        Err(error) => Some(
            GROUP
                .fail(NAME, error.to_string())
                .because("which notes are excluded is not known, so none is shown")
                .with_remedy(
                    "correct the pattern in vault.exclude or in Obsidian's excluded files",
                ),
        ),
    }
}

async fn facts(settings: &Settings, vault: Vault) -> Check {
    let options = settings.memory.options();
    let (path, max) = (options.path.clone(), options.max_facts);
    // The facts are only listed; the ledger in the database would be needed for a change.
    let ledger = Arc::new(InMemoryLedger::new());
    let clock = Arc::new(clock::zoned);
    let memory = match Memory::new(vault, UserId::local(), options, ledger, clock) {
        Ok(memory) => memory,
        Err(error) => {
            return GROUP
                .fail("facts", error.to_string())
                .with_remedy("adjutant config set memory.path memory/facts.md");
        }
    };
    match memory.facts().list().await {
        Ok(facts) if facts.len() >= max => GROUP
            .warn(
                "facts",
                format!("{path} · {} facts, which is the limit", facts.len()),
            )
            .because("nothing new is remembered")
            .with_remedy(format!(
                "adjutant memory forget, or adjutant config set memory.max_facts {}",
                max * 2
            )),
        Ok(facts) => {
            let facts = plural(facts.len() as u64, "fact", "facts");
            GROUP.ok("facts", format!("{path} · {facts} of at most {max}"))
        }
        Err(error) => GROUP
            .fail("facts", format!("{path} cannot be used"))
            .because(error)
            .with_remedy(format!(
                "mend {path} in an editor, or adjutant config set memory.path OTHER.md"
            )),
    }
}
