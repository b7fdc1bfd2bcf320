//! The trace context of a request (W3C Trace Context), received or newly created.

use std::convert::Infallible;

use adjutant_core::TraceContext;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use uuid::Uuid;

/// Extractor for the trace context that is passed on to models and MCP servers. `None` if
/// `trace_propagation` is off.
pub(crate) struct Trace(pub(crate) Option<TraceContext>);

impl<S: Sync> FromRequestParts<S> for Trace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // The middleware has put it there, unless traces are not passed on.
        Ok(Self(parts.extensions.get().cloned()))
    }
}

/// Parses the trace context in the headers. Without a valid one, creates a new trace.
pub(crate) fn from_headers(headers: &HeaderMap) -> Option<TraceContext> {
    parse(headers).or_else(|| {
        let (trace, parent) = (Uuid::now_v7(), Uuid::now_v7());
        TraceContext::new(trace.as_u128(), parent.as_u64_pair().1)
    })
}

fn parse(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    // Several headers are ambiguous, so they are treated as none.
    let (Some(parent), None) = (parents.next(), parents.next()) else {
        return None;
    };
    // Several `tracestate` headers are one list (W3C Trace Context).
    let states = headers
        .get_all("tracestate")
        .iter()
        .map(|state| state.to_str().ok());
    let state = states
        .collect::<Option<Vec<_>>>()
        .map(|states| states.join(","));
    TraceContext::parse(parent.to_str().ok()?, state.as_deref())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

    fn parse_trace(parents: &[&'static str], states: &[&'static str]) -> TraceContext {
        let mut headers = HeaderMap::new();
        for parent in parents {
            headers.append("traceparent", HeaderValue::from_static(parent));
        }
        for state in states {
            headers.append("tracestate", HeaderValue::from_static(state));
        }
        from_headers(&headers).unwrap()
    }

    #[test]
    fn a_clients_trace_goes_on() {
        let trace = parse_trace(&[PARENT], &["a=1", "b=2"]);
        assert_eq!(
            (trace.traceparent().as_str(), trace.tracestate()),
            (PARENT, Some("a=1,b=2"))
        );
    }

    #[test]
    fn without_one_valid_trace_a_new_one_starts() {
        for parents in [&[][..], &["nonsense"], &[PARENT, PARENT]] {
            let started = parse_trace(parents, &["a=1"]);
            assert!(
                !PARENT.contains(&started.trace_id()) && started.tracestate().is_none(),
                "{started}"
            );
        }
        assert_ne!(
            parse_trace(&[], &[]).trace_id(),
            parse_trace(&[], &[]).trace_id()
        );
    }
}
