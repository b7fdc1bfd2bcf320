//! One conversation with many turns, or one turn with many calls: CPU time of an early and a late
//! turn, peak memory, and stored bytes.

use std::path::Path;
use std::time::Instant;

use adjutant::RunContext;

use super::agent::{agent, done};
use super::{MESSAGE, Measured, Setup, count, report};
use crate::{Result, process, usage};

/// Number of turns measured together, because the clock is coarse and turns vary.
const WINDOW: u32 = 10;

/// Runs all turns of one conversation. The agent reads its history from the journal each time.
pub(super) async fn converse(setup: &Setup) -> Result<()> {
    let (agent, store) = agent(setup).await?;
    // A turn of another conversation opens connections and fills caches, and is not measured.
    if setup.turns > 1 {
        agent.run(MESSAGE).await?;
    }
    process::say("warm")?;
    tokio::task::spawn_blocking(process::wait_for_word).await??;

    let conversation = RunContext::default().conversation;
    let bytes = stored(&setup.database);
    let (asked, began, cpu) = (count::so_far(), Instant::now(), usage::own_cpu_us()?);
    let (mut early, mut late) = (None, None);
    let mut window = cpu;
    for turn in 1..=setup.turns {
        // The measured windows are turns 6 to 15 and the last ten.
        if turn == 6 || turn + WINDOW == setup.turns + 1 {
            window = usage::own_cpu_us()?;
        }
        let mut context = RunContext {
            conversation,
            ..RunContext::default()
        };
        done(&agent.run_in(&mut context, MESSAGE).await?)?;
        let taken = || -> Result<Option<f64>> {
            #[expect(clippy::cast_precision_loss, reason = "microseconds of a run")]
            let us = (usage::own_cpu_us()? - window) as f64;
            Ok(Some(us / f64::from(WINDOW)))
        };
        if turn == 5 + WINDOW {
            early = taken()?;
        }
        if turn == setup.turns && turn >= WINDOW {
            late = taken()?;
        }
    }
    let cpu_us = usage::own_cpu_us()? - cpu;
    let (seconds, peak_kib, now) = (
        began.elapsed().as_secs_f64(),
        usage::peak_kib("self")?,
        count::so_far(),
    );
    let mut measured = Measured {
        turns: setup.turns.into(),
        seconds,
        cpu_us,
        peak_kib,
        early_us: early,
        late_us: late,
        ..Measured::default()
    };
    if let Some(store) = store {
        drop(agent);
        // Closing the store moves the write-ahead log into the database file, whose size is
        // compared.
        store.close().await;
        measured.bytes = Some(stored(&setup.database).saturating_sub(bytes));
        measured.commits = Some(now.commits - asked.commits);
        measured.statements = Some(now.statements - asked.statements);
    }
    report(&measured).await
}

/// Returns the size of a database file, in bytes.
fn stored(file: &str) -> u64 {
    std::fs::metadata(Path::new(file)).map_or(0, |about| about.len())
}
