//! Whatever bytes come, no vendor's decoder breaks, and where they are cut makes no difference.

mod seeds; // a good answer in each language

use std::collections::VecDeque;
use std::sync::LazyLock;

use adjutant_core::{Delta, Message, ToolDefinition};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::*;
use crate::chunked_streams::{Outcome, decode_chunks};
use crate::decode::Progress;
use crate::http::Transport;
use crate::provider::Provider;

use seeds::{Seed, seed};

/// A call to a vendor, and a good answer of this vendor.
struct Subject {
    model: HttpModel,
    call: EncodedCall,
    seed: &'static Seed,
}

/// Every row of the table.
static SUBJECTS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
    let transport = Transport::new().unwrap();
    let mut request = GenerateRequest::new(vec![Message::user("Note milk.").unwrap()]);
    let parameters = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    request.tools =
        request
            .tools
            .with([ToolDefinition::new("add_note", "Adds a note.", parameters).unwrap()]);
    let subject = |provider: &'static Provider| {
        let mut connection = Connection::new(transport.clone()).with_key("key".to_owned().into());
        connection.base_url = Some("http://localhost:1".parse().unwrap());
        let model = provider.model("p/l/m", connection).unwrap();
        let call = EncodedCall {
            context: model.0.wire.request_context(&request),
            inner: model.0.clone(),
            streamed: true,
            headers: Vec::new(),
            body: Bytes::new(),
            losses: Vec::new(),
            trace: None,
            time_left: None,
            waits_for_overload: true,
        };
        Subject {
            call,
            seed: seed(provider.name),
            model,
        }
    };
    Provider::all().map(subject).collect()
});

impl Subject {
    /// Reads a stream that is cut after these numbers of bytes.
    fn read(&self, bytes: &[u8], cuts: &[usize]) -> Outcome {
        decode_chunks(self.call.decoder(), bytes, cuts)
    }

    fn read_whole(&self, body: &str) -> Result<GenerateResponse, ModelError> {
        self.call.decode(body)
    }
}

fn subject() -> impl Strategy<Value = &'static Subject> {
    select(SUBJECTS.iter().collect::<Vec<_>>())
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.model.0.vendor.model)
    }
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0usize..40, 0..60)
}

/// A JSON value where another one is expected.
fn misfit() -> impl Strategy<Value = Value> {
    select(vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(7),
        json!(1.5e300),
        json!(u64::MAX),
        json!(""),
        json!("x\u{0}\u{fffd}"),
        json!("{\"text\": \"mi"),
        json!("<tool_call>{\"name\": \"add_note\""),
        json!([]),
        json!([null, [], {}]),
        json!({}),
        json!({ "type": "error", "error": { "message": "no" } }),
        json!({ "type": "no_such_type", "index": 99, "text": null }),
    ])
}

/// A change of one place of a JSON value: another value there, or none.
type Damage = (Index, Option<Value>);

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    proptest::collection::vec(
        (any::<Index>(), proptest::option::weighted(0.8, misfit())),
        1..5,
    )
}

fn damaged(mut value: Value, damage: &[Damage]) -> Value {
    for (at, instead) in damage {
        let mut places = Vec::new();
        pointers(&value, "", &mut places);
        let place = at.get(&places).clone();
        match instead {
            Some(misfit) => *value.pointer_mut(&place).unwrap() = misfit.clone(),
            None => {
                let Some((parent, name)) = place.rsplit_once('/') else {
                    continue;
                };
                match value.pointer_mut(parent) {
                    Some(Value::Object(map)) => drop(map.remove(name)),
                    Some(Value::Array(items)) => drop(items.remove(name.parse().unwrap())),
                    _ => {}
                }
            }
        }
    }
    value
}

/// The place of every value in a value. The seeds' names need no escapes.
fn pointers(value: &Value, here: &str, places: &mut Vec<String>) {
    places.push(here.to_owned());
    match value {
        Value::Object(map) => {
            map.iter()
                .for_each(|(name, value)| pointers(value, &format!("{here}/{name}"), places));
        }
        Value::Array(items) => {
            (0..).zip(items).for_each(|(at, value): (usize, _)| {
                pointers(value, &format!("{here}/{at}"), places)
            });
        }
        _ => {}
    }
}

/// A vendor's model that thinks, or may, is silent for minutes, before it says something and in
/// between.
#[test]
fn thought_is_waited_for_wherever_a_model_may_think() {
    let transport = Transport::new().unwrap();
    let timeouts = |provider: &str, model: &str| {
        let mut connection = Connection::new(transport.clone()).with_key("key".to_owned().into());
        connection.base_url = Some("https://gateway.example".parse().unwrap());
        let row = Provider::find(provider)?;
        let timeouts = row.model(model, connection).unwrap().0.timeouts;
        Some((
            timeouts.first.as_secs(),
            timeouts.between.as_secs(),
            timeouts.retry_after_silence,
        ))
    };
    for (provider, model, seconds) in [
        ("openai", "gpt-6.2-sol", 900),
        ("openai-chat", "gpt-6-sol", 900),
        ("openai-compatible", "any", 900),
        ("azure", "prod-chat", 900),
        ("openrouter", "google/gemini-3.8-flash", 900),
        ("xai", "grok-4.7", 900),
        ("anthropic", "claude-sonnet-5-5", 900),
        ("anthropic", "kimi-k3", 900),
        ("gemini", "gemini-3.8-flash", 900),
        ("openai", "gpt-4.1", 30),
        ("groq", "llama-3.3-70b-versatile", 30),
    ] {
        // Not every build has every vendor.
        if let Some(timeouts) = timeouts(provider, model) {
            assert_eq!(timeouts, (seconds, seconds, true), "{provider}/{model}");
        }
    }
}

#[test]
fn a_stream_tells_when_nothing_more_is_to_come() {
    for subject in SUBJECTS.iter() {
        let progress = |bytes: &[u8]| {
            let mut decoder = subject.call.decoder();
            decoder.push(bytes, &mut VecDeque::new()).unwrap();
            decoder.progress()
        };
        let stream = subject.seed.stream();
        assert_eq!(
            progress(&stream.as_bytes()[..stream.len() / 2]),
            Progress::Begun,
            "{subject:?}"
        );
        let expected = match subject.model.0.vendor.model.provider.as_str() {
            "anthropic" | "ollama" | "openai" => Progress::Over,
            // Gemini has no mark of the end, and not every server of Chat Completions sends it.
            _ => Progress::Complete,
        };
        let end = progress(stream.as_bytes());
        assert!(
            end == expected || end == Progress::Over,
            "{subject:?}: {end:?}"
        );
        if subject.model.0.wire.framing() == Framing::Events {
            assert_eq!(
                progress(format!("{stream}data: [DONE]\n\n").as_bytes()),
                Progress::Over,
                "{subject:?}"
            );
        }
    }
}

#[test]
fn a_server_in_between_may_send_a_whole_answer_for_a_stream_and_a_stream_for_a_whole_one() {
    for subject in SUBJECTS.iter() {
        let whole = subject.read_whole(subject.seed.whole).unwrap();
        let (_, streamed) = subject.read(subject.seed.stream().as_bytes(), &[]);
        for mark in ["", "\u{feff}", "\n "] {
            let body = format!("{mark}{}", subject.seed.whole);
            let (deltas, end) = subject.read(body.as_bytes(), &vec![1; body.len()]);
            assert_eq!(end.as_ref().unwrap(), &whole, "{subject:?} {mark:?}");
            assert!(
                deltas.contains(&Delta::Text("Gerne, schön 🦀.".to_owned())),
                "{subject:?}: {deltas:?}"
            );
            let stream = format!("{mark}{}", subject.seed.stream());
            assert_eq!(
                &subject.read_whole(&stream).unwrap(),
                streamed.as_ref().unwrap(),
                "{subject:?}"
            );
        }
        // Half of it is no answer, and no panic.
        let half = &subject.seed.whole[..subject.seed.whole.len() / 2];
        assert!(subject.read(half.as_bytes(), &[]).1.is_err(), "{subject:?}");
    }
}

#[cfg(feature = "gemini")]
#[test]
fn a_list_of_pieces_is_a_stream_of_gemini() {
    let gemini = SUBJECTS
        .iter()
        .find(|subject| subject.model.0.vendor.model.provider.as_str() == "gemini")
        .unwrap();
    let pieces = format!("[{}\n]", gemini.seed.events.join("\n,"));
    let (_, streamed) = gemini.read(gemini.seed.stream().as_bytes(), &[]);
    assert_eq!(
        gemini.read_whole(&pieces).unwrap(),
        *streamed.as_ref().unwrap()
    );
    assert_eq!(
        gemini.read(pieces.as_bytes(), &[]).1.unwrap(),
        streamed.unwrap()
    );
}

#[test]
fn the_seeds_are_good_answers_streamed_and_whole() {
    for subject in SUBJECTS.iter() {
        let (deltas, end) = subject.read(subject.seed.stream().as_bytes(), &[]);
        let whole = subject.read_whole(subject.seed.whole).unwrap();
        for response in [end.unwrap(), whole] {
            let calls: Vec<Value> = response
                .tool_calls()
                .map(|call| call.arguments["text"].clone())
                .collect();
            assert_eq!(response.text(), "Gerne, schön 🦀.", "{subject:?}");
            assert_eq!(calls, ["milk", "bread"], "{subject:?}");
            assert!(response.usage.total().is_some(), "{subject:?}");
        }
        assert!(
            deltas.contains(&Delta::Thinking("Hm.".into())),
            "{subject:?}: {deltas:?}"
        );
    }
}

/// Wherever a stream stops, what came is an error, or the answer was complete: a part is never
/// taken for the whole.
#[test]
fn a_part_of_a_stream_is_never_another_answer() {
    for subject in SUBJECTS.iter() {
        let stream = subject.seed.stream();
        let whole = subject.read(stream.as_bytes(), &[]).1.unwrap();
        for end in 0..stream.len() {
            if let Ok(part) = subject.read(&stream.as_bytes()[..end], &[]).1 {
                assert_eq!(
                    (&part.parts, part.finish),
                    (&whole.parts, whole.finish),
                    "{subject:?}: {end}"
                );
            }
        }
        let body = subject.seed.whole;
        for end in body.char_indices().map(|(end, _)| end) {
            assert!(
                subject.read_whole(&body[..end]).is_err(),
                "{subject:?}: {}",
                &body[..end]
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_bytes_break_it(
        subject in subject(),
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        cuts in cuts(),
    ) {
        prop_assert_eq!(subject.read(&bytes, &cuts), subject.read(&bytes, &[]));
        let _ = subject.read_whole(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_wrong_bytes_in_a_stream_break_it(
        subject in subject(),
        wrong in proptest::collection::vec((any::<Index>(), proptest::option::of(any::<u8>())), 0..8),
        cuts in cuts(),
    ) {
        let mut bytes = subject.seed.stream().into_bytes();
        for (at, byte) in wrong {
            let at = at.index(bytes.len());
            match byte {
                Some(byte) => bytes[at] = byte,
                None => drop(bytes.remove(at)),
            }
        }
        prop_assert_eq!(subject.read(&bytes, &cuts), subject.read(&bytes, &[]));
    }

    #[test]
    fn no_json_in_a_stream_breaks_it(
        subject in subject(),
        damages in proptest::collection::vec((any::<Index>(), damage()), 0..4),
        again in proptest::collection::vec((any::<Index>(), any::<Index>()), 0..3),
        cuts in cuts(),
    ) {
        let mut events: Vec<Value> =
            subject.seed.events.iter().map(|event| serde_json::from_str(event).unwrap()).collect();
        for (at, damage) in damages {
            let event = &mut events[at.index(subject.seed.events.len())];
            *event = damaged(event.take(), &damage);
        }
        for (from, to) in again {
            let event = from.get(&events).clone();
            events.insert(to.index(events.len()), event);
        }
        let stream: String = events.iter().map(|event| subject.seed.frame(&event.to_string())).collect();
        prop_assert_eq!(subject.read(stream.as_bytes(), &cuts), subject.read(stream.as_bytes(), &[]));
    }

    #[test]
    fn no_json_in_a_whole_answer_breaks_it(subject in subject(), damage in damage()) {
        let body = damaged(serde_json::from_str(subject.seed.whole).unwrap(), &damage);
        let _ = subject.read_whole(&body.to_string());
    }
}
