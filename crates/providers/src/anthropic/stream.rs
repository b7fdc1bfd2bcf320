//! Events to deltas. Blocks grow until the answer is whole; from there on it is read like any
//! other.
//!
//! Source: "Streaming messages" in the vendor's guide, which also says that new types of events may
//! come.

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};
use serde_json::{Map, Value};

use super::error;
use super::response::{Block, Reading};
use super::wire;
use crate::decode::{Answer, Progress};

impl Answer for Reading {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let event: wire::Event =
            serde_json::from_str(json).map_err(|error| self.vendor.not_json(&error, json))?;
        if let Some(error) = &event.error {
            return Err(error::inside(&self.vendor, error));
        }
        match event.kind.as_deref() {
            Some("message_start") => self.start(event.message.unwrap_or_default()),
            Some("content_block_start") => {
                let block = Block {
                    index: event.index,
                    open: true,
                    fields: event.content_block.unwrap_or_default(),
                    input: String::new(),
                };
                self.open(block, deltas);
            }
            Some("content_block_delta") => {
                self.grow(event.index, event.delta.unwrap_or_default(), deltas);
            }
            Some("content_block_stop") => self.close(event.index, deltas),
            Some("message_delta") => {
                self.count(event.usage.as_ref());
                self.left_out(event.input_transformations.as_deref());
                let mut delta = event.delta.unwrap_or_default();
                let stop_details = delta
                    .remove("stop_details")
                    .and_then(|it| serde_json::from_value(it).ok());
                let stop_reason = delta
                    .get("stop_reason")
                    .and_then(Value::as_str)
                    .map(str::to_owned);
                self.stopped(wire::Stop {
                    stop_reason,
                    stop_details,
                });
            }
            Some("message_stop") => self.over = true,
            // `ping`, and what is yet to be invented.
            _ => {}
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.over {
            Progress::Over
        } else {
            Progress::Begun
        }
    }

    fn finish(
        &mut self,
        stray: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        if let Some(error) = error::stray(stray) {
            return Err(error::inside(&self.vendor, &error));
        }
        if !self.over {
            let so_far = if self.blocks.is_empty() {
                "it ended before it said anything"
            } else {
                "it ended without message_stop"
            };
            return Err(self.vendor.truncated(so_far));
        }
        while let Some(index) = self
            .blocks
            .iter()
            .find(|block| block.open)
            .map(|block| block.index)
        {
            self.close(index, deltas);
        }
        self.end()
    }
}

impl Reading {
    /// A server in between may begin again in the middle (recording `spliced-message-start`). What
    /// was said stays said; a call that was not finished was not made.
    fn start(&mut self, message: wire::Answer) {
        self.blocks.retain(|block| !(block.open && block.is_call()));
        for block in &mut self.blocks {
            block.open = false;
        }
        self.over = false;
        self.begin(message);
    }

    fn open(&mut self, block: Block, deltas: &mut VecDeque<Delta>) {
        let said = |name: &str| {
            block
                .fields
                .get(name)
                .and_then(Value::as_str)
                .filter(|words| !words.is_empty())
        };
        match block.kind() {
            "text" => deltas.extend(said("text").map(|words| Delta::Text(words.to_owned()))),
            "thinking" => {
                deltas.extend(said("thinking").map(|words| Delta::Thinking(words.to_owned())))
            }
            "tool_use" => deltas.push_back(Delta::ToolCall {
                index: self.calls(),
                name: block.name(),
                arguments: String::new(),
            }),
            _ => {}
        }
        self.blocks.push(block);
    }

    fn grow(
        &mut self,
        index: Option<u64>,
        delta: Map<String, Value>,
        deltas: &mut VecDeque<Delta>,
    ) {
        let at = self
            .blocks
            .iter()
            .rposition(|block| block.open && block.index == index);
        let at = at.unwrap_or_else(|| {
            // Not announced: what grows tells what it is.
            let kind = if delta.contains_key("thinking") {
                "thinking"
            } else {
                "text"
            };
            let fields = Map::from_iter([("type".to_owned(), Value::String(kind.to_owned()))]);
            self.blocks.push(Block {
                index,
                open: true,
                fields,
                input: String::new(),
            });
            self.blocks.len() - 1
        });
        let call = self.blocks[..at]
            .iter()
            .filter(|block| block.is_call())
            .count();
        let block = &mut self.blocks[at];
        let kind = delta
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("type", _) | (_, Value::Null) => {}
                ("partial_json", Value::String(piece)) => {
                    block.input.push_str(&piece);
                    if block.is_call() && !piece.is_empty() {
                        deltas.push_back(Delta::ToolCall {
                            index: call,
                            name: block.name(),
                            arguments: piece,
                        });
                    }
                }
                ("citation", citation) => block.add_citation(citation),
                // A signature comes whole; anything else that is text grows.
                (_, Value::String(words)) if kind != "signature_delta" => {
                    let delta = match (block.kind(), name.as_str()) {
                        ("text", "text") => Some(Delta::Text(words.clone())),
                        ("thinking", "thinking") => Some(Delta::Thinking(words.clone())),
                        (_, _) => None,
                    };
                    deltas.extend(delta.filter(|_| !words.is_empty()));
                    block.append(name, words);
                }
                (_, value) => drop(block.fields.insert(name, value)),
            }
        }
    }

    fn close(&mut self, index: Option<u64>, deltas: &mut VecDeque<Delta>) {
        let Some(at) = self
            .blocks
            .iter()
            .rposition(|block| block.open && block.index == index)
        else {
            return;
        };
        let call = self.blocks[..at]
            .iter()
            .filter(|block| block.is_call())
            .count();
        let block = &mut self.blocks[at];
        block.open = false;
        let arguments = block.arguments();
        // An input that came whole, with the announcement.
        if block.is_call() && block.input.is_empty() && !matches!(arguments.as_str(), "" | "{}") {
            deltas.push_back(Delta::ToolCall {
                index: call,
                name: block.name(),
                arguments,
            });
        }
    }

    fn calls(&self) -> usize {
        self.blocks.iter().filter(|block| block.is_call()).count()
    }
}

impl Block {
    fn append(&mut self, name: String, words: String) {
        match self.fields.get_mut(&name) {
            Some(Value::String(text)) => text.push_str(&words),
            _ => drop(self.fields.insert(name, Value::String(words))),
        }
    }

    fn add_citation(&mut self, citation: Value) {
        match self.fields.get_mut("citations") {
            Some(Value::Array(citations)) => citations.push(citation),
            _ => drop(
                self.fields
                    .insert("citations".to_owned(), Value::Array(vec![citation])),
            ),
        }
    }
}
