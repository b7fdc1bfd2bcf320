//! Notes and memory: is the vault there, can it be written, does what stands in it count?

use std::path::Path;
use std::sync::Arc;

use adjutant_core::UserId;
use adjutant_memory::{InMemoryLedger, Memory, Vault};
use jiff::Zoned;

use super::Check;
use crate::config::Settings;
use crate::display::plural;

const GROUP: &str = "memory";

/// Settings of Obsidian that are followed.
const FOLLOWED: [&str; 2] = ["daily-notes.json", "templates.json"];

/// The vault and what is remembered in it.
pub(super) async fn look(settings: &Settings) -> Vec<Check> {
    let Some(path) = &settings.memory.vault else {
        return vec![Check::ok(GROUP, "vault", "none: nothing is remembered")];
    };
    let vault = match Vault::open(path) {
        Ok(vault) => vault,
        Err(error) => {
            return vec![
                Check::fail(GROUP, "vault", error.to_string())
                    .mend(format!("mkdir -p {0}, or adjutant config set vault.path FOLDER", path.display())),
            ];
        }
    };
    let mut checks = vec![writable(&vault)];
    checks.extend(obsidian(&vault));
    checks.push(facts(settings, vault).await);
    checks
}

fn writable(vault: &Vault) -> Check {
    let root = vault.root();
    #[cfg(unix)]
    {
        // No file of ours appears in it, not even for a moment.
        use rustix::fs::Access;
        if let Err(error) = rustix::fs::access(root, Access::WRITE_OK | Access::READ_OK | Access::EXEC_OK) {
            return Check::fail(GROUP, "vault", format!("{} cannot be written", root.display()))
                .because(error.to_string())
                .mend(format!("chmod u+rwx {}", root.display()));
        }
    }
    Check::ok(GROUP, "vault", format!("{} · {}", vault.name(), root.display()))
}

/// What Obsidian wrote for itself; what cannot be read is not followed, and Obsidian itself stumbles over it.
fn obsidian(vault: &Vault) -> Option<Check> {
    let folder = vault.root().join(".obsidian");
    let broken = FOLLOWED.iter().map(|name| folder.join(name)).find_map(|file| Some((broken(&file)?, file)));
    match broken {
        Some((cause, file)) => Some(
            Check::fail(GROUP, "Obsidian's settings", format!("{} cannot be read", file.display()))
                .because(cause)
                .mend(format!("mv {0} {0}.broken    (Obsidian writes it anew)", file.display())),
        ),
        None if folder.is_dir() => Some(Check::ok(GROUP, "Obsidian's settings", "they are followed")),
        None => None,
    }
}

fn broken(file: &Path) -> Option<String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(error.to_string()),
    };
    let text = text.trim_start_matches('\u{FEFF}');
    if text.trim().is_empty() {
        return None;
    }
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text) {
        Ok(_) => None,
        Err(error) => Some(format!("it is not JSON: {error}")),
    }
}

async fn facts(settings: &Settings, vault: Vault) -> Check {
    let options = settings.memory.options.clone();
    let (path, max) = (options.path.clone(), options.max_facts);
    let ledger = Arc::new(InMemoryLedger::new());
    #[expect(clippy::disallowed_methods, reason = "the binary knows what time it is")]
    let clock = Arc::new(Zoned::now);
    let memory = match Memory::new(vault, UserId::local(), options, ledger, clock) {
        Ok(memory) => memory,
        Err(error) => {
            return Check::fail(GROUP, "facts", error.to_string())
                .mend("adjutant config set memory.path memory/facts.md");
        }
    };
    match memory.facts().list().await {
        Ok(facts) if facts.len() >= max => {
            Check::warn(GROUP, "facts", format!("{path} · {} facts, which is the limit", facts.len()))
                .because("nothing new is remembered")
                .mend(format!("adjutant memory forget, or adjutant config set memory.max_facts {}", max * 2))
        }
        Ok(facts) => Check::ok(
            GROUP,
            "facts",
            format!("{path} · {} of at most {max}", plural(facts.len() as u64, "fact", "facts")),
        ),
        Err(error) => Check::fail(GROUP, "facts", format!("{path} cannot be used"))
            .because(error.to_string())
            .mend(format!("mend {path} in an editor, or adjutant config set memory.path OTHER.md")),
    }
}
