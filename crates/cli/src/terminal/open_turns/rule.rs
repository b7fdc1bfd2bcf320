//! The rule for recovery: a turn stays with the model that it began with, and on the machine where
//! that ran.

use adjutant_core::{LanguageModel, ModelId};

/// The model that a turn began with, as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// `None` if the message was accepted and no model was asked yet.
    pub(crate) model: Option<ModelId>,
    /// True if the model ran on this machine; `None` if that was not recorded.
    pub(crate) local: Option<bool>,
}

/// Consequence of finishing a turn with a certain model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The same model in the same place.
    Stays,
    /// Another model, but the conversation does not leave this machine because of it.
    Moves,
    /// The conversation is sent, or may be sent, from this machine to another.
    Leaves,
}

impl Origin {
    /// Returns the consequence of finishing the turn with `model`.
    pub(super) fn finished_by(&self, model: &dyn LanguageModel) -> Change {
        self.change(model.id(), model.capabilities().local)
    }

    fn change(&self, model: &ModelId, local: bool) -> Change {
        let same = self.model.as_ref() == Some(model);
        // A turn made by a command has no model calls, so any model may finish it.
        let asks_none = self.model == Some(ModelId::none());
        // What was sent to another machine before does not leave this one now.
        let stays_here = local || self.local == Some(false);
        match (same && stays_here || asks_none, stays_here) {
            (true, _) => Change::Stays,
            (false, true) => Change::Moves,
            (false, false) => Change::Leaves,
        }
    }

    /// Returns the model's name and place: `ollama/qwen3:8b (on this machine)`.
    pub(super) fn name(&self) -> String {
        match (&self.model, self.local) {
            (None, _) => "an unrecorded model".to_owned(),
            (Some(model), None) => model.to_string(),
            (Some(model), Some(local)) => placed(model, local),
        }
    }
}

/// Formats a model with its place: `gemini/gemini-2.5-flash (not on this machine)`.
pub(super) fn placed(model: &ModelId, local: bool) -> String {
    format!(
        "{model} ({}on this machine)",
        if local { "" } else { "not " }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(begun: (&str, Option<bool>), now: (&str, bool), expected: Change) {
        let id = |name: &str| ModelId::new("x", name).unwrap();
        let model = (begun.0 != "?").then(|| id(begun.0));
        assert_eq!(
            Origin {
                model,
                local: begun.1
            }
            .change(&id(now.0), now.1),
            expected,
            "{begun:?} {now:?}"
        );
    }

    #[test]
    fn a_turn_stays_with_its_model_and_on_its_machine() {
        check(("a", Some(true)), ("a", true), Change::Stays);
        check(("a", Some(false)), ("a", false), Change::Stays);
        check(("a", Some(false)), ("a", true), Change::Stays);
        // The same name behind another address.
        check(("a", Some(true)), ("a", false), Change::Leaves);
        check(("a", Some(true)), ("b", true), Change::Moves);
        check(("a", Some(false)), ("b", false), Change::Moves);
        check(("a", Some(true)), ("b", false), Change::Leaves);
    }

    #[test]
    fn a_turn_of_an_unrecorded_place_is_taken_for_a_local_one() {
        check(("a", None), ("a", false), Change::Leaves);
        check(("a", None), ("a", true), Change::Stays);
        check(("a", None), ("b", true), Change::Moves);
        check(("?", None), ("a", false), Change::Leaves);
        check(("?", None), ("a", true), Change::Moves);
    }

    #[test]
    fn a_turn_without_a_model_is_finished_by_any_model() {
        let begun = Origin {
            model: Some(ModelId::none()),
            local: None,
        };
        assert_eq!(
            begun.change(&ModelId::new("x", "a").unwrap(), false),
            Change::Stays
        );
    }
}
