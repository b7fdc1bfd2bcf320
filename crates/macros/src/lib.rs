//! The `#[tool]` attribute: an `async fn` as a tool of an agent.
