//! Plays a row through the whole engine and says where it went another way than the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adjutant::port::DeltaStream;
use adjutant::{
    Agent, AgentResponse, Arguments, BoxFuture, Capabilities, Delta, GenerateRequest,
    GenerateResponse, LanguageModel, ModelError, ModelId, RunContext, RunEvent, Tool, ToolContext,
    ToolDefinition, ToolError, TurnLimits,
};
use adjutant_providers::{Connection, HttpModel, Provider, Transport};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::dialect::{Dialect, Wire, render};
use super::table::{Expected, KEY_ADVICE, MODEL, Row, rows};
use crate::server::Server;

const KEY: &str = "key-that-nobody-may-see";

/// The way in which the engine is driven.
#[derive(Debug, Clone, Copy)]
enum Drive {
    /// `Agent::run`.
    Run,
    /// `Agent::stream`.
    Stream,
}

const WAYS: [(Drive, Wire); 4] = [
    (Drive::Run, Wire::Streamed),
    (Drive::Stream, Wire::Streamed),
    (Drive::Run, Wire::Drained),
    (Drive::Run, Wire::Whole),
];

/// Number of rows that are played at a time. Most of them wait, for a retry or for silence.
const AT_ONCE: usize = 32;

/// Plays every row in every way and fails with everything that went wrong. All but the first
/// dialect are other servers behind the same adapter: they are spared what is the engine's and the
/// transport's alone, events and silence.
pub(super) async fn play(dialects: &[&dyn Dialect]) {
    let transport = Transport::new().unwrap();
    let mut plays = Vec::new();
    for (at, dialect) in dialects.iter().enumerate() {
        for row in rows().into_iter().chain(dialect.own()) {
            for (drive, wire) in WAYS {
                if at == 0 || matches!(drive, Drive::Run) && !row.circumstances.waits() {
                    plays.push((*dialect, row.clone(), drive, wire));
                }
            }
        }
    }
    let found: Vec<Vec<String>> = stream::iter(plays)
        .map(async |(dialect, row, drive, wire)| {
            let found = play_one(dialect, &row, drive, wire, transport.clone()).await;
            let place = format!("{}: {} ({drive:?}, {wire:?})", dialect.provider(), row.name);
            found
                .into_iter()
                .map(|found| format!("{place}: {found}"))
                .collect()
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut found = found.concat();
    found.sort();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

async fn play_one(
    dialect: &dyn Dialect,
    row: &Row,
    drive: Drive,
    wire: Wire,
    transport: Transport,
) -> Vec<String> {
    let server = Server::start(
        row.replies
            .iter()
            .map(|reply| render(dialect, wire, reply))
            .collect(),
    )
    .await;
    let provider = Provider::find(dialect.provider()).unwrap();
    let mut connection = Connection::new(transport).with_key(KEY.to_owned().into());
    connection.base_url = Some(server.url.clone());
    connection.timeout = Some(row.circumstances.patience);
    connection.retries = row.circumstances.retries;
    let model = Reached {
        model: provider.model(dialect.form().model(), connection).unwrap(),
        wire,
    };
    let note = AddNote::new();
    let effects = note.effects.clone();
    let agent = Agent::builder("notes")
        .instruction("Keep notes.")
        .model(model)
        .tool(note)
        .report_failed_calls(true)
        .limits(TurnLimits {
            turn_deadline: Some(row.circumstances.turn_deadline),
            ..TurnLimits::default()
        })
        .build()
        .unwrap();
    let mut found = Vec::new();
    let response = match drive {
        Drive::Run => agent.run("Note milk, please.").await.unwrap(),
        Drive::Stream => streamed(&agent, &mut found).await,
    };
    let asked: Vec<String> = server
        .received()
        .into_iter()
        .map(|asked| asked.body)
        .collect();
    let expected = match (&row.own_server, wire) {
        (Some(own_server), _) if !dialect.is_vendor_everywhere() => own_server,
        (_, Wire::Streamed) => &row.streamed,
        (_, Wire::Drained) => row.drained.as_ref().unwrap_or(&row.whole),
        (_, Wire::Whole) => &row.whole,
    };
    let known = |word: &str| match word {
        KEY_ADVICE => provider.key_advice.to_owned(),
        MODEL => dialect.form().model().to_owned(),
        word => word.to_owned(),
    };
    found.extend(differences(
        expected,
        &response,
        &asked,
        effects.load(Ordering::Relaxed),
        known,
    ));
    found
}

async fn streamed(agent: &Agent, found: &mut Vec<String>) -> AgentResponse {
    let mut stream = agent.stream(&RunContext::default(), "Note milk, please.");
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event);
    }
    let (response, _) = stream.finish().await.unwrap();
    match last {
        Some(RunEvent::Finished(finished)) if *finished == response => {}
        other => found.push(format!("the last event is {other:?}")),
    }
    response
}

fn differences(
    expected: &Expected,
    response: &AgentResponse,
    asked: &[String],
    effects: usize,
    known: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut differs = |what: &str, is: String, wanted: String| {
        if is != wanted {
            found.push(format!("{what} is {is}, not {wanted}"));
        }
    };
    let cause = response.error.as_ref();
    differs(
        "the outcome",
        response.outcome.to_string(),
        expected.outcome.to_string(),
    );
    differs(
        "the code",
        format!("{:?}", cause.map(|error| error.code())),
        format!("{:?}", expected.code),
    );
    differs(
        "the number of requests",
        asked.len().to_string(),
        expected.asked.to_string(),
    );
    differs(
        "the number of effects",
        effects.to_string(),
        expected.effects.to_string(),
    );
    let model_reads = asked
        .last()
        .map(|body| words(&serde_json::from_str(body).unwrap()))
        .unwrap_or_default();
    let cause = cause.map(ToString::to_string).unwrap_or_default();
    for (what, wanted, text) in [
        ("the model did not read", expected.model_reads, &model_reads),
        ("the person does not read", expected.says, &response.content),
        ("the cause does not say", expected.cause, &cause),
    ] {
        let missing = wanted
            .iter()
            .map(|word| known(word))
            .filter(|word| !text.contains(word.as_str()));
        found.extend(missing.map(|word| format!("{what} {word:?}, but {text:?}")));
    }
    if response.content.trim().is_empty() {
        found.push("there are no words for the person".to_owned());
    }
    if format!("{response:?}").contains(KEY) {
        found.push("the key is in the response".to_owned());
    }
    found
}

/// All texts of a JSON value, also those in JSON inside texts.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => words(&inner),
            Ok(_) | Err(_) => text.clone(),
        },
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join("\n"),
        Value::Object(map) => map.values().map(words).collect::<Vec<_>>().join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// A vendor's model, asked in one of the two ways an adapter can be asked. The engine itself always
/// streams.
struct Reached {
    model: HttpModel,
    wire: Wire,
}

impl LanguageModel for Reached {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.model.capabilities()
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        self.model.generate(request)
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        match self.wire {
            Wire::Streamed => self.model.stream(request),
            Wire::Drained | Wire::Whole => Box::pin(async move {
                let response = self.model.generate(request).await?;
                let whole: DeltaStream = Box::pin(stream::iter([Ok(Delta::Finished(response))]));
                Ok(whole)
            }),
        }
    }
}

/// A tool that counts what it did.
struct AddNote {
    definition: ToolDefinition,
    effects: Arc<AtomicUsize>,
}

impl AddNote {
    fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": { "text": { "type": "string", "description": "What to note" } },
            "required": ["text"],
            "additionalProperties": false
        });
        Self {
            definition: ToolDefinition::new("add_note", "Adds a note.", parameters).unwrap(),
            effects: Arc::default(),
        }
    }
}

impl Tool for AddNote {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            self.effects.fetch_add(1, Ordering::Relaxed);
            match arguments["text"].as_str().unwrap() {
                "fail" => Err(ToolError::failed("the paper is gone")),
                "panic" => panic!("a tool that panics is part of the test"),
                "hang" => std::future::pending().await,
                text => Ok(json!(format!("{text} added"))),
            }
        })
    }

    fn timeout(&self) -> Option<Duration> {
        Some(Duration::from_millis(50))
    }
}
