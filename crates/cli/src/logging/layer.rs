//! A `tracing` layer that writes each event with the fields of its spans.

use std::error::Error;
use std::fmt;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::filter::OURS;
use super::line::{Line, LogFormat, clean};
use super::writer::Queue;

/// The field in which `tracing` passes the text of an event.
const MESSAGE: &str = "message";

/// Writes every event that passes the filter. Our own spans are always kept, so that an event never
/// lacks the fields of its request.
pub(super) struct Layer {
    pub(super) filter: Targets,
    pub(super) format: LogFormat,
    pub(super) queue: Queue,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        let is_our_span = metadata.is_span() && metadata.target().starts_with(OURS);
        is_our_span
            || self
                .filter
                .would_enable(metadata.target(), metadata.level())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // Spans that carry request and turn are at this level.
        let most = self.filter.iter().map(|(_, level)| level).max();
        most.max(Some(LevelFilter::ERROR))
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut own = Fields::default();
        event.record(&mut own);
        let metadata = event.metadata();
        let mut line = Line::new(*metadata.level(), metadata.target());
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            if let Some(fields) = span.extensions().get::<Fields>() {
                fields
                    .0
                    .iter()
                    .for_each(|(name, value)| line.add(span.name(), name, value.clone()));
            }
        }
        for (name, value) in own.0 {
            match value {
                Value::String(words) if name == MESSAGE => line.set_message(words),
                value => line.add("event", name, value),
            }
        }
        self.queue.push(line.format(self.format));
    }
}

/// Fields of a span or an event, without secrets.
#[derive(Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        let (name, value) = (field.name(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, clean(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, clean(&format!("{value:?}")));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut words = value.to_string();
        // An error's own text need not name its causes, and those say what to mend.
        let mut cause = value.source();
        while let Some(error) = cause {
            words = format!("{words}: {error}");
            cause = error.source();
        }
        self.set(field, clean(&words));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::sync::mpsc::Receiver;

    use serde_json::json;
    use tracing::{debug, error, error_span, info};
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::registry;

    use super::*;
    use crate::logging::filter::parse;
    use crate::logging::line::TEXT_MAX;
    use crate::logging::panic;
    use crate::logging::writer::{self, Message};

    /// Returns the lines logged by `log`, as JSON without their time.
    fn logged(filter: &str, log: impl FnOnce()) -> Vec<Value> {
        let (queue, receiver): (_, Receiver<Message>) = writer::queue(100);
        let layer = Layer {
            filter: parse(filter).unwrap(),
            format: LogFormat::Json,
            queue,
        };
        tracing::subscriber::with_default(registry().with(layer), log);
        let lines = receiver.try_iter().filter_map(|message| match message {
            Message::Line(line) => Some(line),
            Message::End(_) => None,
        });
        lines
            .map(|line| {
                let mut line: Value = serde_json::from_str(&line).unwrap();
                assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
                line.as_object_mut().unwrap().remove("time");
                line
            })
            .collect()
    }

    #[derive(Debug)]
    struct Outer(std::io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("cannot connect with adj_abcdefghijklmnopqrstuvwxyz0123456789abcdefg")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    const TARGET: &str = "adjutant::logging::layer::tests";

    #[test]
    fn an_event_says_which_request_it_is_of() {
        let lines = logged("warn", || {
            let request = error_span!("request", request_id = "r1", user = tracing::field::Empty);
            request.in_scope(|| {
                request.record("user", "ana");
                info!("not this");
                error_span!("turn", request_id = "r0", user = "ana", turn = 7).in_scope(|| {
                    error!(
                        error = "no\nanswer\u{1b}[2J",
                        ok = false,
                        ms = 5_u64,
                        "it {}",
                        "failed"
                    );
                });
            });
        });
        let expected = json!({
            "level": "ERROR", "target": TARGET, "message": "it failed", "request_id": "r1", "user": "ana",
            "turn_request_id": "r0", "turn": 7, "error": "no answer[2J", "ok": false, "ms": 5
        });
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn events_outside_the_filter_are_not_logged() {
        let lines = logged("info", || {
            debug!("not this");
            info!(target: "hyper", "nor this");
            info!("this");
        });
        assert_eq!(
            lines,
            [json!({"level": "INFO", "target": TARGET, "message": "this"})]
        );
        assert_eq!(logged("off", || error!("nor this")), [Value::Null; 0]);
    }

    #[test]
    fn a_panic_is_logged_with_its_place_and_its_request() {
        let lines = logged("error", || {
            std::panic::set_hook(Box::new(panic::log));
            let request = error_span!("request", request_id = "r1");
            let ended = std::panic::catch_unwind(AssertUnwindSafe(|| {
                request.in_scope(|| panic!("out of {}", "luck"))
            }));
            assert!(ended.is_err());
            drop(std::panic::take_hook());
        });
        assert_eq!(
            (&lines[0]["request_id"], &lines[0]["error"]),
            (&json!("r1"), &json!("out of luck"))
        );
        let place = lines[0]["place"].as_str().unwrap();
        assert!(place.contains("layer.rs:"), "{place}");
    }

    #[test]
    fn an_error_is_logged_with_its_causes_and_without_secrets() {
        let lines = logged("error", || {
            let error = Outer(std::io::Error::other("refused"));
            error!(
                error = &error as &dyn Error,
                long = "x".repeat(9_000),
                "it failed"
            );
        });
        assert_eq!(lines[0]["error"], "cannot connect with [secret]: refused");
        assert_eq!(lines[0]["long"].as_str().unwrap().chars().count(), TEXT_MAX);
    }
}
