//! The part of a conversation's state that tells whether text of others is in its history.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::confirmation::{PendingCall, Verdict};
use crate::event::{Event, TurnEnd};
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
    /// True if a program wrote some of the messages that the history holds in the person's name.
    #[serde(default)]
    others_wrote_messages: bool,
    /// The same of the message of the open turn.
    #[serde(skip)]
    others_wrote_message: bool,
    #[serde(default)]
    approved_tools: BTreeSet<String>,
}

impl Provenance {
    pub(super) fn history_is_from_others(&self) -> bool {
        self.history_is_from_others
    }

    pub(super) fn turn_is_from_others(&self) -> bool {
        self.history_is_from_others || self.turn_is_from_others || self.others_wrote_message
    }

    pub(super) fn others_wrote_messages(&self) -> bool {
        self.others_wrote_messages
    }

    pub(super) fn others_wrote_message(&self) -> bool {
        self.others_wrote_message
    }

    pub(super) fn approved_tools(&self) -> &BTreeSet<String> {
        &self.approved_tools
    }

    /// Updates the state by the next event. `waiting` are the calls that wait before it.
    pub(super) fn follow(&mut self, event: &Event, waiting: &[PendingCall]) {
        match event {
            Event::HistorySet { .. } => {
                self.history_is_from_others = is_from_others(event);
                self.others_wrote_messages = false;
            }
            Event::TurnStarted {
                from_others, call, ..
            } => {
                self.turn_is_from_others = is_from_others(event);
                self.others_wrote_message =
                    *from_others || call.as_ref().is_some_and(|call| call.from_others);
            }
            Event::CallFinished { .. } => self.turn_is_from_others |= is_from_others(event),
            Event::TurnFinished { end, .. } => {
                let is_kept = end.history().next().is_some();
                // A program is allowed what it asks for by its own scopes. To the next turn, its
                // message is text of others.
                self.history_is_from_others |=
                    is_kept && (self.turn_is_from_others || self.others_wrote_message);
                self.others_wrote_messages |= is_kept && self.others_wrote_message;
                self.turn_is_from_others = false;
                self.others_wrote_message = false;
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
    result.from_others || is_of_a_server(tool)
}

/// Returns true if a tool is one of an MCP server. Journals of earlier versions have no mark on what
/// came from one.
fn is_of_a_server(tool: &str) -> bool {
    tool.contains(OF_A_SERVER)
}

impl TurnEnd {
    /// Returns true if the turn holds text of others, or the model had read some when it wrote the
    /// answer. In a journal of an older version, only a call of an MCP server's tool shows that.
    #[must_use]
    pub fn is_from_others(&self) -> bool {
        let mut tools = self.tools_used.iter();
        self.from_others || tools.any(|used| is_of_a_server(&used.tool))
    }
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
