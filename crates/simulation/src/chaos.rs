//! Fault injection, until its time is over.

use std::sync::Arc;

use tokio::time::sleep;

use crate::process::State;
use crate::worker::Workers;
use crate::world::World;

/// Kills, suspends and disconnects processes until the faults end; then everything runs again.
pub(crate) async fn reign(world: Arc<World>, workers: Workers) {
    while world.elapsed() < world.plan.faults {
        let (wait, worker, what) = {
            let mut chance = world.chance();
            (
                chance.ms(200..12_000),
                chance.below(workers.lives.len()),
                chance.below(4),
            )
        };
        sleep(wait).await;
        let what = if world.plan.long_stops && world.chance().happens(600) {
            1
        } else {
            what
        };
        match what {
            0 if world.plan.kills => kill(&world, &workers, worker),
            1 if world.plan.pauses || world.plan.long_stops => stop(&world, &workers, worker),
            2 if world.plan.outages => cut_off(&world),
            3 if world.plan.breaks => break_connection(&world, &workers, worker),
            _ => {}
        }
    }
    world.end_faults();
    for worker in 0..workers.lives.len() {
        if let Some(life) = workers.lives.life(worker) {
            life.process.set_clock_step(0);
        }
    }
    world.note(&"chaos", format_args!("THE FAULTS END"));
    for worker in 0..workers.lives.len() {
        if let Some(life) = workers
            .lives
            .life(worker)
            .filter(|life| life.process.state() == State::Stopped)
        {
            life.process.set(State::Runs);
        }
        workers.start_again(worker);
    }
}

/// Milliseconds by which a clock is wrong after a step.
const CLOCK_STEPS: [i64; 6] = [0, HOUR, 24 * HOUR, -HOUR, -24 * HOUR, -72 * HOUR];
const HOUR: i64 = 3_600_000;

/// Lets clocks step, and the store lose commits, until the faults end.
pub(crate) async fn disasters(world: Arc<World>, workers: Workers) {
    let plan = &world.plan;
    if !(plan.clock_steps || plan.losses) {
        return;
    }
    loop {
        let (wait, worker, step) = {
            let mut chance = world.chance();
            (
                chance.ms(2_000..20_000),
                chance.below(workers.lives.len()),
                chance.below(CLOCK_STEPS.len()),
            )
        };
        sleep(wait).await;
        if plan.losses && !world.faults_are_over() {
            fail_over(&world).await;
        }
        if world.faults_are_over() {
            return;
        }
        if let Some(life) = workers.lives.life(worker).filter(|_| plan.clock_steps) {
            let ms = CLOCK_STEPS.get(step).copied().unwrap_or_default();
            life.process.set_clock_step(ms);
            world.count("clock stepped");
            world.note(&life.process, format_args!("ITS CLOCK IS WRONG BY {ms} ms"));
        }
    }
}

/// Cuts the store's standby off, and lets it take the store's place a while later.
async fn fail_over(world: &World) {
    world.store().cut_off_standby();
    let wait = world.chance().ms(1..5_000);
    sleep(wait).await;
    let losers = world.store().fail_over();
    if !losers.is_empty() {
        world.count("commits lost");
    }
    world.note(
        &"chaos",
        format_args!("A STANDBY TAKES OVER, WITHOUT COMMITS OF {}", losers.len()),
    );
}

fn kill(world: &Arc<World>, workers: &Workers, worker: usize) {
    workers.kill(worker);
    world.count("kill");
    let (wait, workers) = (world.chance().ms(0..25_000), workers.clone());
    tokio::spawn(async move {
        sleep(wait).await;
        workers.start_again(worker);
    });
}

/// Suspends a process, for shorter or longer than its leases last.
fn stop(world: &Arc<World>, workers: &Workers, worker: usize) {
    let Some(life) = workers
        .lives
        .life(worker)
        .filter(|life| life.process.state() == State::Runs)
    else {
        return;
    };
    life.process.set(State::Stopped);
    world.count("stop");
    let time = world.chance().ms(if world.plan.long_stops {
        14_000..40_000
    } else {
        100..60_000
    });
    world.note(
        &life.process,
        format_args!("STOPPED for {} ms", time.as_millis()),
    );
    let world = world.clone();
    tokio::spawn(async move {
        sleep(time).await;
        if life.process.state() == State::Stopped {
            life.process.set(State::Runs);
            world.note(&life.process, format_args!("GOES ON"));
        }
    });
}

fn cut_off(world: &Arc<World>) {
    world.set_store_away(true);
    world.count("outage");
    world.note(&"chaos", format_args!("THE STORE IS AWAY"));
    let (time, world) = (world.chance().ms(50..30_000), world.clone());
    tokio::spawn(async move {
        sleep(time).await;
        world.set_store_away(false);
        world.note(&"chaos", format_args!("THE STORE IS BACK"));
    });
}

/// Breaks the connection by which a process is known to be alive, though it is.
fn break_connection(world: &Arc<World>, workers: &Workers, worker: usize) {
    if let Some(life) = workers.lives.life(worker) {
        world.count("taken for gone");
        world.note(&life.process, format_args!("TAKEN FOR GONE"));
        world.store().claims.is_gone(&life.process.name);
    }
}
