//! Runs turns of two model calls and one tool call, with a model that answers at once and no
//! socket, so that `cargo xtask test all` can count their instructions.
//!
//! `turns memory|sqlite TURNS`: every turn is a conversation of its own.
//! `turns memory|sqlite TURNS LAST`: all turns are in one conversation, and valgrind, started with
//! `--instr-atstart=no`, counts only the last of them. The tool declares no effect class, so its
//! effect must not happen twice. SQLite is a file in a temporary folder.

use std::collections::VecDeque;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll};

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    Arguments, BoxFuture, CallId, Capabilities, Content, Counters, Delta, FinishReason,
    GenerateRequest, GenerateResponse, LanguageModel, ModelError, ModelId, OutcomeCategory, Part,
    ProviderId, Role, SchemaSupport, Tool, ToolCall, ToolContext, ToolDefinition, ToolError, Usage,
};
use adjutant_runtime::{Agent, RunContext};
use adjutant_store::sqlite;
use futures::Stream;
use jiff::Timestamp;
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: turns memory|sqlite TURNS [LAST]";
const TOOL: &str = "look_up";
const ANSWER: [&str; 8] = [
    "It", " says", " that", " the", " answer", " is", " forty", "-two.",
];

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (store, turns) = (
        arguments.next().ok_or(USAGE)?,
        arguments.next().ok_or(USAGE)?,
    );
    let turns: u32 = turns.parse()?;
    let last = arguments.next().map(|last| last.parse()).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(&store, turns, last))
}

async fn run(store: &str, turns: u32, last: Option<u32>) -> Result<(), Failure> {
    let folder = tempfile::TempDir::new()?;
    // The same time in every run, so that its text always has the same length.
    let now = Timestamp::new(1_790_000_000, 123_456_789)?;
    let builder = Agent::builder("turns")
        .model(Canned::new()?)
        .instruction(
            "You answer questions. Look up what you do not know, then answer in one sentence.",
        )
        .tool(LookUp::new()?)
        .clock(move || now);
    let (agent, opened) = match store {
        "memory" => (builder.build()?, None),
        "sqlite" => {
            let opened = Arc::new(sqlite::Store::open(&folder.path().join("turns.db")).await?);
            (
                builder.journal(Arc::clone(&opened), "turns").build()?,
                Some(opened),
            )
        }
        _ => return Err(USAGE.into()),
    };
    let conversation = RunContext::default().conversation;
    for turn in 0..turns {
        // The service and the terminal make a context for each message too, without the history.
        let mut context = match last {
            Some(_) => RunContext {
                conversation,
                ..RunContext::default()
            },
            None => RunContext::default(),
        };
        if last == Some(turns - turn) {
            count("on")?;
        }
        let response = agent
            .run_in(&mut context, "What is the answer to question number one?")
            .await?;
        if response.outcome != OutcomeCategory::TaskCompleted || response.tools_used.len() != 1 {
            return Err(format!("{}: {}", response.outcome, response.content).into());
        }
    }
    if last.is_some() {
        count("off")?;
    }
    if let Some(store) = opened {
        store.close().await;
    }
    Ok(())
}

/// Switches valgrind's counting `on` or `off`.
fn count(state: &str) -> Result<(), Failure> {
    let mut control = Command::new("callgrind_control");
    let told = control
        .args(["-i", state])
        .arg(std::process::id().to_string())
        .stdout(Stdio::null())
        .status()?;
    told.success()
        .then_some(())
        .ok_or_else(|| "callgrind_control failed".into())
}

/// A model that calls the tool, and then answers with its result.
struct Canned {
    id: ModelId,
    capabilities: Capabilities,
}

impl Canned {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            id: ModelId {
                provider: ProviderId::new("canned")?,
                name: "canned".to_owned(),
            },
            capabilities: Capabilities {
                context_window: 128_000,
                weak_tools: false,
                response_schema: SchemaSupport::Native,
                local: false,
                thinking_allowance: 0,
                self_hosted: false,
            },
        })
    }

    /// Returns the answer as deltas, the complete one last.
    fn pieces(&self, request: &GenerateRequest) -> Result<VecDeque<Delta>, ModelError> {
        let called = request
            .messages
            .last()
            .is_some_and(|last| last.role() == Role::Tool);
        let (mut pieces, content, finish): (VecDeque<_>, _, _) = if called {
            let pieces = ANSWER
                .iter()
                .map(|word| Delta::Text((*word).to_owned()))
                .collect();
            (
                pieces,
                Content::Text {
                    text: ANSWER.concat(),
                },
                FinishReason::Stop,
            )
        } else {
            let (name, arguments) = (TOOL.to_owned(), r#"{"number":1}"#.to_owned());
            let call = ToolCall {
                id: CallId::new("call_1").map_err(|error| ModelError::BadRequest {
                    provider: self.id.provider.clone(),
                    message: error.to_string(),
                })?,
                provider_id: Some("call_1".to_owned()),
                name: name.clone(),
                arguments: Arguments::from_iter([("number".to_owned(), json!(1))]),
                malformed: None,
            };
            let piece = Delta::ToolCall {
                index: 0,
                name,
                arguments,
            };
            (
                VecDeque::from([piece]),
                Content::ToolCall(call),
                FinishReason::ToolCalls,
            )
        };
        pieces.push_back(Delta::Finished(GenerateResponse {
            parts: vec![Part {
                content,
                state: None,
            }],
            finish,
            usage: Usage {
                input_tokens: Some(120),
                output_tokens: Some(12),
                ..Usage::default()
            },
            counters: Counters::default(),
            cost: None,
            model: self.id.clone(),
            losses: Vec::new(),
            certainty: None,
        }));
        Ok(pieces)
    }
}

impl LanguageModel for Canned {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        Box::pin(async move {
            match self.pieces(request)?.pop_back() {
                Some(Delta::Finished(response)) => Ok(response),
                _ => Err(ModelError::BadRequest {
                    provider: self.id.provider.clone(),
                    message: "no answer".to_owned(),
                }),
            }
        })
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        Box::pin(async move { Ok(Box::pin(Pieces(self.pieces(request)?)) as DeltaStream) })
    }
}

/// A complete answer.
struct Pieces(VecDeque<Delta>);

impl Stream for Pieces {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

/// A tool that declares no effect class.
struct LookUp(ToolDefinition);

impl LookUp {
    fn new() -> Result<Self, Failure> {
        let parameters = json!({
            "type": "object",
            "properties": { "number": { "type": "integer", "minimum": 0 } },
            "required": ["number"],
            "additionalProperties": false
        });
        Ok(Self(ToolDefinition::new(
            TOOL,
            "Looks up a fact.",
            parameters,
        )?))
    }
}

impl Tool for LookUp {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move { Ok(json!(format!("Fact {}: forty-two.", arguments["number"]))) })
    }
}
