//! The part of a conversation's state that tells whether text of others is in its history.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::confirmation::{PendingCall, Verdict};
use crate::event::Event;
use crate::message::Message;
use crate::tool::ToolResult;

/// Separates the name of an MCP server from that of its tool.
const OF_A_SERVER: &str = "__";

/// The origin of what the next request reads, and what the person approved because of it.
///
/// A model's answer descends from all that it read. So whatever is written after text of others is
/// marked like it, and so is a summary of it: the mark ends only with the history.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Provenance {
    #[serde(default)]
    history_is_from_others: bool,
    /// The same of the open turn, whose messages become part of the history at its end.
    #[serde(skip)]
    turn_is_from_others: bool,
    #[serde(default)]
    approved_tools: BTreeSet<String>,
}

impl Provenance {
    pub(super) fn history_is_from_others(&self) -> bool {
        self.history_is_from_others
    }

    pub(super) fn approved_tools(&self) -> &BTreeSet<String> {
        &self.approved_tools
    }

    /// Updates the state by the next event. `waiting` are the calls that wait before it.
    pub(super) fn follow(&mut self, event: &Event, waiting: &[PendingCall]) {
        match event {
            Event::HistorySet { .. } => self.history_is_from_others = is_from_others(event),
            Event::TurnStarted { .. } => self.turn_is_from_others = is_from_others(event),
            Event::CallFinished { .. } => self.turn_is_from_others |= is_from_others(event),
            Event::TurnFinished { end, .. } => {
                let is_kept = end.history().next().is_some();
                self.history_is_from_others |= self.turn_is_from_others && is_kept;
                self.turn_is_from_others = false;
            }
            Event::CallAnswered {
                call,
                verdict: Some(Verdict::Approved),
                for_conversation: true,
                ..
            } => {
                let offered =
                    |waits: &&PendingCall| waits.call_id == *call && waits.for_conversation;
                if let Some(waits) = waiting.iter().find(offered) {
                    self.approved_tools.insert(waits.tool.clone());
                }
            }
            _ => {}
        }
    }
}

/// Returns true if results among these messages are text of others.
#[must_use]
pub fn hold_text_of_others(messages: &[Message]) -> bool {
    let mut results = messages.iter().filter_map(Message::tool_result);
    results.any(|(_, tool, result)| is_marked(tool, result))
}

fn is_marked(tool: &str, result: &ToolResult) -> bool {
    // Journals of earlier versions have no mark on the results of MCP servers.
    result.from_others || tool.contains(OF_A_SERVER)
}

/// Returns true if an event brings text of others into the requests after it.
pub(super) fn is_from_others(event: &Event) -> bool {
    match event {
        Event::HistorySet {
            messages,
            from_others,
        } => *from_others || hold_text_of_others(messages),
        // A page or document that the sending program shows the model.
        Event::TurnStarted { client, .. } => {
            client.as_ref().is_some_and(|client| client.has_context())
        }
        Event::CallFinished { tool, result, .. } => is_marked(tool, result),
        _ => false,
    }
}
