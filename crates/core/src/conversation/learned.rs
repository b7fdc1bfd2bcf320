//! Statistics of a conversation's models: how estimated token counts relate to reported ones, and
//! whether summaries succeed.

use serde::{Deserialize, Serialize};

use crate::calibration::Calibration;
use crate::event::Event;
use crate::id::ModelId;

/// Number of models whose calibration is kept; the least recently used one is dropped first.
const MODELS_MAX: usize = 8;

/// Largest number of turns between two attempts to summarise, after repeated failures.
const TURNS_BETWEEN_MAX: usize = 8;

/// Calibration of token estimates for each model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Learned {
    /// Model of the last turn.
    asked: Option<ModelId>,
    models: Vec<OfModel>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OfModel {
    model: ModelId,
    /// Calibration for counts by the model's own tokenizer.
    exact: Calibration,
    estimated: Calibration,
}

impl OfModel {
    fn both(&mut self) -> [(&mut Calibration, bool); 2] {
        [(&mut self.exact, true), (&mut self.estimated, false)]
    }
}

impl Learned {
    pub(super) fn follow(&mut self, event: &Event) {
        match event {
            Event::TurnStarted { model, .. } => {
                if self.asked.as_ref() != Some(model) {
                    self.asked = Some(model.clone());
                }
                self.each(|calibration, _| calibration.turn_started());
            }
            Event::ConversationSummarized { .. } | Event::HistorySet { .. } => {
                self.each(|calibration, _| calibration.prefix_changed());
            }
            Event::ModelReplied {
                reply,
                counted: Some(counted),
                attempts,
                ..
            } => {
                let Some(model) = self.asked.clone() else {
                    return;
                };
                // The event does not say which tokenizer counted the request, so both learn from
                // it.
                for (calibration, exact) in self.of(model).both() {
                    calibration.replied(reply, *counted, *attempts, exact);
                }
            }
            _ => {}
        }
    }

    pub(super) fn calibration(&self, model: &ModelId, exact: bool) -> Calibration {
        let known = self.models.iter().find(|known| known.model == *model);
        known.map_or_else(Calibration::default, |known| {
            if exact { known.exact } else { known.estimated }
        })
    }

    fn each(&mut self, mut change: impl FnMut(&mut Calibration, bool)) {
        for known in &mut self.models {
            for (calibration, exact) in known.both() {
                change(calibration, exact);
            }
        }
    }

    /// Returns the entry of a model and marks it as the most recently used.
    fn of(&mut self, model: ModelId) -> &mut OfModel {
        let at = self.models.iter().position(|known| known.model == model);
        let known = match at {
            Some(at) => self.models.remove(at),
            None => OfModel {
                model,
                exact: Calibration::default(),
                estimated: Calibration::default(),
            },
        };
        // A conversation may change its model in every turn, and its state must not grow with that.
        if self.models.len() >= MODELS_MAX {
            self.models.remove(0);
        }
        self.models.push_mut(known)
    }
}

/// Attempts to summarise old turns since the last success.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SummaryTries {
    failed: u32,
    turns_since: usize,
}

impl SummaryTries {
    pub(super) fn follow(&mut self, event: &Event) {
        match event {
            Event::ConversationSummarized { .. } => self.failed = 0,
            Event::SummaryFailed { .. } => {
                self.failed += 1;
                self.turns_since = 0;
            }
            Event::TurnStarted { .. } => self.turns_since += 1,
            _ => {}
        }
    }

    pub(super) fn is_time(&self) -> bool {
        // The bound keeps the shift below the width of the type.
        let pause = 1_usize << self.failed.saturating_sub(1).min(31);
        self.failed == 0 || self.turns_since >= pause.min(TURNS_BETWEEN_MAX)
    }
}
