//! Joins the fragments a vendor sends into the parts of an answer: the same for every vendor,
//! streamed or not.
//!
//! Order is kept, and provider state stays on the part it came with.

use adjutant_core::{Content, Delta, FinishReason, ModelId, Part, ProviderState, ToolCall};
use serde_json::{Map, Value};

/// Calls that may still receive arguments: the last so many. Bounds the search per fragment.
const OPEN_CALLS_MAX: usize = 128;

/// The parts of an answer, while fragments of it arrive.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    parts: Vec<DraftPart>,
    calls: Vec<OpenCall>,
}

#[derive(Debug)]
struct DraftPart {
    content: Draft,
    state: Option<Value>,
}

/// The content of a part so far. Streamed calls may interleave, so they are in a list of their own.
#[derive(Debug)]
enum Draft {
    Text(TextKind, String),
    Opaque(String),
    /// An index into [`Assembly::calls`], which has the call's state too.
    Call(usize),
}

/// The kinds of parts that consist of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Text,
    Thinking,
    Refusal,
}

/// A call whose arguments may still be coming.
#[derive(Debug, Default)]
struct OpenCall {
    index: Option<u64>,
    provider_id: Option<String>,
    name: String,
    arguments: String,
    state: Option<Value>,
}

/// A tool call, or a fragment of one, as a vendor sends it. Fragments of one call share its index
/// or its id; one with neither belongs to the call before it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CallFragment<'a> {
    /// The vendor's index of the call within the answer.
    pub(crate) index: Option<u64>,
    /// The vendor's id of the call.
    pub(crate) provider_id: Option<&'a str>,
    /// The name of the tool.
    pub(crate) name: Option<&'a str>,
    /// The next piece of the arguments' JSON text.
    pub(crate) arguments: &'a str,
}

impl Assembly {
    /// Appends text. Text without state joins the text before it; text with state becomes a
    /// separate part.
    pub(crate) fn text(&mut self, text: &str, state: Option<Value>) -> Option<Delta> {
        self.append(TextKind::Text, text, state);
        (!text.is_empty()).then(|| Delta::Text(text.to_owned()))
    }

    /// Appends thinking, joined like text.
    pub(crate) fn thinking(&mut self, text: &str, state: Option<Value>) -> Option<Delta> {
        self.append(TextKind::Thinking, text, state);
        (!text.is_empty()).then(|| Delta::Thinking(text.to_owned()))
    }

    /// Appends the vendor's own form of a refusal, joined like text. It causes no delta.
    pub(crate) fn refusal(&mut self, text: &str, state: Option<Value>) {
        self.append(TextKind::Refusal, text, state);
    }

    fn append(&mut self, kind: TextKind, text: &str, state: Option<Value>) {
        match self.parts.last_mut() {
            Some(DraftPart {
                content: Draft::Text(last, before),
                state: None,
            }) if *last == kind && state.is_none() => before.push_str(text),
            _ if text.is_empty() && state.is_none() => {}
            _ => self.parts.push(DraftPart {
                content: Draft::Text(kind, text.to_owned()),
                state,
            }),
        }
    }

    /// Appends a trace of a tool that the vendor ran itself.
    pub(crate) fn opaque(&mut self, kind: &str, state: Value) {
        self.parts.push(DraftPart {
            content: Draft::Opaque(kind.to_owned()),
            state: Some(state),
        });
    }

    /// Adds a fragment of a call: to the call that it continues, else as the first of a new one. A
    /// complete call that is sent once more adds nothing.
    pub(crate) fn call(&mut self, fragment: CallFragment<'_>, state: Option<Value>) -> Delta {
        let old = self.calls.len().saturating_sub(OPEN_CALLS_MAX);
        let calls = &self.calls[old..];
        if let Some(same) = calls.iter().rposition(|call| call.is_named_by(&fragment))
            && calls[same].is_repeated_by(&fragment)
        {
            let fragment = CallFragment {
                arguments: "",
                ..fragment
            };
            return self.extend_call(old + same, fragment, state);
        }
        let open = calls
            .iter()
            // The newest first, because several vendors give parallel calls the same index.
            .rposition(|call| call.continues_with(&fragment));
        match open {
            Some(open) => self.extend_call(old + open, fragment, state),
            None => self.begin_call(fragment, state),
        }
    }

    /// Adds the first fragment of a call, whatever calls are open.
    pub(crate) fn begin_call(&mut self, fragment: CallFragment<'_>, state: Option<Value>) -> Delta {
        let index = self.calls.len();
        self.calls.push(OpenCall {
            index: fragment.index,
            ..OpenCall::default()
        });
        self.parts.push(DraftPart {
            content: Draft::Call(index),
            state: None,
        });
        self.extend_call(index, fragment, state)
    }

    fn extend_call(
        &mut self,
        index: usize,
        fragment: CallFragment<'_>,
        state: Option<Value>,
    ) -> Delta {
        let call = &mut self.calls[index];
        // Any fragment may bring the state; those without it do not remove it.
        call.state = state.or(call.state.take());
        if call.name.is_empty() {
            call.name = fragment.name.unwrap_or_default().to_owned();
        }
        if call.provider_id.is_none() {
            call.provider_id = fragment.id().map(str::to_owned);
        }
        call.arguments.push_str(fragment.arguments);
        Delta::ToolCall {
            index,
            name: call.name.clone(),
            arguments: fragment.arguments.to_owned(),
        }
    }

    /// Returns true if a tool was called.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns the reason of an answer that ended by itself. Derived from its calls, because several
    /// vendors give the same reason with and without calls.
    pub(crate) fn natural_end(&self) -> FinishReason {
        if self.has_calls() {
            FinishReason::ToolCalls
        } else {
            FinishReason::Stop
        }
    }

    /// Returns true if there is text that is not blank.
    pub(crate) fn has_text(&self) -> bool {
        self.parts.iter().any(|part| {
                matches!(&part.content, Draft::Text(TextKind::Text, text) if !text.trim().is_empty())
            })
    }

    /// Returns the parts, in order. `origin` is the model that answered: provider state is marked
    /// with it, because only that model takes it back.
    pub(crate) fn finish(mut self, origin: &ModelId) -> Vec<Part> {
        let parts = self.parts.into_iter().map(|part| {
            // Thinking, calls and traces always have a state, if only an empty one: its origin says
            // which model they may go back to.
            let (content, state) = match part.content {
                Draft::Text(TextKind::Text, text) => (Content::Text { text }, part.state),
                Draft::Text(TextKind::Refusal, text) => (Content::Refusal { text }, part.state),
                Draft::Text(TextKind::Thinking, text) => (
                    Content::Thinking { text },
                    Some(part.state.unwrap_or_else(empty_object)),
                ),
                Draft::Opaque(kind) => (Content::Opaque { kind }, part.state),
                Draft::Call(index) => {
                    let call = std::mem::take(&mut self.calls[index]);
                    let content = ToolCall::from_json_text(
                        index,
                        call.provider_id,
                        call.name,
                        &call.arguments,
                    );
                    (
                        Content::ToolCall(content),
                        Some(call.state.unwrap_or_else(empty_object)),
                    )
                }
            };
            let state = state.map(|data| ProviderState {
                origin: origin.clone(),
                data,
            });
            Part::from_provider(content, state)
        });
        parts.collect()
    }
}

impl OpenCall {
    /// Returns true if the fragment has this call's id or, without an id, its index. One with
    /// neither means the newest call.
    fn is_named_by(&self, fragment: &CallFragment<'_>) -> bool {
        match fragment.id() {
            Some(id) => self.provider_id.as_deref() == Some(id),
            None => fragment.index.is_none() || fragment.index == self.index,
        }
    }

    /// Returns true if the fragment is this call as a whole, which is complete already: some
    /// servers repeat a call in the last chunk. A name without an id may also begin an equal call,
    /// if the server gives no ids.
    fn is_repeated_by(&self, fragment: &CallFragment<'_>) -> bool {
        let may_repeat = match fragment.name() {
            Some(name) => name == self.name && self.provider_id.is_some(),
            None => true,
        };
        // A fragment far shorter than the call is not the whole call. Without this test, every
        // fragment would cost the time to parse all of the call so far.
        let is_long = fragment.arguments.len().saturating_mul(4) >= self.arguments.len();
        may_repeat
            && is_long
            && parse_arguments(fragment.arguments)
                .is_some_and(|repeated| parse_arguments(&self.arguments) == Some(repeated))
    }

    fn continues_with(&self, fragment: &CallFragment<'_>) -> bool {
        // Several servers give calls neither an id nor an index: behind complete arguments, another
        // name or more arguments with a name are the next call. Only blanks may still follow JSON.
        if fragment.id().is_none()
            && let Some(name) = fragment.name()
            && ((!self.name.is_empty() && name != self.name)
                || !fragment.arguments.trim().is_empty())
            && parse_arguments(&self.arguments).is_some()
        {
            return false;
        }
        match (fragment.index, fragment.id()) {
            // Several vendors number every parallel call 0; a different id is a different call all
            // the same.
            (Some(index), Some(id)) => {
                self.index == Some(index)
                    && self.provider_id.as_deref().is_none_or(|known| known == id)
            }
            (Some(index), None) => self.index == Some(index),
            (None, Some(id)) => self.provider_id.as_deref() == Some(id),
            (None, None) => true,
        }
    }
}

/// Returns the arguments of a call that is complete; `None` if there are none or more may come.
fn parse_arguments(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

impl<'a> CallFragment<'a> {
    /// Returns the id unless it is empty, as some vendors send it.
    fn id(&self) -> Option<&'a str> {
        self.provider_id.filter(|id| !id.is_empty())
    }

    /// Returns the name unless it is empty, as some vendors send it.
    fn name(&self) -> Option<&'a str> {
        self.name.filter(|name| !name.is_empty())
    }
}

fn empty_object() -> Value {
    Value::Object(Map::new())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn calls(assembly: Assembly) -> Vec<(Option<String>, String, Value, bool)> {
        let parts = assembly.finish(&ModelId::new("test", "m").unwrap());
        parts
            .into_iter()
            .map(|part| match part.content {
                Content::ToolCall(call) => (
                    call.provider_id,
                    call.name,
                    Value::Object(call.arguments),
                    call.malformed.is_some(),
                ),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn fragment<'a>(
        index: u64,
        id: Option<&'a str>,
        name: Option<&'a str>,
        arguments: &'a str,
    ) -> CallFragment<'a> {
        CallFragment {
            index: Some(index),
            provider_id: id,
            name,
            arguments,
        }
    }

    #[test]
    fn words_join_unless_one_of_them_carries_state() {
        let mut assembly = Assembly::default();
        assembly.text("a", None);
        assembly.text("b", None);
        assembly.text("", Some(json!({"signature": "s"})));
        assembly.text("c", None);
        let parts = assembly.finish(&ModelId::new("test", "m").unwrap());
        let said: Vec<(String, bool)> = parts
            .into_iter()
            .map(|part| match part.content {
                Content::Text { text } => (text, part.state.is_some()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            said,
            [
                ("ab".into(), false),
                (String::new(), true),
                ("c".into(), false)
            ]
        );
    }

    #[test]
    fn calls_are_told_apart_by_index_and_by_id() {
        let mut assembly = Assembly::default();
        assembly.call(fragment(0, Some("x"), Some("a"), "{\"n\":"), None);
        assembly.call(fragment(0, Some("y"), Some("b"), ""), None);
        assembly.call(fragment(0, Some("x"), None, "1}"), None);
        assembly.call(
            CallFragment {
                provider_id: Some("y"),
                arguments: "{}",
                ..CallFragment::default()
            },
            None,
        );
        assert_eq!(
            calls(assembly),
            [
                (Some("x".into()), "a".into(), json!({"n": 1}), false),
                (Some("y".into()), "b".into(), json!({}), false)
            ]
        );
    }

    #[test]
    fn whole_calls_without_id_and_number_are_told_apart() {
        let mut assembly = Assembly::default();
        for (index, name, arguments) in [
            (None, "a", "{}"),
            (None, "a", "{\"n\": 1}"),
            (Some(0), "b", "{\"n\":"),
            (Some(0), "b", "2}"),
            (Some(0), "c", "{}"),
        ] {
            let name = Some(name);
            assembly.call(
                CallFragment {
                    index,
                    provider_id: None,
                    name,
                    arguments,
                },
                None,
            );
        }
        let made: Vec<(String, Value)> = calls(assembly)
            .into_iter()
            .map(|call| (call.1, call.2))
            .collect();
        let expected = [
            ("a", json!({})),
            ("a", json!({"n": 1})),
            ("b", json!({"n": 2})),
            ("c", json!({})),
        ];
        assert_eq!(
            made,
            expected.map(|(name, arguments)| (name.to_owned(), arguments))
        );
    }

    #[test]
    fn a_complete_call_that_is_sent_again_is_one_call() {
        let whole = "{\"n\": {}, \"m\": \" \"}";
        let pieces = ["{\"n\"", ": ", "{}", ", \"m\": \"", " ", "\"", "}"];
        for repeated in [
            fragment(0, Some("x"), Some("a"), whole),
            fragment(0, Some("x"), Some("a"), "{\"n\":{},\"m\":\" \"}"),
            fragment(0, None, Some("a"), whole),
            fragment(0, None, None, whole),
            fragment(7, Some("x"), Some("a"), whole),
            CallFragment {
                index: None,
                ..fragment(0, Some("x"), Some("a"), whole)
            },
            // Blanks behind the last bracket are a part of the JSON.
            fragment(0, Some("x"), Some("a"), "\n"),
        ] {
            for id in [None, Some("x")] {
                let mut assembly = Assembly::default();
                assembly.call(fragment(0, Some("x"), Some("a"), ""), None);
                for piece in pieces {
                    assembly.call(fragment(0, id, None, piece), None);
                }
                assembly.call(repeated, None);
                assert_eq!(
                    calls(assembly),
                    [(
                        Some("x".into()),
                        "a".into(),
                        json!({"n": {}, "m": " "}),
                        false
                    )],
                    "{repeated:?}"
                );
            }
        }
    }

    #[test]
    fn equal_calls_with_ids_of_their_own_are_two_calls() {
        let mut assembly = Assembly::default();
        for id in ["x", "y"] {
            assembly.call(fragment(0, Some(id), Some("a"), "{\"n\":1}"), None);
        }
        assert_eq!(calls(assembly).len(), 2);
    }

    #[test]
    fn a_call_without_id_and_arguments_ends_the_one_before() {
        let mut assembly = Assembly::default();
        for (name, arguments) in [(Some("a"), "{}"), (Some("b"), ""), (None, "{\"n\":1}")] {
            let fragment = CallFragment {
                name,
                arguments,
                ..CallFragment::default()
            };
            assembly.call(fragment, None);
        }
        let expected = [("a", json!({})), ("b", json!({"n": 1}))]
            .map(|(name, arguments)| (None, name.to_owned(), arguments, false));
        assert_eq!(calls(assembly), expected);
    }

    #[test]
    fn arguments_may_come_before_the_name() {
        let mut assembly = Assembly::default();
        assembly.call(fragment(3, None, None, "{\"n\": 1"), None);
        assembly.call(fragment(3, Some(""), Some("late"), "}"), None);
        assert_eq!(
            calls(assembly),
            [(None, "late".into(), json!({"n": 1}), false)]
        );
    }

    #[test]
    fn no_arguments_are_an_empty_object_and_cut_ones_are_malformed() {
        let mut assembly = Assembly::default();
        assembly.call(fragment(0, None, Some("a"), ""), None);
        assembly.call(fragment(1, None, Some("b"), "null"), None);
        assembly.call(fragment(2, None, Some("c"), "{\"n\": "), None);
        let malformed: Vec<bool> = calls(assembly).into_iter().map(|call| call.3).collect();
        assert_eq!(malformed, [false, false, true]);
    }

    proptest! {
        /// Any number of parallel calls, their fragments of any size and in any interleaving: the
        /// calls come out the same.
        #[test]
        fn the_cuts_do_not_matter(
            texts in proptest::collection::vec("[a-zäö\\\\\"{}🦀]{0,12}", 1..4),
            order in proptest::collection::vec((0usize..4, 1usize..6), 0..80),
        ) {
            let arguments: Vec<String> = texts.iter().map(|text| json!({ "text": text }).to_string()).collect();
            let mut rest: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let names: Vec<String> = (0..rest.len()).map(|at| format!("tool_{at}")).collect();
            let mut assembly = Assembly::default();
            for (at, name) in names.iter().enumerate() {
                assembly.call(fragment(at as u64, None, Some(name), ""), None);
            }
            let count = rest.len();
            for (at, chars) in order.into_iter().map(|(at, chars)| (at % count, chars)).chain((0..count).map(|at| (at, usize::MAX))) {
                let end = rest[at].char_indices().nth(chars).map_or(rest[at].len(), |(end, _)| end);
                let (now, later) = rest[at].split_at(end);
                assembly.call(fragment(at as u64, None, None, now), None);
                rest[at] = later;
            }
            let expected: Vec<_> =
                texts.iter().zip(names).map(|(text, name)| (None, name, json!({ "text": text }), false)).collect();
            prop_assert_eq!(calls(assembly), expected);
        }
    }
}
