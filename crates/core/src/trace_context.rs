//! W3C Trace Context: the distributed trace that a request belongs to.

use std::fmt;

/// Maximum number of members of a `tracestate`. Source: W3C Trace Context, 3.3.1 (Recommendation of
/// 2021-11-23).
const STATE_MEMBERS_MAX: usize = 32;
/// Maximum length of a forwarded `tracestate`, in bytes: the length that every implementation has
/// to accept.
const STATE_BYTES_MAX: usize = 512;
/// Length of a `traceparent` of version 00, in bytes.
const PARENT_BYTES: usize = 55;
/// Flags of version 00: sampled, and random trace id.
const FLAGS: u8 = 0b11;
/// Flag: the caller may have recorded the trace.
const SAMPLED: u8 = 0b01;

/// A position in a distributed trace: the trace and the parent operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    parent: u64,
    flags: u8,
    state: Option<String>,
}

impl TraceContext {
    /// Starts a trace that participants may record. Returns `None` if one of the ids is zero, which
    /// is invalid.
    #[must_use]
    pub fn new(trace: u128, parent: u64) -> Option<Self> {
        (trace != 0 && parent != 0).then_some(Self {
            trace,
            parent,
            flags: SAMPLED,
            state: None,
        })
    }

    /// Parses the headers `traceparent` and `tracestate`. Several `tracestate` headers have to be
    /// joined by commas. A `tracestate` that is invalid or longer than 512 bytes is dropped.
    /// Returns `None` if the `traceparent` is invalid.
    #[must_use]
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let parent = parent.trim_matches([' ', '\t']);
        let mut fields = parent.split('-');
        let version = u8::try_from(hex(fields.next()?, 2)?).ok()?;
        let trace = hex(fields.next()?, 32)?;
        let span = u64::try_from(hex(fields.next()?, 16)?).ok()?;
        // Flags that version 00 does not know must not be sent on.
        let flags = u8::try_from(hex(fields.next()?, 2)?).ok()? & FLAGS;
        // Later versions may append fields after the flags.
        let known = version != 0xff && (version > 0 || parent.len() == PARENT_BYTES);
        let context = Self::new(trace, span).filter(|_| known)?;
        Some(Self {
            flags,
            state: state.and_then(valid_state),
            ..context
        })
    }

    /// Returns the context for the next operation, with the id `span`. An id of zero changes
    /// nothing.
    #[must_use]
    pub fn child(&self, span: u64) -> Self {
        if span == 0 {
            self.clone()
        } else {
            Self {
                parent: span,
                ..self.clone()
            }
        }
    }

    /// Returns the trace id as 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// Returns the value of the header `traceparent`.
    #[must_use]
    pub fn traceparent(&self) -> String {
        self.to_string()
    }

    /// Returns the value of the header `tracestate`, if it is not empty.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl fmt::Display for TraceContext {
    /// Writes the value of the header `traceparent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace, self.parent, self.flags
        )
    }
}

/// Parses exactly `count` hexadecimal digits in lower case.
fn hex(digits: &str, count: usize) -> Option<u128> {
    // `from_str_radix` takes capitals and a sign, which the specification does not.
    let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    let fits = digits.len() == count && digits.bytes().all(is_hex);
    fits.then(|| u128::from_str_radix(digits, 16).ok())
        .flatten()
}

fn valid_state(state: &str) -> Option<String> {
    let members = state
        .split(',')
        // Empty members are allowed, and count for nothing.
        .map(|member| member.trim_matches([' ', '\t']));
    let members: Vec<&str> = members.filter(|member| !member.is_empty()).collect();
    let state = members.join(",");
    let fits = (1..=STATE_MEMBERS_MAX).contains(&members.len()) && state.len() <= STATE_BYTES_MAX;
    (fits && members.iter().all(|member| is_member(member))).then_some(state)
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else {
        return false;
    };
    let in_key = |byte: u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@')
    };
    let in_value = |byte: u8| (0x20..=0x7e).contains(&byte) && byte != b'=';
    !key.is_empty() && key.bytes().all(in_key) && !value.is_empty() && value.bytes().all(in_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(parent: &str) -> Option<String> {
        TraceContext::parse(parent, None).map(|trace| trace.traceparent())
    }

    #[test]
    fn a_trace_is_handed_on_as_it_came_with_another_parent() {
        let trace = TraceContext::parse(PARENT, Some("a=1, b@v=x y,,")).unwrap();
        assert_eq!(
            (trace.traceparent().as_str(), trace.tracestate()),
            (PARENT, Some("a=1,b@v=x y"))
        );
        assert_eq!(trace.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let next = trace.child(0xbeef);
        assert_eq!(
            next.traceparent(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-000000000000beef-01"
        );
        assert_eq!(
            (next.tracestate(), trace.child(0)),
            (Some("a=1,b@v=x y"), trace.clone())
        );
        assert_eq!(
            TraceContext::new(1, 2).unwrap().to_string().len(),
            PARENT_BYTES
        );
        assert_eq!(
            (TraceContext::new(0, 2), TraceContext::new(1, 0)),
            (None, None)
        );
    }

    #[test]
    fn what_is_no_traceparent_is_none() {
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b-01",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
        // A later version may say more, and has flags that are not known.
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-what-comes";
        assert_eq!(
            read(later).as_deref(),
            Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03")
        );
        assert_eq!(read(&format!(" {PARENT}\t")).as_deref(), Some(PARENT));
    }

    #[test]
    fn a_state_that_is_none_is_left_out() {
        let many = (0..33)
            .map(|number| format!("k{number}=v"))
            .collect::<Vec<_>>()
            .join(",");
        let long = format!("a={}", "x".repeat(STATE_BYTES_MAX));
        for bad in [
            "", " , ", "a", "=1", "a=", "A=1", "a=b=c", "a=\u{7f}", "a=é", &many, &long,
        ] {
            let trace = TraceContext::parse(PARENT, Some(bad)).unwrap();
            assert_eq!(trace.tracestate(), None, "{bad}");
        }
    }
}
