//! Getting answers for calls that wait: from an option, or from the person at the terminal.

mod keys; // one key, or a line
mod question; // what is asked

pub(crate) use question::{preview, whole};

use adjutant_core::{
    Answer, Arguments, DoubtReading, PendingCall, PendingKind, Reading, Verdict, read_doubt_words,
    read_words,
};

use crate::chat::outside;
use crate::display::{fold, json_line};
use crate::lines::{Interrupts, Lines};
use crate::policy::{Allowed, Permissions};
use crate::screen::Screen;
use keys::Typed;
use question::{Allowance, allowances, question};

/// Keys that are an answer by themselves.
const YES_NO_EDIT: &[char] = &['y', 'n', 'e'];
const YES_NO_EDIT_ALWAYS: &[char] = &['y', 'n', 'e', 'a'];
const DONE_RETRY_LEAVE: &[char] = &['d', 'r', 'l'];
const VIEW_NO: &[char] = &['v', 'n'];

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

/// The choice of a person among a few keys.
pub(crate) enum Chosen {
    /// A key, or words.
    Words(String),
    /// Nobody answered, or the person does not want to be asked now.
    Nothing,
}

/// Who may say yes.
pub(crate) struct Approver<'a> {
    pub(crate) screen: &'a Screen,
    pub(crate) lines: &'a mut Lines,
    pub(crate) interrupts: &'a mut Interrupts,
    /// Tools the options approve; `*` is every tool.
    pub(crate) yes: &'a [String],
    /// The permissions that the person gave before.
    pub(crate) permissions: &'a mut Permissions,
}

impl Approver<'_> {
    /// Answers what the options and the person's permissions answer, and asks for the rest.
    pub(crate) async fn decide(&mut self, pending: &[PendingCall]) -> Decided {
        let mut answers = Vec::new();
        // What waits for its result is nobody's to agree to.
        for call in pending.iter().filter(|call| !call.awaits_result()) {
            if approves(self.yes, call) {
                answers.push(call.answer(Verdict::Approved));
                continue;
            }
            match self.permissions.allow(call) {
                Allowed::Yes(told) => {
                    self.screen.note(&told);
                    answers.push(call.answer(Verdict::Approved));
                    continue;
                }
                Allowed::No(told) => told.iter().for_each(|told| self.screen.note(told)),
            }
            if self.screen.asks() {
                match self.ask(call).await {
                    Asked::Answer(answer) => answers.push(*answer),
                    Asked::Nothing => return Decided::Nobody,
                    Asked::Interrupted => return Decided::Interrupted,
                }
            }
        }
        if answers.is_empty() {
            Decided::Nobody
        } else {
            Decided::Answers(answers)
        }
    }

    /// Asks a question that one of these keys answers.
    pub(crate) async fn choose(&mut self, question: &str, keys: &'static [char]) -> Chosen {
        self.answer(question, keys)
            .await
            .map_or(Chosen::Nothing, Chosen::Words)
    }

    async fn ask(&mut self, call: &PendingCall) -> Asked {
        // Nothing draws while somebody types.
        self.screen.end_live();
        // All of what a yes is to is shown before there is one.
        let mut folded = whole(call);
        loop {
            let can_grant = self.permissions.can_grant(call);
            let question = question(call, folded.is_some(), can_grant);
            let keys = match (&folded, call.doubt.is_some()) {
                (Some(_), _) => VIEW_NO,
                (None, true) => DONE_RETRY_LEAVE,
                (None, false) if can_grant => YES_NO_EDIT_ALWAYS,
                (None, false) => YES_NO_EDIT,
            };
            let line = match self.answer(&question, keys).await {
                Ok(line) => line,
                Err(asked) => return asked,
            };
            if let Some(whole) = &folded {
                match line.trim() {
                    "v" | "V" | "view" => {
                        self.screen.side_line(&format!("  {whole}"));
                        folded = None;
                    }
                    words
                        if call.doubt.is_none()
                            && (words.is_empty() || read_words(words) == Reading::No) =>
                    {
                        return Asked::Answer(Box::new(call.answer(Verdict::Denied)));
                    }
                    _ => self
                        .screen
                        .side_line("  Please look at all of it first: v. Or answer n."),
                }
                continue;
            }
            let read = match (call.doubt.is_some(), line.trim()) {
                (true, words) => doubt(words).ok_or("Please answer d, r or l."),
                // Enter alone keeps things as they are.
                (false, "") => Ok(Verdict::Denied),
                (false, "e" | "E" | "edit") => match self.edited(call).await {
                    Ok(Some(edited)) => {
                        return Asked::Answer(Box::new(
                            call.answer(Verdict::Approved).with_arguments(edited),
                        ));
                    }
                    // The question is asked again.
                    Ok(None) => continue,
                    Err(asked) => return asked,
                },
                (false, "a" | "A" | "always") if can_grant => {
                    match self.allowed_from_now_on(call).await {
                        Ok(true) => Ok(Verdict::Approved),
                        // The question is asked again.
                        Ok(false) => continue,
                        Err(asked) => return asked,
                    }
                }
                (false, words) => match read_words(words) {
                    Reading::Yes => Ok(Verdict::Approved),
                    Reading::No => Ok(Verdict::Denied),
                    Reading::Unclear if can_grant => Err("Please answer y, n, e or a."),
                    Reading::Unclear => Err("Please answer y, n or e."),
                },
            };
            match read {
                Ok(verdict) => return Asked::Answer(Box::new(call.answer(verdict))),
                Err(hint) => self.screen.side_line(&format!("  {hint}")),
            }
        }
    }

    /// Asks which later calls are allowed, and keeps that. `false`: none are, and the person went
    /// back.
    async fn allowed_from_now_on(&mut self, call: &PendingCall) -> Result<bool, Asked> {
        let choices = allowances(self.permissions.can_last());
        let keys: &'static [char] = if self.permissions.can_last() {
            &['1', '2', '3', '4']
        } else {
            &['1', '2']
        };
        loop {
            let words = match self
                .answer(&question::which_calls(call, choices), keys)
                .await
            {
                Ok(words) => words,
                // Esc and Ctrl-C go back.
                Err(Asked::Interrupted) => return Ok(false),
                Err(asked) => return Err(asked),
            };
            let Some(number) = words.trim().chars().next() else {
                return Ok(false);
            };
            let chosen = keys
                .iter()
                .position(|key| *key == number)
                .filter(|_| words.trim().len() == 1);
            let Some(Allowance {
                exactly, lasting, ..
            }) = chosen.and_then(|chosen| choices.get(chosen))
            else {
                self.screen.side_line(&format!(
                    "  Please answer with a number from 1 to {}, or Esc.",
                    choices.len()
                ));
                continue;
            };
            return match self.permissions.grant(call, *exactly, *lasting) {
                Ok(told) => {
                    self.screen.note(&told);
                    Ok(true)
                }
                Err(error) => {
                    self.screen.error(&error);
                    Ok(false)
                }
            };
        }
    }

    /// A key or a line; a line where keys cannot be read one by one.
    async fn answer(&mut self, question: &str, single: &'static [char]) -> Result<String, Asked> {
        let question = &fold(question, self.screen.columns());
        match keys::ask(question, single, self.interrupts).await {
            Ok(Typed::Words(words)) => Ok(words),
            Ok(Typed::Interrupted) => Err(Asked::Interrupted),
            Ok(Typed::Ended) => Err(Asked::Nothing),
            Err(_) => self.line(question).await,
        }
    }

    /// Other arguments: from the person's editor if there is one, else from a line. `None`: none,
    /// and why was told.
    async fn edited(&mut self, call: &PendingCall) -> Result<Option<Arguments>, Asked> {
        let text = if outside::editor().is_some() {
            let shown = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
            match outside::edited(&shown).await {
                Ok(text) => text,
                Err(error) => {
                    self.screen.error(&error);
                    return Ok(None);
                }
            }
        } else {
            self.line(&format!(
                "  {}\n  instead, as JSON: ",
                json_line(&call.arguments)
            ))
            .await?
        };
        let edited = serde_json::from_str::<Arguments>(&text).ok();
        if edited.is_none() {
            self.screen
                .side_line("  That is not a JSON object; nothing was done.");
        }
        Ok(edited)
    }

    /// Asks for one line.
    async fn line(&mut self, question: &str) -> Result<String, Asked> {
        let line = tokio::select! {
            line = self.lines.answer(self.screen, question) => line,
            () = self.interrupts.next() => {
                self.screen.side("\n");
                return Err(Asked::Interrupted);
            }
        };
        let Ok(Some(line)) = line else {
            self.screen.side("\n");
            return Err(Asked::Nothing);
        };
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

enum Asked {
    Answer(Box<Answer>),
    Nothing,
    Interrupted,
}

/// What is said to a doubt: one letter, or words that mean only one thing. Enter alone means
/// nothing here.
fn doubt(words: &str) -> Option<Verdict> {
    match words {
        "d" => Some(Verdict::Done),
        "r" => Some(Verdict::Retry),
        "l" => Some(Verdict::Leave),
        words => match read_doubt_words(words) {
            DoubtReading::Verdict(verdict) => Some(verdict),
            DoubtReading::Unclear => None,
        },
    }
}

/// Whether `--yes` answers a call that waits. It says nothing about whether an interrupted one was
/// done.
pub(crate) fn approves(yes: &[String], call: &PendingCall) -> bool {
    call.kind() == PendingKind::Confirmation && approved(yes, &call.tool)
}

/// Whether `--yes` covers a tool.
pub(crate) fn approved(yes: &[String], tool: &str) -> bool {
    yes.iter().any(|name| name == "*" || name == tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_approves_all_or_the_named_tools() {
        let yes = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        assert!(approved(&yes(&["*"]), "delete_task"));
        assert!(approved(&yes(&["add_task", "delete_task"]), "delete_task"));
        assert!(!approved(&yes(&["add_task"]), "delete_task"));
        assert!(!approved(&[], "delete_task"));
    }

    #[test]
    fn an_option_answers_no_doubt() {
        let call: PendingCall = serde_json::from_value(serde_json::json!({
            "call_id": "c", "tool": "send", "arguments": {}, "preview": "x", "digest": "d",
            "requested_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
            "doubt": {"attempt": 1, "since": "2026-01-01T00:00:00Z"},
        }))
        .unwrap();
        assert!(!approves(&["*".to_owned()], &call));
        for (words, verdict) in [
            ("d", Some(Verdict::Done)),
            ("try again", Some(Verdict::Retry)),
            ("l", Some(Verdict::Leave)),
            ("yes", None),
            ("", None),
        ] {
            assert_eq!(doubt(words), verdict, "{words}");
        }
    }
}
