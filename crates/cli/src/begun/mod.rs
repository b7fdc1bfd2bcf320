//! Turns that were begun and not ended: which there are, whether the model they began with goes on
//! with them, and seeing to them at a terminal.

mod finish; // going on with one
mod found; // which there are
mod rule; // who may go on with one
