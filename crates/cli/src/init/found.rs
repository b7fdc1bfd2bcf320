//! What there is to choose from: keys, a server's models, the embedded model, vaults.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use adjutant_memory::{System, UserFolders, find_vaults};
use adjutant_providers::Provider;

use crate::config::Settings;
use crate::display::clean_line;
use crate::screen::Screen;

/// A model that may answer.
#[derive(Debug)]
pub(super) struct Found {
    /// As the setting `model` has it; `None`: whatever there is when it is wanted.
    pub(super) spec: Option<String>,
    /// What to expect of it.
    note: String,
    /// Whose key has to be entered first.
    pub(super) key_of: Option<&'static Provider>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.spec.as_deref().unwrap_or("decide each time");
        write!(f, "{:34} {}", clean_line(name), self.note)
    }
}

/// Models, the best first: what there is a key for, what a server on this machine has, the embedded
/// one, then what a key could be entered for.
pub(super) async fn models(settings: &Settings, screen: &Screen) -> Vec<Found> {
    let found = |spec: String, note: String| Found {
        spec: Some(spec),
        note,
        key_of: None,
    };
    let cloud = || {
        Provider::by_preference().filter_map(|provider| {
            let set = settings.provider(provider);
            let has_key = set.any_key().is_some();
            let model = set
                .model
                .or_else(|| provider.default_model.map(str::to_owned))?;
            Some((
                provider,
                format!("{}/{model}", provider.name),
                has_key,
                provider.key_variable?,
            ))
        })
    };
    let mut all: Vec<Found> = cloud()
        .filter(|(_, _, has_key, _)| *has_key)
        .map(|(_, spec, _, variable)| found(spec, format!("there is a key ({variable})")))
        .collect();
    all.extend(
        of_server(settings, screen)
            .await
            .into_iter()
            .map(|(spec, note)| found(spec, note)),
    );
    all.extend(embedded(settings).map(|(spec, note)| found(spec, note)));
    all.extend(
        cloud()
            .filter(|(provider, _, has_key, _)| !has_key && provider.needs_key)
            // Providers of one vendor share its key.
            .fold(Vec::<(_, _, _, _)>::new(), |mut rows, row| {
                if !rows.iter().any(|other| other.3 == row.3) {
                    rows.push(row);
                }
                rows
            })
            .into_iter()
            .map(|(provider, spec, ..)| Found {
                spec: Some(spec),
                note: "needs a key, which you enter now".to_owned(),
                key_of: Some(provider),
            }),
    );
    all.push(Found {
        spec: None,
        note: "the first with a key, else Ollama, else embedded".to_owned(),
        key_of: None,
    });
    all
}

/// The models of a server on this machine, those that can call tools first.
#[cfg(feature = "ollama")]
async fn of_server(settings: &Settings, screen: &Screen) -> Vec<(String, String)> {
    use crate::ollama::{self, GOOD};
    let Some(server) = ollama::running(settings) else {
        return Vec::new();
    };
    let Ok(models) = server.models().await else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for model in models {
        let can = server
            .show(&model.name)
            .await
            .is_ok_and(|info| info.can("tools"));
        let size = model
            .size_bytes
            .map(crate::display::size)
            .unwrap_or_default();
        let tools = if can {
            "✓ tools"
        } else {
            "✗ tools: cannot change tasks or notes"
        };
        rows.push((
            !can,
            format!("ollama/{}", model.name),
            format!("{size:>8} {tools}"),
        ));
    }
    rows.sort_by_key(|row| row.0);
    if rows.iter().all(|row| row.0) {
        screen.note(&format!(
            "Ollama runs and has no model that can call tools: adjutant models pull {GOOD}"
        ));
    }
    rows.into_iter()
        .filter(|row| !row.0)
        .map(|(_, spec, note)| (spec, note))
        .collect()
}

#[cfg(not(feature = "ollama"))]
async fn of_server(_: &Settings, _: &Screen) -> Vec<(String, String)> {
    Vec::new()
}

#[cfg(feature = "embedded")]
fn embedded(settings: &Settings) -> Option<(String, String)> {
    use adjutant_embedded::catalogue::InstallState;
    let model = crate::embedded::known(settings.embedded_model.as_deref()).ok()?;
    let note = match model.state_in(&settings.dirs.models()) {
        InstallState::Installed => "runs in this process; it is here".to_owned(),
        _ => format!(
            "runs in this process; {}, fetched once",
            crate::display::size(model.bytes)
        ),
    };
    Some((format!("embedded/{}", model.name), note))
}

#[cfg(not(feature = "embedded"))]
fn embedded(_: &Settings) -> Option<(String, String)> {
    None
}

/// Vaults that Obsidian knows, and those in the home folder.
pub(crate) fn vaults(variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let Ok(home) = etcetera::home_dir() else {
        return Vec::new();
    };
    let system = System::here();
    let config = match system {
        System::Windows => variables.get("APPDATA"),
        _ => variables.get("XDG_CONFIG_HOME"),
    };
    let config = config
        .map(PathBuf::from)
        .filter(|config| config.is_absolute());
    find_vaults(&UserFolders {
        system,
        home,
        config,
    })
}
