//! The messages of a request as servers take them: without explanations of refused answers, and with
//! roles that alternate where a template demands it.

use std::borrow::Cow;

use adjutant_core::{Content, GenerateRequest, Message, Part, Role};

/// Returns the request without a vendor's explanations of refused answers. They are no part of the
/// conversation, and sent back as the assistant's text they would prime the next answer.
pub(crate) fn without_explanations(request: &GenerateRequest) -> Cow<'_, GenerateRequest> {
    let explains = |message: &Message| message.parts().iter().any(Part::is_explanation);
    if !request.messages.iter().any(explains) {
        return Cow::Borrowed(request);
    }
    let mut request = request.clone();
    let without = |message: Message| {
        if !explains(&message) {
            return Some(message);
        }
        let kept = message.parts().iter().filter(|part| !part.is_explanation());
        // An error means that nothing is left of the message.
        Message::new(message.role(), kept.cloned().collect()).ok()
    };
    request.messages = request.messages.into_iter().filter_map(without).collect();
    Cow::Owned(request)
}

/// Stands between the results of a turn that ended without an answer and the next message of the
/// person, where a template demands an answer.
const NO_ANSWER: &str = "[no answer]";

/// Returns the messages of a request for servers whose templates refuse neighbours of one role: they
/// are joined, and results are followed by an answer. A request that another program made is left
/// as it is.
pub(crate) fn alternating(request: &GenerateRequest) -> Cow<'_, [Message]> {
    let messages = &request.messages;
    let alternates = |pair: &[Message]| match pair {
        [first, second] => !are_neighbours(first, second) && !lacks_answer(first, second),
        _ => true,
    };
    if request.config.verbatim || messages.windows(2).all(alternates) {
        return Cow::Borrowed(messages);
    }
    let mut joined: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        if let Some(last) = joined.last_mut() {
            if are_neighbours(last, message)
                && let Some(both) = join(last, message)
            {
                *last = both;
                continue;
            }
            if lacks_answer(last, message) {
                let text = NO_ANSWER.to_owned();
                joined.extend(Message::assistant(vec![Part::ours(Content::Text { text })]));
            }
        }
        joined.push(message.clone());
    }
    Cow::Owned(joined)
}

/// Returns true for two messages of a person, or two of the assistant of which the first calls
/// nothing.
fn are_neighbours(first: &Message, second: &Message) -> bool {
    first.role() == second.role()
        && matches!(first.role(), Role::User | Role::Assistant)
        && first.tool_calls().next().is_none()
}

fn lacks_answer(first: &Message, second: &Message) -> bool {
    first.role() == Role::Tool && second.role() == Role::User
}

/// Joins two messages of one role. Texts that meet become one: some servers take no lists of parts.
fn join(first: &Message, second: &Message) -> Option<Message> {
    let mut parts = first.parts().to_vec();
    let mut rest = second.parts();
    if let (
        Some(Part {
            content: Content::Text { text },
            state: None,
        }),
        [
            Part {
                content: Content::Text { text: more },
                state: None,
            },
            others @ ..,
        ],
    ) = (parts.last_mut(), rest)
    {
        text.push_str("\n\n");
        text.push_str(more);
        rest = others;
    }
    parts.extend(rest.iter().cloned());
    Message::new(first.role(), parts).ok()
}

#[cfg(test)]
mod tests {
    use adjutant_core::{Arguments, ImageSource, ModelId, ToolCall, ToolResult};

    use super::*;

    #[test]
    fn explanations_of_refused_answers_are_not_sent_back() {
        let model = ModelId::new("acme", "m1").unwrap();
        let text = |text: &str| Part::ours(Content::Text { text: text.into() });
        let refused = |parts: Vec<Part>| {
            let explanation = Part::explanation("This was refused.".into(), model.clone());
            Message::assistant(parts.into_iter().chain([explanation]).collect()).unwrap()
        };
        let ask = || Message::user("?").unwrap();
        let request = |messages| GenerateRequest::new(messages);
        let own_words = Part::from_provider(
            Content::Refusal {
                text: "I will not.".into(),
            },
            None,
        );
        let sent = without_explanations(&request(vec![
            ask(),
            refused(vec![text("Well")]),
            ask(),
            refused(Vec::new()),
            ask(),
            Message::assistant(vec![own_words.clone()]).unwrap(),
        ]))
        .into_owned();
        let said = Message::assistant(vec![text("Well")]).unwrap();
        let own = Message::assistant(vec![own_words]).unwrap();
        assert_eq!(sent.messages, [ask(), said, ask(), ask(), own]);
    }

    #[test]
    fn neighbours_of_one_role_are_joined_and_results_are_followed_by_an_answer() {
        let user = |text: &str| Message::user(text).unwrap();
        let part = |text: &str| Part::ours(Content::Text { text: text.into() });
        let assistant = |text: &str| Message::assistant(vec![part(text)]).unwrap();
        let call = ToolCall::from_object(0, None, "add".into(), Arguments::new());
        let id = call.id.clone();
        let calls = Message::assistant(vec![Part::ours(Content::ToolCall(call))]).unwrap();
        let result = Message::tool(id, "add", ToolResult::failed("no")).unwrap();
        let with_image = |parts: Vec<Part>| {
            let source = ImageSource::Url("https://a.example/cat.png".into());
            let image = Part::ours(Content::Image { source });
            Message::new(Role::User, parts.into_iter().chain([image]).collect()).unwrap()
        };
        let system = Message::system("Be brief.").unwrap();

        let apart = [
            system.clone(),
            user("a"),
            calls.clone(),
            result.clone(),
            assistant("b"),
            user("c"),
        ];
        let request = GenerateRequest::new(apart.to_vec());
        assert!(matches!(alternating(&request), Cow::Borrowed(_)));

        let messages = vec![
            system.clone(),
            user("a"),
            user("b"),
            with_image(vec![part("c")]),
            assistant("d"),
            assistant("e"),
            calls.clone(),
            result.clone(),
            user("f"),
        ];
        let mut request = GenerateRequest::new(messages);
        let mut called = vec![part("d\n\ne")];
        called.extend(calls.parts().iter().cloned());
        assert_eq!(
            *alternating(&request),
            [
                system,
                with_image(vec![part("a\n\nb\n\nc")]),
                Message::assistant(called).unwrap(),
                result,
                assistant(NO_ANSWER),
                user("f"),
            ]
        );
        request.config.verbatim = true;
        assert!(matches!(alternating(&request), Cow::Borrowed(_)));
    }
}
