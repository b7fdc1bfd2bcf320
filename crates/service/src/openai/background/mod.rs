//! Detection of the requests that a chat interface makes on its own account: titles, tags,
//! suggestions. They quote a conversation, so an agent that acted on them would do a second time
//! what the user asked for.
//!
//! They are recognised by their content, not by known prompts: a conversation is quoted, and the
//! order is for text about it that a program reads. An order to change something (`add these as
//! tasks`) is the user's, whatever it quotes. In doubt, it is taken for the interface's: a user who
//! is answered without tools can ask again, but a repeated effect cannot be undone.

mod order; // classification of an order
mod quotation; // separation of quotation and order

use adjutant_core::Notice;

use super::message::{ChatMessage, Role};
use order::OrderSigns;
use quotation::{Quotation, SplitText};

/// Longest instruction that may be an order about the messages, in bytes. A longer one describes an
/// assistant, which may have a rule for titles among others.
const ORDER_MAX: usize = 2_000;

/// Returns the notice that the request was answered without the agent.
pub(super) fn notice() -> Notice {
    Notice {
        code: "background_prompt".to_owned(),
        text: "This was taken for an automatic request of the chat interface, so it was answered without \
               tools (serve.background_prompts)."
            .to_owned(),
    }
}

/// Returns true if the interface sent these messages on its own account.
pub(super) fn is_background(messages: &[ChatMessage]) -> bool {
    let order = messages
        .first()
        .filter(|message| message.role.is_instruction())
        .map(ChatMessage::text);
    let last = messages
        .last()
        .filter(|message| message.role != Role::Assistant)
        .map(ChatMessage::text);
    // The order is usually in the last message, together with what it quotes.
    if last.as_deref().is_some_and(is_of_interface) {
        return true;
    }
    let Some(order) = order else { return false };
    if order::chooses_tools(&order) {
        return true;
    }
    // The order may be in the first message, and the quotation in the second.
    let both = || {
        last.filter(|_| messages.len() == 2)
            .map(|quoted| format!("{order}\n\n{quoted}"))
    };
    order.len() <= ORDER_MAX
        && (is_of_interface(&order) || both().is_some_and(|both| is_of_interface(&both)))
}

fn is_of_interface(text: &str) -> bool {
    if order::is_unmistakable(text) {
        return true;
    }
    let text = SplitText::parse(text);
    let OrderSigns {
        change,
        about,
        of_conversation,
        mood,
        keys,
        json,
        strict,
        length,
    } = OrderSigns::detect(&text.order);
    // An order to change something is the user's, whatever it quotes.
    if change {
        return false;
    }
    match text.quotation {
        Quotation::Marked => about || (json && keys) || mood,
        // People announce quotations too, so a second sign of a program is needed.
        Quotation::Announced => (about && (json || strict || length)) || (json && keys) || mood,
        // Without a quotation, the order itself has to name the conversation.
        Quotation::None => of_conversation && (json || strict),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(messages: serde_json::Value) -> bool {
        is_background(&serde_json::from_value::<Vec<ChatMessage>>(messages).unwrap())
    }

    /// Returns the texts of a file, separated by lines that begin with `%`.
    fn texts(file: &str) -> Vec<&str> {
        let texts: Vec<&str> = file
            .split("\n%")
            .filter_map(|text| text.split_once('\n'))
            .map(|(_, text)| text.trim())
            .collect();
        assert!(texts.iter().all(|text| !text.is_empty()));
        texts
    }

    #[test]
    fn background_prompts_of_interfaces_are_detected() {
        let texts = texts(include_str!("interfaces.txt"));
        assert!(texts.len() >= 40, "{}", texts.len());
        let missed: Vec<_> = texts
            .into_iter()
            .filter(|text| !check(json!([{"role": "user", "content": text}])))
            .collect();
        assert!(missed.is_empty(), "{}: {missed:#?}", missed.len());
    }

    #[test]
    fn requests_of_users_are_not_background_prompts() {
        let texts = texts(include_str!("people.txt"));
        assert!(texts.len() >= 40, "{}", texts.len());
        let taken: Vec<_> = texts
            .into_iter()
            .filter(|text| check(json!([{"role": "user", "content": text}])))
            .collect();
        assert!(taken.is_empty(), "{}: {taken:#?}", taken.len());
        assert!(!check(json!([])));
    }

    #[test]
    fn the_order_and_the_quotation_may_be_separate_messages() {
        let topic = "Please find a title of four words for our conversation, without punctuation or quotation marks";
        let said = json!({"role": "user", "content": "add buy milk"});
        assert!(check(
            json!([said, {"role": "assistant", "content": "Added."}, {"role": "user", "content": [{"type": "text", "text": topic}]}])
        ));
        for order in [
            "You write a short title from the user's first message. Do not use quotes or colons.",
            "You turn the user's conversation into a title of at most ten characters, and answer with the title only.",
            "Fasse die Unterhaltung in einem Titel zusammen und antworte nur mit dem Titel.",
        ] {
            assert!(
                check(json!([{"role": "system", "content": order}, said])),
                "{order}"
            );
            assert!(
                check(json!([{"role": "developer", "content": order}, said])),
                "{order}"
            );
        }
        let order = "Return JSON with a \"title\" for what follows.";
        let quoted = "<conversation>\nUSER: add buy milk\n</conversation>";
        assert!(check(
            json!([{"role": "system", "content": order}, {"role": "user", "content": quoted}])
        ));
        let tools = "Available Tools: [{\"name\": \"search\"}]\n\nYour task is to choose and return the correct tool(s) from the list";
        assert!(check(
            json!([{"role": "system", "content": tools}, {"role": "user", "content": "Query: hi"}])
        ));
    }

    #[test]
    fn an_assistants_description_is_not_a_background_prompt() {
        let said = json!({"role": "user", "content": "add buy milk"});
        let long = format!(
            "{} Give each conversation a title, without quotation marks.",
            "You help with tasks. ".repeat(150)
        );
        for order in [
            "Be brief.",
            "You keep the user's tasks. Answer in JSON only.",
            &long,
        ] {
            assert!(
                !check(json!([{"role": "system", "content": order}, said])),
                "{order}"
            );
        }
    }

    #[test]
    fn long_and_odd_texts_are_read_in_time_that_grows_with_them() {
        for odd in [
            "<chat_history>",
            "USER:",
            "\"",
            "<a></a>",
            "json title ",
            "\n\n",
            "add ",
        ] {
            check(json!([{"role": "user", "content": odd.repeat(500_000 / odd.len())}]));
        }
        for odd in [
            "",
            "<",
            ">",
            "</chat>",
            "<chat>",
            "```",
            "USER:",
            "Übersicht <chät>",
        ] {
            assert!(!check(json!([{"role": "user", "content": odd}])), "{odd}");
        }
    }
}
