//! What other programs want to be told to start `adjutant mcp`. Each form as its client's own
//! documentation had it in November 2026.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::args::{Mcp, McpClient};
use crate::error::CliError;

/// What this server is called in a client.
const NAME: &str = "adjutant";

/// How the process that is to be started finds what this one would use.
pub(crate) struct Place {
    pub(crate) config: Option<PathBuf>,
    pub(crate) env_file: Option<PathBuf>,
    pub(crate) database: Option<String>,
    /// The model that the agent asks, if it was named.
    pub(crate) model: Option<String>,
}

impl McpClient {
    /// The lines to paste.
    ///
    /// # Errors
    /// The path of this program is not known, or is no text.
    pub(super) fn configuration(self, options: &Mcp, place: &Place) -> Result<String, CliError> {
        let command = text(std::env::current_exe().map_err(|error| {
            CliError::failed("where this program is is not known").because(error.to_string())
        })?)?;
        let args = arguments(options, place)?;
        Ok(match self {
            Self::Claude | Self::Cursor => {
                pretty(&json!({ "mcpServers": { NAME: { "command": command, "args": args } } }))
            }
            Self::Vscode => pretty(
                &json!({ "servers": { NAME: { "type": "stdio", "command": command, "args": args } } }),
            ),
            Self::Codex => format!(
                "[mcp_servers.{NAME}]\ncommand = {}\nargs = {}",
                toml::Value::from(command),
                toml::Value::from(args)
            ),
            // A JSON string is a YAML string.
            Self::Goose => format!(
                "extensions:\n  {NAME}:\n    name: {NAME}\n    description: Tasks\n    type: stdio\n    enabled: true\n    \
                 cmd: {}\n    args: {}\n    envs: {{}}\n    env_keys: []\n    timeout: 300",
                json!(command),
                json!(args)
            ),
        })
    }

    /// Where they go.
    pub(super) fn place(self) -> &'static str {
        match self {
            Self::Claude => {
                "into claude_desktop_config.json (Claude Desktop: Settings, Developer, Edit Config), or into .mcp.json \
                 (Claude Code)"
            }
            Self::Codex => "into ~/.codex/config.toml",
            Self::Cursor => "into ~/.cursor/mcp.json",
            Self::Goose => {
                "into ~/.config/goose/config.yaml; what is under `extensions:` there already stays"
            }
            Self::Vscode => "into .vscode/mcp.json",
        }
    }
}

/// The command line. A client starts it in a folder of its own choice, so every path is absolute.
fn arguments(options: &Mcp, place: &Place) -> Result<Vec<String>, CliError> {
    let mut args = vec!["mcp".to_owned()];
    for (option, path) in [("--config", &place.config), ("--env-file", &place.env_file)] {
        if let Some(path) = path {
            args.extend([option.to_owned(), text(absolute(path)?)?]);
        }
    }
    if let Some(database) = &place.database {
        let database = match database.strip_prefix("sqlite:") {
            Some(file) => format!("sqlite:{}", text(absolute(Path::new(file))?)?),
            None if database.contains("://") => database.clone(),
            None => text(absolute(Path::new(database))?)?,
        };
        args.extend(["--database".to_owned(), database]);
    }
    if let Some(user) = &options.user {
        args.extend(["--user".to_owned(), user.clone()]);
    }
    if options.agent {
        args.push("--agent".to_owned());
        if let Some(model) = &place.model {
            args.extend(["--model".to_owned(), model.clone()]);
        }
    }
    Ok(args)
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|error| {
        CliError::failed(format!("{} is no path", path.display())).because(error.to_string())
    })
}

fn text(path: PathBuf) -> Result<String, CliError> {
    path.into_os_string().into_string().map_err(|path| {
        CliError::failed(format!(
            "{} is no text, so no configuration can name it",
            path.display()
        ))
    })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}
