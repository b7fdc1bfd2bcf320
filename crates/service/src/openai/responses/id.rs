//! Ids of responses and of their items. They encode the position in the journal, so nothing is
//! stored for them.

use std::fmt;

use adjutant_core::{ConversationId, InputId};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Hexadecimal digits of the conversation's id.
const CONVERSATION: usize = 32;
/// Hexadecimal digits of the input's hash.
const INPUT: usize = 16;

/// Id of a response: a conversation, and the input that was answered in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub(super) conversation: ConversationId,
    /// The first 64 bits of a hash of the input's id. `None`: the conversation's last turn.
    input: Option<u64>,
}

impl ResponseId {
    /// Creates the id of the response to an input; `None`: of the conversation's last turn.
    pub(super) fn new(conversation: ConversationId, input: Option<&InputId>) -> Self {
        Self {
            conversation,
            input: input.map(short),
        }
    }

    /// Parses the id of a response; `None` if it is not one of this service.
    pub(super) fn parse(id: &str) -> Option<Self> {
        Self::parse_digits(id.strip_prefix("resp_")?)
    }

    /// Parses the id of an item into its kind, its response and the rest; `None` if it is not one
    /// of this service.
    pub(super) fn parse_item(id: &str) -> Option<(&str, Self, &str)> {
        let (kind, rest) = id.split_once('_')?;
        let (response, rest) = rest.split_once('_')?;
        Some((kind, Self::parse_digits(response)?, rest))
    }

    /// Returns the id of an item of this response.
    pub(super) fn item_id(&self, kind: &str, rest: &dyn fmt::Display) -> String {
        format!("{kind}_{}_{rest}", self.digits())
    }

    /// Returns true if the response answers this input. The last turn of a conversation has none.
    pub(super) fn is_answer_to(&self, input: &InputId) -> bool {
        self.input == Some(short(input))
    }

    /// Returns true if it is the response of the conversation's last turn.
    pub(super) fn is_end(&self) -> bool {
        self.input.is_none()
    }

    fn digits(&self) -> String {
        format!(
            "{}{:016x}",
            self.conversation.0.simple(),
            self.input.unwrap_or_default()
        )
    }

    fn parse_digits(digits: &str) -> Option<Self> {
        let is_hex = digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
        if !is_hex || digits.len() != CONVERSATION + INPUT {
            return None;
        }
        let (conversation, input) = digits.split_at(CONVERSATION);
        let conversation = ConversationId(Uuid::try_parse(conversation).ok()?);
        let input = u64::from_str_radix(input, 16).ok()?;
        // Other conversations of the user must not be readable as responses.
        conversation.is_of_a_request().then_some(Self {
            conversation,
            input: (input != 0).then_some(input),
        })
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resp_{}", self.digits())
    }
}

/// Returns the first 64 bits of a hash of an input's id.
fn short(input: &InputId) -> u64 {
    let digest: [u8; 32] = Sha256::digest(input.as_str().as_bytes()).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    // Zero stands for the last turn.
    u64::from_be_bytes([a, b, c, d, e, f, g, h]).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_id_encodes_conversation_and_input() {
        let conversation = ConversationId::of_request([7; 16]);
        let input = InputId::new("question").unwrap();
        let id = ResponseId::new(conversation, Some(&input));
        assert_eq!(ResponseId::parse(&id.to_string()), Some(id));
        assert!(id.is_answer_to(&input) && !id.is_answer_to(&InputId::new("other").unwrap()));
        assert_eq!(
            ResponseId::parse_item(&id.item_id("msg", &3)),
            Some(("msg", id, "3"))
        );
        assert_eq!(
            ResponseId::parse_item(&id.item_id("fc", &"call_ab_1")),
            Some(("fc", id, "call_ab_1"))
        );
        let end = ResponseId::new(conversation, None);
        assert!(end.is_end() && ResponseId::parse(&end.to_string()) == Some(end));
        let thread = ResponseId::new(ConversationId(Uuid::now_v7()), None).to_string();
        for other in [
            "",
            "resp_",
            "resp_123",
            "msg_",
            "resp_ä",
            &format!("{id}0"),
            &thread,
        ] {
            assert_eq!(ResponseId::parse(other), None, "{other}");
        }
    }
}
