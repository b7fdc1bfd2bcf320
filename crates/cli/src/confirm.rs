//! Getting a yes or no for calls that wait: from an option, or from the person at the terminal.

use adjutant_core::{Answer, PendingCall, Reading, Verdict, read_words};

use crate::display::clip;
use crate::lines::{Interrupts, Lines};
use crate::screen::Screen;

/// What came of asking.
#[derive(Debug, PartialEq)]
pub(crate) enum Decided {
    /// Answers to some or all of what waits.
    Answers(Vec<Answer>),
    /// Nobody can be asked, or nobody answered.
    Nobody,
    /// The person does not want to be asked now.
    Interrupted,
}

/// Who may say yes.
pub(crate) struct Approver<'a> {
    pub(crate) screen: &'a Screen,
    pub(crate) lines: &'a mut Lines,
    pub(crate) interrupts: &'a mut Interrupts,
    /// Tools the options approve; `*` is every tool.
    pub(crate) yes: &'a [String],
}

impl Approver<'_> {
    /// Answers what the options answer, and asks for the rest.
    pub(crate) async fn decide(&mut self, pending: &[PendingCall]) -> Decided {
        let mut answers = Vec::new();
        for call in pending {
            let verdict = if approved(self.yes, &call.tool) {
                Verdict::Approved
            } else if self.screen.asks() {
                match self.ask(call).await {
                    Asked::Verdict(verdict) => verdict,
                    Asked::Nothing => return Decided::Nobody,
                    Asked::Interrupted => return Decided::Interrupted,
                }
            } else {
                continue;
            };
            answers.push(Answer { call_id: call.call_id.clone(), digest: call.digest.clone(), verdict });
        }
        if answers.is_empty() { Decided::Nobody } else { Decided::Answers(answers) }
    }

    async fn ask(&mut self, call: &PendingCall) -> Asked {
        loop {
            self.screen.side(&format!("? {}  [y] yes  [N] no: ", preview(call)));
            let line = tokio::select! {
                line = self.lines.next() => line,
                () = self.interrupts.next() => {
                    self.screen.side("\n");
                    return Asked::Interrupted;
                }
            };
            let Ok(Some(line)) = line else {
                self.screen.side("\n");
                return Asked::Nothing;
            };
            match String::from_utf8_lossy(&line).trim() {
                // Enter alone keeps things as they are.
                "" => return Asked::Verdict(Verdict::Denied),
                words => match read_words(words) {
                    Reading::Yes => return Asked::Verdict(Verdict::Approved),
                    Reading::No => return Asked::Verdict(Verdict::Denied),
                    Reading::Unclear => self.screen.side_line("  Please answer y or n."),
                },
            }
        }
    }
}

enum Asked {
    Verdict(Verdict),
    Nothing,
    Interrupted,
}

/// Whether `--yes` covers a tool.
pub(crate) fn approved(yes: &[String], tool: &str) -> bool {
    yes.iter().any(|name| name == "*" || name == tool)
}

/// What a call would touch, on one line: the tool's own preview, which names the thing.
pub(crate) fn preview(call: &PendingCall) -> String {
    clip(&call.preview, 200)
}

/// A short id for people: the end of the call's id, the same at every look.
pub(crate) fn short_id(call: &PendingCall) -> String {
    let id = call.call_id.as_str();
    // `call_<random hex>_<number>`: six digits tell apart what one person has waiting.
    let number_at = id.rfind('_').unwrap_or(id.len());
    let start = number_at.saturating_sub(6);
    id.get(start..).unwrap_or(id).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_approves_all_or_the_named_tools() {
        let yes = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(approved(&yes(&["*"]), "delete_task"));
        assert!(approved(&yes(&["add_task", "delete_task"]), "delete_task"));
        assert!(!approved(&yes(&["add_task"]), "delete_task"));
        assert!(!approved(&[], "delete_task"));
    }

    #[test]
    fn the_short_id_is_the_end_of_the_long_one() {
        let call: PendingCall = serde_json::from_value(serde_json::json!({
            "call_id": "call_0123456789abcdef_12", "tool": "delete_task", "arguments": {}, "preview": "x",
            "digest": "d", "requested_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
        }))
        .unwrap();
        assert_eq!(short_id(&call), "abcdef_12");
    }
}
