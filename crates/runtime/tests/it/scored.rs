//! Weak models that score the actions of a message: the scores decide, with the person's words.

use adjutant_core::port::DeltaStream;
use adjutant_core::{ActionKind, ActionScores, Language, Utterance};
use adjutant_providers::FallbackModel;
use adjutant_providers::scripted::text;
use adjutant_runtime::RunContext;
use adjutant_weak::ConstrainedModel;

use super::*;

/// A scripted model with the same scores for every message, or a failure in their place.
struct Scoring {
    inner: ScriptedModel,
    scores: Option<ActionScores>,
}

impl LanguageModel for Scoring {
    fn id(&self) -> &ModelId {
        self.inner.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        self.inner.generate(request)
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        self.inner.stream(request)
    }

    fn score_actions<'a>(
        &'a self,
        _utterance: Utterance<'a>,
    ) -> BoxFuture<'a, Result<Option<ActionScores>, ModelError>> {
        let failed = || ModelError::BadRequest {
            provider: self.id().provider.clone(),
            message: "no scores".into(),
        };
        Box::pin(std::future::ready(self.scores.map(Some).ok_or_else(failed)))
    }
}

/// Adds two tasks, then says `message`; the model answers with an empty list of actions. Returns the
/// answer.
async fn answered(scores: Option<ActionScores>, message: &str) -> String {
    answered_by(scoring(scores), message).await
}

fn scoring(scores: Option<ActionScores>) -> Scoring {
    let model = ScriptedModel::new([text("[]")]);
    let capabilities = Capabilities {
        weak_tools: true,
        ..model.capabilities().clone()
    };
    Scoring {
        inner: model.with_capabilities(capabilities),
        scores,
    }
}

async fn answered_by(model: impl LanguageModel, message: &str) -> String {
    let tasks = Arc::new(InMemory::new());
    let agent = Agent::builder("adjutant")
        .model(model)
        .instruction("Keep the list.")
        .tools(task_tools(tasks.clone()))
        .journal(tasks.clone(), "test")
        .build()
        .unwrap();
    let mut context = RunContext::default();
    for description in ["Feed the rabbits", "Wash the car"] {
        let arguments = json!({ "description": description });
        let call = RequestedCall::new("add_task", arguments.as_object().unwrap().clone());
        let user = UserId::local();
        agent
            .call_tool(&mut RunContext::for_call(user, None), None, call)
            .await
            .unwrap();
    }
    let response = agent.run_in(&mut context, message).await.unwrap();
    response.decision.text
}

#[tokio::test]
async fn an_action_decided_by_scores_and_words_needs_no_choice_of_the_model() {
    let done = ActionScores::new(Language::English).with(ActionKind::Complete, 0.9);
    assert!(
        answered(Some(done), "the car is washed")
            .await
            .contains("Wash the car")
    );
    let question = answered(Some(done), "the piano is tuned").await;
    assert!(question.starts_with("Which task do you mean"), "{question}");
}

#[tokio::test]
async fn models_around_a_model_pass_its_scores_on() {
    let scores = || {
        let done = ActionScores::new(Language::English).with(ActionKind::Complete, 0.9);
        scoring(Some(done))
    };
    let fallback = FallbackModel::new(Arc::new(scores()), vec![Arc::new(scoring(None))]).unwrap();
    let constrained = ConstrainedModel::new(scores());
    for answer in [
        answered_by(fallback, "the car is washed").await,
        answered_by(constrained, "the car is washed").await,
    ] {
        assert!(answer.contains("Wash the car"), "{answer}");
        assert!(answer.starts_with("Completed"), "{answer}");
    }
}

#[tokio::test]
async fn a_model_that_cannot_score_is_asked_as_without_scores() {
    let asked = answered(None, "the car is washed").await;
    assert!(asked.starts_with("I did not understand that"), "{asked}");
}

#[tokio::test]
async fn results_of_own_tools_are_told_in_words_and_not_as_json() {
    let read_only = Annotations {
        read_only: true,
        ..Annotations::default()
    };
    let weather = || {
        let parameters = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        });
        FunctionTool::new(
            "get_weather",
            "Weather of a city",
            parameters,
            |_, _| async { Ok(json!({"city": "Oslo", "weather": "sunny", "temperature_c": 21.0})) },
        )
        .unwrap()
        .annotated(read_only)
    };
    let described = weather().described(|arguments, result| {
        let degrees = &result["temperature_c"];
        format!("{}: {degrees} degrees.", arguments["city"])
    });
    for (tool, expected) in [
        (weather(), "City: Oslo, weather: sunny, temperature c: 21"),
        (described, "\"Oslo\": 21.0 degrees."),
    ] {
        let answer = json!([{"get_weather": {"city": "Oslo"}}]).to_string();
        let agent = Agent::builder("weather")
            .instruction("Tell the weather.")
            .model(ConstrainedModel::new(ScriptedModel::new([text(&answer)])))
            .tool(tool)
            .build()
            .unwrap();
        let response = agent.run("what is the weather in Oslo?").await.unwrap();
        assert_eq!(response.decision.text, expected);
    }
}
