//! All servers of an agent.

use std::collections::BTreeSet;
use std::sync::Arc;

use adjutant_core::{CancellationToken, Permission, Policy, Tool};
use futures::future::join_all;
use tokio::sync::Notify;

use super::config::{Injected, listed};
use super::connection::{Means, TOOLS_MAX};
use super::definition::judge;
use super::handler::{Handler, Heard};
use super::log::ServerLog;
use super::process::Children;
use super::report::{Health, JoinedTool, LeftOut, ServerReport};
use super::server::Server;
use super::tool::ForeignTool;
use super::{ChangedTool, PinnedTools, Pins, ServerConfig, ServerName, Via, names};

/// Where a server's own words go: its standard error, and what it logs. Never standard output.
pub type Log = Arc<dyn Fn(&ServerName, &str) + Send + Sync>;

/// What servers need from whoever starts them.
#[derive(Clone)]
pub struct Surroundings {
    /// For remote servers; `None`: there are none. It must not follow redirects to other hosts:
    /// headers may be secret.
    pub http: Option<reqwest::Client>,
    /// For their words.
    pub log: Log,
    /// What a person agreed to of their tools. `None`: nothing is kept, and each start takes the
    /// tools as they are.
    pub pins: Option<Arc<dyn Pins>>,
}

/// A server that is required is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server {server} is required and did not start: {reason}")]
pub struct StartError {
    /// Which.
    pub server: ServerName,
    /// Why, with the last words of its standard error.
    pub reason: String,
}

/// Connections to MCP servers, and the tools they offered.
///
/// Keep it as long as the agent: dropped, it kills the children at once and the tools answer that
/// their server has gone. [`Servers::stop`] takes leave first.
pub struct Servers {
    all: Vec<Entry>,
    children: Arc<Children>,
    has_news: Arc<Notify>,
    stop: CancellationToken,
}

/// The tools that join, and whether there are more; or why it is not there.
type Started = Result<(Vec<rmcp::model::Tool>, bool), String>;

#[derive(Clone)]
struct Entry {
    server: Arc<Server>,
    joined: Vec<Arc<ForeignTool>>,
    left_out: Vec<LeftOut>,
    warnings: Vec<String>,
}

impl Servers {
    /// Starts all that are not disabled, at the same time; each has its own bound. One that does
    /// not come has no tools, and its [`ServerReport`] says why. One whose tools were agreed to
    /// before ([`Pins`]) has those, is started behind this call, and a call of a tool waits for it;
    /// see [`Servers::settled`].
    ///
    /// # Errors
    /// [`StartError`] for the first that is required and does not come. The others are stopped
    /// again.
    pub async fn start(
        configs: Vec<ServerConfig>,
        surroundings: Surroundings,
    ) -> Result<Self, StartError> {
        let children = Arc::new(Children::default());
        let stop = CancellationToken::new();
        // From here on, dropping it ends whatever was started.
        let mut servers = Self {
            all: Vec::new(),
            children,
            has_news: Arc::default(),
            stop,
        };
        let starting = configs
            .into_iter()
            .map(|config| servers.start_one(config, &surroundings));
        let started = join_all(starting.collect::<Vec<_>>()).await;
        let mut taken = BTreeSet::new();
        for (server, greeting) in started {
            let mut entry = Entry {
                server,
                joined: Vec::new(),
                left_out: Vec::new(),
                warnings: Vec::new(),
            };
            match greeting {
                Some(Ok((tools, more))) => entry.join(tools, more, &mut taken),
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
        surroundings: &Surroundings,
    ) -> impl Future<Output = (Arc<Server>, Option<Started>)> + use<> {
        let handler = Handler {
            log: ServerLog::new(config.name.clone(), surroundings.log.clone()),
            tools_changed: Arc::new(Notify::new()),
            progress: Heard::default(),
        };
        let means = Means {
            http: surroundings.http.clone(),
            handler,
            children: self.children.clone(),
        };
        let disabled = config.disabled;
        let pins = surroundings.pins.clone();
        let server = Server::new(
            config,
            means,
            pins,
            self.has_news.clone(),
            self.stop.clone(),
        );
        async move {
            let greeting = if disabled {
                None
            } else {
                Some(server.start().await)
            };
            (server, greeting)
        }
    }

    /// The tools that joined, for [`adjutant_core::ToolRegistry::register`].
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let all = self.all.iter().flat_map(|entry| &entry.joined);
        all.map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    /// The same policy with what the servers' `confirm` lists ask for.
    #[must_use]
    pub fn confirmed(&self, policy: Policy) -> Policy {
        let confirmed = self
            .all
            .iter()
            .flat_map(|entry| &entry.joined)
            .filter(|tool| listed(&tool.server.config.rules.confirm, &tool.joined.original));
        confirmed.fold(policy, |policy, tool| {
            policy.rule(
                tool.joined.definition.name.as_str(),
                None,
                Permission::Confirm,
            )
        })
    }

    /// How each server is, and which of its tools joined.
    #[must_use]
    pub fn report(&self) -> Vec<ServerReport> {
        self.all.iter().map(Entry::report).collect()
    }

    /// Returns what tells, whenever it is asked, how each server is: for whoever has no access to
    /// the servers themselves.
    pub fn reporting(&self) -> impl Fn() -> Vec<ServerReport> + Send + Sync + use<> {
        let all = self.all.clone();
        move || all.iter().map(Entry::report).collect()
    }

    /// Tells, whenever it is asked, which of the required servers do not answer: for whoever says
    /// that a service is ready.
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

    /// Waits until every server that is started behind [`Servers::start`] has come or failed, each
    /// within its `start_timeout`.
    pub async fn settled(&self) {
        let all = self
            .all
            .iter()
            .map(|entry| entry.server.wait_for(|health| *health != Health::Starting));
        join_all(all.collect::<Vec<_>>()).await;
    }

    /// Takes what a person should know of the servers and was not told yet: what was agreed to,
    /// what changed, which did not come.
    #[must_use]
    pub fn news(&self) -> Vec<(ServerName, String)> {
        let of = |entry: &Entry| {
            let name = entry.server.config.name.clone();
            entry
                .server
                .news()
                .into_iter()
                .map(move |news| (name.clone(), news))
                .collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of).collect()
    }

    /// Waits until there is something that [`Servers::news`] returns, and takes it. For one caller
    /// at a time.
    pub async fn next_news(&self) -> Vec<(ServerName, String)> {
        loop {
            let news = self.news();
            if !news.is_empty() {
                return news;
            }
            self.has_news.notified().await;
        }
    }

    /// Returns the tools of a server that are others than those that joined, and all that it has
    /// now, to be kept by [`Pins::save`] once a person has agreed to them. `None`: there is no such
    /// server, or it has not listed its tools.
    #[must_use]
    pub fn changes(&self, name: &ServerName) -> Option<(Vec<ChangedTool>, PinnedTools)> {
        self.all
            .iter()
            .find(|entry| entry.server.config.name == *name)?
            .server
            .changes()
    }

    /// Waits until a server is in a state like that. Returns at once if there is no such server.
    pub async fn wait_for(&self, name: &ServerName, wanted: impl Fn(&Health) -> bool) {
        if let Some(entry) = self
            .all
            .iter()
            .find(|entry| entry.server.config.name == *name)
        {
            entry.server.wait_for(wanted).await;
        }
    }

    /// Takes leave of all servers and waits, at most some seconds, until the children are gone.
    pub async fn stop(self) {
        self.stop.cancel();
        let gone = self
            .all
            .iter()
            .filter(|entry| entry.server.health() == Health::Connected)
            .map(|entry| entry.server.wait_for(|health| *health == Health::Stopped));
        join_all(gone.collect::<Vec<_>>()).await;
        // The rest is done by dropping it.
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
    fn join(
        &mut self,
        mut tools: Vec<rmcp::model::Tool>,
        more: bool,
        taken: &mut BTreeSet<String>,
    ) {
        let config = &self.server.config;
        if more {
            self.warnings.push(format!(
                "it has more than {TOOLS_MAX} tools; only the first are looked at"
            ));
        }
        // Whatever order the server has today: numbers that tell names apart must not move.
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let offered: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
        for tool in tools {
            if self
                .joined
                .iter()
                .any(|joined| joined.joined.original == tool.name)
            {
                let reason = "the server lists two tools of this name".to_owned();
                self.left_out.push(LeftOut {
                    original: tool.name.to_string(),
                    reason,
                    by_rule: false,
                });
                continue;
            }
            let name = names::fresh(&config.name, &tool.name, taken);
            match judge(&config.name, &name, &tool, &config.rules) {
                Ok(joined) => {
                    self.joined.push(Arc::new(ForeignTool {
                        server: Arc::clone(&self.server),
                        joined,
                    }));
                }
                Err(left_out) => {
                    taken.remove(&name);
                    self.left_out.push(left_out);
                }
            }
        }
        self.warnings.extend(self.unmatched(&offered));
        if let Via::Remote(remote) = &config.via {
            self.warnings
                .extend(exposed(remote.bearer.is_some(), &remote.url).map(str::to_owned));
        }
    }

    /// Names in rules that no tool has: a misspelt `deny` must not be believed in silence.
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
                .filter(|name| *name != "*" && !offered.contains(name))
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
        });
        ServerReport {
            name: self.server.config.name.clone(),
            place: self.server.place(),
            health: self.server.health(),
            software: self.server.software(),
            tools: tools.collect(),
            left_out: self.left_out.clone(),
            changed: self.server.changed(),
            warnings: self.warnings.clone(),
        }
    }
}

/// What is to be known about where a token is sent, if others can read it there.
fn exposed(has_token: bool, url: &str) -> Option<&'static str> {
    (has_token && !safe(url)).then_some("its token travels unencrypted: the url is not https")
}

/// Whether what is sent there can be read by nobody else.
fn safe(url: &str) -> bool {
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
    use super::exposed;

    #[test]
    fn a_token_in_the_open_is_warned_of() {
        for url in [
            "http://10.0.0.1/mcp",
            "http://mcp.example.com",
            "http://localhost.example.com/mcp",
        ] {
            assert!(
                exposed(true, url).is_some_and(|words| words.contains("unencrypted")),
                "{url}"
            );
            assert_eq!(exposed(false, url), None, "{url}");
        }
        for url in [
            "https://mcp.example.com",
            "http://localhost:1/mcp",
            "http://127.0.0.9",
            "http://[::1]:80/",
        ] {
            assert_eq!(exposed(true, url), None, "{url}");
        }
    }
}
