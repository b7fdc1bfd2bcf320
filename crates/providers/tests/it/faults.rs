//! Faults that any vendor may cause, in the vendor's own form, as bytes over a socket. Blocking and
//! streaming requests have the same outcome.
//!
//! A vendor's file beside this one has a [`Faults`] table and a test that runs [`all`]; what only
//! this vendor can do wrong it checks itself with [`check`] and [`ask`].

use std::error::Error;
use std::io;
use std::time::Duration;

use adjutant_core::{Delta, GenerateRequest, GenerateResponse, LanguageModel, Message, ModelError};
use adjutant_providers::{Connection, HttpModel, Provider, Transport};
use futures::StreamExt;
use futures::future::join_all;

use crate::cassette::Framing;
use crate::server::{Answer, Server};

thread_local! {
    /// One for each test: reading all certificates of the machine takes its time.
    static TRANSPORT: Transport = Transport::new().unwrap();
}

const KEY: &str = "key-that-nobody-may-see";

/// A vendor's form of requests and answers.
pub(crate) struct Faults {
    /// The provider that reads them.
    pub(crate) provider: &'static str,
    /// The model to ask.
    pub(crate) model: &'static str,
    /// The framing of a vendor's streams.
    pub(crate) framing: Framing,
    /// A whole answer that says `Fine.`
    pub(crate) whole: &'static str,
    /// The same streamed, an event each.
    pub(crate) events: &'static [&'static str],
    /// The number of events that may arrive before an answer is complete; some text is among them.
    pub(crate) begun: usize,
    /// The event that marks the end, if it is not among the others; may be empty.
    pub(crate) end: &'static str,
    /// The header that carries the key, its beginning included: `authorization: Bearer `.
    pub(crate) key_header: &'static str,
    /// The paths of a request for a whole answer, and of one for a stream.
    pub(crate) paths: [&'static str; 2],
    /// The body of a failure with this status and these words.
    pub(crate) body: fn(status: u16, words: &str) -> String,
}

/// The ways to request an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A request passed on as it is, whose answer comes as a whole.
    Blocking,
    /// As a whole, which is read from a stream.
    Drained,
    Streaming,
}

const MODES: [Mode; 3] = [Mode::Blocking, Mode::Drained, Mode::Streaming];

/// The outcome that the adapter's caller saw.
pub(crate) struct Seen {
    pub(crate) deltas: Vec<String>,
    pub(crate) end: Result<GenerateResponse, ModelError>,
    /// The number of requests that the vendor received.
    pub(crate) asked: usize,
}

impl Seen {
    /// All of it as one line.
    pub(crate) fn line(&self) -> String {
        let end = match &self.end {
            Ok(response) => {
                let calls = response.tool_calls().map(|call| match &call.malformed {
                    None => format!(" {}({})", call.name, serde_json::json!(call.arguments)),
                    Some(malformed) => format!(" {}(malformed: {})", call.name, malformed.reason),
                });
                format!(
                    "{:?} {:?}{}",
                    response.finish,
                    response.text(),
                    calls.collect::<String>()
                )
            }
            Err(error) => format!("{}: {error}", error.code()),
        };
        format!("asked {}: {end}", self.asked)
    }
}

impl Faults {
    /// An answer that says `Fine.`
    pub(crate) fn fine(&self, mode: Mode) -> Answer {
        match mode {
            Mode::Blocking => Answer::new(200, self.whole),
            Mode::Drained | Mode::Streaming => Answer::events(self.framing, self.events),
        }
    }

    /// The beginning of a stream.
    fn begun(&self) -> Answer {
        Answer::events(self.framing, &self.events[..self.begun])
    }

    fn failure(&self, status: u16, words: &str) -> Answer {
        Answer::new(status, (self.body)(status, words))
    }

    fn open(&self, server: &Server, adjust: impl FnOnce(&mut Connection)) -> HttpModel {
        let connection =
            Connection::new(TRANSPORT.with(Clone::clone)).with_key(KEY.to_owned().into());
        let mut connection = Connection {
            base_url: Some(server.url.clone()),
            ..connection
        };
        adjust(&mut connection);
        Provider::find(self.provider)
            .unwrap()
            .model(self.model, connection)
            .unwrap()
    }
}

fn question(mode: Mode) -> GenerateRequest {
    let mut question = GenerateRequest::new(vec![Message::user("How are you?").unwrap()]);
    question.config.verbatim = mode == Mode::Blocking;
    question
}

/// Asks once, the way a caller does, a vendor that gives these answers one after the other.
pub(crate) async fn ask(
    vendor: &Faults,
    mode: Mode,
    answers: Vec<Answer>,
    time_left: Option<Duration>,
    adjust: impl FnOnce(&mut Connection),
) -> Seen {
    let server = Server::start(answers).await;
    let model = vendor.open(&server, adjust);
    let request = GenerateRequest {
        time_left,
        ..question(mode)
    };
    let (deltas, end) = match mode {
        Mode::Blocking | Mode::Drained => (Vec::new(), model.generate(&request).await),
        Mode::Streaming => drained(&model, &request).await,
    };
    for text in [
        format!("{end:?}"),
        end.as_ref()
            .err()
            .map(ToString::to_string)
            .unwrap_or_default(),
    ] {
        assert!(!text.contains(KEY), "{text}");
    }
    Seen {
        deltas,
        end,
        asked: server.received().len(),
    }
}

async fn drained(
    model: &HttpModel,
    request: &GenerateRequest,
) -> (Vec<String>, Result<GenerateResponse, ModelError>) {
    let mut stream = match model.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut deltas = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(Delta::Finished(response)) => return (deltas, Ok(response)),
            Ok(Delta::Retrying { attempt, .. }) => deltas.push(format!("retrying after {attempt}")),
            Ok(delta) => deltas.push(format!("{delta:?}")),
            Err(error) => return (deltas, Err(error)),
        }
    }
    panic!("a stream ends with Finished or an error");
}

/// The same answers in both modes come out as this line.
pub(crate) async fn check(vendor: &Faults, answers: impl Fn(Mode) -> Vec<Answer>, expected: &str) {
    join_all(MODES.map(|mode| {
        let answers = answers(mode);
        async move {
            let line = ask(vendor, mode, answers, None, |_| {}).await.line();
            assert_eq!(line, expected, "{} {mode:?}", vendor.provider);
        }
    }))
    .await;
}

/// The same answers in both modes come out as this code after so many attempts, with these words in
/// it.
async fn check_failure(
    vendor: &Faults,
    answers: impl Fn(Mode) -> Vec<Answer>,
    (asked, code, words): (usize, &str, &str),
) {
    for mode in MODES {
        let seen = ask(vendor, mode, answers(mode), None, |_| {}).await;
        let line = seen.line();
        let error = seen
            .end
            .err()
            .unwrap_or_else(|| panic!("{} {mode:?}: {line}", vendor.provider));
        assert_eq!(
            (seen.asked, error.code()),
            (asked, code),
            "{} {mode:?}: {line}",
            vendor.provider
        );
        assert!(line.contains(words), "{} {mode:?}: {line}", vendor.provider);
    }
}

/// Everything a vendor may do that is the same with every vendor.
pub(crate) async fn all(vendor: &Faults) {
    // Side by side: each waits for pauses between attempts.
    tokio::join!(
        what_passes_is_asked_again(vendor),
        an_overload_is_waited_for_in_the_callers_time(vendor),
        retries_are_counted_and_announced(vendor),
        a_rate_limit_is_waited_for_or_returned(vendor),
        what_waiting_cannot_help_is_not_asked_again(vendor),
        the_vendor_has_the_last_word_on_asking_again(vendor),
        redirects_do_not_get_the_key(vendor),
        silence_is_a_timeout(vendor),
        an_answer_that_breaks_off_is_never_a_success(vendor),
        a_complete_answer_is_kept_if_the_connection_stays_open(vendor),
        what_is_no_answer_is_no_success(vendor),
        nobody_there(vendor),
        the_key_travels_in_a_header_only(vendor),
        a_key_that_is_repeated_is_not_shown(vendor),
    );
}

/// Some servers repeat the key that they refuse; [`ask`] looks for it in every error.
async fn a_key_that_is_repeated_is_not_shown(vendor: &Faults) {
    let words = format!("Incorrect API key provided: {KEY}. Or was it ({KEY})?");
    for mode in MODES {
        let seen = ask(
            vendor,
            mode,
            vec![vendor.failure(401, &words)],
            None,
            |_| {},
        )
        .await;
        assert!(
            seen.line().contains("provided: [key]. Or was it ([key])?"),
            "{}",
            seen.line()
        );
    }
}

const FINE: &str = r#"asked 1: Stop "Fine.""#;
const FINE_AGAIN: &str = r#"asked 2: Stop "Fine.""#;

async fn what_passes_is_asked_again(vendor: &Faults) {
    check(vendor, |mode| vec![vendor.fine(mode)], FINE).await;
    check(vendor, |mode| vec![vendor.fine(mode).cut(1)], FINE).await;
    let failures = [408, 409, 425, 500, 502, 503, 529].map(|status| async move {
        check(
            vendor,
            |mode| vec![Answer::new(status, "{}"), vendor.fine(mode)],
            FINE_AGAIN,
        )
        .await;
    });
    tokio::join!(
        join_all(failures),
        check(
            vendor,
            |mode| vec![Answer::reset(), vendor.fine(mode)],
            FINE_AGAIN
        ),
        check(
            vendor,
            |mode| vec![Answer::new(200, "").then_break(), vendor.fine(mode)],
            FINE_AGAIN
        ),
    );
}

async fn an_overload_is_waited_for_in_the_callers_time(vendor: &Faults) {
    // One attempt more than the retries allow.
    let answers = |mode| {
        let busy = || vendor.failure(503, "The model is overloaded.");
        vec![busy(), busy(), vendor.fine(mode)]
    };
    for (time, expected) in [
        (Some(Duration::from_secs(60)), r#"asked 3: Stop "Fine.""#),
        (None, "asked 2: server"),
    ] {
        join_all(MODES.map(|mode| async move {
            let line = ask(vendor, mode, answers(mode), time, |_| {}).await.line();
            assert!(
                line.starts_with(expected),
                "{} {mode:?}: {line}",
                vendor.provider
            );
        }))
        .await;
    }
}

async fn retries_are_counted_and_announced(vendor: &Faults) {
    let answers = vec![Answer::new(503, "{}"), vendor.fine(Mode::Streaming)];
    let seen = ask(vendor, Mode::Streaming, answers, None, |_| {}).await;
    assert_eq!(
        seen.deltas.first().map(String::as_str),
        Some("retrying after 1"),
        "{}",
        vendor.provider
    );
    let failing = |_| vec![vendor.failure(500, "Oops.").header("X-Request-Id", "req_1"); 4];
    check_failure(
        vendor,
        failing,
        (2, "server", "(HTTP 500): Oops. (request req_1)"),
    )
    .await;
    for mode in MODES {
        let seen = ask(vendor, mode, failing(mode), None, |connection| {
            connection.retries = 0
        })
        .await;
        assert_eq!(seen.asked, 1, "{}", vendor.provider);
    }
}

async fn a_rate_limit_is_waited_for_or_returned(vendor: &Faults) {
    let limited =
        |header: &'static str, wait: &str| vendor.failure(429, "Slow down.").header(header, wait);
    check(
        vendor,
        |mode| vec![limited("Retry-After", "0"), vendor.fine(mode)],
        FINE_AGAIN,
    )
    .await;
    check(
        vendor,
        |mode| vec![limited("Retry-After-Ms", "1"), vendor.fine(mode)],
        FINE_AGAIN,
    )
    .await;
    let hour = |mode| vec![limited("Retry-After", "3600"), vendor.fine(mode)];
    check_failure(vendor, hour, (1, "rate_limit", "asks to wait 3600 s")).await;
    let dated = |mode| {
        let date = limited("Retry-After", "Wed, 21 Oct 2026 08:28:00 GMT");
        vec![
            date.header("Date", "Wed, 21 Oct 2026 07:28:00 GMT"),
            vendor.fine(mode),
        ]
    };
    check_failure(vendor, dated, (1, "rate_limit", "asks to wait 3600 s")).await;
    for mode in MODES {
        let answers = vec![limited("Retry-After", "20"), vendor.fine(mode)];
        let seen = ask(vendor, mode, answers, Some(Duration::from_secs(10)), |_| {}).await;
        assert_eq!(
            (seen.asked, seen.end.unwrap_err().retry_after()),
            (1, Some(Duration::from_secs(20)))
        );
    }
}

async fn what_waiting_cannot_help_is_not_asked_again(vendor: &Faults) {
    for (status, code) in [
        (400, "bad_request"),
        (401, "auth"),
        (402, "bad_request"),
        (403, "auth"),
        (404, "not_found"),
        (413, "bad_request"),
        (422, "bad_request"),
    ] {
        let refused = |mode| vec![vendor.failure(status, "These words."), vendor.fine(mode)];
        check_failure(vendor, refused, (1, code, "These words.")).await;
        // A proxy in between says nothing the vendor would. If it forbids the request, the key is not
        // the reason.
        let (code, words) = match status {
            403 => ("not_permitted", "HTTP 403 with a web page".to_owned()),
            _ => (code, format!("HTTP {status} without an explanation")),
        };
        let page = |mode| {
            vec![
                Answer::new(status, "<html>Not here</html>"),
                vendor.fine(mode),
            ]
        };
        check_failure(vendor, page, (1, code, &words)).await;
    }
}

async fn the_vendor_has_the_last_word_on_asking_again(vendor: &Faults) {
    let told = |status: u16, again: &str| {
        vendor
            .failure(status, "These words.")
            .header("X-Should-Retry", again)
    };
    check(
        vendor,
        |mode| vec![told(400, "true"), vendor.fine(mode)],
        FINE_AGAIN,
    )
    .await;
    for (status, code) in [(503, "server"), (409, "server"), (429, "rate_limit")] {
        let refused = |mode| vec![told(status, "false"), vendor.fine(mode)];
        check_failure(vendor, refused, (1, code, "")).await;
    }
}

async fn redirects_do_not_get_the_key(vendor: &Faults) {
    let elsewhere = Server::start(vec![Answer::new(200, vendor.whole)]).await;
    let address = elsewhere.url.to_string();
    let redirected = |mode| {
        vec![
            Answer::new(307, "").header("Location", address.clone()),
            vendor.fine(mode),
        ]
    };
    check_failure(
        vendor,
        redirected,
        (1, "bad_request", "redirects elsewhere"),
    )
    .await;
    assert_eq!(elsewhere.received().len(), 0);
}

async fn silence_is_a_timeout(vendor: &Faults) {
    // A machine may be too busy to ask, or to hear the beginning, in 100 ms: then it has more time,
    // until it was asked.
    for ms in [100, 1000, 10_000, 60_000] {
        if silence_of(vendor, Duration::from_millis(ms)).await {
            return;
        }
    }
    panic!(
        "{}: nothing was asked or said in a minute, or it was asked again",
        vendor.provider
    );
}

/// Checks that silence for so long is a timeout. Whether the server was asked and the beginning of
/// its answer was heard.
async fn silence_of(vendor: &Faults, timeouts: Duration) -> bool {
    let impatient = |connection: &mut Connection| {
        connection.timeout = Some(timeouts);
        connection.retries = 0;
    };
    let soon = Some(timeouts);
    for mode in MODES {
        let silent = || vec![Answer::new(200, "").then_stall(), vendor.fine(mode)];
        // Also with an attempt left: it began, and what it did may be paid for.
        let seen = ask(vendor, mode, silent(), None, |connection| {
            connection.timeout = Some(timeouts)
        })
        .await;
        let (who, seconds) = (vendor.provider, timeouts.as_secs_f64());
        // What is at such an address is a server of one's own, but for Gemini's language.
        let expected = match who {
            "gemini" | "vertex" => format!(
                "asked 1: timeout: {who} began to answer and then said nothing for {seconds} s; it was not asked again, because what it did may be charged"
            ),
            _ => format!("asked 1: timeout: {who} said nothing for {seconds} s"),
        };
        if seen.line() != expected && seen.line().contains(": timeout: ") {
            // Not even the status arrived in time.
            return false;
        }
        assert_eq!(seen.line(), expected);
        let mute = vec![Answer::mute(), vendor.fine(mode)];
        let seen = ask(vendor, mode, mute, None, impatient).await;
        assert_eq!(
            seen.end.unwrap_err().to_string(),
            format!(
                "{} said nothing for {} s",
                vendor.provider,
                timeouts.as_secs_f64()
            )
        );
        // The caller's time bounds everything, retries included.
        let seen = ask(vendor, mode, silent(), soon, |_| {}).await;
        if seen.asked != 1 {
            // The status did not arrive in the share of the time that one of two attempts has.
            return false;
        }
        assert_eq!(seen.end.unwrap_err().code(), "timeout");
    }
    let stalled = || vec![vendor.begun().then_stall()];
    let seen = ask(vendor, Mode::Streaming, stalled(), None, impatient).await;
    assert_eq!(seen.end.unwrap_err().code(), "timeout");
    let heard = !seen.deltas.is_empty();
    let seen = ask(vendor, Mode::Streaming, stalled(), soon, |_| {}).await;
    assert_eq!(seen.end.unwrap_err().code(), "timeout");
    heard
}

async fn an_answer_that_breaks_off_is_never_a_success(vendor: &Faults) {
    let never_again = |connection: &mut Connection| connection.retries = 0;
    for events in 0..=vendor.begun {
        let begun = vec![Answer::events(vendor.framing, &vendor.events[..events])];
        let seen = ask(vendor, Mode::Streaming, begun, None, never_again).await;
        assert_eq!(
            seen.end.as_ref().unwrap_err().code(),
            "truncated",
            "{}: {}",
            vendor.provider,
            seen.line()
        );
    }
    // What was said is not said again.
    let broken = vec![vendor.begun().then_break(), vendor.fine(Mode::Streaming)];
    let seen = ask(vendor, Mode::Streaming, broken, None, |_| {}).await;
    assert_eq!(
        (seen.asked, seen.end.unwrap_err().code()),
        (1, "truncated"),
        "{}",
        vendor.provider
    );
    // A whole answer, also where a stream was asked for.
    for (mode, end) in [Mode::Blocking, Mode::Drained]
        .into_iter()
        .flat_map(|mode| {
            (0..vendor.whole.len())
                .step_by(7)
                .map(move |end| (mode, end))
        })
    {
        let cut = Answer::new(200, &vendor.whole.as_bytes()[..end]);
        let seen = ask(vendor, mode, vec![cut.clone()], None, never_again).await;
        assert_eq!(
            seen.end.as_ref().unwrap_err().code(),
            "truncated",
            "{} {mode:?}: {}",
            vendor.provider,
            seen.line()
        );
        // The same if it is the connection that ends, once there was something.
        let seen = ask(vendor, mode, vec![cut.then_break()], None, never_again).await;
        let code = if end == 0 { "network" } else { "truncated" };
        assert_eq!(
            seen.end.as_ref().unwrap_err().code(),
            code,
            "{}: {}",
            vendor.provider,
            seen.line()
        );
    }
}

async fn a_complete_answer_is_kept_if_the_connection_stays_open(vendor: &Faults) {
    let mut events = vendor.events.to_vec();
    events.extend(Some(vendor.end).filter(|end| !end.is_empty()));
    let open = || Answer::events(vendor.framing, &events).then_stall();
    join_all([Mode::Drained, Mode::Streaming].map(async |mode| {
        let seen = ask(vendor, mode, vec![open()], None, |_| {}).await;
        assert_eq!(seen.line(), FINE, "{} {mode:?}", vendor.provider);
    }))
    .await;
    // What is behind the mark belongs to nothing.
    if !vendor.end.is_empty() {
        let late =
            open().and(b"data: {\"error\": {\"code\": 500}}\n\n{\"error\": {\"code\": 500}}\n");
        let seen = ask(vendor, Mode::Drained, vec![late], None, |_| {}).await;
        assert_eq!(seen.line(), FINE, "{}", vendor.provider);
    }
}

async fn what_is_no_answer_is_no_success(vendor: &Faults) {
    let page = |_| {
        vec![Answer::new(
            200,
            "<!doctype html><html><body>Sign in</body></html>",
        )]
    };
    check_failure(vendor, page, (1, "invalid_response", "")).await;
    for mode in MODES {
        let mut bytes = vendor.fine(mode);
        bytes.replace(b"Fine.", b"F\xe4hn.");
        // A byte that is no text costs a character, not the answer.
        let seen = ask(vendor, mode, vec![bytes.clone()], None, |_| {}).await;
        assert_eq!(
            seen.line(),
            "asked 1: Stop \"F\u{fffd}hn.\"",
            "{} {mode:?}",
            vendor.provider
        );
        let seen = ask(vendor, mode, vec![bytes.cut(1)], None, |_| {}).await;
        assert_eq!(
            seen.line(),
            "asked 1: Stop \"F\u{fffd}hn.\"",
            "{} {mode:?}",
            vendor.provider
        );
    }
    // Nobody asked for that.
    let encoded = |mode| {
        vec![
            vendor.fine(mode).header("Content-Encoding", "gzip"),
            vendor.fine(mode),
        ]
    };
    check_failure(
        vendor,
        encoded,
        (1, "invalid_response", "it is compressed (gzip)"),
    )
    .await;
    let unsaid = |mode| vec![Answer::new(200, b"\x1f\x8b\x08\x00\x00"), vendor.fine(mode)];
    check_failure(
        vendor,
        unsaid,
        (1, "invalid_response", "it is compressed (gzip)"),
    )
    .await;
    let body = |_| {
        vec![
            vendor
                .failure(400, "These words.")
                .header("Content-Encoding", "br"),
        ]
    };
    check_failure(
        vendor,
        body,
        (1, "bad_request", "HTTP 400 without an explanation"),
    )
    .await;
}

async fn nobody_there(vendor: &Faults) {
    for mode in MODES {
        // Connections beyond the answers are closed unanswered.
        let seen = ask(vendor, mode, Vec::new(), None, |connection| {
            connection.retries = 0
        })
        .await;
        assert_eq!(seen.end.unwrap_err().code(), "network");
    }
    // Taken by a socket that does not listen: a port that is only free would be another test's a
    // moment later.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = format!("http://{}", taken.local_addr().unwrap())
        .parse()
        .unwrap();
    let seen = ask(vendor, Mode::Blocking, Vec::new(), None, |connection| {
        connection.base_url = Some(closed);
        connection.retries = 0;
    })
    .await;
    let error = seen.end.unwrap_err();
    assert_eq!(error.code(), "network");
    let refused = std::iter::successors(error.source(), |cause| (*cause).source())
        .find_map(|cause| cause.downcast_ref::<io::Error>())
        .map(io::Error::kind);
    assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused), "{error}");
}

async fn the_key_travels_in_a_header_only(vendor: &Faults) {
    let [whole, streamed] = vendor.paths;
    for (mode, path) in MODES.into_iter().zip([whole, streamed, streamed]) {
        let server = Server::start(vec![vendor.fine(mode)]).await;
        let model = vendor.open(&server, |_| {});
        match mode {
            Mode::Blocking | Mode::Drained => drop(model.generate(&question(mode)).await.unwrap()),
            Mode::Streaming => drop(drained(&model, &question(mode)).await.1.unwrap()),
        }
        let asked = server.received().remove(0);
        assert_eq!(
            asked.head.lines().next(),
            Some(format!("POST {path} HTTP/1.1").as_str())
        );
        assert!(
            asked
                .head
                .contains(&format!("{}{KEY}\r\n", vendor.key_header)),
            "{}",
            asked.head
        );
        assert_eq!(asked.head.matches(KEY).count(), 1, "{}", asked.head);
        assert!(!asked.body.contains(KEY));
    }
}
