//! One run, from its seed to its report.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::chaos;
use crate::invariants;
use crate::lock::lock;
use crate::people::People;
use crate::plan::Options;
use crate::worker::Workers;
use crate::world::World;

/// Time after which a run without faults must be at rest.
const REST_WITHIN: Duration = Duration::from_secs(2 * 60 * 60);
/// Time for which it must stay at rest.
const RESTS: Duration = Duration::from_secs(60);
/// Lines of the trace that are shown with a failure.
const SHOWN: usize = 40;
/// Time between two checks for that.
const LOOK: Duration = Duration::from_secs(5);

/// The outcome of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The seed that reproduces the run.
    pub seed: u64,
    /// Digest of everything that happened; always the same for a seed.
    pub digest: u64,
    /// Number of lines in the whole trace, of which the last are kept.
    pub lines: u64,
    /// Time that passed on the simulated clock.
    pub simulated: Duration,
    /// Counts of events, by name.
    pub tally: BTreeMap<&'static str, u64>,
    /// The first invariant that did not hold. `None`: all did.
    pub failure: Option<Failure>,
    /// The last trace lines; all of them for [`run_traced`].
    pub trace: Vec<String>,
}

impl Report {
    /// Returns the report of a failed run for a person: the violated invariant, the last trace
    /// lines, and the command that reproduces it.
    #[must_use]
    pub fn failed(&self, options: Options) -> String {
        let why = self
            .failure
            .as_ref()
            .map_or("nothing", |failure| failure.0.as_str());
        let last = self.trace.len().saturating_sub(SHOWN);
        let last = self.trace.get(last..).unwrap_or_default().join("\n");
        let workers = options
            .workers
            .map(|workers| format!(" --workers {workers}"))
            .unwrap_or_default();
        let plant = options
            .plant
            .map(|plant| format!(" --plant {plant}"))
            .unwrap_or_default();
        let disasters = if options.disasters {
            " --disasters yes"
        } else {
            ""
        };
        let seed = self.seed;
        format!(
            "SEED {seed} FAILED: {why}\nthe last things that happened:\n{last}\n\
             again, with all that happened: cargo xtask simulate --seed {seed}{workers}{plant}{disasters}\n"
        )
    }
}

/// An invariant that did not hold, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub String);

/// Simulates all processes of one seed, and checks the invariants.
#[must_use]
pub fn run(options: Options) -> Report {
    make(options, false)
}

/// Simulates one run and keeps its whole trace.
#[must_use]
pub fn run_traced(options: Options) -> Report {
    make(options, true)
}

fn make(options: Options, trace_all: bool) -> Report {
    let built = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match built {
        Ok(runtime) => runtime.block_on(simulate(options, trace_all)),
        Err(error) => Report {
            seed: options.seed,
            digest: 0,
            lines: 0,
            simulated: Duration::ZERO,
            tally: BTreeMap::new(),
            failure: Some(Failure(format!("no runtime: {error}"))),
            trace: Vec::new(),
        },
    }
}

async fn simulate(options: Options, trace_all: bool) -> Report {
    let world = Arc::new(World::new(options, trace_all));
    let held = match Workers::start(&world, options.seed) {
        Ok(workers) => {
            let held = to_the_end(&world, &workers).await;
            // They refer to each other.
            workers.lives.part();
            held
        }
        Err(error) => Err(format!("no agent: {error}")),
    };
    if let Err(why) = &held {
        world.note(&"check", format_args!("FAILED: {why}"));
    }
    let tally = world.tally();
    let trace = world.trace();
    Report {
        seed: options.seed,
        digest: trace.digest(),
        lines: trace.lines(),
        simulated: world.elapsed(),
        tally,
        failure: held.err().map(Failure),
        trace: trace.last(),
    }
}

async fn to_the_end(world: &Arc<World>, workers: &Workers) -> Result<(), String> {
    world.note(&"plan", format_args!("{:?}", world.plan));
    let people = People::start(world, workers);
    let mut reign = tokio::spawn(chaos::reign(world.clone(), workers.clone()));
    tokio::spawn(chaos::disasters(world.clone(), workers.clone()));
    while !reign.is_finished() {
        // A violation is reported close to the step that caused it.
        let _ = tokio::time::timeout(LOOK, &mut reign).await;
        invariants::looked_on(world, &lock(&people.mail))?;
    }
    let mut rested = Duration::ZERO;
    while rested < RESTS {
        sleep(LOOK).await;
        let unrest = invariants::unrest(world, &lock(&people.mail));
        invariants::looked_on(world, &lock(&people.mail))?;
        match unrest {
            None => rested += LOOK,
            Some(why) if world.elapsed() > world.plan.faults + REST_WITHIN => {
                return Err(format!("it does not come to rest: {why}"));
            }
            Some(_) => rested = Duration::ZERO,
        }
    }
    invariants::check(world, &lock(&people.mail))
}
