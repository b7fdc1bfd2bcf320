//! Prometheus metrics of the service. No label names a user.

use std::time::Duration;

use adjutant_core::{AgentResponse, Allowance, Cost, Rating, Usage};
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

/// Callers that may read `/metrics`, which counts the requests of all users together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAccess {
    /// Operators, and tokens of the role `metrics`.
    Operator,
    /// Every caller who may use any other route.
    Users,
    /// No caller: the route does not exist.
    Off,
}

/// Histogram bucket bounds in seconds, from a database look-up to a thinking model.
const SECONDS: [f64; 12] = [
    0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0,
];

/// Histogram bucket bounds in US dollars, from a short prompt to a cheap model to a long one to an
/// expensive model.
const DOLLARS: [f64; 9] = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];

/// A metric of another part of the program that is read at each scrape, such as the connections of
/// a database pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// Name of the metric, with its unit at the end.
    pub name: &'static str,
    /// Description for the `# HELP` line, a sentence.
    pub help: &'static str,
    /// Names and values of labels. Values must come from the configuration, never from clients:
    /// each combination is a time series.
    pub labels: Vec<(&'static str, String)>,
    /// Present value, in the unit that the name ends with.
    pub value: f64,
}

/// The metrics of one service. Uses a recorder of its own, because the program that embeds the
/// service may have a global one.
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
        // Without buckets the exporter makes summaries, whose quantiles cannot be added up over
        // replicas.
        let buckets = times
            .map(|name| (name, &SECONDS[..]))
            .into_iter()
            .chain([(MODEL_COST, &DOLLARS[..])]);
        let recorder = buckets
            .into_iter()
            .try_fold(builder, |builder, (name, bounds)| {
                builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds)
            });
        // Setting buckets fails only for an empty list.
        let recorder = recorder.unwrap_or_default().build_recorder();
        metrics::with_local_recorder(&recorder, describe);
        Self {
            handle: recorder.handle(),
            recorder,
        }
    }

    /// Records a response. `took` is the time until its headers were ready.
    pub(crate) fn record_request(&self, method: &str, route: &str, status: u16, took: Duration) {
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

    /// Counts a connection that the service closed or refused, because of a timeout or a limit.
    pub(crate) fn connection_closed(&self, why: &'static str) {
        metrics::with_local_recorder(&self.recorder, || {
            counter!(CONNECTIONS_CLOSED, "why" => why).increment(1);
        });
    }

    pub(crate) fn turn_started(&self) {
        metrics::with_local_recorder(&self.recorder, || gauge!(TURNS_RUNNING).increment(1));
    }

    pub(crate) fn turn_stopped(&self) {
        metrics::with_local_recorder(&self.recorder, || gauge!(TURNS_RUNNING).decrement(1));
    }

    /// Records a turn that ended or waits for the user. Tokens and tool calls are counted once,
    /// when the turn has ended: its response holds those from before a confirmation too.
    pub(crate) fn record_turn(&self, response: &AgentResponse) {
        metrics::with_local_recorder(&self.recorder, || {
            counter!(TURNS, "outcome" => response.outcome.as_str()).increment(1);
            if !response.decision.pending.is_empty() {
                return;
            }
            histogram!(TURN_TIME)
                .record(Duration::from_millis(response.timing.total_ms).as_secs_f64());
            for (kind, tokens) in tokens_by_kind(&response.usage) {
                counter!(TOKENS, "kind" => kind).increment(tokens);
            }
            for call in &response.tools_used {
                let result = if call.result.success {
                    "success"
                } else {
                    "failure"
                };
                counter!(TOOL_CALLS, "tool" => call.tool.clone(), "result" => result).increment(1);
            }
        });
    }

    /// Counts a new or changed rating of an answer.
    pub(crate) fn record_rating(&self, rating: Rating) {
        metrics::with_local_recorder(&self.recorder, || {
            counter!(FEEDBACK, "rating" => rating.as_str()).increment(1);
        });
    }

    /// Records a model call. The labels are the configured model and one of a few result codes.
    pub(crate) fn record_model_call(&self, call: &ModelCall<'_>) {
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
            for (kind, tokens) in tokens_by_kind(&call.usage) {
                let [provider, name] = model.clone();
                let labels = [provider, name, ("kind", kind.to_owned())];
                counter!(MODEL_TOKENS, &labels).increment(tokens);
            }
        });
    }

    /// Sets what is left of today's budgets of all users together, as far as they are limited.
    pub(crate) fn set_budget_left(&self, left: &Allowance) {
        metrics::with_local_recorder(&self.recorder, || {
            if let Some(tokens) = left.tokens {
                // Above 2^53 the last digits are lost, which does not matter for a gauge.
                gauge!(BUDGET_LEFT_TOKENS).set(tokens as f64);
            }
            if let Some(cost) = left.cost {
                gauge!(BUDGET_LEFT_USD).set(dollars(cost));
            }
        });
    }

    /// Sets the number of requests that wait for an earlier turn of their conversation.
    pub(crate) fn set_queued(&self, count: usize) {
        metrics::with_local_recorder(&self.recorder, || gauge!(TURNS_QUEUED).set(count as f64));
    }

    /// Sets the metrics of other parts of the program.
    pub(crate) fn set_gauges(&self, gauges: Vec<Gauge>) {
        metrics::with_local_recorder(&self.recorder, || {
            for other in gauges {
                // Described at each scrape, because only the caller knows these names.
                describe_gauge!(other.name, other.help);
                gauge!(other.name, &other.labels).set(other.value);
            }
        });
    }

    /// Records the counts and times of dispatched turns.
    pub(crate) fn record_dispatches(&self, figures: &DispatchFigures) {
        metrics::with_local_recorder(&self.recorder, || {
            for (result, count) in [
                ("taken", figures.taken),
                ("refused", figures.refused),
                ("late", figures.late),
                ("skipped", figures.skipped),
            ] {
                // The runtime counts since its start, so the counter is set and not increased.
                counter!(DISPATCHES, "result" => result).absolute(count);
            }
            gauge!(DISPATCH_LEFT_ALONE).set(f64::from(u8::from(figures.suspended)));
            if let Some(registered) = figures.registered {
                gauge!(DISPATCH_REGISTERED).set(f64::from(u8::from(registered)));
            }
            for time in &figures.start_delays {
                histogram!(DISPATCH_TIME).record(time.as_secs_f64());
            }
        });
    }

    /// Moves recorded samples into the histograms.
    pub(crate) fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// Returns all metrics in Prometheus' text format.
    pub(crate) fn render(&self) -> Response {
        let text = "text/plain; version=0.0.4; charset=utf-8";
        (
            [(CONTENT_TYPE, text)],
            self.handle.render() + &process::render(),
        )
            .into_response()
    }
}

fn dollars(cost: Cost) -> f64 {
    // A cost is in billionths of a dollar; above 2^53 of them the last digits are lost.
    cost.nano_usd() as f64 / 1e9
}

/// Returns the token counts by their label; unknown ones count as zero.
fn tokens_by_kind(usage: &Usage) -> [(&'static str, u64); 4] {
    [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cached", usage.cached_tokens),
        ("thinking", usage.thinking_tokens),
    ]
    .map(|(kind, tokens)| (kind, tokens.unwrap_or(0)))
}

fn describe() {
    describe_counter!(
        REQUESTS,
        "HTTP requests answered, by method, route and status."
    );
    describe_histogram!(
        REQUEST_TIME,
        Unit::Seconds,
        "Time until a response started."
    );
    describe_counter!(TURNS, "Turns that ended or wait for the user, by outcome.");
    describe_histogram!(
        TURN_TIME,
        Unit::Seconds,
        "Duration of a turn, without the time that it waited for the user."
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
        "Duration of a model call with its retries."
    );
    describe_histogram!(
        FIRST_TOKEN,
        Unit::Seconds,
        "Time until the first part of a model's answer."
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
    describe_gauge!(BUILD_INFO, "Always 1; the labels have the version.");
    describe_counter!(
        TOKENS,
        "Tokens of ended turns, by kind; input includes cached, output thinking."
    );
    describe_counter!(TOOL_CALLS, "Tool calls of ended turns, by tool and result.");
    describe_counter!(
        FEEDBACK,
        "New and changed ratings of answers, by rating: up or down."
    );
    describe_gauge!(CONNECTIONS, "Connections that are open.");
    describe_counter!(
        CONNECTIONS_CLOSED,
        "Connections that were closed because of a timeout or a limit, by reason."
    );
    describe_counter!(DISPATCHES, "Dispatched turns, by result.");
    describe_histogram!(
        DISPATCH_TIME,
        Unit::Seconds,
        "Time from accepting a message to the start of its turn."
    );
    describe_gauge!(
        DISPATCH_LEFT_ALONE,
        "1 while turns are not dispatched, because dispatching failed."
    );
    describe_gauge!(
        DISPATCH_REGISTERED,
        "1 if this process was registered for dispatched turns at the last check."
    );
    // So that they exist before the first turn and connection.
    gauge!(TURNS_RUNNING).set(0);
    gauge!(CONNECTIONS).set(0);
    gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1);
}
