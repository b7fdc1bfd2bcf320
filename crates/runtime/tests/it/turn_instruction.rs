//! The part of the instruction that is made anew for every turn.

use adjutant_core::AgentName;
use std::sync::Mutex;

use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{InstructionAddition, RunContext, TurnInstruction};

use super::*;

/// Says how often it was asked, and by whom.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<UserId>>>);

impl TurnInstruction for Asked {
    fn for_turn<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, InstructionAddition> {
        let mut asked = self.0.lock().unwrap();
        asked.push(user.clone());
        let text = format!("This is turn {}.", asked.len());
        Box::pin(std::future::ready(InstructionAddition {
            text,
            notices: Vec::new(),
        }))
    }
}

/// Has nothing to say, and says why.
struct Unreadable;

impl TurnInstruction for Unreadable {
    fn for_turn<'a>(&'a self, _: &'a UserId) -> BoxFuture<'a, InstructionAddition> {
        let notice = Notice {
            code: "memory_unread".to_owned(),
            text: "It cannot be read.".to_owned(),
        };
        Box::pin(std::future::ready(InstructionAddition {
            text: " \n".to_owned(),
            notices: vec![notice],
        }))
    }
}

fn instructions(model: &ScriptedModel) -> Vec<String> {
    model
        .requests()
        .iter()
        .map(|request| request.messages[0].text())
        .collect()
}

#[tokio::test]
async fn it_stands_behind_the_instruction_and_is_the_same_for_all_calls_of_a_turn() {
    let model = ScriptedModel::new([
        call("list_tasks", json!({})),
        text("Nothing."),
        text("Still nothing."),
    ]);
    let asked = Asked::default();
    let tasks = Arc::new(InMemory::new());
    let agent = builder(model.clone())
        .tools(task_tools(tasks.clone()))
        .journal(tasks.clone(), "test")
        .turn_instruction(asked.clone())
        .build()
        .unwrap();
    let mut context = RunContext::default();
    agent.run_in(&mut context, "list").await.unwrap();
    agent.run_in(&mut context, "again").await.unwrap();
    let told = ["This is turn 1.", "This is turn 1.", "This is turn 2."]
        .map(|turn| format!("Be brief.\n\n{turn}\n"));
    assert_eq!(instructions(&model), told);
    assert_eq!(*asked.0.lock().unwrap(), [UserId::local(), UserId::local()]);
    let kept = port::Journal::load(&*tasks, &context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    assert!(
        !serde_json::to_string(&kept.events)
            .unwrap()
            .contains("This is turn"),
        "it is in no transcript"
    );
}

#[tokio::test]
async fn its_failure_is_a_notice_and_ends_no_turn() {
    let model = ScriptedModel::new([call("list_tasks", json!({})), text("Here.")]);
    let agent = builder(model.clone())
        .tools(task_tools(Arc::new(InMemory::new())))
        .turn_instruction(Unreadable)
        .build()
        .unwrap();
    let response = agent.run("hello").await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::TaskCompleted);
    let told: Vec<&str> = response
        .notices
        .iter()
        .map(|notice| notice.text.as_str())
        .collect();
    assert_eq!(told, ["It cannot be read."], "once a turn");
    assert_eq!(instructions(&model), ["Be brief."; 2]);
}
