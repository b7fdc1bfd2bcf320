//! `adjutant serve`: the assistant over HTTP, for one person or a team.

mod dispatch; // who has conversations go on, if not this process
mod session; // the token of whoever starts it
mod state; // where other processes of this machine find it

use std::net::SocketAddr;
use std::sync::Arc;

use adjutant_core::port::TokenStore;
use adjutant_core::{CancellationToken, UserId};
use adjutant_service::{Auth, ServeError, Service, ServiceConfig, ServiceEvent, new_token};
use serde_json::json;

use crate::args::Serve;
use crate::config::Settings;
use crate::display::json_line;
use crate::error::{CliError, Exit};
use crate::lines::Stops;
use crate::screen::Screen;
use crate::{db, model_choice, store, wiring};
use dispatch::Worker;
use session::Session;
use state::StateFile;

/// Serves until it is told to stop; then it takes nothing new and lets what runs end. Told twice, it stops at once.
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
    let bind = options.bind.unwrap_or(settings.serve.bind);
    let authenticates = options.auth.map_or(settings.serve.authenticates, |auth| auth.authenticates());
    let store = store::open(settings).await?;
    let (auth, secret) = access(bind, authenticates, store.clone()).await?;
    let model = model_choice::open(settings, screen).await?;
    let agent = wiring::agent(settings, model, store.clone())?;
    let model = agent.model().id().to_string();
    let mut config = ServiceConfig::new(bind, auth);
    config.hosts.clone_from(&settings.serve.hosts);
    config.tell_requests = screen.verbose();
    let worker = match &options.dispatch {
        Some(address) => Some(Worker::bind(address).await?),
        None => None,
    };
    let accepting = worker.as_ref().map_or_else(|| agent.clone(), |worker| worker.dispatching(&agent));
    let service = Service::bind(accepting, config).await?;
    let url = format!("http://{}", service.address());
    let found_by = StateFile::write(&settings.dirs.state, &url, secret.as_deref());
    let state_file = match &found_by {
        Ok(file) => Some(file.path().to_string_lossy().into_owned()),
        Err(error) => {
            screen.note(&format!("other programs of this machine will not find it: {error}"));
            None
        }
    };
    let announced = Announced {
        url,
        secret,
        model,
        store: settings.database.to_string(),
        worker: worker.as_ref().map(Worker::url),
        state_file,
    };
    if json {
        screen.answer_line(&announced.json())
    } else {
        announced.tell(screen)
    }

    let stop = CancellationToken::new();
    let working = async {
        if let Some(worker) = worker {
            worker.run(agent, stop.clone(), screen).await;
        }
        Ok(())
    };
    let serving =
        async { tokio::try_join!(service.run(stop.clone(), |event| report(screen, event)), working) };
    let removing = db::remove_old_daily(settings, &*store, screen);
    tokio::pin!(serving, removing);
    loop {
        tokio::select! {
            () = &mut removing => {}
            served = &mut serving => return Ok(served.map(|((), ())| Exit::Ok)?),
            () = stops.next() => {
                if stop.is_cancelled() {
                    screen.note("stopped at once; what was running goes on with the next start");
                    return Ok(Exit::Interrupted);
                }
                screen.note("stopping: what runs may end; once more stops at once");
                stop.cancel();
            }
        }
    }
}

/// Who may ask, and the secret of the person who starts it. On this machine's own address there is one for them; beyond it,
/// only tokens that were made.
async fn access(
    bind: SocketAddr,
    authenticates: bool,
    tokens: Arc<dyn TokenStore>,
) -> Result<(Auth, Option<String>), CliError> {
    if !authenticates {
        // Said now, and not after a model was loaded.
        return if bind.ip().is_loopback() {
            Ok((Auth::None, None))
        } else {
            Err(ServeError::Open(bind).into())
        };
    }
    if bind.ip().is_loopback() {
        let token = new_token().map_err(|error| CliError::failed(error.to_string()))?;
        let session = Session { digest: token.digest, user: UserId::local(), tokens };
        return Ok((Auth::Token(Arc::new(session)), Some(token.secret)));
    }
    let usable = tokens.tokens(None).await?.iter().any(|token| token.revoked_at.is_none());
    if !usable {
        return Err(CliError::configuration(format!("nobody could ask at {bind}: there is no token yet"))
            .or_try("adjutant token create --user NAME")
            .or_try("adjutant serve --bind 127.0.0.1:8080    for this machine alone"));
    }
    Ok((Auth::Token(tokens), None))
}

fn report(screen: &Screen, event: &ServiceEvent) {
    match event {
        ServiceEvent::Failed(error) => screen.error(&CliError::from(error.clone())),
        event => screen.note(&event.to_string()),
    }
}

/// What is said once it listens.
struct Announced {
    url: String,
    secret: Option<String>,
    model: String,
    store: String,
    /// Where Restate finds it.
    worker: Option<String>,
    state_file: Option<String>,
}

impl Announced {
    fn json(&self) -> String {
        json_line(&json!({
            "url": self.url,
            "token": self.secret,
            "model": self.model,
            "store": self.store,
            "worker": self.worker,
            "state_file": self.state_file,
        }))
    }

    fn tell(&self, screen: &Screen) {
        let line = |name: &str, value: &str| screen.answer_line(&format!("  {name:6} {value}"));
        line("chat", &format!("POST {}/v1/chat", self.url));
        if let Some(secret) = &self.secret {
            line("token", &format!("{secret}    (yours, until this process ends)"));
        }
        line("model", &self.model);
        line("store", &self.store);
        if let Some(worker) = &self.worker {
            line("worker", &format!("{worker}    (where Restate calls it)"));
        }
        let header = self.secret.as_ref().map(|secret| format!(" -H 'Authorization: Bearer {secret}'"));
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
