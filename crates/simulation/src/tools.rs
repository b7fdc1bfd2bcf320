//! The tools of a process, which send requests to outside systems.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{
    Annotations, Arguments, BoxFuture, Effect, Tool, ToolContext, ToolDefinition, ToolError,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::process::Process;
use crate::world::World;

/// A tool of one process that sends a request to an outside system.
struct Remote {
    definition: ToolDefinition,
    world: Arc<World>,
    process: Arc<Process>,
}

/// Names of the tools: one for each effect class, and one that needs a confirmation.
pub(crate) const LOOK: &str = "look";
pub(crate) const PUT: &str = "put";
pub(crate) const PAY: &str = "pay";
pub(crate) const ERASE: &str = "erase";

/// Returns the tools of a process.
pub(crate) fn tools(world: &Arc<World>, process: &Arc<Process>) -> Vec<Arc<dyn Tool>> {
    let none = Annotations::default();
    let annotated = [
        (
            LOOK,
            Annotations {
                read_only: true,
                ..none
            },
        ),
        (
            PUT,
            Annotations {
                keyed: true,
                ..none
            },
        ),
        (PAY, none),
        (
            ERASE,
            Annotations {
                destructive: true,
                ..none
            },
        ),
    ];
    let definition =
        |name| ToolDefinition::new(name, "Asks the world outside.", json!({ "type": "object" }));
    let tools = annotated.into_iter().filter_map(|(name, annotations)| {
        let definition = definition(name).ok()?.annotated(annotations);
        Some(Arc::new(Remote {
            definition,
            world: world.clone(),
            process: process.clone(),
        }) as Arc<dyn Tool>)
    });
    tools.collect()
}

impl Tool for Remote {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        _arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            self.process.runs().await;
            let (world, process) = (self.world.clone(), self.process.clone());
            let (there, back) = (world.trip(), world.trip() + world.chance().ms(1..400));
            let fails = world.fails(world.plan.tool_fails);
            // It fails before or after it took effect, or never answers.
            let how = world.chance().below(3);
            let name = (context.conversation, context.turn, context.call.clone());
            if self.definition.annotations.effect() == Effect::Once {
                world.store().begins(&process.name, &name);
            }
            let (tool, key) = (self.definition.name.to_string(), context.key.clone());
            let effect = self.definition.annotations.effect();
            let about = world.name(&context.conversation_key());
            let (sender, answer) = oneshot::channel();
            // A request that was sent arrives, also if its sender is lost.
            tokio::spawn(async move {
                sleep(there).await;
                let refused = fails && how == 0;
                if fails {
                    world.count("tool failed");
                }
                if !refused {
                    world.outside().request(name, &key, effect);
                }
                world.note(
                    &process,
                    format_args!(
                        "{tool} {about} {}",
                        if refused { "refused" } else { "done" }
                    ),
                );
                sleep(back).await;
                let answer = match (fails, how) {
                    (true, 0) => Err(ToolError::failed("it was refused")),
                    (true, 1) => Err(ToolError::Unknown {
                        message: "the connection broke".to_owned(),
                    }),
                    (true, _) => {
                        sleep(Duration::from_secs(100)).await;
                        Err(ToolError::failed("too late"))
                    }
                    (false, _) => Ok(json!({ "done": true })),
                };
                // The caller may have been dropped.
                let _ = sender.send(answer);
            });
            let lost = || {
                Err(ToolError::Unknown {
                    message: "the connection broke".to_owned(),
                })
            };
            let answer = answer.await.unwrap_or_else(|_| lost());
            self.process.runs().await;
            answer
        })
    }
}
