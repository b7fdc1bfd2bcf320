//! Ids of responses and of their items. Nothing is kept for them: an id says where in the journal
//! the answer is.

use std::fmt;

use adjutant_core::{ConversationId, InputId};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Hexadecimal digits of the conversation, and of the input that was answered.
const CONVERSATION: usize = 32;
const INPUT: usize = 16;

/// The place of an answer: the conversation, and the input that it is the answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub(super) conversation: ConversationId,
    /// The beginning of a hash of the input's id. `None`: it is the end of that conversation.
    input: Option<u64>,
}

impl ResponseId {
    /// Returns the id of the answer to an input. `None`: of the end of that conversation.
    pub(super) fn new(conversation: ConversationId, input: Option<&InputId>) -> Self {
        Self {
            conversation,
            input: input.map(short),
        }
    }

    /// Reads the id of a response. `None`: it is none of ours.
    pub(super) fn of_response(id: &str) -> Option<Self> {
        Self::read(id.strip_prefix("resp_")?)
    }

    /// Reads the id of an item: the word in front of it, the response, and the rest. `None`: it is
    /// none of ours.
    pub(super) fn of_item(id: &str) -> Option<(&str, Self, &str)> {
        let (kind, rest) = id.split_once('_')?;
        let (response, rest) = rest.split_once('_')?;
        Some((kind, Self::read(response)?, rest))
    }

    /// Returns the id of an item of this response.
    pub(super) fn item(&self, kind: &str, rest: &dyn fmt::Display) -> String {
        format!("{kind}_{}_{rest}", self.digits())
    }

    /// Returns whether this is the input that was answered. The end of the conversation answers
    /// none.
    pub(super) fn answers(&self, input: &InputId) -> bool {
        self.input == Some(short(input))
    }

    /// Returns whether it is the end of the conversation, whatever it answers.
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

    fn read(digits: &str) -> Option<Self> {
        let is_hex = digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
        if !is_hex || digits.len() != CONVERSATION + INPUT {
            return None;
        }
        let (conversation, input) = digits.split_at(CONVERSATION);
        let conversation = ConversationId(Uuid::try_parse(conversation).ok()?);
        let input = u64::from_str_radix(input, 16).ok()?;
        // Single requests of this API, and no other conversation of the user's.
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

/// Returns the beginning of a hash of an input's id.
fn short(input: &InputId) -> u64 {
    let digest: [u8; 32] = Sha256::digest(input.as_str().as_bytes()).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    // Zero is the end of a conversation.
    u64::from_be_bytes([a, b, c, d, e, f, g, h]).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_where_the_answer_is_and_others_are_none() {
        let conversation = ConversationId::of_request([7; 16]);
        let input = InputId::new("question").unwrap();
        let id = ResponseId::new(conversation, Some(&input));
        assert_eq!(ResponseId::of_response(&id.to_string()), Some(id));
        assert!(id.answers(&input) && !id.answers(&InputId::new("other").unwrap()));
        assert_eq!(
            ResponseId::of_item(&id.item("msg", &3)),
            Some(("msg", id, "3"))
        );
        assert_eq!(
            ResponseId::of_item(&id.item("fc", &"call_ab_1")),
            Some(("fc", id, "call_ab_1"))
        );
        let end = ResponseId::new(conversation, None);
        assert!(end.is_end() && ResponseId::of_response(&end.to_string()) == Some(end));
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
            assert_eq!(ResponseId::of_response(other), None, "{other}");
        }
    }
}
