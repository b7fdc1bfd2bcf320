//! The state of a message that a classifier of actions reads.

use adjutant_core::{ActionScores, Utterance};

use crate::classifier::{ActionClassifier, StateReader};
use crate::decode::Decoder;
use crate::error::{ClassifierError, DecodeError};
use crate::template::{self, ChatTurn, Rendered, Speaker};
use crate::tokenizer::Tokenizer;

/// Most characters of a message that are read. Longer ones are cut in the middle.
const MESSAGE_CHARS_MAX: usize = 800;
/// Most characters of what was said before it, for each speaker.
const BEFORE_CHARS_MAX: usize = 200;
/// The instruction of the prompt. The classifiers that are built in were trained with it: another
/// one needs other weights.
const INSTRUCTION: &str = "Name what a person wants from the assistant that keeps their to-do list, a diary and facts about them: \
    add, done, delete, change, list, remember, recall, log, forget, chat, refuse, unclear.";
/// The beginning of the answer, behind which the state is read.
const ANSWER: &str = "They want:";

impl Decoder {
    /// Returns the digest by which a classifier names the model file that it was trained with.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.key.fingerprint
    }

    /// Replaces the classifier of [`Decoder::score_actions`]. A model that has one built in needs
    /// no call.
    ///
    /// # Errors
    /// [`ClassifierError::OtherModel`] if it was trained with another model file.
    pub fn set_classifier(&mut self, classifier: ActionClassifier) -> Result<(), ClassifierError> {
        if classifier.fingerprint != self.key.fingerprint {
            return Err(ClassifierError::OtherModel);
        }
        self.state_reader = None;
        self.classifier = Some(classifier);
        Ok(())
    }

    /// Returns the probabilities of the actions that a message asks for; `None` if there is no
    /// classifier for this model.
    ///
    /// # Errors
    /// [`DecodeError::Compute`] if the computation fails.
    pub fn score_actions(
        &mut self,
        utterance: Utterance<'_>,
    ) -> Result<Option<ActionScores>, DecodeError> {
        let Some(blocks) = self.classifier.as_ref().map(|known| known.blocks) else {
            return Ok(None);
        };
        let state = self.action_state(utterance, blocks)?;
        let classifier = self.classifier.as_ref();
        Ok(classifier.map(|classifier| classifier.scores(&state)))
    }

    /// Returns the state from which a classifier tells the actions that a message asks for: after
    /// the first `blocks` blocks, the hidden state of the prompt's last token, then the mean of all
    /// tokens behind the instruction.
    ///
    /// # Errors
    /// [`DecodeError::Compute`] if the computation fails.
    pub fn action_state(
        &mut self,
        utterance: Utterance<'_>,
        blocks: usize,
    ) -> Result<Vec<f32>, DecodeError> {
        let prompt = prompt(self.tokenizer_ref(), utterance)?;
        let (instruction, own) = prompt.tokens.split_at(prompt.head_tokens);
        let mut reader = match self.state_reader.take() {
            Some(reader) if reader.cache.layer_count() == blocks => reader,
            _ => StateReader {
                cache: self.network.new_cache(blocks)?,
                instruction_tokens: 0,
            },
        };
        if reader.instruction_tokens != instruction.len() {
            reader.cache.truncate(0);
            self.network.hidden_states(instruction, &mut reader.cache)?;
            reader.instruction_tokens = instruction.len();
        }
        let states = self.network.hidden_states(own, &mut reader.cache)?;
        reader.cache.truncate(reader.instruction_tokens);
        self.state_reader = Some(reader);
        let mut state: Vec<f32> = states.get(own.len() - 1)?.to_vec1()?;
        state.extend(states.mean(0)?.to_vec1::<f32>()?);
        Ok(state)
    }
}

/// Returns the prompt of a message, whose head is the instruction.
fn prompt(tokenizer: &Tokenizer, utterance: Utterance<'_>) -> Result<Rendered, DecodeError> {
    let line = |speaker: &str, text: Option<&str>| {
        text.map(|text| format!("{speaker}: {}\n", cut(text, BEFORE_CHARS_MAX)))
            .unwrap_or_default()
    };
    let earlier = line("Person", utterance.earlier);
    let before = line("Assistant", utterance.before);
    let message = cut(utterance.message, MESSAGE_CHARS_MAX);
    let turns = [
        ChatTurn::new(Speaker::System, INSTRUCTION),
        ChatTurn::new(Speaker::User, format!("{earlier}{before}Person: {message}")),
    ];
    let mut rendered = template::render(tokenizer, &turns, 1)?;
    rendered.tokens.extend(tokenizer.encode(ANSWER)?);
    Ok(rendered)
}

/// Puts a text on one line, and leaves out its middle if it is too long.
fn cut(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let chars = line.chars().count();
    if chars <= chars_max {
        return line;
    }
    let half = chars_max / 2;
    let begin = line.chars().take(half);
    let end = line.chars().skip(chars - half);
    begin.chain(" … ".chars()).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_text_is_left_out() {
        assert_eq!(cut("a\n b", 10), "a b");
        assert_eq!(cut("begin of a long end", 6), "beg … end");
    }
}
