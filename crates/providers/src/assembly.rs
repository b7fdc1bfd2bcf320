//! Puts an answer together from the pieces a vendor sends: the same for every wire, streamed or
//! not.
//!
//! Order is kept, and opaque state stays on the piece it came with.

use adjutant_core::{Content, Delta, ModelId, Part, ProviderState, ToolCall};
use serde_json::{Map, Value};

/// Calls whose arguments may come at the same time; those before have all of theirs.
const OPEN_CALLS_MAX: usize = 128;

/// An answer taking shape.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pieces: Vec<Piece>,
    calls: Vec<OpenCall>,
}

#[derive(Debug)]
struct Piece {
    what: What,
    state: Option<Value>,
}

#[derive(Debug)]
enum What {
    Text(String),
    Thinking(String),
    Refusal(String),
    Opaque(String),
    /// The call of this number; its state is with it.
    Call(usize),
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

/// What a vendor says about a call in one go: everything, or a fragment. Fragments of one call
/// share its index or its id; one with neither belongs to the call before it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CallFragment<'a> {
    /// The vendor's number of the call in this answer.
    pub(crate) index: Option<u64>,
    /// The vendor's id of the call.
    pub(crate) provider_id: Option<&'a str>,
    /// The tool's name.
    pub(crate) name: Option<&'a str>,
    /// More of the arguments' JSON text.
    pub(crate) arguments: &'a str,
}

impl Assembly {
    /// More words. Words without state join the words before them; words with state stand for
    /// themselves.
    pub(crate) fn text(&mut self, words: &str, state: Option<Value>) -> Option<Delta> {
        let joins = match self.pieces.last_mut() {
            Some(Piece {
                what: What::Text(text),
                state: None,
            }) if state.is_none() => Some(text),
            _ => None,
        };
        match joins {
            Some(text) => text.push_str(words),
            None if words.is_empty() && state.is_none() => {}
            None => self.pieces.push(Piece {
                what: What::Text(words.to_owned()),
                state,
            }),
        }
        (!words.is_empty()).then(|| Delta::Text(words.to_owned()))
    }

    /// More thinking, joined like words.
    pub(crate) fn thinking(&mut self, words: &str, state: Option<Value>) -> Option<Delta> {
        let joins = match self.pieces.last_mut() {
            Some(Piece {
                what: What::Thinking(text),
                state: None,
            }) if state.is_none() => Some(text),
            _ => None,
        };
        match joins {
            Some(text) => text.push_str(words),
            None if words.is_empty() && state.is_none() => {}
            None => self.pieces.push(Piece {
                what: What::Thinking(words.to_owned()),
                state,
            }),
        }
        (!words.is_empty()).then(|| Delta::Thinking(words.to_owned()))
    }

    /// More of the vendor's own form of declining, joined like words. No delta shows it.
    pub(crate) fn refusal(&mut self, words: &str, state: Option<Value>) {
        match self.pieces.last_mut() {
            Some(Piece {
                what: What::Refusal(text),
                state: None,
            }) if state.is_none() => text.push_str(words),
            _ if words.is_empty() && state.is_none() => {}
            _ => self.pieces.push(Piece {
                what: What::Refusal(words.to_owned()),
                state,
            }),
        }
    }

    /// A trace of something the vendor did itself.
    pub(crate) fn opaque(&mut self, kind: &str, state: Value) {
        self.pieces.push(Piece {
            what: What::Opaque(kind.to_owned()),
            state: Some(state),
        });
    }

    /// A call or a fragment of one.
    pub(crate) fn call(&mut self, fragment: CallFragment<'_>, state: Option<Value>) -> Delta {
        let old = self.calls.len().saturating_sub(OPEN_CALLS_MAX);
        let open = self.calls[old..]
            .iter()
            .rposition(|call| call.continues_with(&fragment));
        let index = open.map(|open| old + open).unwrap_or_else(|| {
            self.calls.push(OpenCall {
                index: fragment.index,
                ..OpenCall::default()
            });
            self.pieces.push(Piece {
                what: What::Call(self.calls.len() - 1),
                state: None,
            });
            self.calls.len() - 1
        });
        let call = &mut self.calls[index];
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

    /// Whether a tool was called.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether anything was said.
    pub(crate) fn has_text(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(&piece.what, What::Text(text) if !text.trim().is_empty()))
    }

    /// The parts, in order. What can only go back to the model it came from says which that was.
    pub(crate) fn finish(mut self, origin: &ModelId) -> Vec<Part> {
        let state = |data| ProviderState {
            origin: origin.clone(),
            data,
        };
        let parts = self.pieces.into_iter().map(|piece| match piece.what {
            What::Text(text) => Part::from_provider(Content::Text { text }, piece.state.map(state)),
            What::Thinking(text) => Part::from_provider(
                Content::Thinking { text },
                Some(state(piece.state.unwrap_or_else(nothing))),
            ),
            What::Refusal(text) => {
                Part::from_provider(Content::Refusal { text }, piece.state.map(state))
            }
            What::Opaque(kind) => Part::from_provider(
                Content::Opaque { kind },
                Some(state(piece.state.unwrap_or_else(nothing))),
            ),
            What::Call(index) => {
                let call = std::mem::take(&mut self.calls[index]);
                let content =
                    ToolCall::from_json_text(index, call.provider_id, call.name, &call.arguments);
                Part::from_provider(
                    Content::ToolCall(content),
                    Some(state(call.state.unwrap_or_else(nothing))),
                )
            }
        });
        parts.collect()
    }
}

impl OpenCall {
    fn continues_with(&self, fragment: &CallFragment<'_>) -> bool {
        // Several servers give whole calls neither an id nor a number of their own: what names
        // itself behind complete arguments is the next one.
        let named = fragment.name.is_some_and(|name| !name.is_empty());
        if fragment.id().is_none()
            && named
            && !fragment.arguments.trim().is_empty()
            && self.is_complete()
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

impl OpenCall {
    fn is_complete(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }
}

impl<'a> CallFragment<'a> {
    /// The id, if it is one: some vendors send an empty one.
    fn id(&self) -> Option<&'a str> {
        self.provider_id.filter(|id| !id.is_empty())
    }
}

fn nothing() -> Value {
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
