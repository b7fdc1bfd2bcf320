//! A worker: a process with an agent that recovers open work. Killed, it is started again.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{CancellationToken, ModelId, TurnLimits};
use adjutant_runtime::{Agent, BuildError};
use adjutant_tools::TaskStore;
use adjutant_tools::task_tools;
use tokio::time::sleep;

use crate::dispatch::SimulatedDispatch;
use crate::link::Link;
use crate::lives::{Life, Lives};
use crate::model::Model;
use crate::process::{Process, State};
use crate::store::Tasks;
use crate::tools;
use crate::world::World;

/// Pause between two recoveries, as in the service.
const SWEEPS: Duration = Duration::from_secs(5);

/// All workers, each with its current life.
#[derive(Clone)]
pub(crate) struct Workers {
    world: Arc<World>,
    seed: u64,
    pub(crate) lives: Lives,
}

impl Workers {
    /// Starts all workers.
    pub(crate) fn start(world: &Arc<World>, seed: u64) -> Result<Self, BuildError> {
        let workers = Self {
            world: world.clone(),
            seed,
            lives: Lives::default(),
        };
        for worker in 0..world.plan.workers {
            let life = workers.live(worker, 1)?;
            workers.lives.push(life);
        }
        Ok(workers)
    }

    /// Kills a worker.
    pub(crate) fn kill(&self, worker: usize) {
        let Some(life) = self
            .lives
            .life(worker)
            .filter(|life| life.process.state() != State::Dead)
        else {
            return;
        };
        life.process.set(State::Dead);
        self.world.note(&life.process, format_args!("KILLED"));
        if self.world.plan.sees_gone {
            self.world.store().claims.is_gone(&life.process.name);
        }
    }

    /// Starts a killed worker again.
    pub(crate) fn start_again(&self, worker: usize) {
        let Some(before) = self
            .lives
            .life(worker)
            .filter(|life| life.process.state() == State::Dead)
        else {
            return;
        };
        // The same agent was built before, so building it cannot fail.
        if let Ok(life) = self.live(worker, before.process.life + 1) {
            self.world.note(&life.process, format_args!("STARTED"));
            self.lives.replace(worker, life);
        }
    }

    fn live(&self, worker: usize, number: u32) -> Result<Life, BuildError> {
        let world = &self.world;
        let process = Arc::new(Process::new(self.seed, worker, number));
        let link = Link::new(world, &process);
        // Clocks are wrong by up to five seconds, and drift by up to a tenth of a per cent.
        let wrong = {
            let mut chance = world.chance();
            (chance.number(-5_000..5_000), chance.number(-1_000..1_000))
        };
        let model = ModelId::new("simulated", "model").unwrap_or_else(|_| ModelId::none());
        let tasks: Arc<dyn TaskStore> = Arc::new(Tasks(world.clone()));
        let limits = TurnLimits {
            confirmation_expiry: world.plan.confirmation_expiry,
            ..TurnLimits::default()
        };
        let (clock, own) = (world.clone(), process.clone());
        let agent = Agent::builder("adjutant")
            .model(Model::new(model, world, &process))
            .instruction("Answer.")
            .tools(tools::tools(world, &process))
            .tools(
                task_tools(tasks)
                    .into_iter()
                    .filter(|tool| tool.definition().name.as_str() == "add_task"),
            )
            .limits(limits)
            .budgets(world.plan.budgets, link.clone())
            .journal(link, process.name.clone())
            .clock(move || clock.time((wrong.0 + own.clock_step(), wrong.1)))
            .build()?;
        agent.start_relay();
        let dispatched = agent.with_dispatch(Arc::new(SimulatedDispatch::new(
            world,
            &self.lives,
            &process,
        )));
        let life = Life {
            process,
            agent,
            dispatched,
        };
        tokio::spawn(sweep(world.clone(), life.clone()));
        Ok(life)
    }
}

/// Recovers open work at intervals, as the service does.
async fn sweep(world: Arc<World>, life: Life) {
    let agent = if world.plan.dispatched > 0 {
        &life.dispatched
    } else {
        &life.agent
    };
    let stop = CancellationToken::new();
    loop {
        sleep(SWEEPS).await;
        life.process.runs().await;
        // A store that is unavailable is tried again.
        if let Ok(swept) = agent.recover_until(None, &stop).await {
            for (key, error) in &swept.failed {
                world.note(
                    &life.process,
                    format_args!("left {}: {error}", world.name(key)),
                );
            }
        }
    }
}
