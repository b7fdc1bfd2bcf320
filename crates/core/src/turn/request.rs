//! The request of the next model call.

use super::decide::control_functions;
use super::{ToolStyle, Turn};
use crate::message::{Content, Message, Part};
use crate::model::GenerateRequest;
use crate::summary::{Summary, put_block};

impl Turn {
    /// Returns the request for the next model call, before it is fitted into a context window.
    ///
    /// Requests of a turn share their prefix byte for byte: instruction, tools and history change
    /// only where old turns are summarised, and new messages are added at the end. A prompt cache
    /// needs that.
    #[must_use]
    pub fn request(&self) -> GenerateRequest {
        let setup = &self.setup;
        // Where the caller requires a call or forbids all, a question or a refusal is no answer;
        // see `check_tool_choice`.
        let asks = setup.control_functions && !setup.tools.is_empty() && setup.choice.is_auto();
        let tools = match asks {
            true => setup.tools.with_controls(control_functions),
            false => &setup.tools,
        };
        // A schema that the provider does not enforce is shown to the model; either way the answer
        // is validated.
        let (native, prompted) = match &setup.output {
            Some(schema)
                if schema.is_of_an_object() && setup.schema_support.covers(!tools.is_empty()) =>
            {
                (Some(schema.as_json().clone()), None)
            }
            Some(schema) => (None, Some(schema.instruction())),
            None => (None, None),
        };
        let instruction = match prompted {
            Some(prompted) => format!("{}\n\n{prompted}", setup.instruction.trim_end()),
            None => setup.instruction.clone(),
        };
        let count = setup.recalled.messages.len() + self.messages.len() + self.reask_messages.len();
        let mut messages = Vec::with_capacity(1 + count);
        // A blank instruction is an error here, and none is sent.
        messages.extend(Message::system(instruction));
        messages.extend(setup.recalled.messages.iter().cloned());
        messages.extend(
            self.messages
                .iter()
                .take(1)
                .map(|message| self.with_context(message)),
        );
        messages.extend(self.messages.iter().skip(1).cloned());
        messages.extend(self.reask_messages.iter().cloned());
        // Into the first message of the person, where a prompt cache finds it in every request
        // until the next summary.
        if let Some(block) = self.summary_block() {
            put_block(&mut messages, &block);
        }
        GenerateRequest {
            tools: tools.clone(),
            config: setup.config.clone(),
            response_schema: native,
            tool_choice: setup.choice.clone(),
            ..GenerateRequest::new(messages)
        }
    }

    /// Returns the user's message behind the context that the caller sent with it.
    pub(super) fn with_context(&self, message: &Message) -> Message {
        if self.setup.context.trim().is_empty() {
            return message.clone();
        }
        let context = Part::ours(Content::Text {
            text: format!("{}\n\n", self.setup.context.trim_end()),
        });
        let parts = std::iter::once(context)
            .chain(message.parts().iter().cloned())
            .collect();
        // Text in front of a valid message cannot make it invalid.
        Message::new(message.role(), parts).unwrap_or_else(|_| message.clone())
    }

    /// Returns the summary of old turns as it is put into requests. `None` for a model with
    /// constrained tool calls, which reads only the last message.
    #[must_use]
    pub fn summary_block(&self) -> Option<String> {
        let summary = self
            .setup
            .recalled
            .summary
            .as_ref()
            .filter(|_| self.setup.style == ToolStyle::Native);
        summary.map(Summary::block)
    }
}
