//! Configuration of MCP clients to start `adjutant mcp`, in the format that each client documented
//! in November 2026.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::args::{Mcp, McpClient};
use crate::error::CliError;

/// The server's name in a client's configuration.
const NAME: &str = "adjutant";

/// Options by which the started process finds the files and database of this one.
pub(crate) struct LaunchOptions {
    pub(crate) config: Option<PathBuf>,
    pub(crate) env_file: Option<PathBuf>,
    pub(crate) database: Option<String>,
    /// The model of the agent, if one was named.
    pub(crate) model: Option<String>,
}

impl McpClient {
    /// Formats the client's configuration.
    ///
    /// # Errors
    /// The path of this program is not known, or is not UTF-8.
    pub(super) fn configuration(
        self,
        options: &Mcp,
        place: &LaunchOptions,
    ) -> Result<String, CliError> {
        let command = to_utf8(std::env::current_exe().map_err(|error| {
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
            // A JSON string is valid YAML.
            Self::Goose => format!(
                "extensions:\n  {NAME}:\n    name: {NAME}\n    description: Tasks\n    type: stdio\n    enabled: true\n    \
                 cmd: {}\n    args: {}\n    envs: {{}}\n    env_keys: []\n    timeout: 300",
                json!(command),
                json!(args)
            ),
        })
    }

    /// Returns where the configuration belongs.
    pub(super) fn location(self) -> &'static str {
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

/// Returns the command line with absolute paths, because a client starts it in any folder.
fn arguments(options: &Mcp, place: &LaunchOptions) -> Result<Vec<String>, CliError> {
    let mut args = vec!["mcp".to_owned()];
    for (option, path) in [("--config", &place.config), ("--env-file", &place.env_file)] {
        if let Some(path) = path {
            args.extend([option.to_owned(), to_utf8(absolute(path)?)?]);
        }
    }
    if let Some(database) = &place.database {
        // The address of a server is passed on unchanged; only a file depends on the folder.
        let database = match database.strip_prefix("sqlite:") {
            Some(file) => format!("sqlite:{}", to_utf8(absolute(Path::new(file))?)?),
            None if database.contains("://") => database.clone(),
            None => to_utf8(absolute(Path::new(database))?)?,
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

fn to_utf8(path: PathBuf) -> Result<String, CliError> {
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
