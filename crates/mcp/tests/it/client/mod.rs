//! Servers of every kind, and what an agent has of them.

mod corrections; // arguments that miss a schema by a slip
mod http; // elsewhere
mod place; // what the tests have in common
mod stdio; // in a child process
