//! The trace that a request belongs to (W3C Trace Context): the client's, or one that begins here.

use std::convert::Infallible;

use adjutant_core::TraceContext;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use uuid::Uuid;

/// The trace, as models and MCP servers get it handed on. `None`: nobody gets it
/// (`trace_propagation`).
pub(crate) struct Trace(pub(crate) Option<TraceContext>);

impl<S: Sync> FromRequestParts<S> for Trace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get().cloned()))
    }
}

/// Reads the trace of a request. Without one, or with one that cannot be understood, a trace
/// begins.
pub(crate) fn of(headers: &HeaderMap) -> Option<TraceContext> {
    given(headers).or_else(|| {
        let (trace, parent) = (Uuid::now_v7(), Uuid::now_v7());
        TraceContext::new(trace.as_u128(), parent.as_u64_pair().1)
    })
}

fn given(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else {
        return None;
    };
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

    fn read(parents: &[&'static str], states: &[&'static str]) -> TraceContext {
        let mut headers = HeaderMap::new();
        for parent in parents {
            headers.append("traceparent", HeaderValue::from_static(parent));
        }
        for state in states {
            headers.append("tracestate", HeaderValue::from_static(state));
        }
        of(&headers).unwrap()
    }

    #[test]
    fn a_clients_trace_goes_on() {
        let trace = read(&[PARENT], &["a=1", "b=2"]);
        assert_eq!(
            (trace.traceparent().as_str(), trace.tracestate()),
            (PARENT, Some("a=1,b=2"))
        );
    }

    #[test]
    fn without_one_trace_one_begins() {
        for parents in [&[][..], &["nonsense"], &[PARENT, PARENT]] {
            let begun = read(parents, &["a=1"]);
            assert!(
                !PARENT.contains(&begun.trace_id()) && begun.tracestate().is_none(),
                "{begun}"
            );
        }
        assert_ne!(read(&[], &[]).trace_id(), read(&[], &[]).trace_id());
    }
}
