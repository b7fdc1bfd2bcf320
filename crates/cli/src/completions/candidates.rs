use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::TaskStore;
use adjutant_core::{TaskFilter, UserId, conversation};
use adjutant_providers::Provider;
use adjutant_store::sqlite;

use crate::config::{self, Database, Settings, Sources};
use crate::confirm::preview;
use crate::display::{clean_line, clip};
use crate::policy;
use crate::sessions;
use crate::store::{self, Store};

/// The longest time that a server, or another process that has locked the database, may keep
/// somebody waiting who pressed Tab. What this process does itself has no such bound: on a busy
/// machine it would offer nothing.
const PATIENCE: Duration = Duration::from_millis(200);

/// The most conversations or tasks offered at once.
const MOST: u32 = 50;

/// The longest description, in characters.
const HELP_CHARS: usize = 80;

/// Something that can stand at a place of the command line.
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

/// Returns the settings of the command line that is completed: its own configuration and database,
/// if it names them.
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
    Sources::of_process(config, env_file, None, database, None)
        .ok()?
        .load()
        .ok()
}

/// Runs something that waits. Whatever goes wrong is no candidate.
fn waited<T: Default>(work: impl Future<Output = Option<T>>) -> T {
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

/// Returns what `look` finds in the database, which is neither made nor changed for that. A
/// server's is not asked.
fn from_store(
    settings: &Settings,
    look: impl AsyncFnOnce(&dyn Store) -> Option<Vec<Candidate>>,
) -> Vec<Candidate> {
    waited(async {
        let Database::Sqlite(path) = &settings.database else {
            return None;
        };
        let store: Arc<dyn Store> =
            Arc::new(sqlite::Store::open_as_it_is(path, PATIENCE).await.ok()??);
        look(&*store).await
    })
}

/// Returns the newest conversations, by the ends of their ids.
pub(super) fn conversations() -> Vec<Candidate> {
    settings_here()
        .map(|settings| conversations_of(&settings))
        .unwrap_or_default()
}

/// Returns the newest conversations of these settings' database.
pub(crate) fn conversations_of(settings: &Settings) -> Vec<Candidate> {
    from_store(settings, async |store| {
        let listed = sessions::list(store, &UserId::local(), None, MOST)
            .await
            .ok()?;
        let one =
            |summary: &_| Candidate::new(sessions::short_of(summary), sessions::title(summary));
        Some(listed.iter().map(one).collect())
    })
}

/// Returns the calls that wait for an answer.
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

/// Returns the tasks that are not done.
pub(super) fn open_tasks() -> Vec<Candidate> {
    tasks_of(TaskFilter::Pending)
}

/// Returns all tasks.
pub(super) fn tasks() -> Vec<Candidate> {
    tasks_of(TaskFilter::All)
}

fn tasks_of(filter: TaskFilter) -> Vec<Candidate> {
    // Notes are not read for it.
    let Some(settings) = settings_here().filter(|settings| !settings.memory.tasks_in_notes) else {
        return Vec::new();
    };
    from_store(&settings, async move |store| {
        let tasks = TaskStore::list(store, &UserId::local(), filter)
            .await
            .ok()?;
        let newest = tasks.iter().rev().take(MOST as usize);
        Some(
            newest
                .map(|task| Candidate::new(task.id.to_string(), task.description.to_string()))
                .collect(),
        )
    })
}

/// Returns the models that can answer now: those of providers with a key, of an Ollama server that
/// answers at once, and those that are downloaded.
pub(super) fn models() -> Vec<Candidate> {
    settings_here()
        .map(|settings| models_of(&settings))
        .unwrap_or_default()
}

/// The same with settings that are known.
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
    models.extend(of_ollama(settings));
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
fn of_ollama(settings: &Settings) -> Vec<Candidate> {
    let Ok(server) = crate::ollama::server(settings) else {
        return Vec::new();
    };
    waited(async {
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
fn of_ollama(_: &Settings) -> Vec<Candidate> {
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

/// Returns the models that can be deleted.
pub(super) fn installed() -> Vec<Candidate> {
    let Some(settings) = settings_here() else {
        return Vec::new();
    };
    let mut models = embedded_of(&settings, true);
    models.extend(of_ollama(&settings));
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

/// Returns the names of settings.
pub(super) fn settings() -> Vec<Candidate> {
    config::names()
        .map(|name| Candidate::new(name, ""))
        .collect()
}

/// Returns what was allowed at questions.
pub(super) fn permissions() -> Vec<Candidate> {
    let Some(settings) = settings_here() else {
        return Vec::new();
    };
    let listed = policy::listed(&settings.dirs).into_iter();
    listed
        .map(|(id, words)| Candidate::new(id, words))
        .collect()
}

/// Returns the MCP servers of the configuration.
pub(super) fn servers() -> Vec<Candidate> {
    let settings = settings_here();
    let servers = settings.iter().flat_map(|settings| &settings.mcp);
    servers
        .map(|server| Candidate::new(server.name.as_str(), ""))
        .collect()
}
