//! Anthropic.

use adjutant::OutcomeCategory::{ContentFilter, LlmFailure, RateLimited};

use super::dialect::Dialect;
use super::reply::Reply;
use super::table::{Row, add_milk, ends, fine, recovers};
use super::wire::Form;
use super::wire::anthropic;
use super::wire::said::{End, Said};

pub(super) struct Anthropic;

impl Dialect for Anthropic {
    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn form(&self) -> &dyn Form {
        &anthropic::Anthropic
    }

    fn quota_status(&self) -> u16 {
        400
    }

    fn error_event(&self) -> String {
        anthropic::error("overloaded_error", "Overloaded")
    }

    fn own(&self) -> Vec<Row> {
        let filtered = || ends(ContentFilter, "refused").says(&["can't help"]);
        let limited = anthropic::error("rate_limit_error", "The server's words.");
        let refused = anthropic::error("invalid_request_error", "The server's words.");
        let both = |body: String| Reply::Own {
            whole: body.clone(),
            events: vec![body],
        };
        vec![
            Row::new(
                "a refusal",
                [Said::default().end(End::Filtered).into(), fine()],
                filtered(),
            ),
            Row::new(
                "a refusal behind a call",
                [add_milk().end(End::Filtered).into(), fine()],
                filtered(),
            ),
            Row::new(
                "a limit inside a 200",
                [both(limited.clone()), fine()],
                recovers(),
            ),
            Row::new(
                "a limit inside a 200 for ever",
                [both(limited.clone()), both(limited), fine()],
                ends(RateLimited, "rate_limit").asked(2),
            ),
            Row::new(
                "a rejected request inside a 200",
                [both(refused), fine()],
                ends(LlmFailure, "bad_request"),
            ),
        ]
    }
}
