//! The same turn with rig: its agent with the same instruction, message and tool, over its OpenAI
//! Chat Completions client.

use futures_util::StreamExt as _;
use rig::http_client::ReqwestClient;
use rig::prelude::*;
use rig::providers::openai::OpenAIConfig;
use rig::tool::PortableTool;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{INSTRUCTION, MESSAGE, Setup, TOOL, Worker};
use crate::Result;

/// The tool of the model, which looks up a fact.
struct LookUp;

#[derive(Deserialize)]
struct Arguments {
    number: u32,
}

impl PortableTool for LookUp {
    const NAME: &'static str = TOOL;
    type Args = Arguments;
    type Output = String;
    type Error = std::convert::Infallible;

    fn description(&self) -> String {
        "Looks up a fact.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": { "number": { "type": "integer", "format": "uint32", "minimum": 0 } },
            "required": ["number"],
            "additionalProperties": false
        })
    }

    async fn call(&self, arguments: Arguments) -> std::result::Result<String, Self::Error> {
        Ok(format!("Fact {}: forty-two.", arguments.number))
    }
}

/// Runs one conversation after another.
pub(super) struct Conversations {
    agent: Agent,
    streamed: bool,
}

/// Creates the workers, which share one agent.
pub(super) fn workers(setup: &Setup) -> Result<Vec<Conversations>> {
    let http = ReqwestClient::from(reqwest::Client::builder().no_proxy().build()?);
    let openai = OpenAIConfig::new("none")
        .with_base_url(&setup.address)
        .connect(http);
    let agent = AgentBuilder::new(openai.chat("mock"))
        .preamble(INSTRUCTION)
        .tool(LookUp)
        .build();
    let worker = |_| Conversations {
        agent: agent.clone(),
        streamed: setup.streamed,
    };
    Ok((0..setup.at_once).map(worker).collect())
}

impl Worker for Conversations {
    async fn turn(&mut self) -> Result<()> {
        let run = self.agent.prompt(MESSAGE).max_turns(3);
        let mut answer = String::new();
        if self.streamed {
            let mut items = run.stream();
            while let Some(item) = items.next().await {
                if let MultiTurnStreamItem::FinalResponse(response) = item? {
                    answer = response.output().to_string();
                }
            }
        } else {
            answer = run.await?.output().to_string();
        }
        if answer.ends_with("forty-two.") {
            Ok(())
        } else {
            Err(format!("rig answered {answer:?}").into())
        }
    }
}
