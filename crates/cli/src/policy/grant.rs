use adjutant_core::{Arguments, ConversationId, PendingCall};
use adjutant_mcp::client::{ServerConfig, ServerReport};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::terminal::display::{clip, json_line};

/// Characters of arguments shown at most.
const ARGUMENTS_CHARS: usize = 160;

/// Characters of a tool's name shown at most.
const NAME_CHARS: usize = 64;

/// A permission for later calls of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grant {
    pub(crate) id: String,
    pub(crate) tool: String,
    /// The only arguments it covers; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Arguments>,
    /// The only conversation it covers; `None` for all, without an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<ConversationId>,
    /// The MCP server's tool that it covers; `None` for a built-in tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) foreign: Option<ForeignTool>,
    pub(crate) granted_at: Timestamp,
}

/// The lifetime of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Conversation,
    ForGood,
}

/// A tool of an MCP server, as it was when it was allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForeignTool {
    /// The server's name in the configuration.
    pub(crate) server: String,
    /// Fingerprint of its program and arguments, or of its address.
    pub(crate) place: String,
    /// Fingerprint of the tool's definition.
    pub(crate) definition: String,
}

/// The origin of the tool of a pending call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolOrigin {
    /// A built-in tool.
    Own,
    Foreign(ForeignTool),
    /// A tool of an MCP server that does not run, or whose definition is not known.
    Unknown,
}

impl ToolOrigin {
    /// Determines the origin of a call's tool from the running and configured servers.
    pub(crate) fn determine(
        call: &PendingCall,
        running: &[ServerReport],
        configured: &[ServerConfig],
    ) -> Self {
        // Only names of MCP servers' tools contain this.
        if !call.tool.contains("__") {
            return Self::Own;
        }
        let server = running
            .iter()
            .find(|server| server.tools.iter().any(|tool| tool.name == call.tool));
        let config =
            server.and_then(|server| configured.iter().find(|config| config.name == server.name));
        match (config, &call.definition) {
            // Without the configuration or the definition, a later tool of this name could not be
            // recognised as another one.
            (Some(config), Some(definition)) => Self::Foreign(ForeignTool {
                server: config.name.to_string(),
                place: config.place(),
                definition: definition.clone(),
            }),
            _ => Self::Unknown,
        }
    }
}

impl Grant {
    /// Returns true if conversation, tool name and arguments match, without regard to the tool's
    /// origin.
    pub(crate) fn matches(&self, call: &PendingCall, conversation: ConversationId) -> bool {
        self.tool == call.tool
            && self.conversation.is_none_or(|only| only == conversation)
            && self
                .arguments
                .as_ref()
                .is_none_or(|only| *only == call.arguments)
    }

    /// Returns true if it covers a tool of this origin.
    pub(crate) fn is_for(&self, identity: &ToolOrigin) -> bool {
        match (&self.foreign, identity) {
            (None, ToolOrigin::Own) => true,
            // Server, program and definition: each of them could make another tool of the same
            // name.
            (Some(known), ToolOrigin::Foreign(now)) => known == now,
            _ => false,
        }
    }

    /// Describes the permission: `delete_task, any arguments, for good`.
    pub(crate) fn describe(&self) -> String {
        format!(
            "{}, {}, {}",
            clip(&self.tool, NAME_CHARS),
            self.arguments_words(),
            self.lasting_words()
        )
    }

    pub(crate) fn arguments_words(&self) -> String {
        match &self.arguments {
            None => "any arguments".to_owned(),
            Some(only) => clip(&json_line(only), ARGUMENTS_CHARS),
        }
    }

    pub(crate) fn lasting_words(&self) -> &'static str {
        match self.conversation {
            None => "for good",
            Some(_) => "in one conversation",
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    pub(crate) fn waiting(tool: &str, task: &str, definition: Option<&str>) -> PendingCall {
        serde_json::from_value(json!({
            "call_id": "c", "tool": tool, "arguments": {"task_id": task}, "preview": "x", "digest": "d",
            "definition": definition, "requested_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
        }))
        .unwrap()
    }

    pub(crate) fn grant(tool: &str) -> Grant {
        Grant {
            id: "00000001".to_owned(),
            tool: tool.to_owned(),
            arguments: None,
            conversation: None,
            foreign: None,
            granted_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_grant_is_for_its_tool_arguments_and_conversation_only() {
        let (here, elsewhere) = (
            ConversationId(Uuid::from_u128(1)),
            ConversationId(Uuid::from_u128(2)),
        );
        let call = waiting("delete_task", "1", None);
        let any = grant("delete_task");
        assert!(any.matches(&call, here) && any.matches(&call, elsewhere));
        assert!(!grant("add_task").matches(&call, here));
        let exact = Grant {
            arguments: Some(call.arguments.clone()),
            ..any.clone()
        };
        assert!(
            exact.matches(&call, here) && !exact.matches(&waiting("delete_task", "2", None), here)
        );
        let local = Grant {
            conversation: Some(here),
            ..any
        };
        assert!(local.matches(&call, here) && !local.matches(&call, elsewhere));
    }

    #[test]
    fn a_tool_of_a_server_is_the_one_that_was_allowed_or_none() {
        let known = |place: &str, definition: &str| ForeignTool {
            server: "fx".to_owned(),
            place: place.to_owned(),
            definition: definition.to_owned(),
        };
        let grant = Grant {
            foreign: Some(known("p", "d")),
            ..grant("fx__send")
        };
        assert!(grant.is_for(&ToolOrigin::Foreign(known("p", "d"))));
        for other in [
            ToolOrigin::Foreign(known("q", "d")),
            ToolOrigin::Foreign(known("p", "e")),
            ToolOrigin::Unknown,
            ToolOrigin::Own,
        ] {
            assert!(!grant.is_for(&other), "{other:?}");
        }
        // A server's tool cannot use a permission of a built-in tool of the same name, nor the
        // reverse.
        assert_eq!(
            ToolOrigin::determine(&waiting("delete_task", "1", Some("d")), &[], &[]),
            ToolOrigin::Own
        );
        assert_eq!(
            ToolOrigin::determine(&waiting("fx__send", "1", Some("d")), &[], &[]),
            ToolOrigin::Unknown
        );
    }
}
