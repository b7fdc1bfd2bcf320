//! A dispatcher between the processes: it hands calls to a worker, loses them, is late, or makes
//! them twice.

use std::sync::Arc;

use adjutant_core::{BoxFuture, CancellationToken, ConversationKey};
use adjutant_runtime::{Dispatch, DispatchCall, DispatchError, SendResult};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::lives::Lives;
use crate::process::Process;
use crate::world::World;

/// The dispatcher, as one process uses it.
pub(crate) struct SimulatedDispatch {
    world: Arc<World>,
    lives: Lives,
    process: Arc<Process>,
}

impl SimulatedDispatch {
    pub(crate) fn new(world: &Arc<World>, lives: &Lives, process: &Arc<Process>) -> Self {
        let (world, lives) = (world.clone(), lives.clone());
        Self {
            world,
            lives,
            process: process.clone(),
        }
    }

    /// Hands a call to a worker. The receiver gets its end.
    fn hand_over(&self, key: &ConversationKey, reply_to: Option<&str>) -> oneshot::Receiver<bool> {
        let (sender, ended) = oneshot::channel();
        let (world, lives) = (self.world.clone(), self.lives.clone());
        let (key, reply_to) = (key.clone(), reply_to.map(str::to_owned));
        let late = match self.world.fails(self.world.plan.dispatch_fails) {
            true => self.world.chance().ms(200..20_000),
            false => self.world.chance().ms(1..30),
        };
        let turn = self.world.turn(&key);
        tokio::spawn(async move {
            sleep(late).await;
            let _turn = turn.lock().await;
            let Some(life) = lives.any(&world) else {
                return;
            };
            world.note(
                &life.process,
                format_args!("is called for {}", world.name(&key)),
            );
            let never = CancellationToken::new();
            let done = tokio::select! {
                biased;
                () = life.process.dies() => false,
                done = life.agent.run_dispatched(&key, reply_to.as_deref(), &never) => done.is_ok(),
            };
            // The caller may have been dropped.
            let _ = sender.send(done);
        });
        ended
    }
}

impl Dispatch for SimulatedDispatch {
    fn call<'a>(&'a self, call: DispatchCall<'a>) -> BoxFuture<'a, Result<(), DispatchError>> {
        Box::pin(async move {
            self.process.runs().await;
            let how = match self.world.fails(self.world.plan.dispatch_fails) {
                true => self.world.chance().below(4),
                false => 0,
            };
            self.world.count(match how {
                1 => "dispatch refused",
                2 => "dispatch lost",
                3 => "dispatched twice",
                _ => "dispatched",
            });
            let ended = match how {
                1 => return Err(DispatchError("refused".to_owned())),
                // The call is lost, or was never answered.
                2 => return std::future::pending().await,
                3 => {
                    drop(self.hand_over(call.key, call.reply_to));
                    self.hand_over(call.key, call.reply_to)
                }
                _ => self.hand_over(call.key, call.reply_to),
            };
            let ended = ended.await;
            self.process.runs().await;
            match ended {
                Ok(true) => Ok(()),
                Ok(false) | Err(_) => Err(DispatchError("it failed there".to_owned())),
            }
        })
    }

    fn send<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<SendResult, DispatchError>> {
        Box::pin(async move {
            self.process.runs().await;
            match self.world.fails(self.world.plan.dispatch_fails) {
                true if self.world.chance().happens(500) => {
                    Err(DispatchError("refused".to_owned()))
                }
                // The call was accepted, and is lost.
                true => Ok(SendResult::Accepted),
                false => {
                    drop(self.hand_over(key, None));
                    Ok(SendResult::Accepted)
                }
            }
        })
    }
}
