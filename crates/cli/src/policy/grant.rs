use adjutant_core::{Arguments, ConversationId, PendingCall};
use adjutant_mcp::client::{ServerConfig, ServerReport};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::display::{clip, json_line};

/// The longest arguments shown, in characters.
const ARGUMENTS_CHARS: usize = 160;

/// The longest name of a tool that is shown, in characters.
const NAME_CHARS: usize = 64;

/// A person's yes to later calls of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grant {
    pub(crate) id: String,
    pub(crate) tool: String,
    /// The only arguments it is for. `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Arguments>,
    /// The only conversation it is for. `None`: all, for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<ConversationId>,
    /// The tool of another program that it is for. `None`: one of Adjutant's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) foreign: Option<ForeignTool>,
    pub(crate) granted_at: Timestamp,
}

/// Lifetime of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    Conversation,
    ForGood,
}

/// A tool of an MCP server, as it was when somebody allowed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForeignTool {
    /// The server's name in the configuration.
    pub(crate) server: String,
    /// The fingerprint of its program and arguments, or of its address.
    pub(crate) place: String,
    /// The fingerprint of the tool's definition.
    pub(crate) definition: String,
}

/// The owner of the tool of a waiting call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    /// One of Adjutant's own.
    Own,
    Foreign(ForeignTool),
    /// A tool of another program that is not there now, or whose definition is not known.
    Unknown,
}

impl Identity {
    /// Returns the owner of the tool of a call, by the servers that run and those that are
    /// configured.
    pub(crate) fn of(
        call: &PendingCall,
        running: &[ServerReport],
        configured: &[ServerConfig],
    ) -> Self {
        // Only names of tools of servers have this in them.
        if !call.tool.contains("__") {
            return Self::Own;
        }
        let server = running
            .iter()
            .find(|server| server.tools.iter().any(|tool| tool.name == call.tool));
        let config =
            server.and_then(|server| configured.iter().find(|config| config.name == server.name));
        match (config, &call.definition) {
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
    /// Returns whether it is for this conversation, tool name and arguments, whoever's tool it is.
    pub(crate) fn names(&self, call: &PendingCall, conversation: ConversationId) -> bool {
        self.tool == call.tool
            && self.conversation.is_none_or(|only| only == conversation)
            && self
                .arguments
                .as_ref()
                .is_none_or(|only| *only == call.arguments)
    }

    /// Returns whether it is for a tool of this identity.
    pub(crate) fn is_for(&self, identity: &Identity) -> bool {
        match (&self.foreign, identity) {
            (None, Identity::Own) => true,
            (Some(known), Identity::Foreign(now)) => known == now,
            _ => false,
        }
    }

    /// Returns `delete_task, any arguments, for good`.
    pub(crate) fn words(&self) -> String {
        format!(
            "{}, {}, {}",
            clip(&self.tool, NAME_CHARS),
            self.arguments_words(),
            self.lasting_words()
        )
    }

    pub(super) fn arguments_words(&self) -> String {
        match &self.arguments {
            None => "any arguments".to_owned(),
            Some(only) => clip(&json_line(only), ARGUMENTS_CHARS),
        }
    }

    pub(super) fn lasting_words(&self) -> &'static str {
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
        assert!(any.names(&call, here) && any.names(&call, elsewhere));
        assert!(!grant("add_task").names(&call, here));
        let exact = Grant {
            arguments: Some(call.arguments.clone()),
            ..any.clone()
        };
        assert!(exact.names(&call, here) && !exact.names(&waiting("delete_task", "2", None), here));
        let local = Grant {
            conversation: Some(here),
            ..any
        };
        assert!(local.names(&call, here) && !local.names(&call, elsewhere));
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
        assert!(grant.is_for(&Identity::Foreign(known("p", "d"))));
        for other in [
            Identity::Foreign(known("q", "d")),
            Identity::Foreign(known("p", "e")),
            Identity::Unknown,
            Identity::Own,
        ] {
            assert!(!grant.is_for(&other), "{other:?}");
        }
        // Nobody can take the place of a tool of our own, nor the other way round.
        assert_eq!(
            Identity::of(&waiting("delete_task", "1", Some("d")), &[], &[]),
            Identity::Own
        );
        assert_eq!(
            Identity::of(&waiting("fx__send", "1", Some("d")), &[], &[]),
            Identity::Unknown
        );
    }
}
