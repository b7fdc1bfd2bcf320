//! Messages that a user of the task assistant may read, whatever fails: without names of tools or
//! settings.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant::port::StoreError;
use adjutant::scripted::ScriptedModel;
use adjutant::{
    Agent, AgentResponse, BoxFuture, IdempotencyKey, InMemory, OutcomeCategory, Policy, RunContext,
    Task, TaskChange, TaskChanged, TaskDescription, TaskFilter, TaskId, TaskStore, ToolName,
    TurnLimits, UserId, Verdict, task_tools,
};
use serde_json::{Value, json};

/// A failure of the task store.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    Nothing,
    /// It never answers.
    Silent,
    /// It breaks down.
    Broken,
    /// It refuses.
    Down,
    /// It gives the outcome of something else, so that it is not known what was done.
    Confused,
}

/// A store whose trouble begins when the test says so.
struct Tasks {
    good: InMemory,
    trouble: Mutex<Trouble>,
    /// True if lists fail too.
    with_lists: bool,
}

impl Tasks {
    async fn met<T>(&self, fine: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
        let trouble = *self.trouble.lock().unwrap();
        match trouble {
            Trouble::Nothing | Trouble::Confused => fine.await,
            Trouble::Silent => std::future::pending().await,
            Trouble::Broken => panic!("the store broke down"),
            Trouble::Down => Err(StoreError::unusable("no such host: db.internal".to_owned())),
        }
    }
}

impl TaskStore for Tasks {
    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        Box::pin(async move {
            let changed = self.met(self.good.apply(user, change, key)).await?;
            let confused = *self.trouble.lock().unwrap() == Trouble::Confused;
            Ok(match changed {
                TaskChanged::Added { task } if confused => TaskChanged::Deleted { task },
                TaskChanged::Updated { task, .. }
                | TaskChanged::Completed { task, .. }
                | TaskChanged::Deleted { task }
                    if confused =>
                {
                    TaskChanged::Added { task }
                }
                changed => changed,
            })
        })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        match self.with_lists {
            true => Box::pin(self.met(self.good.list(user, filter))),
            false => self.good.list(user, filter),
        }
    }

    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        self.good.list_last(user, filter, before, limit)
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        self.good.get(user, id)
    }
}

/// One assistant, and what its person read of it.
struct Person {
    agent: Agent,
    context: RunContext,
    tasks: Arc<Tasks>,
    read: Vec<String>,
}

impl Person {
    async fn new(script: &str, with_lists: bool, policy: Policy) -> Self {
        let good = InMemory::new();
        let (user, description) = (UserId::local(), TaskDescription::new("buy milk").unwrap());
        good.apply(
            &user,
            &TaskChange::Add {
                description,
                from_others: false,
            },
            None,
        )
        .await
        .unwrap();
        let tasks = Arc::new(Tasks {
            good,
            trouble: Mutex::new(Trouble::Nothing),
            with_lists,
        });
        let limits = TurnLimits {
            tool_timeout: Duration::from_secs(30),
            ..TurnLimits::default()
        };
        let agent = Agent::builder("tasks")
            .instruction("Keep the tasks.")
            .model(ScriptedModel::from_jsonl(script).unwrap())
            .tools(task_tools(tasks.clone()))
            .policy(policy)
            .report_failed_calls(true)
            .limits(limits)
            .build()
            .unwrap();
        Self {
            agent,
            context: RunContext::new(user),
            tasks,
            read: Vec::new(),
        }
    }

    async fn says(&mut self, message: &str) -> AgentResponse {
        let response = self.agent.run_in(&mut self.context, message).await.unwrap();
        self.reads(&response);
        response
    }

    async fn answers(&mut self, verdict: Verdict, arguments: Option<Value>) -> AgentResponse {
        let mut answer = self.context.pending[0].answer(verdict);
        answer.edited = arguments.and_then(|arguments| arguments.as_object().cloned());
        let response = self
            .agent
            .answer(&mut self.context, vec![answer])
            .await
            .unwrap();
        self.reads(&response);
        response
    }

    fn reads(&mut self, response: &AgentResponse) {
        self.read.push(response.content.clone());
        self.read
            .extend(response.notices.iter().map(|notice| notice.text.clone()));
        self.read.extend(
            response
                .decision
                .pending
                .iter()
                .map(|call| call.preview.clone()),
        );
    }

    /// Looks for what is not for a person in all they read.
    #[track_caller]
    fn check(&self, circumstances: &str) {
        let tools: Vec<&str> = self.agent.tools().names().map(ToolName::as_str).collect();
        let internals = [
            "ask_user",
            "decline",
            "the tool",
            "db.internal",
            "scripted",
            "the arguments do not fit add",
        ];
        let settings = [
            "tool_timeout",
            "max_tokens",
            "tool_iterations",
            "identical_calls",
            "agent.",
            "llm.",
            "LLM_",
            "MAX_",
        ];
        assert!(!self.read.is_empty());
        for words in &self.read {
            for internal in tools.iter().chain(&internals).chain(&settings) {
                assert!(
                    !words.contains(internal),
                    "{circumstances}: {internal:?} in {words:?}"
                );
            }
        }
    }
}

/// A call of each tool of the task assistant, as a script.
fn calls() -> [(&'static str, Value); 5] {
    [
        ("add_task", json!({ "description": "buy oats" })),
        (
            "update_task",
            json!({ "task_id": "1", "description": "buy oat milk" }),
        ),
        ("complete_task", json!({ "task_id": "1" })),
        ("delete_task", json!({ "task_id": "1" })),
        ("list_tasks", json!({})),
    ]
}

/// The model says that all is well, whatever came of the call.
fn script(tool: &str, arguments: &Value) -> String {
    let call = json!({ "calls": [{ "name": tool, "args": arguments }] });
    format!(
        "{call}\n{}",
        json!({ "text": "All is well.", "repeat": true })
    )
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_is_reported_in_plain_words() {
    let troubles = [
        Trouble::Silent,
        Trouble::Broken,
        Trouble::Down,
        Trouble::Confused,
    ];
    for (tool, arguments) in calls() {
        for trouble in troubles {
            let reads = tool == "list_tasks";
            let mut person = Person::new(&script(tool, &arguments), reads, Policy::default()).await;
            if tool == "delete_task" {
                person.says("do it").await;
            }
            *person.tasks.trouble.lock().unwrap() = trouble;
            let mut response = person
                .says(if tool == "delete_task" {
                    "yes"
                } else {
                    "do it"
                })
                .await;
            let circumstances = format!("{tool}, {trouble:?}: {:?}", person.read);
            if trouble == Trouble::Confused && !reads {
                assert!(
                    response
                        .content
                        .contains("I was interrupted while I did this (begun"),
                    "{response:?}"
                );
                person.answers(Verdict::Approved, None).await;
                response = person.says("leave it").await;
                assert_eq!(
                    response.outcome,
                    OutcomeCategory::InDoubt,
                    "{circumstances}"
                );
                let left =
                    "I was interrupted while I did this. It may or may not have been carried out";
                assert!(
                    person.read.iter().any(|words| words.contains(left)),
                    "{:?}",
                    person.read
                );
            } else if trouble != Trouble::Confused {
                assert_eq!(
                    response.outcome,
                    OutcomeCategory::ToolFailure,
                    "{circumstances}"
                );
                // The log has what it was.
                let message = response.error.unwrap().to_string();
                let detail = match trouble {
                    Trouble::Silent => "tool_timeout",
                    Trouble::Broken => "a bug in the tool",
                    Trouble::Nothing | Trouble::Down | Trouble::Confused => tool,
                };
                assert!(message.contains(detail), "{message}");
            }
            if matches!(trouble, Trouble::Silent | Trouble::Broken) {
                let (said, then) = match trouble {
                    Trouble::Silent => ("this took longer than 30 s", "may or may not"),
                    _ => ("this broke off because of a fault", "may or may not"),
                };
                let then = if reads { "Nothing was changed" } else { then };
                let content = response.content;
                assert!(
                    content.contains(said) && content.contains(then),
                    "{circumstances}"
                );
            }
            person.check(&circumstances);
        }
    }
}

#[tokio::test]
async fn questions_and_refused_answers_are_plain_too() {
    let all = Policy::default().rule("*", None, adjutant::Permission::Confirm);
    for (tool, arguments) in calls() {
        let mut person = Person::new(&script(tool, &arguments), false, all.clone()).await;
        let asked = person.says("do it").await;
        assert_eq!(
            asked.outcome,
            OutcomeCategory::PendingConfirmation,
            "{asked:?}"
        );
        person.answers(Verdict::Done, None).await;
        person
            .answers(Verdict::Approved, Some(json!({ "no_such": 1 })))
            .await;
        person.says("perhaps").await;
        let denied = person.says("no").await;
        assert_eq!(
            denied.outcome,
            OutcomeCategory::ConfirmationDenied,
            "{denied:?}"
        );
        person.check(tool);
    }
}

#[tokio::test(start_paused = true)]
async fn failing_models_are_reported_in_plain_words() {
    let add = |arguments: &str| {
        format!(r#"{{"calls": [{{"name": "add_task", "args": {arguments}}}], "repeat": true}}"#)
    };
    let mut scripts: Vec<String> = [
        "rate_limit",
        "quota",
        "server",
        "timeout",
        "network",
        "reset",
        "auth",
        "not_found",
        "bad_request",
        "context_too_long",
        "refused",
        "invalid_response",
        "truncated",
        "empty",
        "thinking_only",
    ]
    .iter()
    .map(|fault| format!(r#"{{"fault": "{fault}", "text": "Hm.", "repeat": true}}"#))
    .collect();
    let long = "x".repeat(1001);
    scripts.extend([
        add(r#"{"description": "buy oats"}"#),
        add(&format!(r#"{{"description": "{long}"}}"#)),
        add(r#"{"description": " "}"#),
        add(r#"{"title": "buy oats"}"#),
        r#"{"calls": [{"name": "send_email", "args": {}}], "repeat": true}"#.to_owned(),
        r#"{"calls": [{"name": "add_task", "args_text": "{\"description\": \"bu"}], "repeat": true}"#
            .to_owned(),
        r#"{"text": "This is", "finish": "max_tokens", "repeat": true}"#.to_owned(),
    ]);
    for script in scripts {
        let mut person = Person::new(&script, false, Policy::default()).await;
        person.says("add buy oats").await;
        person.check(&script);
        assert!(
            person.read.iter().all(|words| !words.contains(&long)),
            "{:?}",
            person.read
        );
    }
}
