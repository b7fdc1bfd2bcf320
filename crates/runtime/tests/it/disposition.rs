//! The fate of an input: it runs, is queued, answers a question, or is dropped; and its id never
//! brings the words of another turn.

use adjutant_core::AgentName;
use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::RunContext;
use adjutant_store::sqlite;

use super::*;

/// One of several clients of the same conversation, which has not seen what the others were asked.
struct Client<'a> {
    agent: &'a Agent,
    context: RunContext,
}

impl Client<'_> {
    async fn send(&self, id: &str, message: &str) -> AgentResponse {
        let id = Some(InputId::new(id).unwrap());
        let mut context = self.context.clone();
        self.agent
            .run_input(&mut context, id, InputBody::message(message))
            .await
            .unwrap()
    }
}

/// The state of the tasks, the question about one of them, and the agent.
async fn with_question(after: Vec<Reply>) -> (Arc<InMemory>, Agent, RunContext, AgentResponse) {
    let tasks = Arc::new(InMemory::new());
    let replies = [
        call("add_task", json!({"description": "Buy milk"})),
        text("Added."),
        call("delete_task", json!({"task_id": "1"})),
    ];
    let (agent, _) = task_agent(&tasks, replies.into_iter().chain(after));
    let mut context = RunContext::default();
    agent.run_in(&mut context, "add milk").await.unwrap();
    let asked = agent.run_in(&mut context, "remove it").await.unwrap();
    assert_eq!(
        (asked.outcome, asked.disposition),
        (OutcomeCategory::PendingConfirmation, Disposition::Ran)
    );
    (tasks, agent, context, asked)
}

#[tokio::test]
async fn a_message_sent_while_a_question_waits_runs_after_the_answer() {
    let (tasks, agent, asked_context, asked) = with_question(vec![
        text("Gone."),
        call("add_task", json!({"description": "Buy bread"})),
        text("Bread is added."),
    ])
    .await;
    let client = Client {
        agent: &agent,
        context: RunContext {
            conversation: asked_context.conversation,
            ..RunContext::default()
        },
    };
    // Also when it is sent again, and when more wait.
    for _ in 0..2 {
        let queued = client.send("b", "buy bread").await;
        assert_eq!(
            (queued.disposition, queued.turn, queued.decision.pending),
            (
                Disposition::Queued,
                asked.turn,
                asked.decision.pending.clone()
            )
        );
        assert!(
            queued.content.starts_with(words::MESSAGE_QUEUED),
            "{}",
            queued.content
        );
    }
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);

    let yes = client.send("c", "yes").await;
    assert_eq!(
        (yes.disposition, yes.turn, yes.content.as_str()),
        (Disposition::Answered, asked.turn, "Gone.")
    );
    assert_eq!(descriptions(&tasks).await, ["Buy bread"]);
    for _ in 0..2 {
        let ran = client.send("b", "buy bread").await;
        assert_eq!(
            (ran.disposition, ran.content.as_str()),
            (Disposition::Ran, "Bread is added.")
        );
    }
    let again = client.send("c", "yes").await;
    assert_eq!(
        (again.disposition, again.content.as_str()),
        (Disposition::Answered, "Gone.")
    );
    assert_eq!(descriptions(&tasks).await, ["Buy bread"], "once");
}

#[tokio::test]
async fn a_message_waits_behind_each_turn_that_asks_a_question() {
    let (tasks, agent, asked_context, _) = with_question(vec![
        text("Gone."),
        call("add_task", json!({"description": "Buy eggs"})),
        call("delete_task", json!({"task_id": "2"})),
        text("Eggs are gone."),
        call("add_task", json!({"description": "Buy bread"})),
        text("Bread is added."),
    ])
    .await;
    let client = Client {
        agent: &agent,
        context: RunContext {
            conversation: asked_context.conversation,
            ..RunContext::default()
        },
    };
    for (id, message) in [("b", "eggs, but not really"), ("c", "buy bread")] {
        let queued = client.send(id, message).await;
        assert_eq!(queued.disposition, Disposition::Queued);
    }

    let first = client.send("d", "yes").await;
    assert_eq!(first.content, "Gone.");
    let second = client.send("b", "eggs, but not really").await;
    assert_eq!(
        (second.disposition, second.outcome),
        (Disposition::Ran, OutcomeCategory::PendingConfirmation)
    );
    let waits = client.send("c", "buy bread").await;
    assert_eq!(waits.disposition, Disposition::Queued);

    let second = client.send("e", "yes").await;
    assert_eq!(second.content, "Eggs are gone.");
    let third = client.send("c", "buy bread").await;
    assert_eq!(
        (third.disposition, third.content.as_str()),
        (Disposition::Ran, "Bread is added.")
    );
    assert_eq!(descriptions(&tasks).await, ["Buy bread"]);
}

#[tokio::test]
async fn an_unclear_answer_is_dropped_and_never_reports_the_end_of_the_turn() {
    let (tasks, agent, mut context, asked) =
        with_question(vec![text("Gone."), text("never said")]).await;
    let id = Some(InputId::new("unclear").unwrap());
    let say = || InputBody::message("the one from yesterday");
    let unclear = agent
        .run_input(&mut context, id.clone(), say())
        .await
        .unwrap();
    assert_eq!(
        (unclear.disposition, &unclear.decision.pending),
        (Disposition::Dropped, &asked.decision.pending)
    );
    assert_eq!(unclear.notices[0].code, "answer_unclear");
    assert!(
        unclear.content.ends_with(&asked.content),
        "{}",
        unclear.content
    );

    let yes = agent.run_in(&mut context, "yes").await.unwrap();
    assert_eq!(
        (yes.disposition, yes.content.as_str()),
        (Disposition::Answered, "Gone.")
    );
    assert!(descriptions(&tasks).await.is_empty());
    let later = agent.run_input(&mut context, id, say()).await.unwrap();
    assert_eq!(
        (later.disposition, later.content.as_str(), later.outcome),
        (
            Disposition::Dropped,
            words::MESSAGE_DROPPED,
            OutcomeCategory::UnclearIntent
        )
    );
    assert_eq!((later.tools_used.len(), later.usage), (0, Usage::default()));
}

/// Words that can only be an answer are none of a message, whoever sends them.
#[tokio::test]
async fn a_bare_answer_of_another_kind_is_dropped_and_not_kept() {
    let (_, agent, context, asked) = with_question(vec![text("never said")]).await;
    let client = Client {
        agent: &agent,
        context: RunContext {
            conversation: context.conversation,
            ..RunContext::default()
        },
    };
    let done = client.send("d", "try again").await;
    assert_eq!(
        (done.disposition, done.decision.pending),
        (Disposition::Dropped, asked.decision.pending)
    );
}

/// Two clients are asked one after the other; the context of the first is about a question that is
/// gone.
#[tokio::test]
async fn a_sender_who_was_asked_about_another_call_sends_a_message() {
    let (_, agent, mut stale, _) = with_question(vec![
        text("Gone."),
        call("delete_task", json!({"task_id": "milk"})),
        text("Bread is added."),
    ])
    .await;
    let question = stale.pending.clone();
    agent.run_in(&mut stale, "no").await.unwrap();
    let mut context = stale.clone();
    let asked = agent
        .run_in(&mut context, "remove it, I mean it")
        .await
        .unwrap();
    assert_eq!(asked.outcome, OutcomeCategory::PendingConfirmation);
    stale.pending = question;
    let queued = agent.run_in(&mut stale, "the other one").await.unwrap();
    assert_eq!(queued.disposition, Disposition::Queued);
}

/// The doubt that a crash leaves is a question like any other; the message is kept across processes.
#[tokio::test]
async fn a_message_sent_while_a_doubt_waits_runs_after_it_in_another_process() {
    let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
    let process = |name: &str, replies: Vec<Reply>| {
        let schema = json!({"type": "object"});
        let send = FunctionTool::new("send", "Sends.", schema, |_, _| async {
            Err(ToolError::Unknown {
                message: "the connection broke".to_owned(),
            })
        });
        builder(ScriptedModel::new(replies))
            .tool(send.unwrap())
            .journal(store.clone(), name)
            .build()
            .unwrap()
    };
    let first = process("one", vec![call("send", json!({}))]);
    let mut context = RunContext::default();
    let asked = first.run_in(&mut context, "send it").await.unwrap();
    assert_eq!(asked.decision.pending.len(), 1);

    let second = process(
        "two",
        vec![
            call("send", json!({})),
            text("It is sent."),
            text("Bread, then."),
        ],
    );
    let client = Client {
        agent: &second,
        context: RunContext {
            conversation: context.conversation,
            ..RunContext::default()
        },
    };
    let queued = client.send("b", "buy bread").await;
    assert_eq!(
        (queued.disposition, queued.turn),
        (Disposition::Queued, asked.turn)
    );
    let unsettled = store.unsettled(&AgentName::adjutant(), None).await.unwrap();
    assert!(unsettled.is_empty(), "nothing to do while it waits");
    let done = client.send("c", "it was done").await;
    assert_eq!(
        (done.disposition, done.turn),
        (Disposition::Answered, asked.turn)
    );
    let ran = client.send("b", "buy bread").await;
    assert_eq!(
        (ran.disposition, ran.content.as_str()),
        (Disposition::Ran, "Bread, then.")
    );
}
