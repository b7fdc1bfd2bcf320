//! Outcomes of faulty model answers: every row of the fault table, with every vendor, streamed and
//! whole, through the whole engine, as bytes over a socket.

mod dialect; // a vendor's own form
mod play; // a row through the engine
mod reply; // what a vendor does
mod table; // the faults, and what has to come of them
#[path = "../../../../providers/tests/wire/mod.rs"]
#[allow(
    dead_code,
    reason = "each vendor uses a part of it, and the recorded set of the adapters more"
)]
mod wire; // answers in each vendor's form

#[cfg(feature = "openai")]
use adjutant_providers::Provider;

#[cfg(feature = "openai")]
use dialect::Dialect;
use play::play;

#[cfg(feature = "anthropic")]
mod anthropic;
#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "ollama")]
mod ollama;
#[cfg(feature = "openai")]
mod openai_chat;
#[cfg(feature = "openai")]
mod openai_responses;

#[cfg(feature = "anthropic")]
#[tokio::test]
async fn anthropic_keeps_the_fault_table() {
    play(&[&anthropic::Anthropic]).await;
}

#[cfg(feature = "gemini")]
#[tokio::test]
async fn gemini_keeps_the_fault_table() {
    play(&[
        &gemini::Gemini { provider: "gemini" },
        &gemini::Gemini { provider: "vertex" },
    ])
    .await;
}

#[cfg(feature = "ollama")]
#[tokio::test]
async fn ollama_keeps_the_fault_table() {
    play(&[&ollama::Ollama]).await;
}

#[cfg(feature = "openai")]
#[tokio::test]
async fn openai_keeps_the_fault_table() {
    play(&[&openai_responses::OpenAiResponses]).await;
}

/// OpenAI's own Chat Completions, and every row of the table that speaks it.
#[cfg(feature = "openai")]
#[tokio::test]
async fn everybody_who_speaks_chat_completions_keeps_the_fault_table() {
    let others = ["anthropic", "gemini", "vertex", "ollama", "openai"];
    let names = Provider::all()
        .map(|provider| provider.name)
        .filter(|name| !others.contains(name));
    let rows: Vec<_> = names
        .map(|provider| openai_chat::OpenAiChat { provider })
        .collect();
    assert!(rows.len() > 15, "the table has {} rows", rows.len());
    play(
        &rows
            .iter()
            .map(|row| row as &dyn Dialect)
            .collect::<Vec<_>>(),
    )
    .await;
}
