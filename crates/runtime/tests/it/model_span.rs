//! The span of a model call, as a program with a subscriber receives it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use adjutant_providers::scripted::{Fault, Reply, fault, text};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_default;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry;

use super::*;

/// The fields of all spans called `model`, as text, in the order of the spans' ids.
#[derive(Clone, Default)]
struct ModelSpans(Arc<Mutex<BTreeMap<u64, Fields>>>);

#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: tracing::Subscriber> Layer<S> for ModelSpans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        if attributes.metadata().name() == "model" {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            self.0.lock().unwrap().insert(id.into_u64(), fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        if let Some(fields) = self.0.lock().unwrap().get_mut(&id.into_u64()) {
            values.record(fields);
        }
    }
}

/// Runs a turn with one reply of the model, and returns the fields of its model call's span.
async fn span_of(reply: Reply) -> BTreeMap<&'static str, String> {
    let spans = ModelSpans::default();
    let _subscribed = set_default(registry().with(spans.clone()));
    let (agent, _) = task_agent(&Arc::new(InMemory::new()), [reply]);
    // The turn ends with an error if the reply is one.
    let _ = agent.run("a secret question").await;
    let spans = spans.0.lock().unwrap();
    assert_eq!(spans.len(), 1, "{spans:?}");
    spans.values().next().unwrap().0.clone()
}

#[tokio::test]
async fn a_model_call_has_the_attributes_of_the_genai_conventions_and_no_text() {
    let fields = span_of(text("a secret answer").usage(12, 3)).await;
    let expected = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "scripted"),
        ("gen_ai.request.model", "script"),
        ("gen_ai.response.finish_reasons", "[\"stop\"]"),
        ("gen_ai.response.model", "script"),
        ("gen_ai.usage.input_tokens", "12"),
        ("gen_ai.usage.output_tokens", "3"),
        ("model", "scripted/script"),
        ("number", "1"),
    ];
    assert_eq!(
        fields,
        expected
            .map(|(name, value)| (name, value.to_owned()))
            .into()
    );
}

#[tokio::test]
async fn a_failed_model_call_has_the_code_of_its_error() {
    let fields = span_of(fault(Fault::Quota)).await;
    assert_eq!(fields["error.type"], "quota");
    assert!(!fields.contains_key("gen_ai.response.model"), "{fields:?}");
}
