//! The texts that the rules for words find, with what they are judged by: for training.

use adjutant_core::{ActionScores, GenerateRequest, Reference};

use super::{Decision, Scored, Step};
use crate::dialogue::Dialogue;
use crate::general::Tools;
use crate::{WeakTools, offered, text_classifier};

/// The texts that a message may have for new entities, or for one that it changes.
#[derive(Debug)]
pub struct TextChoices {
    /// The id of the entity that is changed; `None` for new entities.
    pub changed: Option<String>,
    /// The texts, each with its features for [`crate::TextClassifier`].
    pub texts: Vec<(String, Vec<usize>)>,
}

impl WeakTools {
    /// Returns the texts that the last message of a request may have, by rules for words alone.
    #[must_use]
    pub fn text_choices(
        &self,
        request: &GenerateRequest,
        references: &[Reference],
        scores: ActionScores,
    ) -> Vec<TextChoices> {
        let dialogue = Dialogue::from_messages(&request.messages);
        let tools = offered(request);
        let tools = Tools::new(&tools).of_entities;
        let scored = Scored::new(&dialogue, references, &tools, scores, self.lexicons);
        let decision = scored.as_ref().map(Scored::decide);
        let (Some(scored), Some(Decision::Act(steps, _))) = (scored, decision) else {
            return Vec::new();
        };
        let lexicon = scored.lexicon;
        let choices = |step: &Step<'_>| {
            let (choices, entity) = match step {
                Step::Texts(_, choices) => (choices, None),
                Step::Reword(_, entity, choices) => (choices, Some(scored.entities[*entity])),
                Step::Call(..) | Step::Open(_) => return None,
            };
            let texts: Vec<String> = choices.iter().map(|choice| choice.text.clone()).collect();
            let message = &dialogue.message;
            let features = match entity {
                None => text_classifier::of_new(message, &texts, lexicon),
                Some(entity) => {
                    text_classifier::of_changed(message, &entity.label, &texts, lexicon)
                }
            };
            Some(TextChoices {
                changed: entity.map(|entity| entity.id.clone()),
                texts: texts.into_iter().zip(features).collect(),
            })
        };
        steps.iter().filter_map(choices).collect()
    }
}
