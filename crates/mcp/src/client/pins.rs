//! Pinned tool definitions: those that a person has accepted, stored beyond this process.

use std::collections::BTreeSet;

use adjutant_core::fingerprint;
use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reads::is_unannotated_read;
use super::{ServerConfig, ServerName, ToolRules};

/// A store of accepted tool definitions, server by server.
///
/// A server without pinned tools is accepted as it is at its first start, because an operator
/// configured it. From then on, a tool whose name, title, description, parameters or hints have
/// changed is not called, and a new one is not registered.
pub trait Pins: Send + Sync {
    /// Loads the pinned tools of a server, `None` if there are none.
    ///
    /// # Errors
    /// A description, if the stored tools cannot be read. The server is not started then.
    fn load(&self, server: &ServerName) -> Result<Option<PinnedTools>, String>;

    /// Stores the pinned tools of a server, replacing earlier ones.
    ///
    /// # Errors
    /// A description, if they cannot be stored.
    fn save(&self, server: &ServerName, tools: &PinnedTools) -> Result<(), String>;

    /// Returns instructions for accepting the present tools of a server, such as a command.
    fn how_to_accept(&self, server: &ServerName) -> String;
}

/// The tools of a server as a person has accepted them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PinnedTools {
    /// SHA-256, in hexadecimal, of the server's program and arguments or of its URL
    /// ([`ServerConfig::place`]).
    pub place: String,
    /// The tools, as the server described them.
    pub tools: Vec<Value>,
    /// The server's description of its tools as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Tools that the server says nothing about, and that run without asking, because the person
    /// believes their names. `None`: the person was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_reads: Option<BTreeSet<String>>,
}

impl PinnedTools {
    pub(super) fn new(config: &ServerConfig, tools: &[Tool], instructions: Option<&str>) -> Self {
        Self {
            place: config.place(),
            tools: tools.iter().map(|tool| json!(tool)).collect(),
            instructions: instructions.map(str::to_owned),
            trusted_reads: None,
        }
    }

    /// Returns the names of the tools that say by their names that they only read, and that neither
    /// the server nor a rule says anything about.
    #[must_use]
    pub fn unannotated_reads(&self, rules: &ToolRules) -> BTreeSet<String> {
        let tools = self.tools.iter().cloned().map(serde_json::from_value);
        tools
            .filter_map(Result::ok)
            .filter(|tool| is_unannotated_read(tool, rules))
            .map(|tool: Tool| tool.name.to_string())
            .collect()
    }

    /// Returns what was accepted, if it was for this server.
    ///
    /// # Errors
    /// A description, if a tool cannot be decoded.
    pub(super) fn accepted(self, config: &ServerConfig) -> Result<Option<Accepted>, String> {
        // Another program or address is another server, whose tools were not agreed to.
        if self.place != config.place() {
            return Ok(None);
        }
        let tools = self
            .tools
            .into_iter()
            .map(serde_json::from_value)
            .collect::<Result<_, _>>();
        let accepted = |tools| Accepted {
            tools,
            instructions: self.instructions,
            trusted_reads: self.trusted_reads,
        };
        tools
            .map(|tools| Some(accepted(tools)))
            .map_err(|error| format!("a tool that was agreed to cannot be read: {error}"))
    }
}

/// The tools and instructions of a server that a person has accepted.
#[derive(Debug, Clone, Default)]
pub(super) struct Accepted {
    pub(super) tools: Vec<Tool>,
    pub(super) instructions: Option<String>,
    /// Tools that only read, by the person's word. `None`: the person was not asked.
    pub(super) trusted_reads: Option<BTreeSet<String>>,
}

/// Returns the SHA-256, in hexadecimal, of the parts of a definition that a person accepts: not
/// icons, nor the output schema.
pub(super) fn definition_digest(tool: &Tool) -> String {
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

/// A tool that differs from the accepted one.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedTool {
    /// The server's name for the tool.
    pub name: String,
    /// The accepted definition. `None`: the tool is new.
    pub before: Option<Value>,
    /// The present definition. `None`: the tool is gone.
    pub now: Option<Value>,
}
