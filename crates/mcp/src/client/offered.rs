//! The tools of a server: as they were registered or agreed to, as they are now, and the words that tell
//! a person about the difference.

use std::collections::BTreeSet;

use adjutant_core::Schema;
use rmcp::model::{CallToolResult, Tool};
use serde_json::{Value, json};

use super::config::ToolRules;
use super::connection::ServerInfo;
use super::definition::one_line;
use super::pins::{Accepted, definition_digest};
use super::reads::is_unannotated_read;
use super::{ChangedTool, PinnedTools, ServerConfig};

/// Most names of changed tools in a notice.
const NAMED_MAX: usize = 10;
/// Most characters of a name in a notice.
const NAME_MAX: usize = 64;
/// Most characters of the reason for which a result does not fit.
const REASON_MAX: usize = 200;

/// The tools and instructions of a server when they were registered, and now.
#[derive(Default)]
pub(super) struct Offered {
    software: Option<String>,
    /// The registered tools: as they were accepted, if they are pinned.
    tools: Vec<Tool>,
    /// The last list of tools, `None` before the first.
    now: Option<Vec<Tool>>,
    /// Names of tools that were added, removed or changed since.
    changed: BTreeSet<String>,
    /// The instructions that the model gets: as they were accepted, if they are pinned.
    instructions: Option<String>,
    /// The instructions of the last handshake.
    instructions_now: Option<String>,
    /// Tools that only read, by the person's word. `None`: the person was not asked.
    trusted_reads: Option<BTreeSet<String>>,
    /// Tools whose results did not fit their output schemas.
    odd_results: BTreeSet<String>,
    /// Notices that were not taken yet.
    notices: Vec<String>,
    /// The notice of the last change of tools. Only one is kept: a server may change them all the
    /// time.
    change: Option<String>,
}

impl Offered {
    /// Registers what a person has agreed to.
    pub(super) fn register_accepted(&mut self, accepted: &Accepted) {
        self.register(&accepted.tools, accepted.instructions.as_deref());
        self.trusted_reads.clone_from(&accepted.trusted_reads);
    }

    /// Registers the tools and instructions of a first start.
    pub(super) fn register(&mut self, tools: &[Tool], instructions: Option<&str>) {
        self.tools = tools.to_vec();
        self.instructions = instructions.map(str::to_owned);
    }

    /// Takes the answer of a handshake, apart from its tools. Returns true if the instructions are
    /// not those that were registered.
    pub(super) fn greet(&mut self, info: &ServerInfo) -> bool {
        self.software.clone_from(&info.software);
        self.instructions_now.clone_from(&info.instructions);
        self.instructions_now != self.instructions
    }

    /// Compares the present tools with those registered. `how_to_accept`: the command for a person
    /// who agrees to a change. Returns true if there is a notice of one.
    pub(super) fn compare(&mut self, now: Vec<Tool>, how_to_accept: Option<&str>) -> bool {
        let digests = |tools: &[Tool]| -> BTreeSet<(String, String)> {
            tools
                .iter()
                .map(|tool| (tool.name.to_string(), definition_digest(tool)))
                .collect()
        };
        let (then, today) = (digests(&self.tools), digests(&now));
        let changed: BTreeSet<String> = then
            // A tool on one side only was added, removed or changed.
            .symmetric_difference(&today)
            .map(|(name, _)| name.clone())
            .collect();
        let is_news = !changed.is_empty() && changed != self.changed;
        let how_to_accept = how_to_accept.filter(|_| is_news);
        if let Some(how) = how_to_accept {
            let name = |name: &String| one_line(&name.chars().take(NAME_MAX).collect::<String>());
            let names: Vec<String> = changed.iter().take(NAMED_MAX).map(name).collect();
            let more = if changed.len() > NAMED_MAX {
                ", …"
            } else {
                ""
            };
            self.change = Some(format!(
                "tools that changed since they were agreed to are not used: {}{more}; to look at the change and agree to it: {how}",
                names.join(", ")
            ));
        }
        self.changed = changed;
        // Both change together, so that a person accepts what was compared.
        self.now = Some(now);
        how_to_accept.is_some()
    }

    /// Returns the tools that differ from those registered, and all present tools to be accepted.
    /// Both are of one moment, so that a person accepts only what was shown. `None`: the server has
    /// not listed its tools.
    pub(super) fn changes(&self, config: &ServerConfig) -> Option<(Vec<ChangedTool>, PinnedTools)> {
        let now = self.now.as_deref()?;
        let find = |tools: &[Tool], name: &str| {
            tools
                .iter()
                .find(|tool| tool.name == name)
                .map(|tool| json!(tool))
        };
        let changed = self.changed.iter().map(|name| ChangedTool {
            name: name.clone(),
            before: find(&self.tools, name),
            now: find(now, name),
        });
        let mut changed: Vec<ChangedTool> = changed.collect();
        if self.instructions != self.instructions_now {
            let text =
                |text: &Option<String>| text.as_ref().map(|text| json!({"description": text}));
            changed.push(ChangedTool {
                name: "what it tells the model about its tools".to_owned(),
                before: text(&self.instructions),
                now: text(&self.instructions_now),
            });
        }
        let mut pinned = PinnedTools::new(config, now, self.instructions_now.as_deref());
        pinned.trusted_reads = self.trusted_reads.clone().map(|mut reads| {
            // A tool that has changed is another one.
            reads.retain(|name| !self.changed.contains(name));
            reads
        });
        Some((changed, pinned))
    }

    /// Adds a notice for a person.
    pub(super) fn notify(&mut self, notice: String) {
        self.notices.push(notice);
    }

    /// Takes the notices for a person.
    pub(super) fn take_notices(&mut self) -> Vec<String> {
        let mut notices = std::mem::take(&mut self.notices);
        notices.extend(self.change.take());
        notices
    }

    /// Returns the reason for which a result does not fit the output schema of its tool, the first
    /// time for each tool.
    pub(super) fn misfit(&mut self, tool: &str, answer: &CallToolResult) -> Option<String> {
        let (Some(data), None | Some(false)) = (&answer.structured_content, answer.is_error) else {
            return None;
        };
        let known = self.tools.iter().find(|known| known.name == tool)?;
        let schema = known.output_schema.as_deref()?;
        // One that cannot be used promises nothing.
        let schema = Schema::compile(&Value::Object(schema.clone())).ok()?;
        let error = schema.check(data).err()?;
        let is_first = self.odd_results.insert(tool.to_owned());
        is_first.then(|| one_line(&error).chars().take(REASON_MAX).collect())
    }

    /// Returns the registered tools that say by their names that they only read, and that nobody
    /// says anything about.
    pub(super) fn unannotated_reads(&self, rules: &ToolRules) -> BTreeSet<String> {
        let reads = self.tools.iter();
        let reads = reads.filter(|tool| is_unannotated_read(tool, rules));
        reads.map(|tool| tool.name.to_string()).collect()
    }

    /// Stores which tools only read, by the person's word.
    pub(super) fn trust_reads(&mut self, reads: BTreeSet<String>) {
        self.trusted_reads = Some(reads);
    }

    /// Returns the tools that only read by the person's word. `None`: the person was not asked.
    pub(super) fn trusted_reads(&self) -> Option<BTreeSet<String>> {
        self.trusted_reads.clone()
    }

    /// Returns the instructions for the model.
    pub(super) fn instructions(&self) -> Option<String> {
        self.instructions.clone()
    }

    pub(super) fn software(&self) -> Option<String> {
        self.software.clone()
    }

    /// Returns the names of the tools that were added, removed or changed.
    pub(super) fn changed(&self) -> &BTreeSet<String> {
        &self.changed
    }
}
