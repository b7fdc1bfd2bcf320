//! Confirmations: answers for pending calls, from `--yes`, from a permission, or from the user at
//! the terminal.

mod question; // texts of the questions

pub(crate) use question::{preview, whole};

use adjutant_core::{
    Answer, Arguments, DoubtReading, PendingCall, PendingKind, Reading, Verdict, read_doubt_words,
    read_words,
};

use crate::policy::{Allowed, Permissions};
use crate::terminal::chat::external;
use crate::terminal::display::{clip, fold, json_line};
use crate::terminal::keys::{self, Typed};
use crate::terminal::lines::Lines;
use crate::terminal::screen::Screen;
use crate::terminal::signals::Interrupts;
use question::{Allowance, allowances, list, question, together};

/// Keys that answer a confirmation by themselves.
const YES_NO_EDIT: &[char] = &['y', 'n', 'e'];
const YES_NO_EDIT_ALWAYS: &[char] = &['y', 'n', 'e', 'a'];
const YES_NO_EDIT_CONVERSATION: &[char] = &['y', 'n', 'e', 'c'];
const DONE_RETRY_LEAVE: &[char] = &['d', 'r', 'l'];
const VIEW_NO: &[char] = &['v', 'n'];
/// Those of a question about several calls.
const ALL_NONE_ONE: &[char] = &['y', 'n', 'o'];
const ALL_NONE_ONE_CONVERSATION: &[char] = &['y', 'n', 'o', 'c'];

/// The reason why a question has no answer.
#[derive(Debug, PartialEq)]
pub(crate) enum NoAnswer {
    /// The user cannot be asked, or did not answer.
    Unanswered,
    /// The user left the question with Ctrl-C.
    Interrupted,
}

/// Answers pending calls.
pub(crate) struct Approver<'a> {
    pub(crate) screen: &'a Screen,
    pub(crate) lines: &'a mut Lines,
    pub(crate) interrupts: &'a mut Interrupts,
    /// Tools that `--yes` approves; `*` is every tool.
    pub(crate) yes: &'a [String],
    /// Permissions given at earlier confirmations.
    pub(crate) permissions: &'a mut Permissions,
}

impl Approver<'_> {
    /// Answers pending calls from `--yes` and permissions, and asks the user about the others.
    /// Returns answers to some or all of the calls.
    ///
    /// # Errors
    /// No call was answered, or the user did not answer a question about one.
    pub(crate) async fn decide(
        &mut self,
        pending: &[PendingCall],
    ) -> Result<Vec<Answer>, NoAnswer> {
        let (mut answers, mut open) = (Vec::new(), Vec::new());
        // Calls that wait for their result were sent to a client; there is nothing to approve.
        for call in pending.iter().filter(|call| !call.awaits_result()) {
            if approves(self.yes, call) {
                answers.push(call.answer(Verdict::Approved));
                continue;
            }
            match self.permissions.allow(call) {
                Allowed::Yes(note) => {
                    self.screen.note(&note);
                    answers.push(call.answer(Verdict::Approved));
                    continue;
                }
                Allowed::No(note) => note.iter().for_each(|note| self.screen.note(note)),
            }
            open.push(call);
        }
        if self.screen.asks() {
            answers.extend(self.ask_about(open).await?);
        }
        match answers.is_empty() {
            true => Err(NoAnswer::Unanswered),
            false => Ok(answers),
        }
    }

    /// Asks a question that one of these keys, or a line of text, answers. Returns `None` if the
    /// user left the question.
    pub(crate) async fn choose(&mut self, question: &str, keys: &'static [char]) -> Option<String> {
        self.read_answer(question, keys).await.ok()
    }

    /// Asks about calls: one question for all that can be listed, unless the user wants to answer
    /// one by one, and a question for each of the others.
    async fn ask_about(&mut self, calls: Vec<&PendingCall>) -> Result<Vec<Answer>, NoAnswer> {
        let (listed, others): (Vec<_>, Vec<_>) = calls.iter().partition(|call| can_be_listed(call));
        let together = match listed.len() {
            0 | 1 => None,
            _ => self.ask_together(&listed).await?,
        };
        let alone = if together.is_some() { others } else { calls };
        let mut answers = together.unwrap_or_default();
        for call in alone {
            // A permission that was given at the question before may cover this call too.
            let answer = match self.permissions.allow(call) {
                Allowed::Yes(note) => {
                    self.screen.note(&note);
                    call.answer(Verdict::Approved)
                }
                Allowed::No(_) => self.ask(call).await?,
            };
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Asks one question about calls that [`can_be_listed`]. Returns `None` if the user wants to
    /// answer one by one.
    ///
    /// # Errors
    /// The user did not answer.
    async fn ask_together(
        &mut self,
        calls: &[&PendingCall],
    ) -> Result<Option<Vec<Answer>>, NoAnswer> {
        // A live line that is redrawn would overwrite what is typed.
        self.screen.end_live();
        let for_conversation = calls.iter().all(|call| call.for_conversation);
        let keys = match for_conversation {
            true => ALL_NONE_ONE_CONVERSATION,
            false => ALL_NONE_ONE,
        };
        self.screen.side_line(&list(calls));
        let answer = |verdict: Verdict| calls.iter().map(move |call| call.answer(verdict));
        loop {
            let line = self.read_answer(&together(calls), keys).await?;
            let hint = match line.trim() {
                // Enter alone is the safe answer.
                "" => return Ok(Some(answer(Verdict::Denied).collect())),
                "o" | "O" => return Ok(None),
                "c" | "C" if for_conversation => {
                    let answers = answer(Verdict::Approved).map(Answer::for_conversation);
                    return Ok(Some(answers.collect()));
                }
                words => match read_words(words) {
                    Reading::Yes => return Ok(Some(answer(Verdict::Approved).collect())),
                    Reading::No => return Ok(Some(answer(Verdict::Denied).collect())),
                    Reading::Unclear if for_conversation => "Please answer y, n, o or c.",
                    Reading::Unclear => "Please answer y, n or o.",
                },
            };
            self.screen.side_line(&format!("  {hint}"));
        }
    }

    async fn ask(&mut self, call: &PendingCall) -> Result<Answer, NoAnswer> {
        // A live line that is redrawn would overwrite what is typed.
        self.screen.end_live();
        // A call can be approved only after all of its arguments were shown.
        let mut folded = whole(call);
        loop {
            // A permission given here would also cover amounts and addresses, of which each is asked
            // about.
            let can_grant = !call.for_conversation && self.permissions.can_grant(call);
            let question = question(call, folded.is_some(), can_grant);
            let keys = match (&folded, call.doubt.is_some()) {
                (Some(_), _) => VIEW_NO,
                (None, true) => DONE_RETRY_LEAVE,
                (None, false) if can_grant => YES_NO_EDIT_ALWAYS,
                (None, false) if call.for_conversation => YES_NO_EDIT_CONVERSATION,
                (None, false) => YES_NO_EDIT,
            };
            let line = self.read_answer(&question, keys).await?;
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
                        return Ok(call.answer(Verdict::Denied));
                    }
                    _ => self
                        .screen
                        .side_line("  Please look at all of it first: v. Or answer n."),
                }
                continue;
            }
            let read = match (call.doubt.is_some(), line.trim()) {
                (true, words) => parse_doubt_answer(words).ok_or("Please answer d, r or l."),
                // Enter alone is the safe answer.
                (false, "") => Ok(Verdict::Denied),
                (false, "e" | "E" | "edit") => {
                    let Some(edited) = self.ask_for_arguments(call).await? else {
                        // No arguments were entered: the question is repeated.
                        continue;
                    };
                    return Ok(call.answer(Verdict::Approved).with_arguments(edited));
                }
                (false, "c" | "C") if call.for_conversation => {
                    return Ok(call.answer(Verdict::Approved).for_conversation());
                }
                (false, "a" | "A" | "always") if can_grant => {
                    if !self.ask_for_permission(call).await? {
                        // No permission was chosen: the question is repeated.
                        continue;
                    }
                    Ok(Verdict::Approved)
                }
                (false, words) => match read_words(words) {
                    Reading::Yes => Ok(Verdict::Approved),
                    Reading::No => Ok(Verdict::Denied),
                    Reading::Unclear if can_grant => Err("Please answer y, n, e or a."),
                    Reading::Unclear if call.for_conversation => Err("Please answer y, n, e or c."),
                    Reading::Unclear => Err("Please answer y, n or e."),
                },
            };
            match read {
                Ok(verdict) => return Ok(call.answer(verdict)),
                Err(hint) => self.screen.side_line(&format!("  {hint}")),
            }
        }
    }

    /// Asks which later calls are allowed too, and stores that permission. Returns false if the
    /// user went back without one.
    async fn ask_for_permission(&mut self, call: &PendingCall) -> Result<bool, NoAnswer> {
        let choices = allowances(self.permissions.can_last());
        let keys: &'static [char] = if self.permissions.can_last() {
            &['1', '2', '3', '4']
        } else {
            &['1', '2']
        };
        loop {
            let question = question::which_calls(call, choices);
            let line = match self.read_answer(&question, keys).await {
                Ok(line) => line,
                // Here, Esc and Ctrl-C return to the question about the call.
                Err(NoAnswer::Interrupted) => return Ok(false),
                Err(none) => return Err(none),
            };
            let line = line.trim();
            if line.is_empty() {
                return Ok(false);
            }
            let chosen = keys
                .iter()
                .zip(choices)
                .find(|(key, _)| key.to_string() == line);
            let Some((_, Allowance { exactly, lasting })) = chosen else {
                self.screen.side_line(&format!(
                    "  Please answer with a number from 1 to {}, or Esc.",
                    choices.len()
                ));
                continue;
            };
            let granted = self.permissions.grant(call, *exactly, *lasting);
            match &granted {
                Ok(note) => self.screen.note(note),
                Err(error) => self.screen.error(error),
            }
            return Ok(granted.is_ok());
        }
    }

    /// Reads a key or a line; a line where keys cannot be read one by one.
    async fn read_answer(
        &mut self,
        question: &str,
        single: &'static [char],
    ) -> Result<String, NoAnswer> {
        let question = &fold(question, self.screen.columns());
        match keys::ask(question, single, self.interrupts.next()).await {
            Ok(Typed::Text(words)) => Ok(words),
            Ok(Typed::Interrupted | Typed::Escaped) => Err(NoAnswer::Interrupted),
            Ok(Typed::Ended) => Err(NoAnswer::Unanswered),
            // Whatever the cause, the user can still type a line.
            Err(_) => self.read_line(question).await,
        }
    }

    /// Reads other arguments, from the external editor if there is one, else from a line. Returns
    /// `None` after printing why there are none.
    async fn ask_for_arguments(
        &mut self,
        call: &PendingCall,
    ) -> Result<Option<Arguments>, NoAnswer> {
        let text = if external::editor().is_some() {
            let shown = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
            match external::edited(&shown).await {
                Ok(text) => text,
                Err(error) => {
                    self.screen.error(&error);
                    return Ok(None);
                }
            }
        } else {
            self.read_line(&format!(
                "  {}\n  instead, as JSON: ",
                json_line(&call.arguments)
            ))
            .await?
        };
        let edited = serde_json::from_str::<Arguments>(&text);
        if let Err(error) = &edited {
            // An error may quote what it found, and an editor may have written anything.
            let why = clip(&error.to_string(), 200);
            self.screen.side_line(&format!(
                "  That is not a JSON object ({why}); nothing was done."
            ));
        }
        Ok(edited.ok())
    }

    /// Asks for one line.
    async fn read_line(&mut self, question: &str) -> Result<String, NoAnswer> {
        let line = tokio::select! {
            line = self.lines.answer(self.screen, question) => line,
            // The cursor is still behind the question.
            () = self.interrupts.next() => {
                self.screen.side("\n");
                return Err(NoAnswer::Interrupted);
            }
        };
        let Ok(Some(line)) = line else {
            self.screen.side("\n");
            return Err(NoAnswer::Unanswered);
        };
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

/// Returns true if the call can be answered together with others: all of it fits into one line of
/// the question, and it takes a yes or a no.
fn can_be_listed(call: &PendingCall) -> bool {
    call.kind() == PendingKind::Confirmation && whole(call).is_none()
}

/// Parses the answer about a call in doubt: one letter, or an unmistakable word. Enter alone is no
/// answer here, because neither is safe.
fn parse_doubt_answer(words: &str) -> Option<Verdict> {
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

/// Returns true if `--yes` approves a pending call. It cannot answer if an interrupted call was
/// done.
pub(crate) fn approves(yes: &[String], call: &PendingCall) -> bool {
    call.kind() == PendingKind::Confirmation && approved(yes, &call.tool)
}

/// Returns true if `--yes` covers a tool.
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
            assert_eq!(parse_doubt_answer(words), verdict, "{words}");
        }
    }
}
