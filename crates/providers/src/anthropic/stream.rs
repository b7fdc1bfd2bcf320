//! Folds the events of a stream into content blocks, which are then decoded like a whole answer.
//!
//! Source: "Streaming messages" in the vendor's guide, which says that new types of events may
//! come.

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};
use serde_json::{Map, Value, json};

use super::error;
use super::response::{Block, PartialAnswer};
use super::wire;
use crate::decode::{AnswerFold, Progress};
use crate::encode::str_field;

impl AnswerFold for PartialAnswer {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let event: wire::Event =
            serde_json::from_str(json).map_err(|error| self.vendor.not_json(error, json))?;
        if let Some(error) = &event.error {
            return Err(error::in_answer(&self.vendor, error));
        }
        match event.kind.as_deref() {
            Some("message_start") => self.start(event.message.unwrap_or_default()),
            Some("content_block_start") => {
                let fields = event.content_block.unwrap_or_default();
                self.open(Block::opened(event.index, fields), deltas);
            }
            Some("content_block_delta") => {
                self.extend_block(event.index, event.delta.unwrap_or_default(), deltas);
            }
            Some("content_block_stop") => self.close(event.index, deltas),
            Some("message_delta") => {
                self.count(event.usage.as_ref());
                self.record_transformations(event.input_transformations.as_deref());
                let mut delta = event.delta.unwrap_or_default();
                let stop_details = delta
                    .remove("stop_details")
                    .and_then(|it| serde_json::from_value(it).ok());
                let stop_reason = str_field(&delta, "stop_reason").map(str::to_owned);
                self.merge_stop(wire::Stop {
                    stop_reason,
                    stop_details,
                });
            }
            Some("message_stop") => self.over = true,
            // `ping`, and types added later.
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
        if let Some(error) = error::parse_stray(stray) {
            return Err(error::in_answer(&self.vendor, &error));
        }
        if !self.over {
            let so_far = if self.blocks.is_empty() {
                "it ended before it said anything"
            } else {
                "it ended without message_stop"
            };
            return Err(self.vendor.truncated(so_far));
        }
        // The message is complete, so blocks that were never stopped are closed here.
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

    fn whole(&mut self, body: &str) -> Result<GenerateResponse, ModelError> {
        let answer: wire::Answer =
            serde_json::from_str(body).map_err(|error| self.vendor.not_json(error, body))?;
        if let Some(error) = &answer.error {
            return Err(error::in_answer(&self.vendor, error));
        }
        if answer.content.is_none() {
            return Err(self.vendor.invalid("no content", body));
        }
        self.begin(answer);
        self.end()
    }
}

impl PartialAnswer {
    /// Starts the answer, or restarts it: a proxy may send a second `message_start` in the middle.
    /// Text so far is kept; a call that was not finished is dropped, because nothing completes it.
    fn start(&mut self, message: wire::Answer) {
        self.blocks.retain(|block| !(block.open && block.is_call()));
        for block in &mut self.blocks {
            block.open = false;
        }
        self.over = false;
        self.begin(message);
    }

    fn open(&mut self, block: Block, deltas: &mut VecDeque<Delta>) {
        let text = |name: &str| {
            let text = str_field(&block.fields, name);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        match block.kind() {
            "text" => deltas.extend(text("text").map(Delta::Text)),
            "thinking" => deltas.extend(text("thinking").map(Delta::Thinking)),
            "tool_use" => deltas.push_back(Delta::ToolCall {
                index: count_calls(&self.blocks),
                name: block.name(),
                arguments: String::new(),
            }),
            _ => {}
        }
        self.blocks.push(block);
    }

    fn extend_block(
        &mut self,
        index: Option<u64>,
        delta: Map<String, Value>,
        deltas: &mut VecDeque<Delta>,
    ) {
        let at = self.open_block(index);
        let at = at.unwrap_or_else(|| {
            // Some proxies leave the announcement out; the field tells the type.
            let kind = if delta.contains_key("thinking") {
                "thinking"
            } else {
                "text"
            };
            let fields = Map::from_iter([("type".to_owned(), Value::String(kind.to_owned()))]);
            self.blocks.push(Block::opened(index, fields));
            self.blocks.len() - 1
        });
        let call = count_calls(&self.blocks[..at]);
        let block = &mut self.blocks[at];
        let kind = str_field(&delta, "type").unwrap_or_default().to_owned();
        for (name, value) in delta {
            match (name.as_str(), value) {
                // The block keeps the type of its announcement.
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
                // A signature arrives whole; other text is appended.
                (_, Value::String(text)) if kind != "signature_delta" => {
                    let delta = match (block.kind(), name.as_str()) {
                        ("text", "text") => Some(Delta::Text(text.clone())),
                        ("thinking", "thinking") => Some(Delta::Thinking(text.clone())),
                        (_, _) => None,
                    };
                    deltas.extend(delta.filter(|_| !text.is_empty()));
                    block.append(name, text);
                }
                (_, value) => {
                    block.fields.insert(name, value);
                }
            }
        }
    }

    fn close(&mut self, index: Option<u64>, deltas: &mut VecDeque<Delta>) {
        let Some(at) = self.open_block(index) else {
            return;
        };
        let call = count_calls(&self.blocks[..at]);
        let block = &mut self.blocks[at];
        block.open = false;
        let arguments = block.arguments();
        // The input came whole, with the block's announcement.
        if block.is_call() && block.input.is_empty() && !matches!(arguments.as_str(), "" | "{}") {
            deltas.push_back(Delta::ToolCall {
                index: call,
                name: block.name(),
                arguments,
            });
        }
    }

    /// Returns the position of the block with this index that still grows.
    fn open_block(&self, index: Option<u64>) -> Option<usize> {
        let is_open = |block: &Block| block.open && block.index == index;
        self.blocks.iter().rposition(is_open)
    }
}

fn count_calls(blocks: &[Block]) -> usize {
    blocks.iter().filter(|block| block.is_call()).count()
}

impl Block {
    fn opened(index: Option<u64>, fields: wire::Block) -> Self {
        Self {
            index,
            open: true,
            fields,
            input: String::new(),
        }
    }

    fn append(&mut self, name: String, text: String) {
        match self.fields.entry(name).or_insert_with(|| json!("")) {
            Value::String(before) => before.push_str(&text),
            other => *other = Value::String(text),
        }
    }

    fn add_citation(&mut self, citation: Value) {
        match self.fields.entry("citations").or_insert_with(|| json!([])) {
            Value::Array(citations) => citations.push(citation),
            other => *other = json!([citation]),
        }
    }
}
