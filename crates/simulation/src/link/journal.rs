//! The journal, as a process sees it.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::conversation::Snapshot;
use adjutant_core::port::{
    AcceptedInput, Beat, Begin, Begun, Change, Changes, Claim, Due, Finished, Holder, Journal,
    JournaledChange, Known, Loaded, Newer, Relay, Running, Take, Taken, Turns, Worker, Writer,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, Event, Input, InputId, Recorded, StoreId, TurnId, UserId,
};
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::{Answer, Link, News, Request};
use crate::relay::SimulatedRelay;
use crate::store::{Store, at_once};

/// The kinds of events, for the trace.
fn kinds<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> String {
    let kinds = events.into_iter().map(|recorded| {
        let Recorded { seq, event, .. } = recorded;
        // The ids that the engine makes are different in every run.
        let input = event
            .takes_input()
            .map(InputId::as_str)
            .filter(|id| id.len() < 32);
        format!(
            "{seq}:{}{}",
            event.kind(),
            input.map(|id| format!("({id})")).unwrap_or_default()
        )
    });
    kinds.collect::<Vec<_>>().join(" ")
}

fn found(newer: &Newer) -> String {
    let snapshot = if newer.restorable.is_some() {
        "a snapshot, "
    } else {
        ""
    };
    format!(
        "{snapshot}{} events behind {}, {} inputs",
        newer.events.len(),
        newer.after,
        newer.inbox.len()
    )
}

fn count(list: &[impl Sized]) -> String {
    list.len().to_string()
}

impl Journal for Link {
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Answer<()>> {
        Box::pin(async move {
            let (of, it) = (key.clone(), input.clone());
            let request = self.request("submit", key);
            self.ask(
                request,
                move |store| store.submit(&of, &it),
                |()| "accepted".to_owned(),
            )
            .await?;
            self.notify(&Change::Input(key.clone()));
            Ok(())
        })
    }

    fn submit_with_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
        turn: &'a Event,
    ) -> BoxFuture<'a, Answer<()>> {
        Box::pin(async move {
            let (of, it, turn) = (key.clone(), input.clone(), turn.clone());
            let operation = move |store: &mut Store| store.submit_with_turn(&of, &it, &turn);
            self.ask(self.request("submit_with_turn", key), operation, |()| {
                "accepted".to_owned()
            })
            .await?;
            self.notify(&Change::Input(key.clone()));
            Ok(())
        })
    }

    fn holder<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Answer<Option<Holder>>> {
        let of = key.clone();
        let says = |holder: &Option<Holder>| {
            holder
                .as_ref()
                .map_or("nobody".to_owned(), |it| it.worker.clone())
        };
        self.ask(
            self.request("holder", key),
            move |store| Ok(store.holder(&of)),
            says,
        )
    }

    fn end_claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Answer<bool>> {
        Box::pin(async move {
            let (of, id, epoch) = (key.clone(), worker.id.to_owned(), worker.epoch);
            let operation =
                move |store: &mut Store| Ok(store.end_claim(&of, Worker { id: &id, epoch }));
            let ended = self
                .ask(self.request("end_claim", key), operation, bool::to_string)
                .await?;
            if ended {
                self.world.count("taken from who is silent");
                self.notify(&Change::Free(key.clone()));
            }
            Ok(ended)
        })
    }

    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Answer<Loaded>> {
        let of = key.clone();
        let says = |loaded: &Loaded| format!("{} events", loaded.events.len());
        self.ask(
            self.request("load", key),
            move |store| Ok(store.load(&of)),
            says,
        )
    }

    fn load_newer<'a>(
        &'a self,
        key: &'a ConversationKey,
        known: Option<Known>,
    ) -> BoxFuture<'a, Answer<Option<Newer>>> {
        let of = key.clone();
        let says = |newer: &Option<Newer>| newer.as_ref().map_or("nothing".to_owned(), found);
        self.ask(
            self.request("load_newer", key),
            move |store| store.load_newer(&of, known),
            says,
        )
    }

    fn load_turns<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<u64>,
        turns: u32,
    ) -> BoxFuture<'a, Answer<Option<Turns>>> {
        let of = key.clone();
        let operation =
            move |store: &mut Store| at_once(store.rows().load_turns(&of, before, turns));
        self.ask(self.request("load_turns", key), operation, said)
    }

    fn load_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        turn: TurnId,
    ) -> BoxFuture<'a, Answer<Option<Turns>>> {
        let of = key.clone();
        let operation = move |store: &mut Store| at_once(store.rows().load_turn(&of, turn));
        self.ask(self.request("load_turn", key), operation, said)
    }

    fn find_input<'a>(
        &'a self,
        key: &'a ConversationKey,
        id: &'a InputId,
    ) -> BoxFuture<'a, Answer<Option<AcceptedInput>>> {
        let (of, id) = (key.clone(), id.clone());
        let operation = move |store: &mut Store| at_once(store.rows().find_input(&of, &id));
        self.ask(self.request("find_input", key), operation, |found| {
            format!("{found:?}")
        })
    }

    fn begin<'a>(
        &'a self,
        key: &'a ConversationKey,
        begin: Begin<'a>,
    ) -> BoxFuture<'a, Answer<Begun>> {
        Box::pin(async move {
            let Begin {
                input,
                turn,
                first,
                worker,
                lease,
                known,
                at,
            } = begin;
            let (of, input, turn, first) =
                (key.clone(), input.cloned(), turn.to_vec(), first.cloned());
            let (id, epoch) = (worker.id.to_owned(), worker.epoch);
            let operation = move |store: &mut Store| {
                let worker = Worker { id: &id, epoch };
                let (input, first) = (input.as_ref(), first.as_ref());
                store.begin(
                    &of,
                    Begin {
                        input,
                        turn: &turn,
                        first,
                        worker,
                        lease,
                        known,
                        at,
                    },
                )
            };
            let says = |begun: &Begun| match begun {
                Begun::Started(newer) => format!("started, {}", found(newer)),
                Begun::Claimed { claim, newer } => format!("{claim:?}, {}", found(newer)),
                Begun::Elsewhere => "elsewhere".to_owned(),
                Begun::Nothing => "nothing".to_owned(),
            };
            let begun = self
                .ask(self.request("begin", key), operation, says)
                .await?;
            if let Begun::Started(newer) | Begun::Claimed { newer, .. } = &begun
                && newer.restorable.is_some()
            {
                self.world.count("restored");
            }
            self.world.count(match &begun {
                Begun::Started(_) => "begun",
                Begun::Claimed {
                    claim: Claim::TakenOver,
                    ..
                } => "taken over",
                Begun::Claimed { .. } => "claimed",
                Begun::Elsewhere => "elsewhere",
                Begun::Nothing => "nothing",
            });
            if begun == Begun::Elsewhere {
                self.notify(&Change::Input(key.clone()));
            }
            Ok(begun)
        })
    }

    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Answer<()>> {
        let (of, events) = (key.clone(), events.to_vec());
        let says = kinds(&events);
        self.ask(
            self.request("append", key),
            move |store| store.append(&of, &events),
            |()| says,
        )
    }

    fn append_held<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Answer<()>> {
        let (of, events, spent) = (key.clone(), events.to_vec(), writer.spent.to_vec());
        let (id, epoch) = (writer.worker.id.to_owned(), writer.worker.epoch);
        let says = kinds(&events);
        let operation = move |store: &mut Store| {
            store.append_held(
                &of,
                Writer {
                    worker: Worker { id: &id, epoch },
                    spent: &spent,
                },
                &events,
            )
        };
        self.ask(self.request("append_held", key), operation, |()| says)
    }

    fn store_id(&self) -> Option<StoreId> {
        Some(self.world.store().id())
    }

    fn restarts(&self) -> u64 {
        self.world.store().fail_overs
    }

    fn since_lost_commits(&self) -> Option<Duration> {
        self.world.store().since_lost_commits(&self.process.name)
    }

    fn append_with_change<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        change: JournaledChange,
    ) -> BoxFuture<'a, Answer<Recorded>> {
        let (of, events, spent) = (key.clone(), events.to_vec(), writer.spent.to_vec());
        let (id, epoch) = (writer.worker.id.to_owned(), writer.worker.epoch);
        let before = kinds(&events);
        let operation = move |store: &mut Store| {
            let writer = Writer {
                worker: Worker { id: &id, epoch },
                spent: &spent,
            };
            store.append_with_change(&of, writer, &events, change)
        };
        let says = move |ended: &Recorded| format!("{before} {}", kinds([ended]));
        self.ask(self.request("append_with_change", key), operation, says)
    }

    fn finish<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        snapshot: Option<&'a Snapshot>,
    ) -> BoxFuture<'a, Answer<Finished>> {
        Box::pin(async move {
            let (of, events, spent) = (key.clone(), events.to_vec(), writer.spent.to_vec());
            let (id, epoch, snapshot) = (
                writer.worker.id.to_owned(),
                writer.worker.epoch,
                snapshot.cloned(),
            );
            let what = kinds(&events);
            let operation = move |store: &mut Store| {
                let writer = Writer {
                    worker: Worker { id: &id, epoch },
                    spent: &spent,
                };
                store.finish(&of, writer, &events, snapshot.as_ref())
            };
            let says = move |finished: &Finished| match finished {
                Finished::Released => format!("{what}, released"),
                Finished::Kept(inputs) => format!("{what}, kept for {} inputs", inputs.len()),
            };
            let finished = self
                .ask(self.request("finish", key), operation, says)
                .await?;
            if finished == Finished::Released {
                self.notify(&Change::Free(key.clone()));
            }
            Ok(finished)
        })
    }

    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Answer<Claim>> {
        let (of, worker) = (key.clone(), worker.to_owned());
        let operation = move |store: &mut Store| store.claim(&of, &worker, ttl);
        self.ask(self.request("claim", key), operation, |claim| {
            format!("{claim:?}")
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        ttl: Duration,
    ) -> BoxFuture<'a, Answer<bool>> {
        let (of, id, epoch) = (key.clone(), worker.id.to_owned(), worker.epoch);
        let operation =
            move |store: &mut Store| Ok(store.renew(&of, Worker { id: &id, epoch }, ttl));
        self.ask(self.request("renew", key), operation, bool::to_string)
    }

    fn beat<'a>(&'a self, beat: Beat<'a>) -> BoxFuture<'a, Answer<Option<Vec<Running>>>> {
        let Beat {
            agent,
            worker,
            lease,
            is_first,
        } = beat;
        let (agent, id, epoch) = (agent.clone(), worker.id.to_owned(), worker.epoch);
        let operation = move |store: &mut Store| {
            store.beat(Beat {
                agent: &agent,
                worker: Worker { id: &id, epoch },
                lease,
                is_first,
            })
        };
        let says = |claimed: &Option<Vec<Running>>| match claimed {
            Some(claimed) => format!("{} claimed", claimed.len()),
            None => "its epoch is over".to_owned(),
        };
        let world = self.world.clone();
        let says = move |claimed: &Option<Vec<Running>>| {
            world.count(if claimed.is_some() {
                "beat"
            } else {
                "epoch over"
            });
            says(claimed)
        };
        self.ask(
            Request {
                what: "beat",
                about: String::new(),
            },
            operation,
            says,
        )
    }

    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Answer<()>> {
        Box::pin(async move {
            let (of, id, epoch) = (key.clone(), worker.id.to_owned(), worker.epoch);
            let operation = move |store: &mut Store| {
                store.release(&of, Worker { id: &id, epoch });
                Ok(())
            };
            self.ask(self.request("release", key), operation, |()| {
                "done".to_owned()
            })
            .await?;
            self.notify(&Change::Free(key.clone()));
            Ok(())
        })
    }

    fn take<'a>(&'a self, take: Take<'a>) -> BoxFuture<'a, Answer<Vec<Taken>>> {
        let Take {
            agent,
            user,
            due,
            worker,
            lease,
            after,
            limit,
        } = take;
        let (agent, user) = (agent.clone(), user.cloned());
        let (id, epoch) = (worker.id.to_owned(), worker.epoch);
        let operation = move |store: &mut Store| {
            let worker = Worker { id: &id, epoch };
            store.take(Take {
                agent: &agent,
                user: user.as_ref(),
                due,
                worker,
                lease,
                after,
                limit,
            })
        };
        let what = if due == Due::Unsettled {
            "take"
        } else {
            "take expired"
        };
        self.ask(
            Request {
                what,
                about: String::new(),
            },
            operation,
            |taken| count(taken),
        )
    }

    fn unsettled<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Answer<Vec<ConversationKey>>> {
        let (agent, user) = (agent.clone(), user.cloned());
        let operation = move |store: &mut Store| store.due(&agent, user.as_ref(), Due::Unsettled);
        self.ask(
            Request {
                what: "unsettled",
                about: String::new(),
            },
            operation,
            |keys| count(keys),
        )
    }

    fn expired<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
        now: Timestamp,
    ) -> BoxFuture<'a, Answer<Vec<ConversationKey>>> {
        let (agent, user) = (agent.clone(), user.cloned());
        let operation =
            move |store: &mut Store| store.due(&agent, user.as_ref(), Due::Expired(now));
        self.ask(
            Request {
                what: "expired",
                about: String::new(),
            },
            operation,
            |keys| count(keys),
        )
    }

    fn changes(&self) -> Box<dyn Changes> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.world.listen(&self.process, sender);
        Box::new(News(receiver))
    }

    fn relay(&self) -> Arc<dyn Relay> {
        Arc::new(SimulatedRelay::new(&self.world, &self.process))
    }

    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Answer<Option<InputId>>> {
        let of = key.clone();
        let operation = move |store: &mut Store| at_once(store.rows().cancellation(&of));
        self.ask(self.request("cancellation", key), operation, |found| {
            found.is_some().to_string()
        })
    }

    fn parked<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Answer<Vec<(ConversationKey, Recorded)>>> {
        let (agent, user) = (agent.clone(), user.cloned());
        let operation = move |store: &mut Store| store.parked(&agent, user.as_ref());
        self.ask(
            Request {
                what: "parked",
                about: String::new(),
            },
            operation,
            |parked| count(parked),
        )
    }
}

fn said(turns: &Option<Turns>) -> String {
    turns.as_ref().map_or("nothing".to_owned(), |turns| {
        format!("{} events", turns.events.len())
    })
}
