//! Users: some send messages, again if no response came, and one answers pending calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::{
    Answer, ConversationKey, Event, InputBody, InputId, PendingCall, TurnId, Verdict,
};
use adjutant_runtime::{RunContext, RunError};
use tokio::time::{sleep, timeout};

use crate::lives::Life;
use crate::lock::lock;
use crate::worker::Workers;
use crate::world::World;

/// A message that was sent, and the response that its sender got.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) key: ConversationKey,
    pub(crate) id: InputId,
    /// The turn of the response. `None`: there was none, and the sender gave up.
    pub(crate) turn: Option<TurnId>,
}

/// The messages of a run.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) messages: Vec<Message>,
    /// Senders that still wait.
    pub(crate) waiting: usize,
    /// Messages whose senders cancelled their turns.
    pub(crate) stopped: BTreeSet<InputId>,
    /// A response that no sender should get.
    pub(crate) foul: Option<String>,
}

/// All users of a run.
#[derive(Clone)]
pub(crate) struct People {
    world: Arc<World>,
    workers: Workers,
    pub(crate) mail: Arc<Mutex<Mail>>,
}

impl People {
    /// Starts all users.
    pub(crate) fn start(world: &Arc<World>, workers: &Workers) -> Self {
        let people = Self {
            world: world.clone(),
            workers: workers.clone(),
            mail: Arc::default(),
        };
        for key in &world.keys {
            for number in 0..world.plan.inputs {
                lock(&people.mail).waiting += 1;
                let (people, key) = (people.clone(), key.clone());
                tokio::spawn(async move { people.send(key, number).await });
            }
        }
        let human = people.clone();
        tokio::spawn(async move { human.answer_what_waits().await });
        people
    }

    /// Sends one message, repeatedly until there is a response or its sender gives up.
    async fn send(self, key: ConversationKey, number: usize) {
        let faults = u64::try_from(self.world.plan.faults.as_millis()).unwrap_or(1);
        let wait = self.world.chance().ms(0..faults);
        sleep(wait).await;
        let name = format!("{}-{number}", self.world.name(&key));
        let text = format!("Message {name}: please do something.");
        let mut turn = None;
        if let Ok(id) = InputId::new(name.clone()) {
            loop {
                let answered = match self.workers.lives.any(&self.world) {
                    Some(life) => {
                        self.ask(&life, &key, &id, InputBody::message(text.clone()))
                            .await
                    }
                    None => None,
                };
                turn = answered;
                let gives_up = self.world.fails(300);
                if turn.is_some() || gives_up {
                    break;
                }
                let wait = self.world.chance().ms(500..5_000);
                sleep(wait).await;
            }
            lock(&self.mail).messages.push(Message { key, id, turn });
        }
        self.world.note(
            &"people",
            format_args!(
                "{name} {}",
                if turn.is_some() {
                    "is answered"
                } else {
                    "gives up"
                }
            ),
        );
        lock(&self.mail).waiting -= 1;
    }

    /// Submits it to one worker. `None`: no response came.
    async fn ask(
        &self,
        life: &Life,
        key: &ConversationKey,
        id: &InputId,
        body: InputBody,
    ) -> Option<TurnId> {
        let (is_dispatched, is_streamed, is_cancelled, patience) = {
            let (cancels, dispatched) = (self.world.plan.cancels, self.world.plan.dispatched);
            let is_cancelled = self.world.fails(cancels);
            let mut chance = self.world.chance();
            (
                chance.happens(dispatched),
                chance.happens(500),
                is_cancelled,
                chance.ms(20_000..300_000),
            )
        };
        let agent = if is_dispatched {
            &life.dispatched
        } else {
            &life.agent
        };
        let mut context = RunContext {
            conversation: key.conversation,
            ..RunContext::new(key.user.clone())
        };
        if is_cancelled {
            let (wait, cancelled) = (
                self.world.chance().ms(10..20_000),
                context.cancelled.clone(),
            );
            let (mail, id) = (self.mail.clone(), id.clone());
            tokio::spawn(async move {
                sleep(wait).await;
                lock(&mail).stopped.insert(id);
                cancelled.cancel();
            });
        }
        self.world
            .note(&life.process, format_args!("is asked {id}"));
        let answer = async {
            if is_streamed {
                // A client that disconnects does not cancel the turn.
                let stream = agent
                    .stream_input(&context, Some(id.clone()), body)
                    .detached();
                stream.finish().await.map(|(response, _)| response)
            } else {
                agent.run_input(&mut context, Some(id.clone()), body).await
            }
        };
        let answer = tokio::select! {
            biased;
            () = life.process.dies() => return None,
            answer = timeout(patience, answer) => answer,
        };
        let Ok(answer) = answer else {
            // A client that disconnects cancels the turn, unless it is a stream that continues by
            // itself.
            if !is_streamed {
                lock(&self.mail).stopped.insert(id.clone());
            }
            return None;
        };
        match answer {
            Ok(response) => {
                self.world.note(
                    &life.process,
                    format_args!("answers {id}: {:?}", response.outcome),
                );
                Some(response.turn)
            }
            Err(error) => {
                self.world.note(
                    &life.process,
                    format_args!("fails {id}: {}", error_message(&error)),
                );
                if matches!(&error, RunError::CannotContinue(why) if why.contains("task died")) {
                    lock(&self.mail)
                        .foul
                        .get_or_insert(format!("a task broke down: {error}"));
                }
                None
            }
        }
    }

    /// Answers pending calls during the run.
    async fn answer_what_waits(self) {
        let mut asked = BTreeMap::new();
        loop {
            let wait = self.world.chance().ms(3_000..8_000);
            sleep(wait).await;
            let agent = match self.world.keys.first() {
                Some(key) => key.agent.clone(),
                None => return,
            };
            let parked = self.world.store().parked(&agent, None).unwrap_or_default();
            for (key, recorded) in parked {
                let Event::TurnParked { turn, pending, .. } = &*recorded.event else {
                    continue;
                };
                if !self.world.faults_are_over() && self.world.chance().happens(500) {
                    continue;
                }
                let answers: Vec<Answer> = pending
                    .iter()
                    .filter_map(|call| self.verdict(&key, *turn, call))
                    .collect();
                let Some(life) = self
                    .workers
                    .lives
                    .any(&self.world)
                    .filter(|_| !answers.is_empty())
                else {
                    continue;
                };
                let number = asked
                    .entry((key.conversation, recorded.seq))
                    .or_insert(0_u32);
                *number += 1;
                let name = format!("{}-answer-{}-{number}", self.world.name(&key), recorded.seq);
                let Ok(id) = InputId::new(name) else { continue };
                let people = self.clone();
                tokio::spawn(async move {
                    people
                        .ask(&life, &key, &id, InputBody::Answers { answers })
                        .await;
                });
            }
        }
    }

    /// Returns the verdict on one call. `None`: not yet.
    fn verdict(&self, key: &ConversationKey, turn: TurnId, call: &PendingCall) -> Option<Answer> {
        let verdict = match &call.doubt {
            None if self.world.chance().happens(700) => Verdict::Approved,
            None => Verdict::Denied,
            Some(_) => {
                let name = (key.conversation, turn, call.call_id.clone());
                match self.world.outside().effects(&name) {
                    // A call that is still on its way is awaited: a verdict that it was not
                    // executed would have it executed twice.
                    0 if self.world.is_calm_for(Duration::from_secs(60)) => Verdict::Retry,
                    0 => return None,
                    _ => Verdict::Done,
                }
            }
        };
        self.world.count(match verdict {
            Verdict::Approved => "approved",
            Verdict::Denied => "denied",
            Verdict::Done => "said to be done",
            Verdict::Retry => "tried again",
            Verdict::Leave => "left",
            Verdict::Provided => "brought",
        });
        Some(call.answer(verdict))
    }
}

/// Returns the text of an error without the random ids of the engine.
fn error_message(error: &RunError) -> String {
    let words = error.to_string();
    words
        .split(' ')
        .filter(|word| word.len() < 32)
        .collect::<Vec<_>>()
        .join(" ")
}
