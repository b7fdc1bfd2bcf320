use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{UserId, conversation};
use adjutant_providers::Provider;
use adjutant_store::sqlite;
use adjutant_tools::{TaskFilter, TaskStore};

use crate::command::policy;
use crate::command::sessions;
use crate::config::{self, Database, Settings, Sources};
use crate::store::{self, Store};
use crate::terminal::confirm::preview;
use crate::terminal::display::{clean_line, clip};

/// Time that a server, or a process that has locked the database, may delay a completion. Work of
/// this process has no such bound: on a busy machine nothing would be offered.
const PATIENCE: Duration = Duration::from_millis(200);

/// Conversations or tasks offered at once.
const OFFERED_MAX: u32 = 50;

/// Characters of a description at most.
const HELP_CHARS: usize = 80;

/// A completion with its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) value: String,
    pub(crate) help: String,
}

impl Candidate {
    fn new(value: impl AsRef<str>, help: impl AsRef<str>) -> Self {
        Self {
            value: clean_line(value.as_ref()),
            help: clip(help.as_ref(), HELP_CHARS),
        }
    }
}

/// Loads the settings that the completed command line names, such as `--config` and `--database`.
fn settings_here() -> Option<Settings> {
    let words: Vec<OsString> = std::env::args_os()
        .skip_while(|word| word != "--")
        .skip(1)
        .collect();
    let given = |names: [&str; 2]| {
        let behind = words
            .windows(2)
            .find(|pair| names.iter().any(|name| pair[0] == *name));
        let joined = || {
            let start = format!("{}=", names[1]);
            words
                .iter()
                .find_map(|word| word.to_str()?.strip_prefix(&start).map(OsString::from))
        };
        behind.map(|pair| pair[1].clone()).or_else(joined)
    };
    let text = |value: Option<OsString>| value.and_then(|value| value.into_string().ok());
    let config = given(["-C", "--config"]).map(PathBuf::from);
    let env_file = given(["--env-file", "--env-file"]).map(PathBuf::from);
    let database = text(given(["--database", "--database"]));
    Sources::from_process(config, env_file, None, database, None)
        .ok()?
        .load()
        .ok()
}

/// Runs a future with a new runtime. Errors give no candidates, because a shell cannot show them.
fn block_on<T: Default>(work: impl Future<Output = Option<T>>) -> T {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return T::default();
    };
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done.unwrap_or_default()
}

/// Returns what `look` finds in the database, without creating or migrating it. PostgreSQL is not
/// queried.
fn from_store(
    settings: &Settings,
    look: impl AsyncFnOnce(&dyn Store) -> Option<Vec<Candidate>>,
) -> Vec<Candidate> {
    block_on(async {
        let Database::Sqlite(path) = &settings.database else {
            return None;
        };
        let store: Arc<dyn Store> =
            Arc::new(sqlite::Store::open_existing(path, PATIENCE).await.ok()??);
        look(&*store).await
    })
}

/// Returns the newest conversations, by the ends of their ids.
pub(super) fn conversations() -> Vec<Candidate> {
    settings_here()
        .map(|settings| conversations_of(&settings))
        .unwrap_or_default()
}

/// Returns the newest conversations in the database of `settings`.
pub(crate) fn conversations_of(settings: &Settings) -> Vec<Candidate> {
    from_store(settings, async |store| {
        let listed = sessions::list(store, &UserId::local(), None, OFFERED_MAX)
            .await
            .ok()?;
        let one =
            |summary: &_| Candidate::new(sessions::short_of(summary), sessions::title(summary));
        Some(listed.iter().map(one).collect())
    })
}

/// Returns the pending calls.
pub(super) fn pending() -> Vec<Candidate> {
    let Some(settings) = settings_here() else {
        return Vec::new();
    };
    from_store(&settings, async |store| {
        let mut waiting = Vec::new();
        for (key, _) in store
            .parked(&store::agent_name(), Some(&UserId::local()))
            .await
            .ok()?
        {
            let Ok(loaded) = store.load(&key).await else {
                continue;
            };
            let calls = conversation::pending(&loaded.events);
            waiting.extend(
                calls
                    .iter()
                    .map(|call| Candidate::new(call.short_id(), preview(call))),
            );
        }
        Some(waiting)
    })
}

/// Returns the tasks that are not completed.
pub(super) fn open_tasks() -> Vec<Candidate> {
    tasks_of(TaskFilter::Pending)
}

/// Returns all tasks.
pub(super) fn tasks() -> Vec<Candidate> {
    tasks_of(TaskFilter::All)
}

fn tasks_of(filter: TaskFilter) -> Vec<Candidate> {
    // With tasks in notes, a completion would have to read the whole vault.
    let Some(settings) = settings_here()
        .filter(|settings| settings.memory.tasks != crate::config::TaskStorage::Notes)
    else {
        return Vec::new();
    };
    from_store(&settings, async move |store| {
        let tasks = TaskStore::list(store, &UserId::local(), filter)
            .await
            .ok()?;
        let newest = tasks.iter().rev().take(OFFERED_MAX as usize);
        Some(
            newest
                .map(|task| Candidate::new(task.id.to_string(), task.description.to_string()))
                .collect(),
        )
    })
}

/// Returns the models that can be used now: those of providers with a key, of an Ollama server that
/// responds in time, and the downloaded ones.
pub(super) fn models() -> Vec<Candidate> {
    settings_here()
        .map(|settings| models_of(&settings))
        .unwrap_or_default()
}

/// Returns the usable models with these settings.
pub(crate) fn models_of(settings: &Settings) -> Vec<Candidate> {
    let mut models = Vec::new();
    for provider in Provider::all() {
        let set = settings.provider(provider);
        let ready = set.any_key().is_some() || (!provider.needs_key && set.base_url.is_some());
        if let Some(model) = set
            .model
            .as_deref()
            .or(provider.default_model)
            .filter(|_| ready)
        {
            models.push(Candidate::new(
                format!("{}/{model}", provider.name),
                "its usual model",
            ));
        }
    }
    models.extend(ollama_models(settings));
    models.extend(embedded_of(settings, true));
    models.push(Candidate::new("demo", "no language model: canned answers"));
    let mut seen = Vec::new();
    models.retain(|model| {
        let new = !seen.contains(&model.value);
        seen.push(model.value.clone());
        new
    });
    models
}

#[cfg(feature = "ollama")]
fn ollama_models(settings: &Settings) -> Vec<Candidate> {
    let Ok(server) = crate::ollama::server(settings) else {
        return Vec::new();
    };
    block_on(async {
        let models = tokio::time::timeout(PATIENCE, server.within(PATIENCE).models())
            .await
            .ok()?
            .ok()?;
        Some(
            models
                .iter()
                .map(|model| {
                    Candidate::new(format!("ollama/{}", model.name), "on the Ollama server")
                })
                .collect(),
        )
    })
}

#[cfg(not(feature = "ollama"))]
fn ollama_models(_: &Settings) -> Vec<Candidate> {
    Vec::new()
}

#[cfg(feature = "embedded")]
fn embedded_of(settings: &Settings, only_installed: bool) -> Vec<Candidate> {
    use adjutant_embedded::catalogue::{self, InstallState};

    let listed = catalogue::list(&settings.dirs.models()).unwrap_or_default();
    let known = listed
        .into_iter()
        .filter_map(|model| model.known.map(|known| (model, known)));
    known
        .filter(|(model, _)| !only_installed || model.state == InstallState::Installed)
        .map(|(model, known)| Candidate::new(format!("embedded/{}", model.name), known.note))
        .collect()
}

#[cfg(not(feature = "embedded"))]
fn embedded_of(_: &Settings, _: bool) -> Vec<Candidate> {
    Vec::new()
}

/// Returns the models that can be downloaded.
pub(super) fn embedded() -> Vec<Candidate> {
    settings_here()
        .map(|settings| embedded_of(&settings, false))
        .unwrap_or_default()
}

/// Returns the downloaded models, which can be deleted.
pub(super) fn installed() -> Vec<Candidate> {
    let Some(settings) = settings_here() else {
        return Vec::new();
    };
    let mut models = embedded_of(&settings, true);
    models.extend(ollama_models(&settings));
    models
}

/// Returns the providers that take a key.
pub(super) fn providers() -> Vec<Candidate> {
    let with_key =
        Provider::all().filter_map(|provider| Some((provider.name, provider.key_variable?)));
    with_key
        .map(|(name, variable)| Candidate::new(name, variable))
        .collect()
}

/// Returns the names of all settings.
pub(super) fn settings() -> Vec<Candidate> {
    config::names()
        .map(|name| Candidate::new(name, ""))
        .collect()
}

/// Returns the permissions given at confirmations.
pub(super) fn permissions() -> Vec<Candidate> {
    let Some(settings) = settings_here() else {
        return Vec::new();
    };
    let listed = policy::descriptions(&settings.dirs).into_iter();
    listed
        .map(|(id, words)| Candidate::new(id, words))
        .collect()
}

/// Returns the MCP servers in the configuration.
pub(super) fn servers() -> Vec<Candidate> {
    let settings = settings_here();
    let servers = settings.iter().flat_map(|settings| &settings.mcp);
    servers
        .map(|server| Candidate::new(server.name.as_str(), ""))
        .collect()
}
