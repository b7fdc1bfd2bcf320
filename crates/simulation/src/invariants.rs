//! Invariants that hold at the end of a run, whatever happened in it.

mod conversation; // order of events in one conversation
mod fold; // equality of folded states

use std::collections::BTreeMap;

use adjutant_core::port::{AcceptedInput, Journal as _};
use adjutant_core::{Effect, Event, UserId};
use jiff::SignedDuration;

use crate::people::{Mail, Message};
use crate::store::at_once;
use crate::world::World;
use conversation::Turns;

/// Checks all invariants. Returns the first violation.
pub(crate) fn check(world: &World, mail: &Mail) -> Result<(), String> {
    looked_on(world, mail)?;
    let mut turns = Turns::default();
    for key in &world.keys {
        let loaded = world.store().load(key);
        let name = world.name(key);
        conversation::check(&loaded, &mut turns).map_err(|why| format!("{name}: {why}"))?;
        let late = conversation::nobody_stops_turns_of_others(&loaded, &mail.stopped);
        let late = late.map_err(|why| format!("{name}: {why}"))?;
        (0..late).for_each(|_| world.count("turn stopped by a late cancellation"));
        fold::check(world, &loaded.events).map_err(|why| format!("{name}: {why}"))?;
    }
    for message in &mail.messages {
        answered(world, message, &turns)?;
    }
    effects(world)?;
    results(world)?;
    tasks(world)?;
    budgets(world)
}

/// Checks the invariants that hold at any time.
pub(crate) fn looked_on(world: &World, mail: &Mail) -> Result<(), String> {
    if let Some(foul) = world.store().referee.foul() {
        return Err(format!("writes: {foul}"));
    }
    if let Some(foul) = &mail.foul {
        return Err(foul.clone());
    }
    effects(world)
}

/// Checks that an accepted message was taken, and that its sender got the turn it started.
fn answered(world: &World, message: &Message, turns: &Turns) -> Result<(), String> {
    let Message { key, id, turn } = message;
    let found = at_once(world.store().rows().find_input(key, id)).unwrap_or_default();
    match (found, turn) {
        (Some(AcceptedInput { taken_at: None }), _) => {
            Err(format!("{id} was accepted and never taken"))
        }
        // The answer that the sender got may have been lost with the last commits of the store.
        (_, Some(_)) if world.plan.losses => Ok(()),
        (None, Some(_)) => Err(format!("{id} was answered and never accepted")),
        (Some(_), Some(turn)) if !turns.is_of(id, *turn) => {
            Err(format!("{id} was told of another turn than its own"))
        }
        (Some(_), Some(_)) | (Some(_), None) | (None, None) => Ok(()),
    }
}

/// Checks that no effect was repeated that must not be.
fn effects(world: &World) -> Result<(), String> {
    for ((conversation, _, call), done) in &world.outside().calls {
        let name = format!("c{} {call}", conversation.0.as_u128());
        if done.effect == Some(Effect::Keyed) && done.keys.len() > 1 {
            return Err(format!(
                "{name}: one call came with {} keys",
                done.keys.len()
            ));
        }
        // Only a worker that has lost commits knows of it, and the referee checks what that one does:
        // another worker may repeat what it did (seed 152).
        let is_judged = !(world.plan.losses && done.effect == Some(Effect::Once));
        if is_judged && done.effect != Some(Effect::None) && done.effects > 1 {
            return Err(format!(
                "{name}: its effect happened {} times",
                done.effects
            ));
        }
    }
    Ok(())
}

/// Checks that every call that is recorded as executed was executed.
fn results(world: &World) -> Result<(), String> {
    for key in &world.keys {
        for recorded in world.store().load(key).events {
            let Event::CallFinished {
                turn,
                call,
                tool,
                result,
                ..
            } = &*recorded.event
            else {
                continue;
            };
            let name = (key.conversation, *turn, call.clone());
            let is_done = result
                .data
                .as_ref()
                .is_some_and(|data| data["done"] == true);
            let requests = world
                .outside()
                .calls
                .get(&name)
                .map_or(0, |done| done.requests);
            if is_done && result.success && requests == 0 {
                return Err(format!(
                    "{}: {tool} {call} is recorded as done, and was not",
                    world.name(key)
                ));
            }
        }
    }
    Ok(())
}

/// Checks that each added task is stored once.
fn tasks(world: &World) -> Result<(), String> {
    let mut added: BTreeMap<UserId, usize> = BTreeMap::new();
    for key in &world.keys {
        let events = world.store().load(key).events;
        let is_added = |event: &Event| match event {
            Event::CallFinished { tool, result, .. } => tool == "add_task" && result.success,
            _ => false,
        };
        let count = events
            .iter()
            .filter(|recorded| is_added(&recorded.event))
            .count();
        *added.entry(key.user.clone()).or_default() += count;
    }
    for (user, added) in added {
        let there = world.store().tasks(&user);
        if there != added {
            return Err(format!("{user} has {there} tasks, and {added} were added"));
        }
    }
    Ok(())
}

/// Checks that no day's budget was overspent.
fn budgets(world: &World) -> Result<(), String> {
    let budgets = &world.plan.budgets;
    let users: Vec<UserId> = world.keys.iter().map(|key| key.user.clone()).collect();
    let day = SignedDuration::from_hours(24);
    for at in [
        world.time((0, 0)) - day,
        world.time((0, 0)),
        world.time((0, 0)) + day,
    ] {
        let everyone = world.store().spent(None, at).model_calls;
        if budgets
            .everyone_per_day
            .model_calls
            .is_some_and(|most| everyone > most)
        {
            return Err(format!(
                "everybody's budget is overspent: {everyone} model calls"
            ));
        }
        for user in &users {
            let own = world.store().spent(Some(user), at).model_calls;
            if budgets.per_day.model_calls.is_some_and(|most| own > most) {
                return Err(format!(
                    "the budget of {user} is overspent: {own} model calls"
                ));
            }
        }
    }
    Ok(())
}

/// Returns the reason why the run is not at rest. `None`: it is.
pub(crate) fn unrest(world: &World, mail: &Mail) -> Option<String> {
    let store = world.store();
    if mail.waiting > 0 {
        return Some(format!("{} senders wait", mail.waiting));
    }
    let agent = &world.keys.first()?.agent;
    let open = at_once(store.rows().unsettled(agent, None)).unwrap_or_default();
    if let Some(key) = open.first() {
        return Some(format!("{} has something to do", world.name(key)));
    }
    let parked = store.parked(agent, None).unwrap_or_default();
    if let Some((key, _)) = parked.first() {
        return Some(format!("{} waits for a person", world.name(key)));
    }
    let (conversation, worker) = store.claims.alive().next()?;
    Some(format!(
        "c{} is claimed by {worker}",
        conversation.0.as_u128()
    ))
}
