//! The rules of the vocabulary and the gate, from outside.

mod confirmation;
mod gate;
mod vocabulary;
