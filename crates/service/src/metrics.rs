//! Figures for whoever runs the service, as Prometheus reads them. None of them says who asked.

use std::time::Duration;

use adjutant_core::{AgentResponse, Allowance, Cost, Rating, ToolResult};
use adjutant_runtime::{DispatchFigures, ModelCall};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{
    Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use crate::process;

const REQUESTS: &str = "adjutant_http_requests_total";
const REQUEST_TIME: &str = "adjutant_http_request_duration_seconds";
const TURNS: &str = "adjutant_turns_total";
const TURN_TIME: &str = "adjutant_turn_duration_seconds";
const TURNS_RUNNING: &str = "adjutant_turns_running";
const TURNS_QUEUED: &str = "adjutant_turns_queued";
const TOKENS: &str = "adjutant_tokens_total";
const MODEL_CALLS: &str = "adjutant_model_calls_total";
const MODEL_RETRIES: &str = "adjutant_model_retries_total";
const MODEL_TOKENS: &str = "adjutant_model_tokens_total";
const MODEL_CALL_TIME: &str = "adjutant_model_call_duration_seconds";
const FIRST_TOKEN: &str = "adjutant_model_first_token_seconds";
const MODEL_COST: &str = "adjutant_model_call_cost_usd";
const BUDGET_LEFT_TOKENS: &str = "adjutant_budget_left_tokens";
const BUDGET_LEFT_USD: &str = "adjutant_budget_left_usd";
const BUILD_INFO: &str = "adjutant_build_info";
const CONNECTIONS: &str = "adjutant_connections";
const CONNECTIONS_CLOSED: &str = "adjutant_connections_closed_total";
const TOOL_CALLS: &str = "adjutant_tool_calls_total";
const FEEDBACK: &str = "adjutant_feedback_total";
const DISPATCHES: &str = "adjutant_dispatches_total";
const DISPATCH_TIME: &str = "adjutant_dispatch_begin_seconds";
const DISPATCH_LEFT_ALONE: &str = "adjutant_dispatch_left_alone";
const DISPATCH_REGISTERED: &str = "adjutant_dispatch_registered";

/// Who reads the figures where they are beside the rest. They say how much everybody does together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAccess {
    /// Operators, and tokens of the role `metrics`.
    Operator,
    /// Whoever may ask anything.
    Users,
    /// Nobody: they are not there.
    Off,
}

/// Upper bounds of the histograms' buckets, in seconds: from a look-up to a model that thinks.
const SECONDS: [f64; 12] = [
    0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0,
];

/// The same, in dollars: from a short question to a cheap model to a long one to a dear one.
const DOLLARS: [f64; 9] = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];

/// A figure that is read when somebody looks, such as the connections of a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// Its name, with its unit at the end.
    pub name: &'static str,
    /// Its help text, a sentence.
    pub help: &'static str,
    /// Names and values of labels. Values come from the configuration, never from a client, so that
    /// there are few.
    pub labels: Vec<(&'static str, String)>,
    /// Its value.
    pub value: f64,
}

/// The figures of one service. Not the process's: a program may have its own.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        let times = [
            REQUEST_TIME,
            TURN_TIME,
            DISPATCH_TIME,
            MODEL_CALL_TIME,
            FIRST_TOKEN,
        ];
        let buckets = times
            .map(|name| (name, &SECONDS[..]))
            .into_iter()
            .chain([(MODEL_COST, &DOLLARS[..])]);
        let recorder = buckets
            .into_iter()
            .try_fold(builder, |builder, (name, bounds)| {
                builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds)
            });
        // It fails only without buckets.
        let recorder = recorder.unwrap_or_default().build_recorder();
        metrics::with_local_recorder(&recorder, describe);
        Self {
            handle: recorder.handle(),
            recorder,
        }
    }

    /// An answer was begun: the time is until its headers.
    pub(crate) fn request(&self, method: &str, route: &str, status: u16, took: Duration) {
        let (method, route) = (method.to_owned(), route.to_owned());
        metrics::with_local_recorder(&self.recorder, || {
            let labels = [
                ("method", method.clone()),
                ("route", route.clone()),
                ("status", status.to_string()),
            ];
            counter!(REQUESTS, &labels).increment(1);
            histogram!(REQUEST_TIME, "method" => method, "route" => route)
                .record(took.as_secs_f64());
        });
    }

    pub(crate) fn connection_opened(&self) {
        metrics::with_local_recorder(&self.recorder, || gauge!(CONNECTIONS).increment(1));
    }

    pub(crate) fn connection_ended(&self) {
        metrics::with_local_recorder(&self.recorder, || gauge!(CONNECTIONS).decrement(1));
    }

    /// A connection was closed by us, because it took too long or there was no room.
    pub(crate) fn connection_closed(&self, why: &'static str) {
        metrics::with_local_recorder(&self.recorder, || {
            counter!(CONNECTIONS_CLOSED, "why" => why).increment(1);
        });
    }

    pub(crate) fn turn_began(&self) {
        metrics::with_local_recorder(&self.recorder, || gauge!(TURNS_RUNNING).increment(1));
    }

    pub(crate) fn turn_left(&self) {
        metrics::with_local_recorder(&self.recorder, || gauge!(TURNS_RUNNING).decrement(1));
    }

    /// A turn ended, or waits for a human. Its tokens and calls count once, when it has ended:
    /// after an answer, the response holds those from before it too.
    pub(crate) fn turn_ended(&self, response: &AgentResponse) {
        metrics::with_local_recorder(&self.recorder, || {
            counter!(TURNS, "outcome" => response.outcome.as_str()).increment(1);
            if !response.decision.pending.is_empty() {
                return;
            }
            histogram!(TURN_TIME)
                .record(Duration::from_millis(response.timing.total_ms).as_secs_f64());
            let usage = &response.usage;
            for (kind, tokens) in [
                ("input", usage.input_tokens),
                ("output", usage.output_tokens),
                ("cached", usage.cached_tokens),
                ("thinking", usage.thinking_tokens),
            ] {
                counter!(TOKENS, "kind" => kind).increment(tokens.unwrap_or(0));
            }
            for call in &response.tools_used {
                let result = if succeeded(&call.result) {
                    "success"
                } else {
                    "failure"
                };
                counter!(TOOL_CALLS, "tool" => call.tool.clone(), "result" => result).increment(1);
            }
        });
    }

    /// A person rated an answer, or rated it the other way.
    pub(crate) fn rated(&self, rating: Rating) {
        metrics::with_local_recorder(&self.recorder, || {
            counter!(FEEDBACK, "rating" => rating.as_str()).increment(1);
        });
    }

    /// A call of the model ended. Its labels are the configured model, and one of a few codes.
    pub(crate) fn model_call(&self, call: &ModelCall<'_>) {
        metrics::with_local_recorder(&self.recorder, || {
            let model = [
                ("provider", call.model.provider.to_string()),
                ("model", call.model.name.clone()),
            ];
            let [provider, name] = model.clone();
            counter!(
                MODEL_CALLS,
                &[provider, name, ("result", call.result.to_owned())]
            )
            .increment(1);
            counter!(MODEL_RETRIES, &model).increment(call.attempts.saturating_sub(1).into());
            histogram!(MODEL_CALL_TIME, &model).record(call.took.as_secs_f64());
            if let Some(first) = call.first_piece {
                histogram!(FIRST_TOKEN, &model).record(first.as_secs_f64());
            }
            if let Some(cost) = call.cost {
                histogram!(MODEL_COST, &model).record(dollars(cost));
            }
            let usage = &call.usage;
            for (kind, tokens) in [
                ("input", usage.input_tokens),
                ("output", usage.output_tokens),
                ("cached", usage.cached_tokens),
                ("thinking", usage.thinking_tokens),
            ] {
                let [provider, name] = model.clone();
                let labels = [provider, name, ("kind", kind.to_owned())];
                counter!(MODEL_TOKENS, &labels).increment(tokens.unwrap_or(0));
            }
        });
    }

    /// Takes over what is left of what everybody may spend together today, as far as it is bounded.
    pub(crate) fn budget_left(&self, left: &Allowance) {
        metrics::with_local_recorder(&self.recorder, || {
            if let Some(tokens) = left.tokens {
                // Beyond 2^53 a number loses its last digits, which nobody reads.
                gauge!(BUDGET_LEFT_TOKENS).set(tokens as f64);
            }
            if let Some(cost) = left.cost {
                gauge!(BUDGET_LEFT_USD).set(dollars(cost));
            }
        });
    }

    /// Takes over how many callers wait for a turn in front of theirs.
    pub(crate) fn queued(&self, count: usize) {
        metrics::with_local_recorder(&self.recorder, || gauge!(TURNS_QUEUED).set(count as f64));
    }

    /// Takes over figures that somebody else has read.
    pub(crate) fn gauges(&self, gauges: Vec<Gauge>) {
        metrics::with_local_recorder(&self.recorder, || {
            for Gauge {
                name,
                help,
                labels,
                value,
            } in gauges
            {
                describe_gauge!(name, help);
                gauge!(name, &labels).set(value);
            }
        });
    }

    /// Takes over what came of asking whoever dispatches.
    pub(crate) fn dispatched(&self, figures: &DispatchFigures) {
        metrics::with_local_recorder(&self.recorder, || {
            for (result, count) in [
                ("taken", figures.taken),
                ("refused", figures.refused),
                ("late", figures.late),
                ("skipped", figures.skipped),
            ] {
                counter!(DISPATCHES, "result" => result).absolute(count);
            }
            gauge!(DISPATCH_LEFT_ALONE).set(f64::from(u8::from(figures.left_alone)));
            if let Some(registered) = figures.registered {
                gauge!(DISPATCH_REGISTERED).set(f64::from(u8::from(registered)));
            }
            for time in &figures.begun_after {
                histogram!(DISPATCH_TIME).record(time.as_secs_f64());
            }
        });
    }

    /// Puts what came since into the histograms, so that it does not pile up between two looks.
    pub(crate) fn keep_up(&self) {
        self.handle.run_upkeep();
    }

    /// As Prometheus reads it.
    pub(crate) fn render(&self) -> Response {
        let text = "text/plain; version=0.0.4; charset=utf-8";
        (
            [(CONTENT_TYPE, text)],
            self.handle.render() + &process::text(),
        )
            .into_response()
    }
}

fn dollars(cost: Cost) -> f64 {
    // Billionths: what is lost beyond 2^53 of them nobody reads.
    cost.nano_usd() as f64 / 1e9
}

fn succeeded(result: &ToolResult) -> bool {
    result.success
}

fn describe() {
    describe_counter!(
        REQUESTS,
        "HTTP requests answered, by method, route and status."
    );
    describe_histogram!(REQUEST_TIME, Unit::Seconds, "Time until an answer began.");
    describe_counter!(TURNS, "Turns that ended or wait for a human, by outcome.");
    describe_histogram!(
        TURN_TIME,
        Unit::Seconds,
        "Time a turn took, without waiting for humans."
    );
    describe_gauge!(TURNS_RUNNING, "Turns that clients have running right now.");
    describe_gauge!(
        TURNS_QUEUED,
        "Requests that wait for the end of a turn in the same conversation."
    );
    describe_counter!(
        MODEL_CALLS,
        "Calls of the model that ended, by result: success, stopped, or an error's code."
    );
    describe_counter!(MODEL_RETRIES, "Attempts of model calls beyond the first.");
    describe_counter!(
        MODEL_TOKENS,
        "Tokens of model calls, by kind; input includes cached, output thinking."
    );
    describe_histogram!(
        MODEL_CALL_TIME,
        Unit::Seconds,
        "Time a model call took, its repeats included."
    );
    describe_histogram!(
        FIRST_TOKEN,
        Unit::Seconds,
        "Time until the first piece of a model's answer came."
    );
    describe_histogram!(
        MODEL_COST,
        "Cost of a model call in US dollars, where it is known; the sum is what was spent."
    );
    describe_gauge!(
        BUDGET_LEFT_TOKENS,
        "Tokens left of what all users together may use today (UTC), if that is bounded."
    );
    describe_gauge!(
        BUDGET_LEFT_USD,
        "US dollars left of what all users together may spend today (UTC), if that is bounded."
    );
    describe_gauge!(BUILD_INFO, "Always 1; the labels say what runs.");
    describe_counter!(
        TOKENS,
        "Tokens of ended turns, by kind; input includes cached, output thinking."
    );
    describe_counter!(TOOL_CALLS, "Tool calls of ended turns, by tool and result.");
    describe_counter!(
        FEEDBACK,
        "Ratings that people gave to answers, or changed, by rating: up or down."
    );
    describe_gauge!(CONNECTIONS, "Connections that are open.");
    describe_counter!(
        CONNECTIONS_CLOSED,
        "Connections that were closed for taking too long, or for want of room, by reason."
    );
    describe_counter!(
        DISPATCHES,
        "Turns that somebody else was asked to go on with, by what came of it."
    );
    describe_histogram!(
        DISPATCH_TIME,
        Unit::Seconds,
        "Time from accepting a message to the beginning of its turn."
    );
    describe_gauge!(
        DISPATCH_LEFT_ALONE,
        "Whether nobody else is asked at the moment (1), because that failed."
    );
    describe_gauge!(
        DISPATCH_REGISTERED,
        "Whether turns are dispatched to this process (1), when last looked."
    );
    gauge!(TURNS_RUNNING).set(0);
    gauge!(CONNECTIONS).set(0);
    gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1);
}
