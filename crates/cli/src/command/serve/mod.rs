//! `adjutant serve`: runs the HTTP service, for one person or a team.

mod access; // authentication
mod administration; // data sources of /v1/admin
mod browser; // opening the page
mod dispatch; // dispatch through Restate
mod gauges; // gauges of database and MCP servers
mod process_token; // the token of the user who starts it
mod state; // address and token for other processes of this machine
mod user_memories; // which users have which memory

use std::pin::pin;
use std::sync::Arc;

use adjutant_core::{CancellationToken, limits};
use adjutant_service::{ServeError, Service, ServiceConfig};
use clap::ValueEnum as _;
use serde::Serialize;

use crate::args::Serve;
use crate::command::db;
use crate::config::{Authentication, Database, Settings, format_duration};
use crate::error::{CliError, Exit};
use crate::logging;
use crate::mcp_servers;
use crate::memory;
use crate::model_choice;
use crate::search_index::SearchIndexer;
use crate::store;
use crate::store::Stores;
use crate::terminal::screen::Screen;
use crate::terminal::signals::{StopSignal, StopSignals};
use access::Access;
use dispatch::Worker;
use state::StateFile;
use user_memories::UserMemories;

/// Serves until a stop signal; then it accepts nothing new and lets running turns end. After
/// SIGTERM it first answers as not ready for a while, so that a load balancer notices; Ctrl-C skips
/// that. A second signal stops it at once.
///
/// # Errors
/// Settings, model or store cannot be used, or it cannot or must not listen on the address.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    options: Serve,
) -> Result<Exit, CliError> {
    // Installed first: a signal during the startup stops the service as soon as it runs.
    let mut stops = StopSignals::new()?;
    let format = options.log_format.unwrap_or(settings.serve.log_format);
    screen.use_log(logging::start(
        format,
        settings.serve.log.as_deref(),
        screen.verbosity(),
        &logging::Destination::StandardError,
    )?);
    let bind = options.bind.unwrap_or(settings.serve.bind);
    let how = options.auth.unwrap_or(settings.serve.auth);
    // Mistakes in the settings are found before the model is loaded, which takes a while.
    let vaults = memory::vaults(settings)?;
    let store = store::open(settings).await?;
    let Access { auth, secret } =
        Access::from_settings(how, bind, &settings.serve, store.clone(), screen).await?;
    let model = model_choice::open(settings, screen).await?;
    let servers = mcp_servers::start_for(&*model, settings, screen).await?;
    // Servers with pinned tools start in the background; requests should find all tools.
    servers.settled().await;
    mcp_servers::print_news(&servers, screen);
    let stores = Stores::shared(store.clone());
    let user_memories = UserMemories::open(settings, vaults, &stores, screen).await;
    let tasks = memory::task_store(settings, user_memories.vault_memories(), &stores)?;
    let agent = user_memories.agent(settings, &model, &stores, &servers)?;
    let index = SearchIndexer::keep(store.clone());
    index.listen(&agent);
    let model = agent.model().id().to_string();
    let mut config = service_config(settings, &options, ServiceConfig::new(bind, auth))?;
    config.model_titles = settings.serve.titles.by_model(agent.model().id());
    let worker = bind_worker(settings, &options).await?;
    // Inputs that the service accepts are dispatched to Restate, which has the worker run them.
    let accepting = worker
        .as_ref()
        .map_or_else(|| agent.clone(), |worker| worker.dispatching(&agent));
    let administration = administration::sources(settings, &store, &servers);
    let service = Service::bind(accepting, config).await?.with_tasks(tasks);
    let service = service
        .with_conversation_search(store.clone())
        .with_administration(administration);
    let missing = servers.missing();
    let service = service
        .with_memories(user_memories.memories())
        .with_readiness(Arc::new(move || {
            (!missing().is_empty()).then_some("an MCP server that is required does not answer")
        }))
        .with_gauges(gauges::gauges(store.clone(), &servers));
    let url = format!("http://{}", service.address());
    // After the port is bound, because other programs connect as soon as they find the file. The
    // value is kept to the end: dropping it removes the file.
    let found_by = StateFile::write(&settings.dirs.state, &url, secret.as_deref());
    let state_file = match &found_by {
        Ok(file) => Some(file.path().to_string_lossy().into_owned()),
        Err(error) => {
            screen.note(&format!(
                "other programs of this machine will not find it: {error}"
            ));
            None
        }
    };
    let page = (!options.no_ui).then(|| match &secret {
        Some(secret) => format!("{url}/?token={secret}"),
        None => url.clone(),
    });
    let announced = Announcement {
        web: page,
        auth: how
            .to_possible_value()
            .map(|value| value.get_name().to_owned()),
        needs_token: matches!(
            how,
            Authentication::Token | Authentication::Jwt | Authentication::Oidc
        ),
        metrics: service
            .metrics_address()
            .map(|address| format!("http://{address}/metrics")),
        url,
        token: secret,
        model,
        store: settings.database.to_string(),
        notes: user_memories.describe(how),
        worker: worker.as_ref().map(Worker::url),
        state_file,
    };
    announced.print(screen);
    if how == Authentication::None {
        screen.note(
            "without tokens every program of this machine is the person here: it reads and changes everything, and answers for them",
        );
    }
    if options.open
        && let Some(page) = &announced.web
        && let Err(error) = browser::open(page)
    {
        screen.note(&format!(
            "no browser could be opened ({error}): open the address yourself"
        ));
    }

    let (stop, draining) = (CancellationToken::new(), service.draining());
    let drain_delay = options.drain_delay.unwrap_or(settings.serve.drain_delay);
    let drained = async {
        draining.cancelled().await;
        tokio::time::sleep(drain_delay).await;
        stop.cancel();
        // A finished future must not be polled again, and the loop below would.
        std::future::pending::<()>().await;
    };
    let working = async {
        if let Some(worker) = worker {
            worker.run(agent, stop.clone(), screen).await;
        }
        Ok(())
    };
    let serving = async { tokio::try_join!(service.run(stop.clone()), working) };
    // Neither of these ends; they are polled for as long as the service runs.
    let beside = async {
        tokio::join!(
            db::remove_old_daily(settings, &*store, screen),
            mcp_servers::print_news_forever(&servers, screen)
        );
    };
    {
        let (mut serving, mut beside, mut drained) = (pin!(serving), pin!(beside), pin!(drained));
        loop {
            tokio::select! {
                () = &mut beside => {}
                () = &mut drained => {}
                served = &mut serving => {
                    served?;
                    break;
                }
                signal = stops.next() => {
                    if draining.is_cancelled() {
                        screen.note("stopped at once; what was running goes on with the next start");
                        // The leases of the turns that are cut off expire, then the next start
                        // recovers them.
                        return Ok(Exit::Interrupted);
                    }
                    draining.cancel();
                    if signal == StopSignal::Interrupt || drain_delay.is_zero() {
                        screen.note("stopping: what runs may end; once more stops at once");
                        stop.cancel();
                    } else {
                        screen.note(&format!(
                            "stopping in {}: it is not ready any more, and still answers; once more stops at once",
                            format_duration(drain_delay)
                        ));
                    }
                }
            }
        }
    }
    // Only now: turns that were allowed to end may have called their tools.
    servers.stop().await;
    Ok(Exit::Ok)
}

/// Completes the configuration of the HTTP service.
fn service_config(
    settings: &Settings,
    options: &Serve,
    mut config: ServiceConfig,
) -> Result<ServiceConfig, CliError> {
    config.hosts = [settings.serve.hosts.clone(), options.host.clone()].concat();
    config.name.clone_from(&settings.serve.name);
    config.contact.clone_from(&settings.serve.contact);
    config.background_prompts = settings.serve.background_prompts;
    if settings.agent.message_chars_max.is_none() {
        config.chat_message_chars_max = Some(limits::MESSAGE_CHARS_MAX);
    }
    config.origins = access::origins(&settings.serve)?;
    config.access = settings.serve.access_rules();
    // A shared database may have several replicas, and an MCP session lives in one of them only.
    config.mcp_sessions = matches!(settings.database, Database::Sqlite(_));
    config.limits = settings.serve.user_limits;
    config.connections = settings.serve.connection_limits;
    config.proxies = access::proxies(&settings.serve)?;
    config.metrics = settings.serve.metrics;
    config.metrics_bind = settings.serve.metrics_bind;
    config.page = !options.no_ui;
    config.trace_propagation = settings.serve.trace_propagation;
    config.mcp_ask = settings.serve.mcp_ask;
    Ok(config)
}

/// Binds the endpoint that Restate calls, if dispatch is set.
async fn bind_worker(settings: &Settings, options: &Serve) -> Result<Option<Worker>, CliError> {
    let address = options
        .dispatch
        .as_ref()
        .or(settings.serve.dispatch.as_ref());
    let Some(address) = address else {
        return Ok(None);
    };
    let worker = Worker::bind(address).await?;
    // A worker on another machine would run turns of a file that it cannot read.
    if let Database::Sqlite(_) = settings.database {
        let why = "what is in a file cannot go on in another process";
        return Err(
            CliError::configuration(format!("--dispatch needs PostgreSQL: {why}"))
                .or_try("--database postgres://HOST/DATABASE")
                .or_try("without --dispatch, and without serve.dispatch"),
        );
    }
    Ok(Some(worker))
}

/// The announcement of a service that listens, as `--json` prints it.
#[derive(Serialize)]
struct Announcement {
    url: String,
    /// URL of the page with a one-time token.
    web: Option<String>,
    token: Option<String>,
    auth: Option<String>,
    /// True if a request needs a token, though none was created here.
    #[serde(skip)]
    needs_token: bool,
    /// Address of the metrics, if they have one of their own.
    metrics: Option<String>,
    model: String,
    store: String,
    /// Description of which users have which memory.
    notes: String,
    /// Address of the Restate worker.
    worker: Option<String>,
    state_file: Option<String>,
}

impl Announcement {
    fn print(&self, screen: &Screen) {
        if screen.json() {
            return screen.answer_json(self);
        }
        let line = |name: &str, value: &str| screen.answer_line(&format!("  {name:7} {value}"));
        if let Some(page) = &self.web {
            let once = match self.token {
                Some(_) => "    (open this once; it sets a cookie)",
                None => "",
            };
            line("web", &format!("{page}{once}"));
        }
        line("chat", &format!("POST {}/v1/chat", self.url));
        line("openai", &format!("{}/v1", self.url));
        line("mcp", &format!("{}/mcp", self.url));
        line("docs", &format!("{}/docs    (and /openapi.json)", self.url));
        if let Some(metrics) = &self.metrics {
            line("metrics", metrics);
        }
        if let Some(token) = &self.token {
            line(
                "token",
                &format!("{token}    (yours, until this process ends)"),
            );
        }
        line("model", &self.model);
        line("store", &self.store);
        line("notes", &self.notes);
        line("auth", self.auth.as_deref().unwrap_or_default());
        if let Some(worker) = &self.worker {
            line("worker", &format!("{worker}    (where Restate calls it)"));
        }
        let header = match &self.token {
            Some(token) => format!(" -H 'Authorization: Bearer {token}'"),
            None if self.needs_token => " -H 'Authorization: Bearer TOKEN'".to_owned(),
            None => String::new(),
        };
        line(
            "try",
            &format!(
                "curl{header} -H 'Content-Type: application/json' -d '{{\"message\": \"what is open?\"}}' {}/v1/chat",
                self.url
            ),
        );
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        let message = error.to_string();
        match error {
            ServeError::Open(_) => Self::configuration(message)
                .or_try("adjutant token create --user NAME, then without --auth none")
                .or_try("--bind 127.0.0.1:8080"),
            ServeError::Bind { .. } => Self::configuration(message)
                .or_try("another port: --bind 127.0.0.1:8081; port 0 takes a free one"),
            _ => Self::failed(message),
        }
    }
}
