//! The cost of a turn with the memory of a year, beside that of the first day: CPU of the process,
//! and tokens of the prompt.
//!
//! Both memories are asked in turn, in one process, so that other load of the machine affects both
//! alike.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use adjutant_core::port::MemoryLedger as _;
use adjutant_core::turn::estimate_tokens;
use adjutant_core::{
    AgentName, BoxFuture, FactLine, MemoryChange, MemoryEffect, MemoryScope, MemoryState,
    RecalledText, UserId, recall_block,
};
use adjutant_memory::{Memory, MemoryOptions, RecallLimits, Vault, index_conversations};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::{
    Agent, InstructionAddition, Recall, RecallRequest, RunContext, TurnInstruction,
};
use adjutant_store::sqlite;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tempfile::TempDir;
use uuid::Uuid;

const AGENT: &str = "memory-eval";
/// The model repeats the message, so that no two conversations are the same.
const SCRIPT: &str = r#"{"text": "I see: {{input}}", "repeat": true}"#;
/// The first day of the year.
const BEGIN: Date = date(2026, 1, 1);
/// Conversations that are measured over each memory, after some that warm up.
const MEASURED: usize = 60;
const WARM_UP: usize = 5;
/// Turns of each conversation.
const TURNS: usize = 3;
/// One fact of so many is important, and one was corrected once.
const IMPORTANT_OF: usize = 100;
const CORRECTED_OF: usize = 10;

/// The size of a memory.
#[derive(Clone, Copy)]
struct Size {
    facts: usize,
    daily_notes: usize,
    conversations: usize,
}

const FIRST_DAY: Size = Size {
    facts: 3,
    daily_notes: 1,
    conversations: 1,
};
const YEAR: Size = Size {
    facts: 3_000,
    daily_notes: 365,
    conversations: 1_000,
};

/// The figures of a measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    /// Median CPU of a turn on the first day and after the year, in microseconds.
    first_day_cpu_us: f64,
    year_cpu_us: f64,
    /// The second as a multiple of the first.
    ratio: f64,
    /// Tokens of the memory's part of a prompt after the year: the important facts and the recalled
    /// ones.
    prompt_tokens_mean: f64,
    prompt_tokens_max: u32,
}

/// Makes both memories, and runs conversations over them in turn.
///
/// # Errors
/// A file that cannot be written, or an answer that fails, as a message.
pub(crate) async fn measure() -> Result<Figures, String> {
    eprintln!("a year is made: it takes a minute");
    let memories = [
        MeasuredMemory::fill(FIRST_DAY).await?,
        MeasuredMemory::fill(YEAR).await?,
    ];
    let mut costs = [Vec::new(), Vec::new()];
    for number in 0..WARM_UP + MEASURED {
        for (memory, costs) in memories.iter().zip(&mut costs) {
            let cost = memory.converse(number).await?;
            if number >= WARM_UP {
                costs.extend(cost);
            }
        }
    }
    let [first, year] = costs.map(median);
    let costs_of_recall = &memories[1].recall.0;
    Ok(Figures {
        first_day_cpu_us: first,
        year_cpu_us: year,
        ratio: year / first,
        prompt_tokens_mean: f64::from(costs_of_recall.sum.load(Ordering::Relaxed))
            / f64::from(costs_of_recall.turns.load(Ordering::Relaxed).max(1)),
        prompt_tokens_max: costs_of_recall.max.load(Ordering::Relaxed),
    })
}

impl Figures {
    /// Returns the figures as JSON, or as text for a terminal.
    pub(crate) fn to_text(&self, json: bool) -> String {
        if json {
            return serde_json::to_string(self).unwrap_or_default();
        }
        format!(
            "a turn: {:.0} µs of CPU on the first day, {:.0} µs after the year, {:.2} times as much\n\
             the memory's part of a prompt after the year: {:.0} tokens on average, {} at most",
            self.first_day_cpu_us,
            self.year_cpu_us,
            self.ratio,
            self.prompt_tokens_mean,
            self.prompt_tokens_max
        )
    }
}

/// A memory in a temporary folder with an agent over it, removed with this value.
struct MeasuredMemory {
    _folder: TempDir,
    store: Arc<sqlite::Store>,
    agent: Agent,
    name: AgentName,
    recall: MeasuredRecall,
}

impl MeasuredMemory {
    async fn fill(size: Size) -> Result<Self, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let folder = TempDir::new().map_err(|error| text(&error))?;
        let vault = folder.path().join("Notes");
        write_notes(&vault, size).map_err(|error| text(&error))?;
        let store = sqlite::Store::open(&folder.path().join("adjutant.db")).await;
        let store = Arc::new(store.map_err(|error| text(&error))?);
        let vault = Vault::open(&vault).map_err(|error| text(&error))?;
        let scope = MemoryScope {
            user: UserId::local(),
            vault: vault.root().to_string_lossy().into_owned(),
        };
        for change in (0..size.facts).flat_map(changes) {
            store
                .put(&scope, &change)
                .await
                .map_err(|error| text(&error))?;
        }
        let now = day(size.daily_notes)
            .to_zoned(TimeZone::UTC)
            .map_err(|error| text(&error))?;
        let clock = Arc::new(move || -> Zoned { now.clone() });
        let memory = Memory::new(
            vault,
            UserId::local(),
            MemoryOptions::default(),
            store.clone(),
            clock,
        )
        .map_err(|error| text(&error))?;
        let recall = MeasuredRecall(Arc::new(RecallCosts {
            memory,
            important: AtomicU32::new(0),
            turns: AtomicU32::new(0),
            sum: AtomicU32::new(0),
            max: AtomicU32::new(0),
        }));
        let agent = Agent::builder(AGENT)
            .model(ScriptedModel::from_jsonl(SCRIPT).map_err(|error| text(&error))?)
            .instruction("You talk with a person.")
            .turn_instruction(recall.clone())
            .recall(recall.clone())
            .journal(store.clone(), AGENT)
            .build()
            .map_err(|error| text(&error))?;
        let name = AgentName::new(AGENT).map_err(|error| text(&error))?;
        let measured = Self {
            _folder: folder,
            store,
            agent,
            name,
            recall,
        };
        for number in 0..size.conversations {
            measured.converse(number).await?;
        }
        Ok(measured)
    }

    /// Runs a conversation, and indexes it for conversation search. Returns the CPU of each turn,
    /// in microseconds.
    async fn converse(&self, number: usize) -> Result<Vec<f64>, String> {
        let conversation = RunContext::default().conversation;
        let mut costs = Vec::new();
        for turn in 0..TURNS {
            let mut context = RunContext {
                conversation,
                ..RunContext::default()
            };
            let message = format!(
                "{} What of that do you know?",
                sentence(number * TURNS * 7 + turn * 3)
            );
            let begin = cpu();
            self.agent
                .run_in(&mut context, &message)
                .await
                .map_err(|error| error.to_string())?;
            while index_conversations(&*self.store, &self.name)
                .await
                .map_err(|error| error.to_string())?
            {}
            costs.push(cpu() - begin);
        }
        Ok(costs)
    }
}

/// The instruction and the recall of an agent, as the assistant in the terminal has them, with a
/// count of their tokens.
#[derive(Clone)]
struct MeasuredRecall(Arc<RecallCosts>);

struct RecallCosts {
    memory: Memory,
    /// Tokens of the important facts of the current turn.
    important: AtomicU32,
    turns: AtomicU32,
    sum: AtomicU32,
    max: AtomicU32,
}

impl TurnInstruction for MeasuredRecall {
    fn for_turn<'a>(&'a self, _user: &'a UserId) -> BoxFuture<'a, InstructionAddition> {
        Box::pin(async move {
            let facts = self
                .0
                .memory
                .facts()
                .instruction(&estimate_tokens)
                .await
                .unwrap_or_default();
            self.0
                .important
                .store(estimate_tokens(&facts.text), Ordering::Relaxed);
            InstructionAddition {
                text: facts.text,
                notices: Vec::new(),
            }
        })
    }
}

impl Recall for MeasuredRecall {
    fn for_message<'a>(&'a self, asked: RecallRequest<'a>) -> BoxFuture<'a, Vec<RecalledText>> {
        Box::pin(async move {
            let state = &self.0;
            let limits = RecallLimits::default();
            let recalled = state
                .memory
                .recall_for_message(asked.message, asked.history, limits, &estimate_tokens)
                .await;
            let recalled = recalled.unwrap_or_default();
            let block = recall_block::format(&recalled).unwrap_or_default();
            let tokens = state.important.load(Ordering::Relaxed) + estimate_tokens(&block);
            state.turns.fetch_add(1, Ordering::Relaxed);
            state.sum.fetch_add(tokens, Ordering::Relaxed);
            state.max.fetch_max(tokens, Ordering::Relaxed);
            recalled
        })
    }
}

/// Writes the file of the facts and the daily notes.
fn write_notes(vault: &std::path::Path, size: Size) -> std::io::Result<()> {
    fs::create_dir_all(vault.join("memory"))?;
    let (mut important, mut recent) = (String::new(), String::new());
    for number in 0..size.facts {
        match is_important(number) {
            true => important.push_str(&format!("- {} #important\n", sentence(number))),
            false => recent.push_str(&format!(
                "- [{}] {}\n",
                day_of_fact(number),
                sentence(number)
            )),
        }
    }
    let facts = format!(
        "---\ntype: memory\n---\n\n# Key Facts\n\n## Important\n\n{important}\n## Recent\n\n{recent}"
    );
    fs::write(vault.join("memory/facts.md"), facts)?;
    for number in 0..size.daily_notes {
        let entries: String = (0..8)
            .map(|entry| format!("- {:02}:15 {}\n", 8 + entry, sentence(number * 8 + entry)))
            .collect();
        let date = day(number).date();
        fs::write(
            vault.join(format!("{date}.md")),
            format!("# {date}\n\n## Log\n\n{entries}"),
        )?;
    }
    Ok(())
}

/// Returns the changes that led to a fact: it was remembered, and sometimes corrected.
fn changes(number: usize) -> Vec<MemoryChange> {
    let line = |text: String| FactLine {
        line: format!("- [{}] {text}", day_of_fact(number)),
        text,
        important: is_important(number),
        place: number,
        created: None,
    };
    let change = |id: usize, before: Option<FactLine>, after: FactLine| MemoryChange {
        id: Uuid::from_u128(id as u128),
        at: day(number)
            .to_zoned(TimeZone::UTC)
            .map(|at| at.timestamp())
            .unwrap_or_default(),
        source: None,
        key: None,
        effect: MemoryEffect::Fact {
            before,
            after: Some(after),
        },
        state: MemoryState::Done,
        patch: None,
    };
    let now = line(sentence(number));
    if !number.is_multiple_of(CORRECTED_OF) {
        return vec![change(2 * number, None, now)];
    }
    let before = line(format!("{} Or so I thought.", sentence(number)));
    vec![
        change(2 * number, None, before.clone()),
        change(2 * number + 1, Some(before), now),
    ]
}

fn is_important(number: usize) -> bool {
    number.is_multiple_of(IMPORTANT_OF)
}

/// Returns noon of a day, counted from the first.
fn day(number: usize) -> jiff::civil::DateTime {
    let days = i64::try_from(number).unwrap_or_default();
    BEGIN
        .checked_add(days.days())
        .unwrap_or(BEGIN)
        .at(12, 0, 0, 0)
}

fn day_of_fact(number: usize) -> Date {
    day(number * 365 / YEAR.facts).date()
}

/// Returns a sentence that a person may say, a different one for each number below 18,000.
fn sentence(number: usize) -> String {
    const WHO: [&str; 15] = [
        "Anna",
        "Bert",
        "My sister",
        "My neighbour",
        "The dentist",
        "Josh",
        "Our landlord",
        "My boss",
        "Carla",
        "The plumber",
        "Uncle Karl",
        "My daughter",
        "The school",
        "Maria",
        "The band",
    ];
    const DOES: [&str; 20] = [
        "moved to",
        "works at",
        "likes",
        "is allergic to",
        "bought",
        "sold",
        "repairs",
        "wants to visit",
        "painted",
        "lost",
        "found",
        "writes about",
        "dreams of",
        "teaches",
        "studies",
        "avoids",
        "collects",
        "photographs",
        "planned a trip to",
        "complained about",
    ];
    const WHAT: [&str; 12] = [
        "the harbour",
        "old clocks",
        "green tea",
        "Munich",
        "walnuts",
        "the red bicycle",
        "jazz records",
        "the garden",
        "Lisbon",
        "chess",
        "the roof tiles",
        "sourdough bread",
    ];
    const WHEN: [&str; 5] = [
        "since spring",
        "every Tuesday",
        "with two friends",
        "before the holidays",
        "for the first time",
    ];
    let pick =
        |from: &[&'static str], at: usize| from.get(at % from.len()).copied().unwrap_or_default();
    let (who, rest) = (number % WHO.len(), number / WHO.len());
    let (does, rest) = ((rest + who) % DOES.len(), rest / DOES.len());
    let (what, rest) = ((rest + does) % WHAT.len(), rest / WHAT.len());
    format!(
        "{} {} {} {}.",
        pick(&WHO, who),
        pick(&DOES, does),
        pick(&WHAT, what),
        pick(&WHEN, rest + what)
    )
}

/// Returns the CPU time that this process has used, in microseconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn median(mut costs: Vec<f64>) -> f64 {
    costs.sort_by(f64::total_cmp);
    costs.get(costs.len() / 2).copied().unwrap_or_default()
}
