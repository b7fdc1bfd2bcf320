//! Texts of the questions about pending calls.

use adjutant_core::PendingCall;

use crate::policy::Lifetime;
use crate::terminal::display::{clean_line, clip};

/// Characters of a preview at most.
const PREVIEW_CHARS: usize = 200;

/// Verbs that can stand for "yes" in a question: `[y] delete`.
const PLAIN_VERBS: &[&str] = &[
    "add", "create", "update", "send", "write", "complete", "move", "rename",
];

/// Characters of a tool's name at most.
const NAME_CHARS: usize = 64;

/// A permission that can be given at a confirmation.
pub(super) struct Allowance {
    /// True if it covers only calls with the same arguments.
    pub(super) exactly: bool,
    pub(super) lasting: Lifetime,
}

impl Allowance {
    const fn new(exactly: bool, lasting: Lifetime) -> Self {
        Self { exactly, lasting }
    }
}

/// All permissions, in the order of their numbers.
const ALLOWANCES: [Allowance; 4] = [
    Allowance::new(false, Lifetime::Conversation),
    Allowance::new(true, Lifetime::Conversation),
    Allowance::new(false, Lifetime::ForGood),
    Allowance::new(true, Lifetime::ForGood),
];

/// Returns the permissions to offer. `can_last` includes those that outlive the conversation.
pub(super) fn allowances(can_last: bool) -> &'static [Allowance] {
    if can_last {
        &ALLOWANCES
    } else {
        ALLOWANCES.split_at(2).0
    }
}

/// Formats the question which later calls of a tool are allowed.
pub(super) fn which_calls(call: &PendingCall, choices: &[Allowance]) -> String {
    let mut text = format!(
        "  Run {} from now on without asking, with",
        clip(&call.tool, NAME_CHARS)
    );
    for (number, choice) in (1..).zip(choices) {
        let arguments = if choice.exactly { "these" } else { "any" };
        let lasting = match choice.lasting {
            Lifetime::Conversation => "this conversation",
            Lifetime::ForGood => "for good",
        };
        text.push_str(&format!("\n  [{number}] {arguments} arguments, {lasting}"));
    }
    text + "\n  [Esc] go back "
}

/// Returns the tool's preview of a call on one line, cut if it is long; [`whole`] has all of it.
pub(crate) fn preview(call: &PendingCall) -> String {
    clip(&call.preview, PREVIEW_CHARS)
}

/// Returns the whole preview on one line, if [`preview`] cuts it.
pub(crate) fn whole(call: &PendingCall) -> Option<String> {
    let line = clean_line(&call.preview);
    let line = line.trim();
    (line.chars().count() > PREVIEW_CHARS).then(|| line.to_owned())
}

/// Formats the question about a call: `? delete_task “buy milk tomorrow” [y] delete [n] keep [e]
/// edit [a] always `. `is_folded`: part of the preview was not shown, so approving is not offered.
/// `can_grant`: later calls can be allowed too. A call that offers it can be allowed for the
/// conversation, `[c]`.
pub(super) fn question(call: &PendingCall, is_folded: bool, can_grant: bool) -> String {
    let preview = preview(call);
    if is_folded {
        let hidden = whole(call).map_or(0, |whole| {
            whole.chars().count().saturating_sub(PREVIEW_CHARS - 1)
        });
        return format!(
            "? {} {preview} ({hidden} more characters)  [v] view all  [n] no ",
            clip(&call.tool, NAME_CHARS)
        );
    }
    if call.doubt.is_some() {
        return format!(
            "? {} was interrupted; it may or may not have been done: {preview}\n  \
             [d] it was done  [r] not done, try again  [l] leave it ",
            clip(&call.tool, NAME_CHARS),
        );
    }
    let no = if verb(&call.tool).is_some_and(takes_away) {
        "keep"
    } else {
        "no"
    };
    let yes = known_verb(&call.tool).unwrap_or("yes");
    let always = match (can_grant, call.for_conversation) {
        (true, _) => " [a] always ",
        (false, true) => " [c] yes, in this conversation ",
        (false, false) => "",
    };
    format!(
        "? {}  [y] {yes}  [n] {no}  [e] edit {always}",
        subject(call)
    )
}

/// Formats calls that one question is about, each on a numbered line.
pub(super) fn list(calls: &[&PendingCall]) -> String {
    let width = calls.len().to_string().len();
    let lines = (1..)
        .zip(calls)
        .map(|(number, call)| format!("\n  {number:>width$}  {}", subject(call)));
    format!("? {} calls wait for your answer", calls.len()) + &lines.collect::<String>()
}

/// Formats the question about calls that are listed above it: `  [y] delete all  [n] keep all  [o]
/// one by one `. Calls that all offer it can be allowed for the conversation, `[c]`.
pub(super) fn together(calls: &[&PendingCall]) -> String {
    let first = calls.first().and_then(|call| known_verb(&call.tool));
    let same = first.filter(|verb| {
        calls
            .iter()
            .all(|call| known_verb(&call.tool) == Some(*verb))
    });
    let yes = same.map_or("all".to_owned(), |verb| format!("{verb} all"));
    let keeps = calls
        .iter()
        .all(|call| verb(&call.tool).is_some_and(takes_away));
    let no = if keeps { "keep all" } else { "none" };
    let always = match calls.iter().all(|call| call.for_conversation) {
        true => " [c] all, in this conversation ",
        false => "",
    };
    format!("  [y] {yes}  [n] {no}  [o] one by one {always}")
}

/// Returns what a call does: its tool and its preview, without a verb that both have.
fn subject(call: &PendingCall) -> String {
    let preview = preview(call);
    // The preview of our own tools repeats their names; tools of MCP servers write previews in
    // their own words.
    let is_ours = !call.tool.contains("__");
    let what = match (verb(&call.tool), preview.split_once(' ')) {
        (Some(verb), Some((first, rest))) if is_ours && first.eq_ignore_ascii_case(verb) => rest,
        _ => preview.as_str(),
    };
    format!("{} {what}", clip(&call.tool, NAME_CHARS))
}

/// Returns the verb in a tool's name, if it can stand for "yes": tools of MCP servers choose their
/// names.
fn known_verb(tool: &str) -> Option<&str> {
    verb(tool).filter(|verb| takes_away(verb) || PLAIN_VERBS.contains(verb))
}

/// Returns the verb in a tool's name: `delete` of `delete_task`, `create` of
/// `github__create_issue`.
fn verb(tool: &str) -> Option<&str> {
    let name = tool.rsplit("__").next().unwrap_or(tool);
    let (verb, _) = name.split_once('_')?;
    (verb.len() >= 2 && verb.chars().all(|c| c.is_ascii_lowercase())).then_some(verb)
}

fn takes_away(verb: &str) -> bool {
    matches!(
        verb,
        "delete" | "remove" | "rm" | "forget" | "clear" | "drop" | "erase" | "purge" | "discard"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(tool: &str, preview: &str) -> PendingCall {
        serde_json::from_value(serde_json::json!({
            "call_id": "c", "tool": tool, "arguments": {}, "preview": preview, "digest": "d",
            "requested_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(tool: &str, preview: &str, expected: &str) {
        assert_eq!(question(&waiting(tool, preview), false, false), expected);
    }

    #[test]
    fn the_question_names_the_object_and_the_effect() {
        check(
            "delete_task",
            "Delete “buy milk tomorrow”",
            "? delete_task “buy milk tomorrow”  [y] delete  [n] keep  [e] edit ",
        );
        check(
            "update_task",
            "Change “a” to “b”",
            "? update_task Change “a” to “b”  [y] update  [n] no  [e] edit ",
        );
        check(
            "github__create_issue",
            r#"{"title":"x"}"#,
            r#"? github__create_issue {"title":"x"}  [y] create  [n] no  [e] edit "#,
        );
        check(
            "shell",
            "rm -r",
            "? shell rm -r  [y] yes  [n] no  [e] edit ",
        );
        assert!(
            question(&waiting("shell", "rm -r"), false, true).ends_with("[e] edit  [a] always ")
        );
        check(
            "keep_all",
            "everything",
            "? keep_all everything  [y] yes  [n] no  [e] edit ",
        );
    }

    #[test]
    fn one_question_lists_all_calls_and_names_what_they_have_in_common() {
        let delete = waiting("delete_task", "Delete “buy milk”");
        let forget = waiting("forget_fact", "Forget “I like tea”");
        let mut send = waiting("mail__send", r#"to ana, subject "x""#);
        assert_eq!(
            list(&[&delete, &send]),
            "? 2 calls wait for your answer\n  1  delete_task “buy milk”\n  2  mail__send to ana, subject \"x\""
        );
        let ten = vec![&delete; 10];
        assert!(list(&ten).contains("\n   1  ") && list(&ten).contains("\n  10  "));
        let end = "[o] one by one ";
        assert_eq!(
            together(&[&delete, &delete]),
            format!("  [y] delete all  [n] keep all  {end}")
        );
        assert_eq!(
            together(&[&delete, &forget]),
            format!("  [y] all  [n] keep all  {end}")
        );
        assert_eq!(
            together(&[&delete, &send]),
            format!("  [y] all  [n] none  {end}")
        );
        // Only if each of them offers it.
        send.for_conversation = true;
        assert!(!together(&[&send, &delete]).contains("[c]"));
        assert!(
            together(&[&send, &send]).ends_with("[o] one by one  [c] all, in this conversation ")
        );
    }

    #[test]
    fn a_list_has_a_line_for_each_call_whatever_its_words() {
        for text in crate::terminal::display::hostile::texts() {
            let call = waiting(&text, &text);
            let list = list(&[&call, &call]);
            assert_eq!(list.matches('\n').count(), 2, "{list:?}");
            let controls = |c: char| c != '\n' && adjutant_core::is_control(c);
            assert!(!list.chars().any(controls), "{list:?}");
        }
    }

    #[test]
    fn a_call_that_was_not_shown_whole_cannot_be_approved() {
        let call = waiting(
            "fx__destroy",
            &format!("{} and drop the database", "x".repeat(300)),
        );
        let folded = question(&call, true, true);
        assert!(
            folded.contains("[v] view all") && !folded.contains("[y]"),
            "{folded}"
        );
        assert!(folded.contains("(123 more characters)"), "{folded}");
        assert!(whole(&call).unwrap().ends_with("drop the database"));
        assert_eq!(whole(&waiting("fx__destroy", "short")), None);
    }

    #[test]
    fn a_question_is_one_line_that_no_name_or_preview_can_forge() {
        check(
            "delete\u{1b}[2K_task",
            "Keep\r? \u{202e}eteled\u{200b}\n[y] no",
            "? delete[2K_task Keep ? eteled [y] no  [y] yes  [n] no  [e] edit ",
        );
        for text in crate::terminal::display::hostile::texts() {
            let question = question(&waiting(&text, &text), false, true);
            assert!(
                !question.contains('\n') && !question.chars().any(adjutant_core::is_control),
                "{question:?}"
            );
        }
    }
}
