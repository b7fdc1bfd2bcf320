use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{UserId, conversation};
use adjutant_providers::Provider;
use adjutant_store::sqlite;
use adjutant_tools::{Task, TaskFilter, TaskStore};

use crate::command::sessions;
use crate::config::{self, Database, Settings, Sources, TaskStorage};
use crate::policy::{self, Grant};
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

/// Returns what `list` finds with the settings that the completed command line names, such as
/// `--config` and `--database`; nothing if they cannot be loaded.
pub(super) fn with_settings(list: impl FnOnce(&Settings) -> Vec<Candidate>) -> Vec<Candidate> {
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
    let config = given(["-C", "--config"]).map(PathBuf::from);
    let env_file = given(["--env-file", "--env-file"]).map(PathBuf::from);
    let database = given(["--database", "--database"]).and_then(|text| text.into_string().ok());
    let sources = Sources::from_process().map(|sources| Sources {
        config,
        env_file,
        database,
        ..sources
    });
    // A shell cannot show an error in the middle of a command line.
    let settings = sources.and_then(|sources| sources.load());
    settings.map(|settings| list(&settings)).unwrap_or_default()
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
    // A thread that still waits for a server must not keep the shell waiting.
    runtime.shutdown_background();
    done.unwrap_or_default()
}

/// Returns what `list` finds in the database, without creating or migrating it. PostgreSQL is not
/// queried.
fn from_store(
    settings: &Settings,
    list: impl AsyncFnOnce(&dyn Store) -> Option<Vec<Candidate>>,
) -> Vec<Candidate> {
    block_on(async {
        let Database::Sqlite(path) = &settings.database else {
            return None;
        };
        let store: Arc<dyn Store> =
            Arc::new(sqlite::Store::open_existing(path, PATIENCE).await.ok()??);
        list(&*store).await
    })
}

/// Returns the newest conversations in the database, by the ends of their ids.
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
pub(super) fn pending(settings: &Settings) -> Vec<Candidate> {
    from_store(settings, async |store| {
        let mut waiting = Vec::new();
        let user = UserId::local();
        for (key, _) in store.parked(&store::agent_name(), Some(&user)).await.ok()? {
            // The others are offered even if one conversation is damaged.
            let Ok(loaded) = store.load(&key).await else {
                continue;
            };
            let calls = conversation::pending(&loaded.events);
            let offered = calls
                .iter()
                .map(|call| Candidate::new(call.short_id(), preview(call)));
            waiting.extend(offered);
        }
        Some(waiting)
    })
}

/// Returns the tasks that are not completed.
pub(super) fn open_tasks(settings: &Settings) -> Vec<Candidate> {
    tasks_of(settings, TaskFilter::Pending)
}

/// Returns all tasks.
pub(super) fn tasks(settings: &Settings) -> Vec<Candidate> {
    tasks_of(settings, TaskFilter::All)
}

fn tasks_of(settings: &Settings, filter: TaskFilter) -> Vec<Candidate> {
    // With tasks in notes, a completion would have to read the whole vault.
    if settings.memory.tasks == TaskStorage::Notes {
        return Vec::new();
    }
    from_store(settings, async move |store| {
        let tasks = TaskStore::list(store, &UserId::local(), filter)
            .await
            .ok()?;
        let newest = tasks.iter().rev().take(OFFERED_MAX as usize);
        let offer = |task: &Task| Candidate::new(task.id.to_string(), task.description.as_str());
        Some(newest.map(offer).collect())
    })
}

/// Returns the models that can be used now: those of providers with a key, of an Ollama server that
/// responds in time, and the downloaded ones.
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
    // The default model of a provider may be on the Ollama server too.
    let mut seen = HashSet::new();
    models.retain(|model| seen.insert(model.value.clone()));
    models
}

#[cfg_attr(
    not(feature = "ollama"),
    expect(unused_variables, reason = "no server is asked")
)]
fn ollama_models(settings: &Settings) -> Vec<Candidate> {
    #[cfg(not(feature = "ollama"))]
    return Vec::new();
    #[cfg(feature = "ollama")]
    block_on(async {
        let server = crate::ollama::server(settings).ok()?.within(PATIENCE);
        let models = tokio::time::timeout(PATIENCE, server.models())
            .await
            .ok()?
            .ok()?;
        let names = models.iter().map(|model| format!("ollama/{}", model.name));
        Some(
            names
                .map(|name| Candidate::new(name, "on the Ollama server"))
                .collect(),
        )
    })
}

#[cfg_attr(
    not(feature = "embedded"),
    expect(unused_variables, reason = "there are none")
)]
fn embedded_of(settings: &Settings, only_installed: bool) -> Vec<Candidate> {
    #[cfg(not(feature = "embedded"))]
    return Vec::new();
    #[cfg(feature = "embedded")]
    {
        use adjutant_embedded::catalogue::{self, InstallState};
        let listed = catalogue::list(&settings.dirs.models()).unwrap_or_default();
        let known = listed.into_iter().filter_map(|model| {
            let is_offered = !only_installed || model.state == InstallState::Installed;
            Some((model.name, model.known.filter(|_| is_offered)?.note))
        });
        known
            .map(|(name, note)| Candidate::new(format!("embedded/{name}"), note))
            .collect()
    }
}

/// Returns the models that can be downloaded.
pub(super) fn embedded(settings: &Settings) -> Vec<Candidate> {
    embedded_of(settings, false)
}

/// Returns the downloaded models, which can be deleted.
pub(super) fn installed(settings: &Settings) -> Vec<Candidate> {
    let mut models = embedded_of(settings, true);
    models.extend(ollama_models(settings));
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
pub(super) fn permissions(settings: &Settings) -> Vec<Candidate> {
    let grants = policy::file::load(&settings.dirs).unwrap_or_default();
    let offer = |grant: &Grant| Candidate::new(&grant.id, grant.describe());
    grants.iter().map(offer).collect()
}

/// Returns the MCP servers in the configuration.
pub(super) fn servers(settings: &Settings) -> Vec<Candidate> {
    let servers = settings.mcp.iter();
    servers
        .map(|server| Candidate::new(server.name.as_str(), ""))
        .collect()
}
