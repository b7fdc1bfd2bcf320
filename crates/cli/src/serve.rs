//! `adjutant serve`: the assistant over HTTP, for one person or a team.

mod access; // who may ask
mod administration; // how it is, for whoever runs it
mod browser; // the page, opened
mod dispatch; // who has conversations go on, if not this process
mod gauges; // the database and the MCP servers, in figures
mod remembering; // who has which memory
mod session; // the token of whoever starts it
mod state; // where other processes of this machine find it

use std::pin::pin;
use std::sync::Arc;

use adjutant_core::CancellationToken;
use adjutant_service::{ServeError, Service, ServiceConfig};
use clap::ValueEnum as _;
use serde_json::json;

use crate::args::Serve;
use crate::config::{Authentication, Database, Settings, duration};
use crate::display::json_line;
use crate::error::{CliError, Exit};
use crate::lines::{Stop, Stops};
use crate::memory;
use crate::past::PastIndex;
use crate::screen::Screen;
use crate::store::Stores;
use crate::{db, logging, model_choice, servers, store};
use access::Access;
use dispatch::Worker;
use remembering::Remembering;
use state::StateFile;

/// Serves until it is told to stop; then it takes nothing new and lets what runs end. Told by
/// SIGTERM, it first answers for a while as somebody who is not ready, so that a load balancer
/// notices; a person at the terminal does not wait for that. Told twice, it stops at once.
///
/// # Errors
/// Configuration, model, store; an address it cannot or must not listen on.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    options: Serve,
    json: bool,
) -> Result<Exit, CliError> {
    let mut stops = Stops::new()?;
    let format = options.log_format.unwrap_or(settings.serve.log_format);
    screen.log_by(logging::begin(
        format,
        settings.serve.log.as_deref(),
        screen.verbosity(),
    )?);
    let bind = options.bind.unwrap_or(settings.serve.bind);
    let how = options.auth.unwrap_or(settings.serve.auth);
    let vaults = memory::vaults(settings)?;
    let store = store::open(settings).await?;
    let Access { auth, secret } =
        Access::of(how, bind, &settings.serve, store.clone(), screen).await?;
    let model = model_choice::open(settings, screen).await?;
    let servers = servers::start_for(model.capabilities(), settings, screen).await?;
    if let Some(servers) = &servers {
        servers.settled().await;
        servers::tell_news(servers, screen);
    }
    let stores = Stores::one(store.clone());
    let remembering = Remembering::open(settings, vaults, &stores, screen).await;
    let tasks = memory::task_store(settings, remembering.of_vaults(), &stores)?;
    let agent = remembering.agent(settings, &model, &stores, servers.as_ref())?;
    let index = PastIndex::keep(store.clone());
    index.listen(&agent);
    let model = agent.model().id().to_string();
    let mut config = ServiceConfig::new(bind, auth);
    config.hosts = [settings.serve.hosts.clone(), options.host].concat();
    config.background_prompts = settings.serve.background_prompts;
    config.origins = access::origins(&settings.serve)?;
    config.access = settings.serve.access.rules.clone();
    // A database that is shared may have any number of replicas, and a session is known to one of
    // them.
    config.mcp_sessions = matches!(settings.database, Database::Sqlite(_));
    config.limits = settings.serve.limits;
    config.connections = settings.serve.connections;
    config.proxies = access::proxies(&settings.serve)?;
    config.metrics = settings.serve.metrics;
    config.metrics_bind = settings.serve.metrics_bind;
    config.page = !options.no_ui;
    config.model_titles = settings.serve.titles.by_model(agent.model().id());
    config.trace_propagation = settings.serve.trace_propagation;
    config.mcp_ask = settings.serve.mcp_ask;
    let worker = match options
        .dispatch
        .as_ref()
        .or(settings.serve.dispatch.as_ref())
    {
        Some(address) => {
            let worker = Worker::bind(address).await?;
            if let Database::Sqlite(_) = settings.database {
                let why = "what is in a file cannot go on in another process";
                return Err(
                    CliError::configuration(format!("--dispatch needs PostgreSQL: {why}"))
                        .or_try("--database postgres://HOST/DATABASE")
                        .or_try("without --dispatch, and without serve.dispatch"),
                );
            }
            Some(worker)
        }
        None => None,
    };
    let accepting = worker
        .as_ref()
        .map_or_else(|| agent.clone(), |worker| worker.dispatching(&agent));
    let administration = administration::of(settings, &store, servers.as_ref());
    let service = Service::bind(accepting, config).await?.with_tasks(tasks);
    let service = service
        .with_past_conversations(store.clone())
        .with_administration(administration);
    let mut service = service.with_memories(remembering.memories());
    if let Some(servers) = &servers {
        let missing = servers.missing();
        service = service.with_readiness(Arc::new(move || {
            (!missing().is_empty()).then_some("an MCP server that is required does not answer")
        }));
    }
    service = service.with_gauges(gauges::of(store.clone(), servers.as_ref()));
    let url = format!("http://{}", service.address());
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
    let announced = Announced {
        page,
        auth: how,
        metrics: service
            .metrics_address()
            .map(|address| format!("http://{address}/metrics")),
        url,
        secret,
        model,
        store: settings.database.to_string(),
        notes: remembering.in_words(how),
        worker: worker.as_ref().map(Worker::url),
        state_file,
    };
    if json {
        screen.answer_line(&announced.json())
    } else {
        announced.tell(screen)
    }
    if options.open
        && let Some(page) = &announced.page
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
        std::future::pending::<()>().await;
    };
    let working = async {
        if let Some(worker) = worker {
            worker.run(agent, stop.clone(), screen).await;
        }
        Ok(())
    };
    let serving = async { tokio::try_join!(service.run(stop.clone()), working) };
    let beside = async {
        tokio::join!(
            db::remove_old_daily(settings, &*store, screen),
            servers::keep_telling(servers.as_ref(), screen)
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
                told = stops.next() => {
                    if draining.is_cancelled() {
                        screen.note("stopped at once; what was running goes on with the next start");
                        return Ok(Exit::Interrupted);
                    }
                    draining.cancel();
                    if told == Stop::Interrupt || drain_delay.is_zero() {
                        screen.note("stopping: what runs may end; once more stops at once");
                        stop.cancel();
                    } else {
                        screen.note(&format!(
                            "stopping in {}: it is not ready any more, and still answers; once more stops at once",
                            duration(drain_delay)
                        ));
                    }
                }
            }
        }
    }
    if let Some(servers) = servers {
        servers.stop().await;
    }
    Ok(Exit::Ok)
}

/// What is said once it listens.
struct Announced {
    url: String,
    /// The page, with the token that it needs once.
    page: Option<String>,
    auth: Authentication,
    /// Where the figures are, if they have an address of their own.
    metrics: Option<String>,
    secret: Option<String>,
    model: String,
    store: String,
    /// The owner of the vault's notes and what others have, in words.
    notes: String,
    /// Where Restate finds it.
    worker: Option<String>,
    state_file: Option<String>,
}

impl Announced {
    fn json(&self) -> String {
        json_line(&json!({
            "url": self.url,
            "web": self.page,
            "token": self.secret,
            "auth": self.auth.to_possible_value().map(|value| value.get_name().to_owned()),
            "metrics": self.metrics,
            "model": self.model,
            "store": self.store,
            "notes": self.notes,
            "worker": self.worker,
            "state_file": self.state_file,
        }))
    }

    fn tell(&self, screen: &Screen) {
        let line = |name: &str, value: &str| screen.answer_line(&format!("  {name:7} {value}"));
        if let Some(page) = &self.page {
            let once = if self.secret.is_some() {
                "    (open this once; it sets a cookie)"
            } else {
                ""
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
        if let Some(secret) = &self.secret {
            line(
                "token",
                &format!("{secret}    (yours, until this process ends)"),
            );
        }
        line("model", &self.model);
        line("store", &self.store);
        line("notes", &self.notes);
        line(
            "auth",
            &self
                .auth
                .to_possible_value()
                .map(|value| value.get_name().to_owned())
                .unwrap_or_default(),
        );
        if let Some(worker) = &self.worker {
            line("worker", &format!("{worker}    (where Restate calls it)"));
        }
        let header = match (&self.secret, self.auth) {
            (Some(secret), _) => Some(format!(" -H 'Authorization: Bearer {secret}'")),
            (None, Authentication::Token | Authentication::Jwt | Authentication::Oidc) => {
                Some(" -H 'Authorization: Bearer TOKEN'".to_owned())
            }
            (None, Authentication::Proxy | Authentication::None) => None,
        };
        line(
            "try",
            &format!(
                "curl{} -H 'Content-Type: application/json' -d '{{\"message\": \"what is open?\"}}' {}/v1/chat",
                header.unwrap_or_default(),
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
