//! Streams generated answers in pieces into an emulated terminal, with pauses and resizes, and
//! checks that in the end all words are there once and in order, below the earlier output.

mod emulator;
pub(crate) mod grammar;
#[path = "../../../../../../tests/size.rs"]
mod size;

use std::time::Duration;

use adjutant_core::AgentResponse;
use adjutant_runtime::RunEvent;
use serde_json::json;

use super::Renderer;
use super::markdown::Layout;
use super::theme::Theme;
use crate::terminal::screen::Screen;
use emulator::Emulator;
use grammar::{Answer, numbers};

/// Lines of a shell above the answer.
const ABOVE: usize = 20;

/// Cases of a sample; `all` has more.
const SAMPLE: u64 = 500;
const ALL: u64 = 10_000;

fn response(content: &str) -> AgentResponse {
    serde_json::from_value(json!({
        "conversation": "018f0000-0000-7000-8000-000000000000",
        "turn": "018f0000-0000-7000-8000-000000000001",
        "content": content,
        "tools_used": [],
        "decision": {"kind": "RESPOND_ONLY", "intent": "GENERAL_CHAT", "text": content, "tool_calls": [], "pending": []},
        "outcome": "SUCCESS:RESPONSE_GIVEN",
        "usage": {},
        "error": null,
        "notices": [],
        "timing": {"model_ms": 0, "tool_ms": 0, "total_ms": 0},
    }))
    .unwrap()
}

/// Shows one answer and returns the first difference on the screen, if there is one.
async fn show_answer(
    seed: u64,
    resizes: bool,
    styled: bool,
    up_too_far: usize,
) -> Result<(), String> {
    let answer = Answer::from_seed(seed);
    let mut number = numbers(seed ^ 0x5EED);
    let columns = 20 + number(181);
    let rows = 5 + number(56);
    let terminal = Emulator::new(columns, rows, up_too_far);
    let above: Vec<String> = (0..ABOVE)
        .map(|line| format!("shell {}", 100 + line))
        .collect();
    terminal.print(&format!("{}\n", above.join("\n")));
    let screen = Screen::for_test(terminal.clone(), styled, terminal.size());
    let mut renderer = Renderer::new(&screen, true, None);
    renderer.event(&RunEvent::ModelStarted { number: 1 });
    let most = [1, 2, 3, 7, 40, 400][number(6)];
    let mut rest = answer.source.as_str();
    let pauses = number(3) > 0;
    while !rest.is_empty() {
        let bytes = 1 + number(most);
        let end = (bytes..rest.len())
            .find(|end| rest.is_char_boundary(*end))
            .unwrap_or(rest.len());
        renderer.event(&RunEvent::Text(rest[..end].to_owned()));
        rest = &rest[end..];
        if pauses && number(12) == 0 {
            for _ in 0..1 + number(12) {
                tokio::time::advance(Duration::from_millis(100)).await;
            }
        }
        if resizes && number(25) == 0 {
            // In few rows, the live lines of a narrow terminal with many columns of text may not
            // fit.
            let least = if terminal.size()().1 < 24 { 10 } else { 14 };
            terminal.resize(20 + number(181), least + number(47));
        }
    }
    renderer.event(&RunEvent::ModelFinished {
        number: 1,
        usage: Default::default(),
    });
    renderer.finish(&response(answer.source.trim()), false);
    drop(renderer);
    drop(screen);
    if resizes {
        terminal.resize(20 + number(181), 3 + number(58));
    }
    let seen = terminal.lines();
    let wrong = |what: String| {
        let text = seen.join("\n");
        Err(format!(
            "seed {seed}: {what}\n--- written ---\n{}\n--- seen ---\n{text}",
            answer.source
        ))
    };
    if seen.get(..ABOVE) != Some(&above[..]) {
        return wrong("the lines above are others".to_owned());
    }
    let below = seen[ABOVE..].join("\n");
    if let Some(what) = answer.differs_from(&below) {
        return wrong(what);
    }
    if below.contains("answering") || below.contains("waiting") {
        return wrong("something of the live line is left".to_owned());
    }
    if !resizes {
        let expected = plain(&answer.source, styled, columns);
        let seen: Vec<&str> = below.trim_end().lines().map(str::trim_end).collect();
        if seen != expected {
            let at = seen
                .iter()
                .zip(&expected)
                .position(|(seen, expected)| seen != expected);
            return wrong(format!(
                "line {at:?} of the answer is not as it is laid out at once"
            ));
        }
    }
    Ok(())
}

/// Returns the lines of an answer laid out at once, without styles.
fn plain(source: &str, styled: bool, columns: usize) -> Vec<String> {
    let terminal = Emulator::new(columns, 60, 0);
    terminal.print(&Layout::new(Theme::new(styled)).whole(source.trim(), columns));
    let lines = terminal.lines().join("\n");
    lines
        .trim_end()
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_screen_is_the_answer() {
    let mut failures = Vec::new();
    let cases = size::cases(ALL, SAMPLE);
    for seed in 0..cases {
        // Half of the cases resize the terminal, and one in seven has no styles.
        if let Err(wrong) = show_answer(seed, seed % 2 == 1, seed % 7 > 0, 0).await {
            failures.push(wrong);
        }
    }
    let first = failures.first().map_or("", String::as_str);
    let all: Vec<&str> = failures
        .iter()
        .filter_map(|failure| failure.lines().next())
        .collect();
    let (failed, all) = (failures.len(), all.join("\n"));
    assert!(
        failures.is_empty(),
        "{failed} of {cases} failed:\n{all}\nThe first:\n{first}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_goes_up_one_row_too_many_is_found() {
    for seed in 0..200 {
        if show_answer(seed, false, true, 1).await.is_err() {
            return;
        }
    }
    panic!("200 cases did not find it");
}
