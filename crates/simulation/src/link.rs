//! The connection of one process to the store: requests take time, and answers get lost.

mod conversations; // lists and logs
mod journal; // events and leases

use std::sync::Arc;

use adjutant_core::BoxFuture;
use adjutant_core::port::{
    Booking, BudgetStore, Change, Changes, GrantRequest, Granted, StoreError, Worker,
};
use adjutant_core::{ConversationKey, Spending, UserId};
use jiff::civil::Date;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::process::Process;
use crate::store::{Store, at_once};
use crate::world::World;

/// The store, as a process sees it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
}

/// A request to the store, as the trace describes it.
struct Request {
    what: &'static str,
    about: String,
}

type Answer<T> = Result<T, StoreError>;

impl Link {
    pub(crate) fn new(world: &Arc<World>, process: &Arc<Process>) -> Arc<Self> {
        Arc::new(Self {
            world: world.clone(),
            process: process.clone(),
        })
    }

    fn request(&self, what: &'static str, key: &ConversationKey) -> Request {
        Request {
            what,
            about: self.world.name(key),
        }
    }

    /// Sends a request to the store and waits for the answer. The request is executed even if the
    /// caller is dropped. `says`: the description of the answer for the trace.
    fn ask<T: Send + 'static>(
        &self,
        request: Request,
        operation: impl FnOnce(&mut Store) -> Answer<T> + Send + 'static,
        says: impl FnOnce(&T) -> String + Send + 'static,
    ) -> BoxFuture<'static, Answer<T>> {
        let (world, process) = (self.world.clone(), self.process.clone());
        Box::pin(async move {
            process.runs().await;
            let (sender, answer) = oneshot::channel();
            let (there, back) = (world.trip(), world.trip());
            let is_lost = world.fails(world.plan.lost_answers);
            let broken_disk = (world.plan.disk_fails > 0 && world.fails(world.plan.disk_fails))
                .then(|| world.chance().below(2) == 0);
            let to_store = process.clone();
            tokio::spawn(async move {
                sleep(there).await;
                let Request { what, about } = request;
                let answer = if world.store_is_away() {
                    Err(unavailable("the server is away"))
                } else if broken_disk == Some(false) {
                    Err(StoreError::disk_failed("the disk fails, nothing was done"))
                } else {
                    let mut store = world.store();
                    store.claims.set_clock_of_caller(to_store.clock_step());
                    operation(&mut store)
                };
                let answer = match broken_disk {
                    Some(true) => answer.and(Err(StoreError::disk_failed("the disk fails"))),
                    _ => answer,
                };
                let said = match &answer {
                    Ok(answer) => says(answer),
                    Err(error) => format!("{error}"),
                };
                if is_lost {
                    world.count("answer lost");
                }
                if let Err(error) = &answer {
                    world.count(match error {
                        StoreError::Conflict => "conflict",
                        StoreError::DiskFailed { .. } => "disk failed",
                        _ => "store away",
                    });
                }
                let lost = if is_lost { " (answer lost)" } else { "" };
                world.note(&to_store, format_args!("{what} {about} -> {said}{lost}"));
                sleep(back).await;
                let answer = if is_lost {
                    Err(unavailable("the connection broke, and nobody knows"))
                } else {
                    answer
                };
                // The caller may have been dropped.
                let _ = sender.send(answer);
            });
            let answer = answer
                .await
                .unwrap_or_else(|_| Err(unavailable("the connection broke")));
            process.runs().await;
            answer
        })
    }

    fn notify(&self, change: &Change) {
        self.world.notify(&self.process, change);
    }
}

fn unavailable(message: &str) -> StoreError {
    StoreError::unavailable(message.to_owned())
}

/// Change notifications, in the order in which they arrive.
struct News(UnboundedReceiver<Change>);

impl Changes for News {
    fn next(&mut self) -> BoxFuture<'_, Option<Change>> {
        Box::pin(self.0.recv())
    }
}

impl BudgetStore for Link {
    fn grant<'a>(&'a self, request: GrantRequest<'a>) -> BoxFuture<'a, Answer<Granted>> {
        let GrantRequest {
            day,
            user,
            worker,
            ttl,
            need,
            everyone,
            own,
        } = request;
        let (user, id, epoch) = (user.clone(), worker.id.to_owned(), worker.epoch);
        let about = Request {
            what: "grant",
            about: user.to_string(),
        };
        let operation = move |store: &mut Store| {
            let worker = Worker { id: &id, epoch };
            at_once(store.rows().grant(GrantRequest {
                day,
                user: &user,
                worker,
                ttl,
                need,
                everyone,
                own,
            }))
        };
        let says = |granted: &Granted| match granted {
            Granted::Blocks { everyone, own, .. } => {
                format!("everyone {} own {}", everyone.model_calls, own.model_calls)
            }
            Granted::Exceeded(_) => "exceeded".to_owned(),
        };
        self.ask(about, operation, says)
    }

    fn book<'a>(&'a self, bookings: &'a [Booking]) -> BoxFuture<'a, Answer<()>> {
        let bookings = bookings.to_vec();
        let about = Request {
            what: "book",
            about: format!("{} bookings", bookings.len()),
        };
        self.ask(
            about,
            move |store| at_once(store.rows().book(&bookings)),
            |()| "done".to_owned(),
        )
    }

    fn fold(&self, day: Date) -> BoxFuture<'_, Answer<()>> {
        let about = Request {
            what: "fold",
            about: day.to_string(),
        };
        self.ask(
            about,
            move |store| at_once(store.rows().fold(day)),
            |()| "done".to_owned(),
        )
    }

    fn spent<'a>(&'a self, user: Option<&'a UserId>, day: Date) -> BoxFuture<'a, Answer<Spending>> {
        let user = user.cloned();
        let about = Request {
            what: "spent",
            about: String::new(),
        };
        let operation = move |store: &mut Store| at_once(store.rows().spent(user.as_ref(), day));
        self.ask(about, operation, |spent| {
            format!("{} calls", spent.model_calls)
        })
    }
}
