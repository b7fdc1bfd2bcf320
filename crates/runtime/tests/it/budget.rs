//! Budgets: nothing begins that might break one, what ran is told, and what was not used is free
//! again.

use std::time::Duration;

use adjutant_core::port::{
    Ask, Booking, BudgetStore, ConversationStore, GrantRequest, Granted, Journal, LogStore,
    StoreError, Worker,
};
use adjutant_providers::scripted::{Fault, call, fault, text};
use adjutant_runtime::{BuildError, Prices, RunContext, RunError};
use adjutant_store::sqlite;
use jiff::Timestamp;
use jiff::civil::{Date, date};

use super::*;
use crate::vendor::Vendor;

const NONE: Allowance = Allowance {
    tokens: None,
    model_calls: None,
    tool_calls: None,
    time: None,
    cost: None,
};
const TODAY: Date = date(2026, 11, 22);

fn noon() -> Timestamp {
    "2026-11-22T12:00:00Z".parse().unwrap()
}

fn per_turn(allowance: Allowance) -> Budgets {
    Budgets {
        per_turn: allowance,
        ..Budgets::default()
    }
}

fn per_day(allowance: Allowance) -> Budgets {
    Budgets {
        per_day: allowance,
        ..Budgets::default()
    }
}

fn build(model: ScriptedModel, store: &Arc<InMemory>, budgets: Budgets) -> AgentBuilder {
    builder(model)
        .tools(task_tools(store.clone()))
        .journal(store.clone(), "test")
        .budgets(budgets, store.clone())
        .clock(noon)
}

/// Returns the name of the budget that ended the turn.
fn budget_of(response: &AgentResponse) -> String {
    assert_eq!(
        response.outcome,
        OutcomeCategory::BudgetLimit,
        "{response:?}"
    );
    let Some(TurnError::Limit { limit, .. }) = &response.error else {
        panic!("{:?}", response.error)
    };
    limit.to_string()
}

#[tokio::test]
async fn a_call_that_might_take_more_than_a_turn_may_is_not_made() {
    for (allowance, key) in [
        (
            Allowance {
                tokens: Some(1000),
                ..NONE
            },
            "budget of tokens per turn",
        ),
        (
            Allowance {
                model_calls: Some(0),
                ..NONE
            },
            "budget of model calls per turn",
        ),
        (
            Allowance {
                time: Some(Duration::from_secs(1)),
                ..NONE
            },
            "budget of time per turn",
        ),
    ] {
        let model = ScriptedModel::new([text("Hi.")]);
        let agent = build(model.clone(), &Arc::default(), per_turn(allowance))
            .build()
            .unwrap();
        let response = agent.run("hello").await.unwrap();
        assert_eq!(
            (budget_of(&response).as_str(), model.calls_made()),
            (key, 0)
        );
        assert!(
            response.content.contains("smaller steps"),
            "{}",
            response.content
        );
    }
    // The most that can be read and written fits; what is really used is less.
    let enough = Allowance {
        tokens: Some(10_000),
        model_calls: Some(1),
        ..NONE
    };
    let agent = build(
        ScriptedModel::new([text("Hi.")]),
        &Arc::default(),
        per_turn(enough),
    )
    .build()
    .unwrap();
    assert_eq!(agent.run("hello").await.unwrap().content, "Hi.");
}

#[tokio::test]
async fn calls_before_a_budget_ended_the_turn_are_reported() {
    let store = Arc::new(InMemory::new());
    let model = ScriptedModel::new([
        call("add_task", json!({"description": "buy milk"})),
        text("Added."),
    ]);
    let one = per_turn(Allowance {
        model_calls: Some(1),
        ..NONE
    });
    let agent = build(model, &store, one).build().unwrap();
    let mut context = RunContext::default();
    let response = agent.run_in(&mut context, "add buy milk").await.unwrap();
    assert_eq!(budget_of(&response), "budget of model calls per turn");
    assert!(
        response.content.contains("buy milk") && response.content.contains("so I stopped"),
        "{}",
        response.content
    );
    assert_eq!(descriptions(&store).await, ["buy milk"]);
    assert_eq!(context.history.len(), 4, "the next turn knows it too");
}

#[tokio::test]
async fn of_one_answer_all_calls_begin_or_none() {
    let add = |words: &str| call("add_task", json!({ "description": words }));
    let two = || add("one").and_call("add_task", json!({"description": "two"}));
    let allowed = |calls| {
        per_turn(Allowance {
            tool_calls: Some(calls),
            ..NONE
        })
    };
    let run = async |calls| {
        let store = Arc::new(InMemory::new());
        let model = ScriptedModel::new([two(), text("Done.")]);
        let response = build(model, &store, allowed(calls))
            .build()
            .unwrap()
            .run("add both")
            .await
            .unwrap();
        (response, descriptions(&store).await.len())
    };
    let (response, added) = run(1).await;
    assert_eq!(
        (budget_of(&response).as_str(), added),
        ("budget of tool calls per turn", 0)
    );
    let (response, added) = run(2).await;
    assert_eq!((response.content.as_str(), added), ("Done.", 2));
}

#[tokio::test]
async fn every_user_has_their_day_and_the_next_day_is_another() {
    let store = Arc::new(InMemory::new());
    let replies = || [text("Hi.").usage(100, 20)];
    let budgets = per_day(Allowance {
        model_calls: Some(1),
        ..NONE
    });
    let run = async |user: &str, now: fn() -> Timestamp| {
        let agent = build(ScriptedModel::new(replies()), &store, budgets)
            .clock(now)
            .build()
            .unwrap();
        agent
            .run_in(&mut RunContext::new(UserId::new(user).unwrap()), "hello")
            .await
            .unwrap()
    };
    assert_eq!(run("anna", noon).await.content, "Hi.");
    let refused = run("anna", noon).await;
    assert_eq!(
        budget_of(&refused),
        "budget of model calls per user and day (UTC)"
    );
    assert!(
        refused.content.contains("midnight UTC"),
        "{}",
        refused.content
    );
    assert_eq!(run("bert", noon).await.content, "Hi.");
    assert_eq!(
        run("anna", || "2026-11-23T00:00:00Z".parse().unwrap())
            .await
            .content,
        "Hi."
    );
    let spent = store
        .spent(Some(&UserId::new("anna").unwrap()), TODAY)
        .await
        .unwrap();
    assert_eq!((spent.tokens, spent.model_calls), (120, 1));
}

#[tokio::test]
async fn turns_at_the_same_time_cannot_spend_the_same_money() {
    let store = Arc::new(InMemory::new());
    let slow = || text("Hi.").usage(1000, 10).after(Duration::from_millis(20));
    let model = ScriptedModel::new(std::iter::repeat_with(slow).take(8));
    // Four of the most one may take; each really takes a thousandth of it.
    let most = Allowance {
        tokens: Some(4 * 1500),
        ..NONE
    };
    let agent = Agent::builder("adjutant")
        .model(model.clone())
        .instruction("Be brief.")
        .journal(store.clone(), "test")
        .budgets(per_day(most), store.clone())
        .clock(noon)
        .build()
        .unwrap();
    let runs = (0..8).map(|_| agent.run("hello"));
    let responses = futures::future::join_all(runs).await;
    let answered = responses
        .iter()
        .filter(|response| response.as_ref().unwrap().content == "Hi.")
        .count();
    let spent = store.spent(None, TODAY).await.unwrap();
    assert_eq!(spent.tokens, 1010 * u64::try_from(answered).unwrap());
    assert!(
        (1..=5).contains(&answered) && spent.tokens <= 6000,
        "{answered} answered, {spent:?}"
    );
    assert_eq!(model.calls_made(), answered);
}

#[tokio::test]
async fn a_call_that_failed_costs_nothing_and_one_that_was_stopped_is_booked() {
    let store = Arc::new(InMemory::new());
    let budgets = per_day(Allowance {
        tokens: Some(3000),
        ..NONE
    });
    let replies = [
        fault(Fault::Authentication),
        fault(Fault::Stall),
        text("Hi."),
    ];
    let limits = TurnLimits {
        turn_deadline: Some(Duration::from_millis(30)),
        ..TurnLimits::default()
    };
    let model = ScriptedModel::new(replies);
    let agent = build(model.clone(), &store, budgets).build().unwrap();
    let impatient = build(model, &store, budgets)
        .limits(limits)
        .build()
        .unwrap();
    assert_eq!(
        agent.run("hello").await.unwrap().outcome,
        OutcomeCategory::LlmFailure
    );
    let spent = store.spent(None, TODAY).await.unwrap();
    assert_eq!((spent.tokens, spent.model_calls), (0, 1));
    assert_eq!(
        impatient.run("hello").await.unwrap().outcome,
        OutcomeCategory::DeadlineLimit
    );
    let spent = store.spent(None, TODAY).await.unwrap();
    assert!(
        spent.tokens > u64::from(limits::OUTPUT_TOKENS_MAX) && spent.model_calls == 2,
        "{spent:?}"
    );
    assert_eq!(
        budget_of(&agent.run("hello").await.unwrap()),
        "budget of tokens per user and day (UTC)"
    );
}

#[tokio::test]
async fn money_is_counted_by_the_table_of_prices_and_needs_one() {
    let store = Arc::new(InMemory::new());
    let money = |usd| {
        per_day(Allowance {
            cost: Cost::from_usd(usd),
            ..NONE
        })
    };
    let agent = |model: &str, budgets| {
        let reply = || text("Hi.").usage(1_000_000, 0);
        let model = Vendor::new(("gemini", model), [reply(), reply()]);
        let agent = Agent::builder("adjutant")
            .model(model)
            .instruction("Be brief.");
        agent
            .journal(store.clone(), "test")
            .budgets(budgets, store.clone())
            .clock(noon)
    };
    let unknown = agent("gemini-99-flash", money(1.0)).build().unwrap_err();
    assert!(
        matches!(unknown, BuildError::UnknownPrice { .. }),
        "{unknown:?}"
    );
    assert!(
        unknown.to_string().contains("gemini/gemini-99-flash"),
        "{unknown}"
    );
    // Tokens can be bounded without a price; a model on the user's own machine costs nothing.
    assert!(
        agent(
            "gemini-99-flash",
            per_day(Allowance {
                tokens: Some(1),
                ..NONE
            })
        )
        .build()
        .is_ok()
    );
    assert!(
        build(ScriptedModel::new([]), &store, money(0.0))
            .build()
            .is_ok()
    );

    // 0.75 dollars for a million tokens, until the end of the year.
    let known = agent("gemini-3.8-flash", money(1.0)).build().unwrap();
    assert_eq!(
        known.run("hello").await.unwrap().cost.unwrap().to_string(),
        "$0.75"
    );
    assert_eq!(
        store.spent(None, TODAY).await.unwrap().cost,
        Cost::from_usd(0.75).unwrap()
    );
    assert_eq!(
        known.run("hello").await.unwrap().content,
        "Hi.",
        "what was used is more than was thought"
    );
    let response = known.run("hello").await.unwrap();
    assert_eq!(
        budget_of(&response),
        "budget of money per user and day (UTC)"
    );
    let said = response.error.unwrap().to_string();
    assert!(
        said.contains("$1.00 ($1.50 spent or set aside, the next step may take $0.0"),
        "{said}"
    );
    // A price that is known only for shorter requests is not known for this one.
    let table = r#"{"prices": [{"providers": ["gemini"], "models": ["own"], "input": 1, "output": 1, "input_tokens_max": 9}]}"#;
    let own = agent("own", money(1000.0)).prices(serde_json::from_str::<Prices>(table).unwrap());
    let response = own.build().unwrap().run("hello").await.unwrap();
    assert!(
        response
            .error
            .unwrap()
            .to_string()
            .contains("not known what the next step takes")
    );
}

#[tokio::test]
async fn everybody_together_has_a_budget_too() {
    let store = Arc::new(InMemory::new());
    let budgets = Budgets {
        everyone_per_day: Allowance {
            model_calls: Some(1),
            ..NONE
        },
        ..Budgets::default()
    };
    let agent = build(
        ScriptedModel::new([text("Hi."), text("Hi.")]),
        &store,
        budgets,
    )
    .build()
    .unwrap();
    let run = async |user: &str| {
        agent
            .run_in(&mut RunContext::new(UserId::new(user).unwrap()), "hello")
            .await
    };
    assert_eq!(run("anna").await.unwrap().content, "Hi.");
    assert_eq!(
        budget_of(&run("bert").await.unwrap()),
        "budget of model calls of everybody per day (UTC)"
    );
}

#[tokio::test]
async fn calls_of_tools_are_counted_for_the_day() {
    let store = Arc::new(InMemory::new());
    let add = |words: &str| call("add_task", json!({ "description": words }));
    let model = ScriptedModel::new([add("one"), text("Done."), add("two")]);
    let one = per_day(Allowance {
        tool_calls: Some(1),
        ..NONE
    });
    let agent = build(model, &store, one).build().unwrap();
    assert_eq!(agent.run("add one").await.unwrap().content, "Done.");
    assert_eq!(
        budget_of(&agent.run("add two").await.unwrap()),
        "budget of tool calls per user and day (UTC)"
    );
    assert_eq!(descriptions(&store).await, ["one"]);
    assert_eq!(store.spent(None, TODAY).await.unwrap().tool_calls, 1);
}

#[tokio::test]
async fn the_time_of_a_confirmed_call_is_reserved_and_booked() {
    const LONG: Duration = Duration::from_millis(30);
    let store = Arc::new(InMemory::new());
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = |time, replies: Vec<Reply>| {
        let schema = json!({"type": "object", "additionalProperties": false});
        let counter = ran.clone();
        let tool = FunctionTool::new("slow", "Takes its time.", schema, move |_, _| {
            let counter = counter.clone();
            async move {
                tokio::time::sleep(LONG).await;
                counter.fetch_add(1, Ordering::SeqCst);
                Ok(json!("done"))
            }
        });
        let careful = tool.unwrap().annotated(Annotations {
            destructive: true,
            ..Annotations::default()
        });
        let budgets = per_day(Allowance {
            time: Some(time),
            ..NONE
        });
        build(ScriptedModel::new(replies), &store, budgets)
            .tool(careful)
            .build()
            .unwrap()
    };
    let plenty = Duration::from_secs(3600);
    let ask = || vec![call("slow", json!({})), text("Done.")];
    let mut context = RunContext::default();
    let asking = agent(plenty, ask());
    let asked = asking.run_in(&mut context, "go").await.unwrap();
    let yes = asked.decision.pending[0].answer(Verdict::Approved);
    let before = store.spent(None, TODAY).await.unwrap().ms;
    assert_eq!(
        asking
            .answer(&mut context, vec![yes])
            .await
            .unwrap()
            .content,
        "Done."
    );
    let after = store.spent(None, TODAY).await.unwrap().ms;
    assert!(
        after >= before + u64::try_from(LONG.as_millis()).unwrap(),
        "{before} ms, then {after} ms"
    );
    assert_eq!(ran.load(Ordering::SeqCst), 1);

    // Asked while there was time, answered when there is none.
    let mut context = RunContext::default();
    let asked = agent(plenty, ask())
        .run_in(&mut context, "go")
        .await
        .unwrap();
    let yes = asked.decision.pending[0].answer(Verdict::Approved);
    let refused = agent(Duration::from_secs(1), ask())
        .answer(&mut context, vec![yes])
        .await
        .unwrap();
    assert_eq!(
        (budget_of(&refused).as_str(), ran.load(Ordering::SeqCst)),
        ("budget of time per user and day (UTC)", 1)
    );
}

fn replica<S>(model: ScriptedModel, store: &Arc<S>, name: &str, budgets: Budgets) -> AgentBuilder
where
    S: Journal + LogStore + ConversationStore + BudgetStore,
{
    builder(model)
        .journal(store.clone(), name)
        .budgets(budgets, store.clone())
        .clock(noon)
}

fn calls(calls: u64) -> Allowance {
    Allowance {
        model_calls: Some(calls),
        ..NONE
    }
}

#[tokio::test]
async fn what_a_process_holds_and_does_not_use_is_free_as_soon_as_nothing_runs() {
    for budgets in [
        per_day(calls(48)),
        Budgets {
            everyone_per_day: calls(48),
            ..Budgets::default()
        },
    ] {
        let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
        let (runs, go_on) = (
            Arc::new(tokio::sync::Notify::new()),
            Arc::new(tokio::sync::Notify::new()),
        );
        let (at, until) = (runs.clone(), go_on.clone());
        let schema = json!({"type": "object", "additionalProperties": false});
        let wait = FunctionTool::new("wait", "WaitOptions.", schema, move |_, _| {
            let (at, until) = (at.clone(), until.clone());
            async move {
                at.notify_one();
                until.notified().await;
                Ok(json!("done"))
            }
        });
        let model = ScriptedModel::new([call("wait", json!({})), text("Done.")]);
        let first = replica(model, &store, "first", budgets)
            .tool(wait.unwrap())
            .build()
            .unwrap();
        let second = ScriptedModel::new([text("Hi.").forever()]);
        let second = replica(second, &store, "second", budgets).build().unwrap();
        let turn = tokio::spawn(async move { first.run("wait").await });
        runs.notified().await;
        // The first has a sixteenth, and has used one of three.
        for _ in 0..45 {
            assert_eq!(second.run("hello").await.unwrap().content, "Hi.");
        }
        let refused = second.run("hello").await.unwrap();
        let name = budget_of(&refused);
        assert!(
            name.starts_with("budget of model calls") && name.ends_with("day (UTC)"),
            "{name}"
        );
        go_on.notify_one();
        assert_eq!(turn.await.unwrap().unwrap().content, "Done.");
        assert_eq!(second.run("hello").await.unwrap().content, "Hi.");
        let refused = second.run("hello").await.unwrap();
        let said = refused.error.unwrap().to_string();
        assert!(said.contains("48 (48 spent or set aside"), "{said}");
        assert_eq!(store.spent(None, TODAY).await.unwrap().model_calls, 48);
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_process_keeps_its_share_until_it_has_nothing_to_do() {
    let store = Arc::new(InMemory::new());
    let budgets = Budgets {
        everyone_per_day: calls(1000),
        ..Budgets::default()
    };
    let agent = replica(
        ScriptedModel::new([text("Hi.").forever()]),
        &store,
        "busy",
        budgets,
    )
    .build()
    .unwrap();
    for _ in 0..20 {
        assert_eq!(agent.run("hello").await.unwrap().content, "Hi.");
    }
    let all_that_is_left = async || {
        let kept = Spending::default();
        let ask = Ask {
            block: uuid::Uuid::now_v7(),
            allowance: calls(1000),
            kept,
            wanted: kept,
        };
        let request = GrantRequest {
            day: TODAY,
            user: &UserId::local(),
            worker: Worker::from("other"),
            ttl: Duration::ZERO,
            need: Spending {
                model_calls: 980,
                ..kept
            },
            everyone: Some(ask),
            own: None,
        };
        store.grant(request).await.unwrap()
    };
    let refused = all_that_is_left().await;
    assert!(matches!(refused, Granted::Exceeded(_)), "{refused:?}");
    // Its last sign of life, after which there will be none until there is something to do.
    tokio::time::sleep(Duration::from_secs(15)).await;
    let granted = all_that_is_left().await;
    assert!(matches!(granted, Granted::Blocks { .. }), "{granted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_was_dropped_is_booked_with_the_next_commit() {
    let store = Arc::new(InMemory::new());
    let model = ScriptedModel::new([fault(Fault::Stall), text("Hi.").usage(100, 20)]);
    let agent = build(model.clone(), &store, per_day(calls(100)))
        .build()
        .unwrap();
    tokio::time::timeout(Duration::from_secs(1), agent.run("hello"))
        .await
        .unwrap_err();
    assert_eq!(model.calls_made(), 1);
    assert_eq!(agent.run("hello").await.unwrap().content, "Hi.");
    let spent = store.spent(None, TODAY).await.unwrap();
    assert_eq!(spent.model_calls, 2);
    assert!(
        spent.tokens > 120 + u64::from(limits::OUTPUT_TOKENS_MAX),
        "{spent:?}"
    );
}

/// Grants, and then says that it does not know: each call as long as `fails` says so.
struct Forgetful {
    store: Arc<InMemory>,
    fails: AtomicUsize,
}

impl BudgetStore for Forgetful {
    fn grant<'a>(
        &'a self,
        request: GrantRequest<'a>,
    ) -> BoxFuture<'a, Result<Granted, StoreError>> {
        Box::pin(async move {
            let granted = self.store.grant(request).await;
            let fails = |left: usize| left.checked_sub(1);
            match self
                .fails
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails)
            {
                Ok(_) => Err(StoreError::unavailable("the answer was lost".to_owned())),
                Err(_) => granted,
            }
        })
    }

    fn book<'a>(&'a self, bookings: &'a [Booking]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.book(bookings)
    }

    fn fold(&self, day: Date) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.fold(day)
    }

    fn spent<'a>(
        &'a self,
        user: Option<&'a UserId>,
        day: Date,
    ) -> BoxFuture<'a, Result<Spending, StoreError>> {
        self.store.spent(user, day)
    }
}

#[tokio::test]
async fn a_grant_whose_answer_was_lost_is_not_lost() {
    let store = Arc::new(InMemory::new());
    let forgetful = Arc::new(Forgetful {
        store: store.clone(),
        fails: AtomicUsize::new(3),
    });
    let agent = builder(ScriptedModel::new([text("Hi."), text("Hi.")]))
        .journal(store.clone(), "test")
        .budgets(
            Budgets {
                everyone_per_day: calls(1),
                ..per_day(calls(1))
            },
            forgetful,
        )
        .clock(noon)
        .build()
        .unwrap();
    for _ in 0..3 {
        let lost = agent.run("hello").await.unwrap_err();
        assert!(
            matches!(lost, RunError::Store(StoreError::Unavailable { .. })),
            "{lost:?}"
        );
    }
    assert_eq!(agent.run("hello").await.unwrap().content, "Hi.");
    budget_of(&agent.run("hello").await.unwrap());
    assert_eq!(store.spent(None, TODAY).await.unwrap().model_calls, 1);
}

#[tokio::test]
async fn who_bounds_no_day_asks_no_store() {
    let store = Arc::new(InMemory::new());
    let forgetful = Arc::new(Forgetful {
        store: store.clone(),
        fails: AtomicUsize::new(usize::MAX),
    });
    for budgets in [Budgets::default(), per_turn(calls(1))] {
        let agent = builder(ScriptedModel::new([text("Hi.")])).journal(store.clone(), "test");
        let agent = agent
            .budgets(budgets, forgetful.clone())
            .clock(noon)
            .build()
            .unwrap();
        assert_eq!(agent.run("hello").await.unwrap().content, "Hi.");
    }
    assert_eq!(store.spent(None, TODAY).await.unwrap(), Spending::default());
}
