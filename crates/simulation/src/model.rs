//! A model whose texts and calls are decided by the seed.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    Arguments, BoxFuture, Capabilities, Content, Delta, FinishReason, GenerateRequest,
    GenerateResponse, LanguageModel, ModelError, ModelId, Part, SchemaSupport, ToolCall, Usage,
};
use serde_json::json;
use tokio::time::sleep;

use crate::process::Process;
use crate::tools::{ERASE, LOOK, PAY, PUT};
use crate::world::World;

/// The model, as one process calls it.
pub(crate) struct Model {
    id: ModelId,
    capabilities: Capabilities,
    world: Arc<World>,
    process: Arc<Process>,
}

/// One answer of the model, decided when it was requested.
struct Reply {
    first: Duration,
    pieces: Vec<(Duration, String)>,
    end: Result<GenerateResponse, ModelError>,
}

impl Model {
    pub(crate) fn new(id: ModelId, world: &Arc<World>, process: &Arc<Process>) -> Self {
        let capabilities = Capabilities {
            context_window: 100_000,
            weak_tools: false,
            response_schema: SchemaSupport::Native,
            local: true,
            thinking_allowance: 0,
            self_hosted: false,
        };
        Self {
            id,
            capabilities,
            world: world.clone(),
            process: process.clone(),
        }
    }

    fn decide(&self, request: &GenerateRequest) -> Reply {
        let fails = self.world.fails(self.world.plan.model_fails);
        let calm = self.world.faults_are_over();
        let mut chance = self.world.chance();
        let slow = !calm && chance.happens(100);
        let first = chance.ms(if slow { 5_000..150_000 } else { 50..3_000 });
        let words =
            format!("The answer is {}. ", chance.number(0..1_000)).repeat(1 + chance.below(60));
        let count = 1 + chance.below(3);
        let cut = |at: usize| {
            words
                .get(..at.min(words.len()))
                .unwrap_or_default()
                .to_owned()
        };
        let pieces = (0..count).map(|_| (chance.ms(1..300), cut(40))).collect();
        let provider = self.id.provider.clone();
        let end = if fails {
            match chance.below(3) {
                0 => Err(ModelError::RateLimited {
                    provider,
                    message: "too many requests".to_owned(),
                    retry_after: None,
                }),
                1 => Err(ModelError::Network {
                    provider,
                    message: "the connection broke".to_owned(),
                    source: None,
                }),
                _ => Err(ModelError::Server {
                    provider,
                    status: 500,
                    message: String::new(),
                    retry_after: None,
                }),
            }
        } else {
            let calls = match request.tools.is_empty() || chance.happens(450) {
                true => Vec::new(),
                false => (0..count)
                    .map(|number| Self::call(&mut chance, number))
                    .collect(),
            };
            Ok(self.answer(words, calls))
        };
        Reply { first, pieces, end }
    }

    fn call(chance: &mut crate::chance::Chance, number: usize) -> ToolCall {
        let names = [LOOK, LOOK, PUT, PUT, PAY, PAY, ERASE, "add_task"];
        let name = names
            .get(chance.below(names.len()))
            .copied()
            .unwrap_or(LOOK);
        let mut arguments = Arguments::new();
        let value = json!(format!("number {}", chance.number(0..1_000_000)));
        let argument = if name == "add_task" {
            "description"
        } else {
            "about"
        };
        arguments.insert(argument.to_owned(), value);
        ToolCall::from_object(number, None, name.to_owned(), arguments)
    }

    fn answer(&self, words: String, calls: Vec<ToolCall>) -> GenerateResponse {
        let finish = if calls.is_empty() {
            FinishReason::Stop
        } else {
            FinishReason::ToolCalls
        };
        let parts = match calls.is_empty() {
            true => vec![Part::ours(Content::Text { text: words })],
            false => calls
                .into_iter()
                .map(|call| Part::ours(Content::ToolCall(call)))
                .collect(),
        };
        let usage = Usage {
            input_tokens: Some(100),
            output_tokens: Some(20),
            ..Usage::default()
        };
        GenerateResponse {
            parts,
            finish,
            usage,
            counters: Default::default(),
            cost: None,
            model: self.id.clone(),
            losses: Vec::new(),
            certainty: None,
        }
    }
}

impl LanguageModel for Model {
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
            self.process.runs().await;
            let Reply { first, end, .. } = self.decide(request);
            self.world
                .note(&self.process, format_args!("the model is asked"));
            sleep(first).await;
            self.process.runs().await;
            end
        })
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        Box::pin(async move {
            self.process.runs().await;
            let Reply { first, pieces, end } = self.decide(request);
            self.world
                .note(&self.process, format_args!("the model is asked"));
            sleep(first).await;
            self.process.runs().await;
            let end = end?;
            let is_text = end.tool_calls().next().is_none();
            let pieces = pieces.into_iter().filter(move |_| is_text);
            let pieces = pieces.map(|(wait, text)| (wait, Delta::Text(text)));
            let deltas = pieces.chain([(Duration::ZERO, Delta::Finished(end))]);
            let process = self.process.clone();
            let stream =
                futures::stream::unfold((deltas, process), |(mut deltas, process)| async move {
                    let (wait, delta) = deltas.next()?;
                    sleep(wait).await;
                    process.runs().await;
                    Some((Ok(delta), (deltas, process)))
                });
            Ok(Box::pin(stream) as DeltaStream)
        })
    }
}
