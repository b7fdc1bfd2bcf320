//! All MCP servers of an agent.

use std::collections::BTreeSet;
use std::sync::Arc;

use adjutant_core::turn::{declaration_tokens, estimate_tokens};
use adjutant_core::{Annotations, CancellationToken, Permission, Policy, Tool};
use futures::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore};
use tracing::info;

use super::config::{Injected, is_listed, matches_name};
use super::connection::{ConnectionSetup, ListedTools};
use super::definition::accept_tool;
use super::handler::{Handler, ProgressListeners};
use super::log::{Log, ServerLog};
use super::offered::Offered;
use super::process::Children;
use super::report::{Health, JoinedTool, LeftOut, ServerReport};
use super::server::Server;
use super::tool::ForeignTool;
use super::{ChangedTool, PinnedTools, Pins, ServerConfig, ServerName, Transport, names, offers};

/// Servers that are started at the same time, also on a machine with a single processor.
const STARTS_MIN: usize = 2;

/// Shared resources for connecting to servers.
#[derive(Clone)]
pub struct ClientOptions {
    /// Client for remote servers; `None` if there are none. It must not follow redirects to other
    /// hosts, because headers may be secret.
    pub http: Option<reqwest::Client>,
    /// Receives the servers' output.
    pub log: Log,
    /// The accepted tools. `None`: each start accepts the tools as they are.
    pub pins: Option<Arc<dyn Pins>>,
}

/// The error for a required server that did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server {server} is required and did not start: {reason}")]
pub struct StartError {
    /// The required server that did not start.
    pub server: ServerName,
    /// The reason, with its last lines of standard error.
    pub reason: String,
}

/// Tools of a server that only read by their names, while the server does not say whether they do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnannotatedReads {
    /// The name that the configuration gives it.
    pub server: ServerName,
    /// The server's own names of the tools.
    pub tools: Vec<String>,
}

/// Connections to MCP servers, and the tools they offer. See the [module](super) for an example.
///
/// Keep this as long as the agent. When it is dropped, child processes are killed at once, and
/// calls of the tools fail. [`Servers::stop`] ends them gracefully.
pub struct Servers {
    all: Vec<Entry>,
    children: Arc<Children>,
    has_notices: Arc<Notify>,
    starts: Arc<Semaphore>,
    stop: CancellationToken,
}

/// The tools to register, or the reason for a failure.
type Started = Result<ListedTools, String>;

#[derive(Clone)]
struct Entry {
    server: Arc<Server>,
    joined: Vec<Arc<ForeignTool>>,
    left_out: Vec<LeftOut>,
    warnings: Vec<String>,
}

impl Servers {
    /// Starts all servers that are not disabled, as many at the same time as there are processors. A
    /// server that fails has no tools, and its [`ServerReport`] says why. One that gives no sign of
    /// life for its `start_timeout` goes on starting in the background, and a notice says what came
    /// of it. A server with pinned
    /// tools ([`Pins`]) is started in the background: its tools are registered at once, and a call
    /// waits for it. See [`Servers::settled`].
    ///
    /// # Errors
    /// [`StartError`] for the first required server that fails. The others are stopped again.
    pub async fn start(
        configs: Vec<ServerConfig>,
        options: ClientOptions,
    ) -> Result<Self, StartError> {
        let children = Arc::new(Children::default());
        let stop = CancellationToken::new();
        let starts_max = std::thread::available_parallelism()
            .map_or(STARTS_MIN, |processors| processors.get().max(STARTS_MIN));
        // From here on, dropping it ends every server that was started.
        let mut servers = Self {
            all: Vec::new(),
            children,
            has_notices: Arc::default(),
            starts: Arc::new(Semaphore::new(starts_max)),
            stop,
        };
        let starting = configs
            .into_iter()
            .map(|config| servers.start_one(config, &options));
        let started = join_all(starting.collect::<Vec<_>>()).await;
        let mut taken = BTreeSet::new();
        for (server, info) in started {
            let mut entry = Entry {
                server,
                joined: Vec::new(),
                left_out: Vec::new(),
                warnings: Vec::new(),
            };
            match info {
                Some(Ok(listed)) => entry.add_tools(listed, &mut taken),
                Some(Err(reason)) if entry.server.config.required => {
                    return Err(StartError {
                        server: entry.server.config.name.clone(),
                        reason,
                    });
                }
                Some(Err(_)) | None => {}
            }
            servers.all.push(entry);
        }
        Ok(servers)
    }

    fn start_one(
        &self,
        config: ServerConfig,
        options: &ClientOptions,
    ) -> impl Future<Output = (Arc<Server>, Option<Started>)> + use<> {
        let handler = Handler {
            log: ServerLog::new(config.name.clone(), options.log.clone()),
            tools_changed: Arc::new(Notify::new()),
            progress: ProgressListeners::default(),
        };
        let setup = ConnectionSetup {
            http: options.http.clone(),
            handler,
            children: self.children.clone(),
            starts: self.starts.clone(),
            needed: Arc::default(),
        };
        let disabled = config.disabled;
        let pins = options.pins.clone();
        let server = Server::new(
            config,
            setup,
            pins,
            self.has_notices.clone(),
            self.stop.clone(),
        );
        async move {
            let info = match disabled {
                true => None,
                false => Some(server.start().await),
            };
            (server, info)
        }
    }

    /// Returns the tools to register with [`adjutant_core::ToolRegistry::register`].
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let all = self.all.iter().flat_map(|entry| &entry.joined);
        all.map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    /// Adds rules to the policy that require confirmation for the tools in the servers' `confirm`
    /// lists.
    #[must_use]
    pub fn require_confirmations(&self, policy: Policy) -> Policy {
        let confirmed = self
            .all
            .iter()
            .flat_map(|entry| &entry.joined)
            .filter(|tool| is_listed(&tool.server.config.rules.confirm, &tool.joined.original));
        confirmed.fold(policy, |policy, tool| {
            policy.rule(
                // Our name, by which the agent's policy knows the tool.
                tool.joined.definition.name.as_str(),
                None,
                Permission::Confirm,
            )
        })
    }

    /// Returns the state of each server, and its tools.
    #[must_use]
    pub fn report(&self) -> Vec<ServerReport> {
        self.all.iter().map(Entry::report).collect()
    }

    /// Returns a function that reports the current state of each server, for code without access to
    /// the servers.
    pub fn reporter(&self) -> impl Fn() -> Vec<ServerReport> + Send + Sync + use<> {
        let all = self.all.clone();
        move || all.iter().map(Entry::report).collect()
    }

    /// Returns a function that lists the required servers that are not connected now, for a
    /// readiness check.
    pub fn missing(&self) -> impl Fn() -> Vec<ServerName> + Send + Sync + use<> {
        let required = self
            .all
            .iter()
            .map(|entry| &entry.server)
            .filter(|server| server.config.required);
        let required: Vec<Arc<Server>> = required.cloned().collect();
        move || {
            let missing = required
                .iter()
                .filter(|server| server.health() != Health::Connected);
            missing.map(|server| server.config.name.clone()).collect()
        }
    }

    /// Waits until every server that is started in the background has connected or failed, or has
    /// given no sign of life for its `start_timeout`.
    pub async fn settled(&self) {
        let all = self
            .all
            .iter()
            .map(|entry| entry.server.wait_for(|health| *health != Health::Starting));
        join_all(all.collect::<Vec<_>>()).await;
    }

    /// Takes the notices for a person: tools that were accepted or have changed, servers that
    /// failed.
    #[must_use]
    pub fn notices(&self) -> Vec<(ServerName, String)> {
        let of = |entry: &Entry| {
            let name = entry.server.config.name.clone();
            entry
                .server
                .offered(Offered::take_notices)
                .into_iter()
                .map(move |notices| (name.clone(), notices))
                .collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of).collect()
    }

    /// Waits for notices and takes them. For one caller at a time.
    pub async fn next_notices(&self) -> Vec<(ServerName, String)> {
        loop {
            let notices = self.notices();
            if !notices.is_empty() {
                return notices;
            }
            self.has_notices.notified().await;
        }
    }

    /// Returns the tools of a server that differ from those registered, and all its present tools,
    /// for [`Pins::save`] once a person has accepted them. `None`: there is no such server, or it
    /// has not listed its tools.
    #[must_use]
    pub fn changes(&self, name: &ServerName) -> Option<(Vec<ChangedTool>, PinnedTools)> {
        let server = &self.find(name)?.server;
        server.offered(|offered| offered.changes(&server.config))
    }

    /// Returns the servers that leave it open which of their tools only read, and the tools whose
    /// names say so, unless the person has answered already whether to believe them.
    #[must_use]
    pub fn unannotated_reads(&self) -> Vec<UnannotatedReads> {
        let of = |entry: &Entry| {
            let server = &entry.server;
            let reads = server.offered(|offered| offered.unannotated_reads(&server.config.rules));
            let joined = entry.joined.iter().map(|tool| &tool.joined.original);
            let tools: Vec<String> = joined
                .filter(|name| reads.contains(*name))
                .cloned()
                .collect();
            let is_open =
                server.offered(|offered| offered.trusted_reads().is_none()) && !tools.is_empty();
            is_open.then(|| UnannotatedReads {
                server: server.config.name.clone(),
                tools,
            })
        };
        self.all.iter().filter_map(of).collect()
    }

    /// Stores the person's answer: whether these tools only read, and run without asking. To be
    /// called before the tools are registered.
    ///
    /// # Errors
    /// The answer cannot be stored. It holds for this start all the same.
    pub fn answer_reads(&mut self, reads: &UnannotatedReads, trusted: bool) -> Result<(), String> {
        let entry = self
            .all
            .iter_mut()
            .find(|entry| entry.server.config.name == reads.server);
        let Some(entry) = entry else { return Ok(()) };
        let names: BTreeSet<String> = match trusted {
            true => reads.tools.iter().cloned().collect(),
            false => BTreeSet::new(),
        };
        for tool in &mut entry.joined {
            if names.contains(&tool.joined.original) {
                let mut joined = tool.joined.clone();
                joined.definition = joined.definition.annotated(Annotations {
                    read_only: true,
                    ..Annotations::default()
                });
                let server = Arc::clone(&tool.server);
                *tool = Arc::new(ForeignTool { server, joined });
            }
        }
        entry.server.trust_reads(names)
    }

    /// Returns what servers tell the model about their tools as a whole, as it was accepted. Servers
    /// without a registered tool are left out.
    #[must_use]
    pub fn instructions(&self) -> Vec<(ServerName, String)> {
        let all = self.all.iter().filter(|entry| !entry.joined.is_empty());
        let told = all.filter_map(|entry| {
            Some((
                entry.server.config.name.clone(),
                entry.server.offered(|offered| offered.instructions())?,
            ))
        });
        told.collect()
    }

    /// Lists the prompts of a server, as the protocol has them.
    ///
    /// # Errors
    /// A description: there is no such server, or it does not answer.
    pub async fn prompts(&self, server: &ServerName) -> Result<Vec<Value>, String> {
        let server = self.server(server)?;
        server.ask(async |peer| offers::prompts(&peer).await).await
    }

    /// Fetches a prompt of a server: its messages, as the protocol has them.
    ///
    /// # Errors
    /// As [`Servers::prompts`].
    pub async fn prompt(
        &self,
        server: &ServerName,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, String> {
        let server = self.server(server)?;
        server
            .ask(async |peer| offers::prompt(&peer, name, arguments).await)
            .await
    }

    /// Lists the resources of a server and its templates of resources, as the protocol has them.
    ///
    /// # Errors
    /// As [`Servers::prompts`].
    pub async fn resources(&self, server: &ServerName) -> Result<Vec<Value>, String> {
        let server = self.server(server)?;
        server
            .ask(async |peer| offers::resources(&peer).await)
            .await
    }

    /// Reads a resource of a server: its contents, as the protocol has them.
    ///
    /// # Errors
    /// As [`Servers::prompts`].
    pub async fn resource(&self, server: &ServerName, uri: &str) -> Result<Value, String> {
        let server = self.server(server)?;
        server
            .ask(async |peer| offers::resource(&peer, uri).await)
            .await
    }

    fn server(&self, name: &ServerName) -> Result<&Server, String> {
        let entry = self.find(name).ok_or("there is no such server")?;
        Ok(&entry.server)
    }

    /// Waits until a server's state matches. Returns at once if there is no such server.
    pub async fn wait_for(&self, name: &ServerName, wanted: impl Fn(&Health) -> bool) {
        if let Some(entry) = self.find(name) {
            entry.server.wait_for(wanted).await;
        }
    }

    fn find(&self, name: &ServerName) -> Option<&Entry> {
        self.all
            .iter()
            .find(|entry| entry.server.config.name == *name)
    }

    /// Closes all connections and waits, at most some seconds, until child processes have ended.
    pub async fn stop(self) {
        self.stop.cancel();
        let gone = self
            .all
            .iter()
            .filter(|entry| entry.server.health() == Health::Connected)
            .map(|entry| entry.server.wait_for(|health| *health == Health::Stopped));
        join_all(gone.collect::<Vec<_>>()).await;
        // Dropping it ends the rest.
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.stop.cancel();
        self.children.kill();
    }
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.report()).finish()
    }
}

impl Entry {
    fn add_tools(&mut self, listed: ListedTools, taken: &mut BTreeSet<String>) {
        let config = &self.server.config;
        let mut tools = listed.tools;
        let mut rules = config.rules.clone();
        rules.read_only.extend(
            self.server
                .offered(|offered| offered.trusted_reads())
                .unwrap_or_default(),
        );
        self.warnings.extend(listed.cut);
        // Sorted, because the numbers that make names unique must not depend on the server's order.
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let offered: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
        for tool in tools {
            if self
                .joined
                .iter()
                .any(|joined| joined.joined.original == tool.name)
            {
                if self
                    .left_out
                    .last()
                    .is_some_and(|last| last.original == tool.name)
                {
                    continue;
                }
                let reason = "the server lists several tools of this name; only the first is used"
                    .to_owned();
                self.left_out.push(LeftOut {
                    original: tool.name.to_string(),
                    reason,
                    by_rule: false,
                });
                continue;
            }
            let name = names::unique(&config.name, &tool.name, taken);
            match accept_tool(&config.name, &name, &tool, &rules) {
                Ok(joined) => {
                    self.joined.push(Arc::new(ForeignTool {
                        server: Arc::clone(&self.server),
                        joined,
                    }));
                }
                Err(left_out) => {
                    if !left_out.by_rule {
                        info!(server = %config.name, tool = left_out.original, reason = left_out.reason, "the tool's definition was rejected");
                    }
                    // The name is free for another tool that is accepted.
                    taken.remove(&name);
                    self.left_out.push(left_out);
                }
            }
        }
        self.warnings.extend(self.unmatched(&offered));
        if let Transport::Remote(remote) = &config.via {
            self.warnings
                .extend(warning_for_token(remote.bearer.is_some(), &remote.url).map(str::to_owned));
        }
    }

    /// Returns warnings for names in rules that no tool has: a misspelt `deny` must not go
    /// unnoticed.
    fn unmatched(&self, offered: &[String]) -> Vec<String> {
        let rules = &self.server.config.rules;
        let lists: [(&str, &[String]); 6] = [
            ("allow", rules.allow.as_deref().unwrap_or_default()),
            ("deny", &rules.deny),
            ("confirm", &rules.confirm),
            ("read_only", &rules.read_only),
            ("destructive", &rules.destructive),
            ("idempotent", &rules.idempotent),
        ];
        let mut warnings = Vec::new();
        for (key, names) in lists {
            for name in names
                .iter()
                .filter(|name| *name != "*" && !offered.iter().any(|tool| matches_name(name, tool)))
            {
                let near = adjutant_core::nearest(name, offered.iter().map(String::as_str));
                let hint = near
                    .map(|near| format!("; did you mean {near:?}?"))
                    .unwrap_or_default();
                warnings.push(format!(
                    "{key} names {name:?}, and it has no such tool{hint}"
                ));
            }
        }
        for (what, argument) in &rules.inject {
            let used = self
                .joined
                .iter()
                .any(|tool| tool.joined.inject.iter().any(|(has, _)| has == what));
            if !used {
                warnings.push(format!(
                    "inject.{}: no tool of it has an argument {argument:?}",
                    Injected::name(*what)
                ));
            }
        }
        warnings
    }

    fn report(&self) -> ServerReport {
        let tools = self.joined.iter().map(|tool| JoinedTool {
            name: tool.joined.definition.name.to_string(),
            original: tool.joined.original.clone(),
            title: tool.joined.title.clone(),
            annotations: tool.joined.definition.annotations,
            tokens: declaration_tokens(
                &tool.joined.definition.description,
                &tool.joined.definition.parameters.to_string(),
                &estimate_tokens,
            ),
        });
        ServerReport {
            name: self.server.config.name.clone(),
            place: self.server.config.via.shown(),
            health: self.server.health(),
            software: self.server.offered(|offered| offered.software()),
            tools: tools.collect(),
            left_out: self.left_out.clone(),
            changed: self
                .server
                .offered(|offered| offered.changed().iter().cloned().collect()),
            warnings: self.warnings.clone(),
        }
    }
}

/// Returns a warning if a token is sent unencrypted.
fn warning_for_token(has_token: bool, url: &str) -> Option<&'static str> {
    (has_token && !is_private(url)).then_some("its token travels unencrypted: the url is not https")
}

/// Returns true if requests to the URL cannot be read by others: it uses HTTPS, or a loopback
/// address.
fn is_private(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else {
        return false;
    };
    let here = url.host_str().is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    });
    url.scheme() == "https" || here
}

#[cfg(test)]
mod tests {
    use super::warning_for_token;

    #[test]
    fn a_token_in_the_open_is_warned_of() {
        for url in [
            "http://10.0.0.1/mcp",
            "http://mcp.example.com",
            "http://localhost.example.com/mcp",
        ] {
            assert!(
                warning_for_token(true, url).is_some_and(|words| words.contains("unencrypted")),
                "{url}"
            );
            assert_eq!(warning_for_token(false, url), None, "{url}");
        }
        for url in [
            "https://mcp.example.com",
            "http://localhost:1/mcp",
            "http://127.0.0.9",
            "http://[::1]:80/",
        ] {
            assert_eq!(warning_for_token(true, url), None, "{url}");
        }
    }
}
