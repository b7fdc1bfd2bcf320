//! Choices that `init` offers: providers with keys, models of a server, the embedded model, vaults.

use std::collections::BTreeMap;
use std::path::PathBuf;

use adjutant_memory::{System, UserFolders, find_vaults};
use adjutant_providers::Provider;

use crate::config::Settings;
use crate::terminal::display::{clean_line, clip_words};
use crate::terminal::screen::Screen;

/// A model to choose.
#[derive(Debug)]
pub(super) struct ModelOption {
    /// Value of the setting `model`; `None` leaves the choice to each start.
    pub(super) spec: Option<String>,
    /// A remark about speed or cost.
    note: String,
    /// The provider whose key has to be entered first.
    pub(super) key_of: Option<&'static Provider>,
}

impl ModelOption {
    pub(super) fn name(&self) -> String {
        clean_line(self.spec.as_deref().unwrap_or("decide each time"))
    }

    /// Returns the line that offers the model, in at most `columns` columns if its name fits.
    pub(super) fn line(&self, columns: usize) -> String {
        let name = self.name();
        let line = format!("{name:34} {}", self.note);
        match line.chars().count() <= columns {
            true => line,
            false => clip_words(&format!("{name}  {}", self.note), columns),
        }
    }
}

/// Returns models, best first: providers with a key, models of a local server, the embedded one,
/// then providers whose key could be entered.
pub(super) async fn models(settings: &Settings, screen: &Screen) -> Vec<ModelOption> {
    let found = |spec: String, note: String| ModelOption {
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
    let mut all: Vec<ModelOption> = cloud()
        .filter(|(_, _, has_key, _)| *has_key)
        .map(|(_, spec, _, variable)| found(spec, format!("there is a key ({variable})")))
        .collect();
    let on_server = server_models(settings, screen).await;
    all.extend(on_server.into_iter().map(|(spec, note)| found(spec, note)));
    #[cfg(feature = "embedded")]
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
            .map(|(provider, spec, ..)| ModelOption {
                spec: Some(spec),
                note: "needs a key, which you enter now".to_owned(),
                key_of: Some(provider),
            }),
    );
    all.push(ModelOption {
        spec: None,
        note: "the first with a key, else Ollama, else embedded".to_owned(),
        key_of: None,
    });
    all
}

/// Returns the models of a local server, those with tool calling first.
#[cfg(feature = "ollama")]
async fn server_models(settings: &Settings, screen: &Screen) -> Vec<(String, String)> {
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
            .map(crate::terminal::display::size)
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
    // A stable sort: within each half the order of the server stays, newest first.
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
async fn server_models(_: &Settings, _: &Screen) -> Vec<(String, String)> {
    Vec::new()
}

#[cfg(feature = "embedded")]
fn embedded(settings: &Settings) -> Option<(String, String)> {
    use adjutant_embedded::catalogue::InstallState;
    // A model of the settings that is not in the catalogue cannot be fetched, so it is not offered.
    let model = crate::embedded::find_model(settings.embedded_model.as_deref()).ok()?;
    let note = match model.state_in(&settings.dirs.models()) {
        InstallState::Installed => "runs in this process; it is here".to_owned(),
        _ => format!(
            "runs in this process; {}, fetched once",
            crate::terminal::display::size(model.bytes)
        ),
    };
    Some((format!("embedded/{}", model.name), note))
}

/// Returns the vaults that Obsidian knows, and those in the home folder.
pub(crate) fn vaults(variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let Ok(home) = etcetera::home_dir() else {
        return Vec::new();
    };
    let system = System::current();
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
