//! Requests that a chat interface makes on its own: titles, tags, suggestions. They quote a conversation and are not part of
//! it, so an agent that acted on them would do what was asked a second time.
//!
//! They are known by how their texts begin. Sources: the `DEFAULT_*_PROMPT_TEMPLATE`s of Open WebUI's
//! `backend/open_webui/config.py` (2024 to 2026), LibreChat's `@librechat/agents` `title.ts` and its older `titleConvo`,
//! NextChat's `locales/en.ts`, Cherry Studio's `SUMMARIZE_PROMPT`. Who changed these texts points the interface's task model
//! to the agent without tools instead.

use super::request::{ChatMessage, Role};

/// How much of a text is looked at, in characters.
const HEAD: usize = 400;

/// How the last message begins: in lower case, white space as one space.
const OPENINGS: &[&str] = &[
    // Open WebUI. Its prompt for answering from documents ("### Task: Respond to the user query ...") is a person's turn.
    "### task: generate a concise, 3-5 word title",
    "### task: create a concise, 3-5 word title",
    "### task: generate 1-3 broad tags",
    "### task: suggest 3-5 relevant follow-up questions",
    "### task: analyze the chat history to determine the necessity of generating search queries",
    "### task: you are an autocompletion system",
    "### task: generate a detailed prompt for am image generation task",
    "### task: generate a detailed prompt for an image generation task",
    "create a concise, 3-5 word title",
    "create a concise, 3-5 word phrase",
    "generate a concise, 3-5 word title",
    "your task is to reflect the speaker's likely facial expression through a fitting emoji",
    "you have been provided with a set of responses from various models to the latest user query",
    // LibreChat.
    "analyze this conversation and provide: 1. the detected language of the conversation 2. a concise title",
    "provide a concise, 5-word-or-less title for the conversation",
    "write a concise title for this conversation",
    "write an extremely concise title for this conversation",
    "detect user language and write in the same language an extremely concise title for this conversation",
    "please generate a concise title (max 40 characters) for a conversation",
    // NextChat.
    "please generate a four to five word title summarizing our conversation",
    "summarize the discussion briefly in 200 words or less to use as a prompt for future context",
];

/// How the first message begins, where the interface gives its order there.
const SYSTEM_OPENINGS: &[&str] = &[
    // Cherry Studio.
    "you are an assistant skilled in conversation. you need to summarize the user's conversation into a title",
    // LibreChat.
    "detect user language and write in the same language an extremely concise title for this conversation",
    "write an extremely concise title for this conversation",
    "write a concise title for this conversation",
];

/// Whether no person asks here.
pub(super) fn is_background(messages: &[ChatMessage]) -> bool {
    let begins = |message: Option<&ChatMessage>, openings: &[&str]| {
        let head = message.map(|message| head(&message.text())).unwrap_or_default();
        openings.iter().any(|opening| head.starts_with(opening))
    };
    let first = messages.first().filter(|message| message.role.is_instruction());
    begins(messages.last().filter(|message| message.role != Role::Assistant), OPENINGS)
        || begins(first, SYSTEM_OPENINGS)
        || first.is_some_and(|message| chooses_tools(&message.text()))
}

/// Open WebUI asks which of its own tools fit, with their definitions in front of the order.
fn chooses_tools(text: &str) -> bool {
    text.trim_start().starts_with("Available Tools:")
        && text.contains("Your task is to choose and return the correct tool(s)")
}

fn head(text: &str) -> String {
    let head: String = text.trim_start().chars().take(HEAD).collect();
    head.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(messages: serde_json::Value) -> bool {
        is_background(&serde_json::from_value::<Vec<ChatMessage>>(messages).unwrap())
    }

    fn user(text: &str) -> bool {
        check(json!([{"role": "user", "content": text}]))
    }

    #[test]
    fn what_interfaces_ask_on_their_own_is_known() {
        for text in [
            "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Guidelines:\n- ...\n<chat_history>\nUSER: add buy milk\n</chat_history>",
            "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history, along with 1-3 more specific subtopic tags.",
            "### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next",
            "### Task:\nAnalyze the chat history to determine the necessity of generating search queries, in the given language.",
            "### Task:\nYou are an autocompletion system. Continue the text in `<text>`",
            "Your task is to reflect the speaker's likely facial expression through a fitting emoji. Interpret",
            "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title in the detected language (5 words or less, no punctuation or quotation)\n\nUser: hi",
            "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself.",
        ] {
            assert!(user(text), "{text}");
        }
        let topic =
            "Please generate a four to five word title summarizing our conversation without any lead-in";
        assert!(check(json!([
            {"role": "user", "content": "add buy milk"},
            {"role": "assistant", "content": "Added."},
            {"role": "user", "content": [{"type": "text", "text": topic}]},
        ])));
        let tools = "Available Tools: [{\"name\": \"search\"}]\n\nYour task is to choose and return the correct tool(s) from the list";
        assert!(check(
            json!([{"role": "system", "content": tools}, {"role": "user", "content": "Query: hi"}])
        ));
    }

    #[test]
    fn what_a_person_asks_is_not() {
        for text in [
            "add a task: generate a concise, 3-5 word title for the report",
            "### Task:\nRespond to the user query using the provided context.\n<context>…</context>\nadd buy milk",
            "Suggest a title for my talk",
            "Available Tools: hammer, saw. Add them to my list",
            "",
        ] {
            assert!(!user(text), "{text}");
        }
    }
}
