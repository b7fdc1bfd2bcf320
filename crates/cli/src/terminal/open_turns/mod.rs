//! Recovery of open turns: turns that have begun and not ended because their process was killed,
//! or that still wait for a confirmation.

mod find; // open turns in the journal
mod recover; // finishing them at a terminal
mod rule; // the model that may finish a turn
