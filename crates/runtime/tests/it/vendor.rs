//! Peculiarities of vendors: costs, opaque state on message parts, and requests they cannot
//! express.

use adjutant_core::port::{DeltaStream, LogStore as _};
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{Prices, RunContext};
use futures::StreamExt as _;

use super::*;

/// A scripted model of a vendor's name that marks every part it sends as its own, and reports the
/// marks of others.
pub(crate) struct Vendor {
    id: ModelId,
    capabilities: Capabilities,
    cost: Option<Cost>,
    script: ScriptedModel,
}

impl Vendor {
    pub(crate) fn new(id: (&str, &str), replies: impl IntoIterator<Item = Reply>) -> Self {
        let script = ScriptedModel::new(replies);
        let capabilities = Capabilities {
            local: false,
            ..script.capabilities().clone()
        };
        Self {
            id: ModelId::new(id.0, id.1).unwrap(),
            capabilities,
            cost: None,
            script,
        }
    }

    fn finished(&self, request: &GenerateRequest, mut reply: GenerateResponse) -> GenerateResponse {
        let states = request
            .messages
            .iter()
            .flat_map(Message::parts)
            .filter_map(|part| part.state.as_ref());
        let foreign = states.filter(|state| state.origin != self.id);
        reply
            .losses
            .extend(foreign.map(|state| format!("state of {} was left out", state.origin)));
        for part in &mut reply.parts {
            part.state = Some(ProviderState {
                origin: self.id.clone(),
                data: json!({"signature": "c2ln"}),
            });
        }
        GenerateResponse {
            model: self.id.clone(),
            cost: self.cost,
            ..reply
        }
    }
}

impl LanguageModel for Vendor {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        Box::pin(async move { Ok(self.finished(request, self.script.generate(request).await?)) })
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        Box::pin(async move {
            let deltas: Vec<_> = self.script.stream(request).await?.collect().await;
            let deltas: Vec<_> = deltas
                .into_iter()
                .map(|delta| match delta {
                    Ok(Delta::Finished(reply)) => {
                        Ok(Delta::Finished(self.finished(request, reply)))
                    }
                    other => other,
                })
                .collect();
            Ok(Box::pin(futures::stream::iter(deltas)) as DeltaStream)
        })
    }
}

fn agent(store: &Arc<InMemory>, model: Vendor) -> AgentBuilder {
    Agent::builder("adjutant")
        .model(model)
        .instruction("Be brief.")
        .tools(task_tools(store.clone()))
        .journal(store.clone(), "test")
}

fn add(description: &str) -> Reply {
    call("add_task", json!({ "description": description })).usage(1000, 100)
}

#[tokio::test]
async fn a_conversation_goes_on_with_another_model_and_what_is_lost_is_said_once() {
    let store = Arc::new(InMemory::new());
    let mut context = RunContext::default();
    let first = agent(
        &store,
        Vendor::new(("acme", "m1"), [add("a"), text("Added a.")]),
    )
    .build()
    .unwrap();
    let response = first.run_in(&mut context, "add a").await.unwrap();
    assert_eq!(response.notices, []);

    // Three model calls, each with three parts of the other vendor in front of it.
    let other = Vendor::new(
        ("umbrella", "m2"),
        [add("b"), add("c"), text("Added b and c.")],
    );
    let script = other.script.clone();
    let second = agent(&store, other).build().unwrap();
    let response = second.run_in(&mut context, "add b and c").await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::TaskCompleted);
    assert_eq!(
        response.notices,
        [Notice::not_sent("state of acme/m1 was left out")]
    );
    assert_eq!(descriptions(&store).await, ["a", "b", "c"]);

    // The transcript kept everything: the adapter gets it whole, and the first model finds its own
    // state again.
    let asked = &script.requests()[2].messages;
    check_pairing(asked).unwrap();
    let kept = asked
        .iter()
        .flat_map(Message::parts)
        .filter(|part| part.state.is_some())
        .count();
    assert_eq!(kept, 4, "two answers of the first model, two of the second");
    let row = store
        .decision(&UserId::local(), response.turn)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.notices, response.notices);
}

#[tokio::test]
async fn a_turn_is_priced_by_the_provider_then_by_the_table_then_not_at_all() {
    let cases = [
        // 2 calls with 1,000 tokens in and 100 out each, at 0.75 and 3.75 dollars a million.
        (("gemini", "gemini-3.8-flash"), None, Some(2_250_000)),
        (("gemini", "gemini-3.8-flash"), Some(5), Some(10)),
        (("acme", "m1"), Some(5), Some(10)),
        (("acme", "m1"), None, None),
    ];
    for (id, reported, total) in cases {
        let store = Arc::new(InMemory::new());
        let mut model = Vendor::new(id, [add("a"), text("Added.").usage(1000, 100)]);
        model.cost = reported.map(Cost::from_nano_usd);
        let noon = "2026-11-22T12:00:00Z".parse().unwrap();
        let agent = agent(&store, model).clock(move || noon).build().unwrap();
        let response = agent.run("add a").await.unwrap();
        assert_eq!(
            response.cost.map(Cost::nano_usd),
            total,
            "{id:?} {reported:?}"
        );
        let row = store
            .decision(&UserId::local(), response.turn)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(row.cost, response.cost);
        let shown = serde_json::to_value(&response).unwrap()["cost_usd"].clone();
        assert_eq!(shown.as_f64(), response.cost.map(Cost::usd));
    }
}

#[tokio::test]
async fn the_users_prices_hold_and_a_model_of_the_own_machine_costs_nothing() {
    let own: Prices = serde_json::from_value(json!({"prices": [
        {"providers": ["acme"], "models": ["m*"], "input": 1, "output": 10}
    ]}))
    .unwrap();
    let store = Arc::new(InMemory::new());
    let model = || Vendor::new(("acme", "m1"), [text("Hi.").usage(1000, 100)]);
    let priced = agent(&store, model())
        .prices(Prices::builtin().overridden_by(own))
        .build()
        .unwrap();
    assert_eq!(priced.run("hi").await.unwrap().cost, Cost::from_usd(0.002));

    let mut local = model();
    local.capabilities.local = true;
    let response = agent(&store, local)
        .build()
        .unwrap()
        .run("hi")
        .await
        .unwrap();
    assert_eq!(response.cost, Some(Cost::default()));
}

#[tokio::test]
async fn a_turn_that_waits_says_what_it_cost_so_far() {
    let store = Arc::new(InMemory::new());
    let delete = call("delete_task", json!({"task_id": "1"})).usage(1000, 0);
    let replies = [
        add("a"),
        text("Added."),
        delete,
        text("Gone.").usage(1000, 0),
    ];
    let model = Vendor::new(("anthropic", "claude-sonnet-4-5"), replies);
    let agent = agent(&store, model).build().unwrap();
    let mut context = RunContext::default();
    agent.run_in(&mut context, "add a").await.unwrap();
    let waiting = agent.run_in(&mut context, "delete a").await.unwrap();
    assert_eq!(
        (waiting.outcome, waiting.cost),
        (OutcomeCategory::PendingConfirmation, Cost::from_usd(0.003))
    );
    assert_eq!(
        agent.run_in(&mut context, "yes").await.unwrap().cost,
        Cost::from_usd(0.006)
    );
}
