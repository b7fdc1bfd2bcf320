//! [`ThinkingInText`]: an answer of a server that may leave its model's thinking in the text.

use std::collections::VecDeque;

use adjutant_core::{
    Content, Delta, GenerateResponse, ModelError, ModelId, Part, ProviderState, ToolSet,
};
use serde_json::{Value, json};

use super::{Segment, TextCalls};
use crate::decode::{AnswerFold, Progress};

/// The key of a thinking part's state if the thinking came in the text.
const IN_TEXT: &str = "in_text";

/// Takes thinking in tags out of the text of another fold's answers.
pub(crate) struct ThinkingInText<F> {
    answer: F,
    /// The model that was asked.
    origin: ModelId,
    text: TextCalls,
}

/// Returns true for the state of thinking that came in the text: there is no form to send it back in.
pub(crate) fn is_from_text(state: &Value) -> bool {
    state.get(IN_TEXT).is_some()
}

impl<F> ThinkingInText<F> {
    pub(crate) fn new(answer: F, origin: ModelId) -> Self {
        Self {
            answer,
            origin,
            text: TextCalls::new(ToolSet::default()),
        }
    }

    /// Adds the deltas of the answer, those of its text once it is certain what they are.
    fn add(&mut self, deltas: VecDeque<Delta>, out: &mut VecDeque<Delta>) {
        let mut segments = Vec::new();
        for delta in deltas {
            match delta {
                Delta::Text(text) => self.text.push(&text, &mut segments),
                other => {
                    self.text.flush(&mut segments);
                    out.extend(segments.drain(..).filter_map(to_delta));
                    out.push_back(other);
                }
            }
        }
        out.extend(segments.into_iter().filter_map(to_delta));
    }

    /// Divides the text parts of an answer into thinking and text.
    fn divide(&self, response: GenerateResponse) -> GenerateResponse {
        let parts = response.parts.into_iter().flat_map(|part| match part {
            Part {
                content: Content::Text { text },
                state,
            } if text.contains('<') => self.divided(&text, state),
            other => vec![other],
        });
        GenerateResponse {
            parts: parts.collect(),
            ..response
        }
    }

    fn divided(&self, text: &str, state: Option<ProviderState>) -> Vec<Part> {
        let mut classifier = TextCalls::new(ToolSet::default());
        let mut segments = Vec::new();
        classifier.push(text, &mut segments);
        classifier.flush(&mut segments);
        let (mut thinking, mut rest) = (String::new(), String::new());
        for segment in segments {
            match segment {
                Segment::Thinking(text) => thinking.push_str(&text),
                Segment::Text(text) => rest.push_str(&text),
                // Without tools no text is a call.
                Segment::Call(_) => {}
            }
        }
        let mut parts = Vec::new();
        if !thinking.is_empty() {
            let state = ProviderState {
                origin: self.origin.clone(),
                data: json!({ IN_TEXT: true }),
            };
            let content = Content::Thinking { text: thinking };
            parts.push(Part::from_provider(content, Some(state)));
        }
        if parts.is_empty() || !rest.is_empty() {
            parts.push(Part::from_provider(Content::Text { text: rest }, state));
        }
        parts
    }
}

fn to_delta(segment: Segment) -> Option<Delta> {
    match segment {
        Segment::Text(text) => Some(Delta::Text(text)),
        Segment::Thinking(text) => Some(Delta::Thinking(text)),
        Segment::Call(_) => None,
    }
    .filter(|delta| !matches!(delta, Delta::Text(text) | Delta::Thinking(text) if text.is_empty()))
}

impl<F: AnswerFold> AnswerFold for ThinkingInText<F> {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let mut new = VecDeque::new();
        let result = self.answer.event(json, &mut new);
        self.add(new, deltas);
        result
    }

    fn done(&mut self) {
        self.answer.done();
    }

    fn progress(&self) -> Progress {
        self.answer.progress()
    }

    fn finish(
        &mut self,
        stray: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        let mut new = VecDeque::new();
        let result = self.answer.finish(stray, &mut new);
        self.add(new, deltas);
        let mut segments = Vec::new();
        self.text.flush(&mut segments);
        deltas.extend(segments.into_iter().filter_map(to_delta));
        result.map(|response| self.divide(response))
    }

    fn whole(&mut self, body: &str) -> Result<GenerateResponse, ModelError> {
        let response = self.answer.whole(body)?;
        Ok(self.divide(response))
    }
}
