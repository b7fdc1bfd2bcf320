use serde_json::{Value, json};

use crate::WeakTools;
use adjutant_core::{
    Annotations, Content, FinishReason, GenerateRequest, GenerateResponse, Message, ModelId, Part,
    ProviderId, Reference, ReferenceArgument, Schema, ToolDefinition, Usage,
};

const TASKS: &str = include_str!("../../../../prompts/weak/todo.jsonl");
const MEMORY: &str = include_str!("../../../../prompts/weak/memory.jsonl");

fn tool(name: &str, argument: &str, required: bool, annotations: Annotations) -> ToolDefinition {
    let required = if required {
        json!([argument])
    } else {
        json!([])
    };
    let parameters = json!({
        "type": "object",
        "properties": { argument: { "type": "string" } },
        "required": required,
        "additionalProperties": false
    });
    ToolDefinition::new(name, "Does it.", parameters)
        .unwrap()
        .annotated(annotations)
}

fn tools_for_tasks() -> Vec<ToolDefinition> {
    let none = Annotations::default();
    let mut complete = tool("complete_task", "task_id", true, none);
    complete.references.push(ReferenceArgument {
        argument: "task_id".into(),
        kind: "task".into(),
    });
    vec![tool("add_task", "description", true, none), complete]
}

fn tools() -> Vec<ToolDefinition> {
    let none = Annotations::default();
    let mut tools = tools_for_tasks();
    tools.extend([
        tool("remember", "fact", true, none),
        tool(
            "recall",
            "query",
            false,
            Annotations {
                read_only: true,
                ..none
            },
        ),
        tool("write_daily_note", "activity", true, none),
        tool(
            "forget",
            "fact",
            true,
            Annotations {
                destructive: true,
                ..none
            },
        ),
    ]);
    tools
}

fn request(message: &str, tools: Vec<ToolDefinition>) -> GenerateRequest {
    let messages = vec![
        Message::system("Long.").unwrap(),
        Message::user(message).unwrap(),
    ];
    GenerateRequest {
        tools: tools.into(),
        ..GenerateRequest::new(messages)
    }
}

fn things() -> Vec<Reference> {
    vec![Reference {
        kind: "task".into(),
        id: "1".into(),
        label: "Buy milk".into(),
        done: false,
    }]
}

fn weak() -> WeakTools {
    WeakTools::from_jsonl(TASKS)
        .unwrap()
        .with_on_demand(WeakTools::from_jsonl(MEMORY).unwrap())
}

/// Decodes an answer of the model to one part a line.
fn decoded(message: &str, answer: &str) -> String {
    let response = GenerateResponse {
        parts: vec![Part::ours(Content::Text {
            text: answer.into(),
        })],
        finish: FinishReason::Stop,
        usage: Usage::default(),
        model: ModelId {
            provider: ProviderId::new("embedded").unwrap(),
            name: "small".into(),
        },
        counters: adjutant_core::Counters::default(),
        cost: None,
        losses: Vec::new(),
        certainty: None,
    };
    let lines = weak()
        .decode(response, &request(message, tools()), &things(), None)
        .parts;
    let lines = lines.iter().map(|part| match &part.content {
        Content::Text { text } => format!("says {text}"),
        Content::ToolCall(call) => {
            format!("{} {}", call.name, Value::Object(call.arguments.clone()))
        }
        other => format!("{other:?}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns true if the schema for a message takes an answer.
fn takes(message: &str, answer: &Value) -> bool {
    let encoded = weak().encode(&request(message, tools()), &things(), None);
    Schema::compile(&encoded.response_schema.unwrap())
        .unwrap()
        .check(answer)
        .is_ok()
}

#[test]
fn the_words_of_a_call_are_the_persons() {
    let invented = r#"[{"remember":{"fact":"The sky is green"}}]"#;
    assert_eq!(
        decoded("my sister is called Anna", invented),
        r#"remember {"fact":"My sister is called Anna"}"#
    );
    assert_eq!(
        decoded(
            "Remember that I live in Bonn. My boss is Dr. Weiss.",
            invented
        ),
        "remember {\"fact\":\"I live in Bonn\"}\nremember {\"fact\":\"My boss is Dr. Weiss\"}"
    );
    let nothing = r#"[{"recall":{}}]"#;
    assert_eq!(decoded("what do you know about me?", nothing), "recall {}");
    assert_eq!(
        decoded("what's my age?", nothing),
        r#"recall {"query":"what's my age?"}"#
    );
    // Nothing is stated, so nothing is remembered.
    assert!(decoded("what a day", invented).starts_with("ask_user"));
}

#[test]
fn what_is_ordered_beyond_doubt_is_called_whatever_the_model_says() {
    let talk = r#"[{"small-talk":{"text":"Fine."}}]"#;
    assert_eq!(
        decoded("Remember that I live in Bonn", talk),
        r#"remember {"fact":"I live in Bonn"}"#
    );
    assert_eq!(
        decoded("Remember that I live in Bonn", "no list"),
        r#"remember {"fact":"I live in Bonn"}"#
    );
    assert_eq!(
        decoded("log that I ran", talk),
        r#"write_daily_note {"activity":"I ran"}"#
    );
    assert_eq!(
        decoded(
            "Remember that Tom sings and add buy soap",
            r#"[{"add_task":{"description":"Buy soap"}}]"#
        ),
        "add_task {\"description\":\"Buy soap\"}\nremember {\"fact\":\"Tom sings\"}"
    );
    assert_eq!(
        decoded("my sister is called Anna", talk),
        "says Fine.",
        "here it is the model's to say"
    );
    assert_eq!(
        decoded("can you remember something?", talk),
        r#"ask_user {"question":"What exactly should I remember?"}"#
    );
}

#[test]
fn words_that_claim_a_change_become_a_question() {
    for claim in [
        "I will remember that.",
        "I've noted that.",
        "Got it, saved!",
        "Noted.",
        "I'll keep that in mind.",
        "I see. I will make sure to use it.",
        "It's stored now.",
        "I have written it down.",
        "Let me note that.",
        "All right, I'll take care of that.",
        "I'll wake you at 7.",
        "Your stopwatch is running.",
        "Das habe ich mir gemerkt.",
        "C'est noté !",
        "Lo tendré en cuenta.",
        "Pode deixar comigo.",
        "Ho preso nota di tua sorella.",
        "\u{8986}\u{3048}\u{307e}\u{3057}\u{305f}\u{3002}",
    ] {
        let says = json!([{ "small-talk": { "text": claim } }]).to_string();
        assert_eq!(
            decoded("my sister is called Anna", &says),
            r#"ask_user {"question":"Do you want me to remember “My sister is called Anna”?"}"#,
            "{claim}"
        );
        assert!(
            decoded("what a day", &says).contains("changed nothing"),
            "{claim}"
        );
    }
    for harmless in [
        "I can remember facts for you.",
        "You are welcome. See you!",
        "All right, it stays on your list.",
    ] {
        let says = json!([{ "small-talk": { "text": harmless } }]).to_string();
        assert_eq!(decoded("what a day", &says), format!("says {harmless}"));
    }
}

#[test]
fn the_schema_offers_what_the_message_can_mean() {
    let remember = |fact: &str| json!([{ "remember": { "fact": fact } }]);
    let talk = json!([{ "small-talk": { "text": "Fine." } }]);
    assert!(takes(
        "my sister is called Anna",
        &remember("My sister is called Anna")
    ));
    assert!(!takes(
        "my sister is called Anna",
        &remember("My sister is called Berta")
    ));
    assert!(takes("my sister is called Anna", &talk));
    assert!(!takes("Remember that my sister is called Anna", &talk));
    assert!(!takes(
        "my sister is called Anna",
        &json!([{ "add_task": { "description": "Anna" } }])
    ));
    assert!(!takes("buy soap", &remember("Buy soap")));
    // "Milk" may be the task that is open.
    assert!(takes("I drink milk", &remember("I drink milk")));
    assert!(takes(
        "I drink milk",
        &json!([{ "complete_task": { "task_id": "Buy milk" } }])
    ));
}

#[test]
fn requests_without_words_for_these_tools_are_what_they_are_without_the_tools() {
    let with = |message: &str| weak().encode(&request(message, tools()), &things(), None);
    let without = |message: &str| {
        WeakTools::from_jsonl(TASKS).unwrap().encode(
            &request(message, tools_for_tasks()),
            &things(),
            None,
        )
    };
    let shown = |request: &GenerateRequest| -> Vec<String> {
        request
            .messages
            .iter()
            .map(|message| format!("{:?} {}", message.role(), message.text()))
            .collect()
    };
    for message in [
        "I need soap",
        "what do I have to do?",
        "hi",
        "bought the milk",
        "tell me a joke",
    ] {
        assert_eq!(shown(&with(message)), shown(&without(message)), "{message}");
        assert_eq!(
            with(message).response_schema,
            without(message).response_schema,
            "{message}"
        );
    }
    // With a text for them, they stand behind all that other requests begin with.
    let more = shown(&with("Remember that I live in Bonn"));
    let (_, head) = without("hi")
        .messages
        .split_last()
        .map(|(last, head)| (last.clone(), head.len()))
        .unwrap();
    assert_eq!(more[..head], shown(&without("hi"))[..head]);
    assert!(
        more[head].contains("More actions:\n- remember(fact): Does it.\n- recall(query)"),
        "{}",
        more[head]
    );
    assert_eq!(
        more.last().unwrap(),
        "User Message: Remember that I live in Bonn"
    );
}
