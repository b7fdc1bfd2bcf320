//! The definitions of a server's tools that a person agreed to, kept beyond this process.

use adjutant_core::fingerprint;
use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ServerConfig, ServerName};

/// Keeps the definitions of tools that a person agreed to, server by server.
///
/// A server without any is agreed to as it is when it is started for the first time: whoever
/// configured it did so. From then on a tool whose name, title, description, parameters or hints
/// are others is not called, and one that comes does not join.
pub trait Pins: Send + Sync {
    /// Returns what is kept for a server, `None` if nothing is.
    ///
    /// # Errors
    /// Something is kept and cannot be read: why, in words. The server is not started then.
    fn load(&self, server: &ServerName) -> Result<Option<PinnedTools>, String>;

    /// Keeps this for a server, in the place of what is kept.
    ///
    /// # Errors
    /// Why it cannot be kept, in words.
    fn save(&self, server: &ServerName, tools: &PinnedTools) -> Result<(), String>;

    /// Returns what a person does to agree to what a server has now, such as a command.
    fn how_to_accept(&self, server: &ServerName) -> String;
}

/// The tools of a server as a person agreed to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PinnedTools {
    /// SHA-256, in hex, of the server's program and arguments, or of its address: at another place
    /// it is another server.
    pub place: String,
    /// The tools, as the server described them.
    pub tools: Vec<Value>,
}

impl PinnedTools {
    pub(super) fn new(config: &ServerConfig, tools: &[Tool]) -> Self {
        Self {
            place: config.place(),
            tools: tools.iter().map(|tool| json!(tool)).collect(),
        }
    }

    /// The tools, if they are of this server and can be read.
    ///
    /// # Errors
    /// A tool is not one.
    pub(super) fn of(self, config: &ServerConfig) -> Result<Option<Vec<Tool>>, String> {
        if self.place != config.place() {
            return Ok(None);
        }
        let tools = self
            .tools
            .into_iter()
            .map(serde_json::from_value)
            .collect::<Result<_, _>>();
        tools
            .map(Some)
            .map_err(|error| format!("a tool that was agreed to cannot be read: {error}"))
    }
}

/// Returns the SHA-256, in hex, of what a person agrees to in a tool: not its icons, nor what it
/// returns.
pub(super) fn face(tool: &Tool) -> String {
    let Tool {
        name,
        title,
        description,
        input_schema,
        annotations,
        ..
    } = tool;
    fingerprint(&json!([
        name,
        title,
        description,
        input_schema,
        annotations
    ]))
}

/// A tool that is another than the one that was agreed to.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedTool {
    /// What its server calls it.
    pub name: String,
    /// What was agreed to; `None`: the tool is new.
    pub before: Option<Value>,
    /// What it is now; `None`: the tool has gone.
    pub now: Option<Value>,
}
