//! The fault table: what is done to the engine, and what has to come of it.

use std::time::Duration;

use adjutant::OutcomeCategory::{self, *};

use super::reply::{Reply, slow_down, status, trouble};
use super::wire::said::{End, Said, Trouble, call, text};

/// One fault, and what has to come of it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) replies: Vec<Reply>,
    pub(super) streamed: Expected,
    pub(super) whole: Expected,
    /// The expectation for a blocking call whose answer comes as a stream, if it differs from
    /// `whole`.
    pub(super) drained: Option<Expected>,
    /// The expectation for a self-hosted server, if it differs.
    pub(super) own_server: Option<Expected>,
    pub(super) circumstances: Circumstances,
}

/// The expected outcome of a row.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) outcome: OutcomeCategory,
    /// The code of the typed cause.
    pub(super) code: Option<&'static str>,
    /// Number of requests that the vendor saw.
    pub(super) asked: usize,
    /// Number of times that the tool took effect.
    pub(super) effects: usize,
    /// Texts that the last request contains for the model.
    pub(super) model_reads: &'static [&'static str],
    /// Texts that the user reads.
    pub(super) says: &'static [&'static str],
    /// Texts of the typed cause.
    pub(super) cause: &'static [&'static str],
}

/// The bounds of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances {
    /// Time that the connection may be silent.
    pub(super) patience: Duration,
    /// Attempts after the first.
    pub(super) retries: u32,
    pub(super) turn_deadline: Duration,
}

impl Default for Circumstances {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            retries: 1,
            turn_deadline: Duration::from_secs(120),
        }
    }
}

/// Short enough to wait for in a test, long enough for a machine that is busy.
const SOON: Duration = Duration::from_secs(2);

impl Circumstances {
    /// Returns true if a timeout is reached in the row.
    pub(super) fn waits(&self) -> bool {
        self.patience == SOON || self.turn_deadline == SOON
    }
}

impl Row {
    pub(super) fn new(
        name: &'static str,
        replies: impl Into<Vec<Reply>>,
        expected: Expected,
    ) -> Self {
        Self {
            name,
            replies: replies.into(),
            streamed: expected.clone(),
            whole: expected,
            drained: None,
            own_server: None,
            circumstances: Circumstances::default(),
        }
    }

    /// Sets another outcome for answers that are requested whole: no part of them was shown yet.
    pub(super) fn whole(self, expected: Expected) -> Self {
        Self {
            whole: expected,
            ..self
        }
    }

    /// Sets what is expected where a stream is read to its end for an answer that is asked for as a
    /// whole.
    #[cfg(feature = "openai")]
    pub(super) fn drained(self, expected: Expected) -> Self {
        Self {
            drained: Some(expected),
            ..self
        }
    }

    /// Sets the expectation for a self-hosted server: it may still be reading the prompt, and is
    /// not asked again.
    fn own_server(self, expected: Expected) -> Self {
        Self {
            own_server: Some(expected),
            ..self
        }
    }

    fn impatient(mut self) -> Self {
        self.circumstances.patience = SOON;
        self
    }

    fn deadline(mut self) -> Self {
        self.circumstances.turn_deadline = SOON;
        self
    }
}

impl Expected {
    pub(super) fn asked(self, asked: usize) -> Self {
        Self { asked, ..self }
    }

    pub(super) fn effects(self, effects: usize) -> Self {
        Self { effects, ..self }
    }

    pub(super) fn model_reads(self, model_reads: &'static [&'static str]) -> Self {
        Self {
            model_reads,
            ..self
        }
    }

    pub(super) fn says(self, says: &'static [&'static str]) -> Self {
        Self { says, ..self }
    }

    pub(super) fn cause(self, cause: &'static [&'static str]) -> Self {
        Self { cause, ..self }
    }
}

/// The turn ends like this, the vendor asked once.
pub(super) fn ends(outcome: OutcomeCategory, code: impl Into<Option<&'static str>>) -> Expected {
    Expected {
        outcome,
        code: code.into(),
        asked: 1,
        effects: 0,
        model_reads: &[],
        says: &[],
        cause: &[],
    }
}

/// The fault is got over: the second request is answered in words.
pub(super) fn recovers() -> Expected {
    ends(ResponseGiven, None).asked(2).says(&[FINE])
}

/// A call was refused and not made well: whatever the second answer says, that is no success.
pub(super) fn undone() -> Expected {
    ends(ToolFailure, "tool_failure")
        .asked(2)
        .says(&["was not carried out"])
}

const FINE: &str = "Fine, schön.";
const ADD: &str = r#"{"text": "milk"}"#;

pub(super) fn fine() -> Reply {
    text(FINE).into()
}

pub(super) fn add_milk() -> Said {
    call("add_note", ADD)
}

/// The rows that hold for every vendor.
pub(super) fn rows() -> Vec<Row> {
    [
        no_fault(),
        calls(),
        unusable_answers(),
        refused_requests(),
        limited_requests(),
        broken_answers(),
        endless_turns(),
        tools(),
    ]
    .concat()
}

fn no_fault() -> Vec<Row> {
    vec![
        Row::new("an answer", [fine()], recovers().asked(1)),
        Row::new(
            "an answer, byte by byte",
            [Reply::ByteByByte(text(FINE))],
            recovers().asked(1),
        ),
        Row::new(
            "a call and an answer",
            [add_milk().into(), fine()],
            recovers_with(1).model_reads(&["milk added"]),
        ),
        Row::new(
            "a call and an answer, byte by byte",
            [
                Reply::ByteByByte(add_milk().thinking("They want müsli.")),
                fine(),
            ],
            recovers_with(1),
        ),
        Row::new(
            "calls in parallel",
            [
                add_milk()
                    .and_call("add_note", r#"{"text": "bread"}"#)
                    .into(),
                fine(),
            ],
            recovers_with(2).model_reads(&["milk added", "bread added"]),
        ),
    ]
}

fn recovers_with(effects: usize) -> Expected {
    ends(TaskCompleted, None)
        .asked(2)
        .effects(effects)
        .says(&[FINE])
}

fn calls() -> Vec<Row> {
    let bad = |name, arguments: &'static str, model_reads| {
        Row::new(
            name,
            [call("add_note", arguments).into(), fine()],
            undone().model_reads(model_reads),
        )
    };
    vec![
        bad(
            "arguments cut in a text",
            r#"{"text": "mi"#,
            &["not a JSON object", "line 1 column 12"],
        ),
        bad(
            "arguments cut in a name",
            r#"{"te"#,
            &["not a JSON object", "line 1 column"],
        ),
        bad(
            "arguments that are no JSON",
            "text=milk",
            &["not a JSON object", "line 1 column"],
        ),
        bad(
            "arguments of the wrong type",
            r#"{"text": {"of": 7}}"#,
            &["/text", "string"],
        ),
        bad(
            "a missing argument",
            "{}",
            &["\"text\" is a required property"],
        ),
        bad("no arguments", "", &["\"text\" is a required property"]),
        bad(
            "an unknown extra argument",
            r#"{"text": "milk", "user_id": "root"}"#,
            &["user_id"],
        ),
        Row::new(
            "an unknown tool",
            [call("ad_note", ADD).into(), fine()],
            undone().model_reads(&["no tool \"ad_note\"", "did you mean \"add_note\"?"]),
        ),
        Row::new(
            "a good call beside a bad one",
            [
                add_milk().and_call("add_note", r#"{"text": []}"#).into(),
                fine(),
            ],
            recovers_with(1).model_reads(&["milk added", "/text"]),
        ),
        Row::new(
            "a bad call that is then made well",
            [
                call("add_note", r#"{"text": "mi"#).into(),
                add_milk().into(),
                fine(),
            ],
            recovers_with(1).asked(3),
        ),
    ]
}

fn unusable_answers() -> Vec<Row> {
    let unusable = |name, said: Said, again: Expected| {
        [
            Row::new(name, [said.clone().into(), fine()], recovers()),
            Row::new(name, [said.clone().into(), said.into()], again.asked(2)),
        ]
    };
    let unreadable = ends(LlmFailure, "invalid_response").says(&["trouble processing"]);
    let cut = ends(MaxTokensLimit, "limit_reached").cause(&["1024", "output tokens"]);
    let mut rows: Vec<Row> = [
        unusable("an empty answer", Said::default(), unreadable.clone()),
        unusable("blanks", text(" \n"), unreadable.clone()),
        unusable("thinking only", Said::default().thinking("Hm."), unreadable),
        unusable(
            "max_tokens inside a call",
            call("add_note", r#"{"text": "mi"#).end(End::MaxTokens),
            cut.clone(),
        ),
        unusable(
            "max_tokens behind a call",
            add_milk().end(End::MaxTokens),
            cut.clone(),
        ),
        unusable(
            "max_tokens in thinking",
            Said::default().thinking("Hm").end(End::MaxTokens),
            cut.clone(),
        ),
    ]
    .concat();
    rows.extend([
        Row::new(
            "max_tokens in words",
            [text("Half of it").end(End::MaxTokens).into()],
            cut.says(&["Half of it"]),
        ),
        Row::new(
            "a reason to stop that nobody knows",
            [Said::default().end(End::Unheard).into(), fine()],
            ends(LlmFailure, "invalid_response").says(&["trouble processing"]),
        ),
        Row::new(
            "a call with a reason to stop that nobody knows",
            [add_milk().end(End::Unheard).into(), fine()],
            ends(LlmFailure, "invalid_response"),
        ),
    ]);
    rows
}

fn refused_requests() -> Vec<Row> {
    let set_up = |code| ends(LlmFailure, code).says(&["not set up correctly"]);
    vec![
        Row::new(
            "400",
            [status(400), fine()],
            set_up("bad_request").cause(&["The server's words."]),
        ),
        // The name of the variable to set, or whatever the vendor's row advises.
        Row::new(
            "401",
            [status(401), fine()],
            set_up("auth").cause(&["The server's words.", KEY_ADVICE]),
        ),
        Row::new(
            "403",
            [status(403), fine()],
            set_up("auth").cause(&["The server's words.", KEY_ADVICE]),
        ),
        Row::new(
            "404",
            [status(404), fine()],
            set_up("not_found").cause(&["The server's words.", MODEL]),
        ),
        Row::new("422", [status(422), fine()], set_up("bad_request")),
        Row::new(
            "a redirect",
            [status(307), fine()],
            set_up("bad_request").cause(&["base URL"]),
        ),
        Row::new(
            "a request that is too long",
            [trouble(400, Trouble::TooLong), fine()],
            ends(ContextLimit, "context_too_long").says(&["too long"]),
        ),
    ]
}

/// Stands for the advice of the provider's row about its key.
pub(super) const KEY_ADVICE: &str = "KEY ADVICE";
/// Stands for the name of the model that is asked.
pub(super) const MODEL: &str = "MODEL";

fn limited_requests() -> Vec<Row> {
    let limited = ends(RateLimited, "rate_limit").says(&["too many requests"]);
    vec![
        Row::new(
            "429 that asks for a moment",
            [slow_down("0.1"), fine()],
            recovers(),
        ),
        Row::new("429 without a word", [status(429), fine()], recovers()),
        Row::new(
            "429 for ever",
            [slow_down("0"), slow_down("0"), fine()],
            limited.clone().asked(2),
        ),
        Row::new(
            "429 that asks for more than the turn has",
            [slow_down("3600"), fine()],
            limited.cause(&["asks to wait 3600 s"]),
        ),
        Row::new(
            "an empty account",
            [trouble(429, Trouble::Quota), fine()],
            ends(RateLimited, "quota").says(&["too many requests"]),
        ),
    ]
}

fn broken_answers() -> Vec<Row> {
    let unavailable = |code| ends(LlmFailure, code).says(&["temporarily unavailable"]);
    let silent = || {
        unavailable("timeout")
            .says(&[
                "temporarily unavailable",
                "nothing came from the model for 2 s",
            ])
            .cause(&["said nothing for 2 s"])
    };
    let half = || text("Half of it");
    let truncated = || ends(LlmFailure, "truncated").says(&["temporarily unavailable"]);
    vec![
        Row::new("500", [status(500), fine()], recovers()),
        Row::new(
            "502 with a page",
            [Reply::Page { status: 502 }, fine()],
            recovers(),
        ),
        Row::new("503", [status(503), fine()], recovers()),
        Row::new("529", [status(529), fine()], recovers()),
        Row::new(
            "500 for ever",
            [status(500), status(500), fine()],
            unavailable("server").asked(2),
        ),
        Row::new("a reset", [Reply::Reset, fine()], recovers()),
        Row::new(
            "resets for ever",
            [Reply::Reset, Reply::Reset, fine()],
            unavailable("network").asked(2),
        ),
        Row::new(
            "a break before the first word",
            [Reply::Breaks(Said::default()), fine()],
            recovers(),
        ),
        Row::new("silence from the start", [Reply::Mute, fine()], recovers())
            .own_server(silent())
            .impatient(),
        Row::new(
            "silence for ever",
            [Reply::Mute, Reply::Mute, fine()],
            silent().asked(2),
        )
        .own_server(silent())
        .impatient(),
        // It was at work, and what it did may be paid for: it is not asked twice.
        Row::new(
            "silence behind the status",
            [Reply::Stalls(None), fine()],
            silent(),
        )
        .impatient(),
        Row::new(
            "silence in the middle",
            [Reply::Stalls(Some(half())), fine()],
            silent(),
        )
        .impatient(),
        Row::new(
            "silence beyond the turn's time",
            [Reply::Stalls(None), fine()],
            ends(DeadlineLimit, "limit_reached").says(&["took too long"]),
        )
        .deadline(),
        Row::new(
            "a stream without its end",
            [Reply::Cut(half()), fine()],
            truncated(),
        )
        .whole(recovers()),
        Row::new(
            "a call in a stream without its end",
            [Reply::Cut(add_milk()), fine()],
            truncated(),
        )
        .whole(recovers()),
        Row::new(
            "whole answers that are cut, for ever",
            [Reply::Cut(half()), Reply::Cut(half()), fine()],
            truncated(),
        )
        .whole(truncated().asked(2)),
        Row::new(
            "a break in the middle",
            [Reply::Breaks(half()), fine()],
            truncated(),
        )
        .whole(recovers()),
        Row::new(
            "an error inside a 200",
            [Reply::ErrorInside(None), fine()],
            recovers(),
        ),
        Row::new(
            "an error inside a 200, behind words",
            [Reply::ErrorInside(Some(half())), fine()],
            unavailable("server"),
        )
        .whole(recovers()),
        Row::new(
            "an error inside a 200, behind a call",
            [Reply::ErrorInside(Some(add_milk())), fine()],
            unavailable("server"),
        )
        .whole(recovers()),
        Row::new("nothing in a 200", [Reply::Body(""), fine()], recovers()),
        Row::new(
            "a page in a 200",
            [
                Reply::Body("<html><body>Log in first.</body></html>"),
                fine(),
            ],
            ends(LlmFailure, "invalid_response").says(&["trouble processing"]),
        ),
    ]
}

fn endless_turns() -> Vec<Row> {
    let other: Vec<Reply> = [
        "{\"text\": \"1\"}",
        "{\"text\": \"2\"}",
        "{\"text\": \"3\"}",
    ]
    .into_iter()
    .chain([
        "{\"text\": \"4\"}",
        "{\"text\": \"5\"}",
        "{\"text\": \"6\"}",
    ])
    .map(|arguments| call("add_note", arguments).into())
    .collect();
    let same = |said: Said| vec![Reply::from(said); 6];
    let complex = |outcome, asked| {
        ends(outcome, "limit_reached")
            .asked(asked)
            .says(&["too complex"])
    };
    let identical = || complex(IdenticalCallsLimit, 4).cause(&["3", "identical calls"]);
    vec![
        Row::new(
            "calls without end",
            other,
            complex(IterationsLimit, 5)
                .effects(5)
                .cause(&["5", "tool iterations"]),
        ),
        Row::new(
            "the same call without end",
            same(add_milk()),
            identical().effects(3),
        ),
        Row::new(
            "an unknown tool without end",
            same(call("ad_note", ADD)),
            identical(),
        ),
        Row::new(
            "cut arguments without end",
            same(call("add_note", r#"{"text": "mi"#)),
            ends(LlmFailure, "invalid_response")
                .asked(4)
                .says(&["trouble processing"]),
        ),
    ]
}

fn tools() -> Vec<Row> {
    let fails = |name, arguments: &'static str, model_reads| {
        let failed = ends(ToolFailure, "tool_failure")
            .asked(2)
            .effects(1)
            .model_reads(model_reads);
        Row::new(name, [call("add_note", arguments).into(), fine()], failed)
    };
    vec![
        fails(
            "a tool that fails",
            r#"{"text": "fail"}"#,
            &["the paper is gone"],
        ),
        fails(
            "a tool that panics",
            r#"{"text": "panic"}"#,
            &["the tool broke down"],
        ),
        fails(
            "a tool that does not end",
            r#"{"text": "hang"}"#,
            &["did not finish within", "tool_timeout"],
        ),
    ]
}
