//! Compares the result of a turn with the expectation of its case. Pure: observations in, reasons
//! of failure out.

use std::collections::BTreeSet;

use adjutant_core::{DecisionKind, PendingCall};
use adjutant_tools::Task;

use super::expect::{Expect, PendingExpected};
use super::facts::judge_facts;
use super::matching::pair;
use super::tasks::{judge_changes, judge_tasks};
use super::wording::contains;

/// The result of a turn.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    /// The turn's decision.
    pub(crate) decision: DecisionKind,
    /// The executed tools, successful or not.
    pub(crate) executed: BTreeSet<String>,
    /// The calls that wait for confirmation.
    pub(crate) pending: Vec<PendingCall>,
    /// The text for the user.
    pub(crate) reply: String,
    /// All tasks before the turn.
    pub(crate) tasks_before: Vec<Task>,
    /// All tasks after the turn.
    pub(crate) tasks: Vec<Task>,
    /// All facts before the turn.
    pub(crate) facts_before: Vec<String>,
    /// All facts after the turn.
    pub(crate) facts: Vec<String>,
    /// Today's note; empty if there is none.
    pub(crate) note_today: String,
    /// True if a tool that changes something was executed, successful or not.
    pub(crate) changed: bool,
    /// True if a destructive call ran without a yes.
    pub(crate) destroyed: bool,
}

/// Returns a reason for each expectation that does not hold; empty if the case passed. If none of
/// the results that are right occurred, the reasons are those of the first.
pub(crate) fn judge(expect: &Expect, observed: &Observed) -> Vec<String> {
    let mut reasons = None;
    for alternative in expect.alternatives() {
        let found = judge_one(alternative, observed);
        if found.is_empty() {
            return found;
        }
        reasons.get_or_insert(found);
    }
    reasons.unwrap_or_default()
}

fn judge_one(expect: &Expect, observed: &Observed) -> Vec<String> {
    let reply = observed.reply.to_lowercase();
    let has = |word: &&String| reply.contains(&word.to_lowercase());
    let mut reasons = Vec::new();
    // All reasons are collected, because one run of a model is expensive and should explain itself.
    if let Some(decisions) = &expect.decision
        && !decisions.contains(&observed.decision)
    {
        let wanted: Vec<&str> = decisions.iter().map(|kind| kind.as_str()).collect();
        reasons.push(format!(
            "decision is {}, expected {}",
            observed.decision,
            wanted.join(" or ")
        ));
    }
    if let Some(tools) = &expect.tools
        && *tools != observed.executed
    {
        reasons.push(format!(
            "executed {}, expected {}",
            format_tools(&observed.executed),
            format_tools(tools)
        ));
    }
    if let Some(wanted) = &expect.pending {
        reasons.extend(judge_pending(&wanted.0, &observed.pending));
    }
    for word in expect.reply_has.iter().filter(|word| !has(word)) {
        reasons.push(format!("the reply lacks {word:?}"));
    }
    for word in expect.reply_lacks.iter().filter(has) {
        reasons.push(format!("the reply has {word:?}"));
    }
    if let Some(wanted) = &expect.tasks_after {
        reasons.extend(judge_tasks(wanted, &observed.tasks));
    }
    if let Some(wanted) = &expect.changes {
        let (before, after) = (&observed.tasks_before, &observed.tasks);
        reasons.extend(judge_changes(wanted, before, after));
    }
    if let Some(wanted) = &expect.facts_after {
        reasons.extend(judge_facts(wanted, &observed.facts));
    }
    match expect.note_today.as_deref() {
        Some([]) if !observed.note_today.is_empty() => {
            reasons.push("there is a note of today".to_owned())
        }
        Some(words) => {
            let lacking = words
                .iter()
                .filter(|word| !contains(&observed.note_today, word));
            reasons.extend(lacking.map(|word| format!("today's note lacks {word:?}")));
        }
        None => {}
    }
    reasons
}

/// Returns the reason why the pending calls are not the expected ones, if they are not. A call is
/// compared by its task and by its question, as far as they are given.
pub(crate) fn judge_pending(wanted: &[PendingExpected], pending: &[PendingCall]) -> Option<String> {
    let is_expected = |wanted: &PendingExpected, call: &PendingCall| {
        let task = wanted.task_id.map(|task| task.to_string());
        call.tool == wanted.tool
            && (task.is_none() || task.as_deref() == task_of(call))
            && wanted.has.iter().all(|word| contains(&call.preview, word))
    };
    let fits: Vec<Vec<usize>> = wanted
        .iter()
        .map(|wanted| {
            let calls = 0..pending.len();
            calls
                .filter(|&call| is_expected(wanted, &pending[call]))
                .collect()
        })
        .collect();
    let all_wait = pair(&fits, pending.len()).iter().all(Option::is_some);
    if all_wait && wanted.len() == pending.len() {
        return None;
    }
    let by_task = wanted.iter().any(|wanted| wanted.task_id.is_some());
    let waiting: Vec<String> = pending
        .iter()
        .map(|call| match task_of(call) {
            id if by_task => format!("{} of task {}", call.tool, id.unwrap_or("(none)")),
            _ => format!("{} ({})", call.tool, call.preview),
        })
        .collect();
    let expected: Vec<String> = wanted.iter().map(ToString::to_string).collect();
    Some(format!(
        "{} waits, expected {}",
        joined(&waiting),
        joined(&expected)
    ))
}

fn task_of(call: &PendingCall) -> Option<&str> {
    call.arguments.get("task_id").and_then(|id| id.as_str())
}

fn joined(calls: &[String]) -> String {
    if calls.is_empty() {
        return "nothing".to_owned();
    }
    calls.join(" and ")
}

fn format_tools(tools: &BTreeSet<String>) -> String {
    if tools.is_empty() {
        return "no tool".to_owned();
    }
    let names: Vec<&str> = tools.iter().map(String::as_str).collect();
    names.join(", ")
}

#[cfg(test)]
pub(crate) mod tests {
    use adjutant_core::{CallId, UserId};
    use adjutant_tools::{TaskDescription, TaskId};
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    pub(crate) fn observed() -> Observed {
        Observed {
            decision: DecisionKind::RespondOnly,
            executed: BTreeSet::new(),
            pending: Vec::new(),
            reply: "Fine, your Owl is fed.".to_owned(),
            tasks_before: vec![task(1, "Buy oat milk", false), task(2, "Buy milk", false)],
            tasks: vec![task(1, "Buy oat milk", false), task(2, "Buy milk", false)],
            facts_before: vec!["The owl is called Ida".to_owned()],
            facts: vec!["The owl is called Ida".to_owned()],
            note_today: "- 14:05 Fed the owl".to_owned(),
            changed: false,
            destroyed: false,
        }
    }

    pub(crate) fn task(id: u64, description: &str, completed: bool) -> Task {
        Task {
            id: TaskId::new(id).expect("an id"),
            user_id: UserId::local(),
            description: TaskDescription::new(description).expect("words"),
            completed,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            completed_at: None,
            from_others: false,
        }
    }

    pub(crate) fn waiting(tool: &str, id: &str) -> PendingCall {
        PendingCall {
            call_id: CallId::new("call_1").expect("an id"),
            tool: tool.to_owned(),
            arguments: serde_json::from_value(json!({ "task_id": id })).expect("arguments"),
            preview: String::new(),
            digest: String::new(),
            definition: None,
            intent: None,
            requested_at: Timestamp::UNIX_EPOCH,
            expires_at: Timestamp::UNIX_EPOCH,
            doubt: None,
            awaits: None,
            for_conversation: false,
            always: false,
        }
    }

    fn check(expect: serde_json::Value, observed: &Observed, reasons: &[&str]) {
        let expect: Expect = serde_json::from_value(expect).expect("an expectation");
        assert_eq!(judge(&expect, observed), reasons);
    }

    #[test]
    fn the_decision_is_one_of_those_listed() {
        check(
            json!({"decision": ["INVOKE_TOOL", "RESPOND_ONLY"]}),
            &observed(),
            &[],
        );
        check(
            json!({"decision": ["INVOKE_TOOL", "ASK_CLARIFICATION"]}),
            &observed(),
            &["decision is RESPOND_ONLY, expected INVOKE_TOOL or ASK_CLARIFICATION"],
        );
    }

    #[test]
    fn the_executed_tools_are_equal_as_sets() {
        let mut seen = observed();
        check(json!({"tools": []}), &seen, &[]);
        seen.executed.insert("add_task".to_owned());
        check(json!({"tools": ["add_task"]}), &seen, &[]);
        check(
            json!({"tools": []}),
            &seen,
            &["executed add_task, expected no tool"],
        );
        check(
            json!({"tools": ["add_task", "list_tasks"]}),
            &seen,
            &["executed add_task, expected add_task, list_tasks"],
        );
    }

    #[test]
    fn exactly_the_expected_call_waits() {
        let expect = json!({"pending": {"tool": "delete_task", "task_id": "8"}});
        let mut seen = observed();
        check(
            expect.clone(),
            &seen,
            &["nothing waits, expected delete_task of task 8"],
        );
        seen.pending = vec![waiting("delete_task", "8")];
        check(expect.clone(), &seen, &[]);
        seen.pending = vec![waiting("delete_task", "80")];
        check(
            expect.clone(),
            &seen,
            &["delete_task of task 80 waits, expected delete_task of task 8"],
        );
        seen.pending = vec![waiting("delete_task", "8"), waiting("delete_task", "9")];
        check(
            expect,
            &seen,
            &[
                "delete_task of task 8 and delete_task of task 9 waits, expected delete_task of task 8",
            ],
        );
    }

    #[test]
    fn several_calls_wait_in_any_order() {
        let expect = json!({"pending": [
            {"tool": "delete_task", "task_id": "1"}, {"tool": "delete_task", "task_id": "2"}]});
        let mut seen = observed();
        seen.pending = vec![waiting("delete_task", "2"), waiting("delete_task", "1")];
        check(expect.clone(), &seen, &[]);
        check(
            json!({"pending": []}),
            &seen,
            &["delete_task () and delete_task () waits, expected nothing"],
        );
        seen.pending[1] = waiting("delete_task", "2");
        check(
            expect,
            &seen,
            &[
                "delete_task of task 2 and delete_task of task 2 waits, expected delete_task of task 1 and delete_task of task 2",
            ],
        );
        check(json!({"pending": []}), &observed(), &[]);
    }

    #[test]
    fn a_call_that_waits_is_known_by_its_question_too() {
        let expect = json!({"pending": {"tool": "forget", "has": ["ida"]}});
        let mut seen = observed();
        check(
            expect.clone(),
            &seen,
            &["nothing waits, expected forget of ida"],
        );
        seen.pending = vec![PendingCall {
            preview: "Forget “Ida”?".to_owned(),
            ..waiting("forget", "")
        }];
        check(expect.clone(), &seen, &[]);
        seen.pending[0].preview = "Forget “Otto”?".to_owned();
        check(
            expect,
            &seen,
            &["forget (Forget “Otto”?) waits, expected forget of ida"],
        );
    }

    #[test]
    fn facts_and_the_note_hold_or_fail() {
        check(
            json!({"facts_after": [["OWL", "ida"]], "note_today": ["fed"]}),
            &observed(),
            &[],
        );
        check(
            json!({"facts_after": [["otto"]]}),
            &observed(),
            &[
                "no fact \u{201c}otto\u{201d}",
                "unexpected fact \u{201c}The owl is called Ida\u{201d}",
            ],
        );
        check(
            json!({"note_today": []}),
            &observed(),
            &["there is a note of today"],
        );
        check(
            json!({"note_today": ["otto"]}),
            &observed(),
            &["today's note lacks \"otto\""],
        );
    }

    #[test]
    fn words_of_the_reply_count_in_any_case() {
        check(
            json!({"reply_has": ["owl", "FED"], "reply_lacks": ["cat"]}),
            &observed(),
            &[],
        );
        check(
            json!({"reply_has": ["cat"], "reply_lacks": ["OWL"]}),
            &observed(),
            &["the reply lacks \"cat\"", "the reply has \"OWL\""],
        );
    }

    #[test]
    fn tasks_are_matched_one_to_one_in_any_order() {
        // The first expectation fits both tasks, the second only the first of them.
        let expect = json!({"tasks_after": [
            {"has": ["buy", "milk"], "completed": false}, {"has": ["OAT"], "completed": false}]});
        check(expect.clone(), &observed(), &[]);
        let reversed = json!({"tasks_after": [
            {"has": ["oat"], "completed": false}, {"has": ["buy", "milk"], "completed": false}]});
        check(reversed, &observed(), &[]);
        let mut seen = observed();
        seen.tasks[0].completed = true;
        check(
            expect,
            &seen,
            &[
                "no task \u{201c}OAT\u{201d} open",
                "unexpected task \u{201c}Buy oat milk\u{201d} done",
            ],
        );
    }

    #[test]
    fn the_number_of_tasks_counts() {
        check(
            json!({"tasks_after": [{"has": ["oat"], "completed": false}]}),
            &observed(),
            &[
                "2 tasks after the turn, expected 1",
                "unexpected task \u{201c}Buy milk\u{201d} open",
            ],
        );
        check(
            json!({"tasks_after": [{"has": ["oat"], "completed": false}, {"has": ["milk"], "completed": false},
                {"has": ["milk"], "completed": false}]}),
            &observed(),
            &[
                "2 tasks after the turn, expected 3",
                "no task \u{201c}milk\u{201d} open",
            ],
        );
    }

    #[test]
    fn a_description_has_exactly_the_words() {
        let after = |is: serde_json::Value| {
            json!({"tasks_after": [
                {"is": is, "completed": false}, {"is": "buy oat milk!", "completed": false}]})
        };
        check(after(json!("Buy milk")), &observed(), &[]);
        check(after(json!(["Get milk", "Buy milk"])), &observed(), &[]);
        check(
            after(json!(["milk", "Get milk"])),
            &observed(),
            &[
                "no task \u{201c}milk\u{201d} or \u{201c}Get milk\u{201d} open",
                "unexpected task \u{201c}Buy milk\u{201d} open",
            ],
        );
    }

    #[test]
    fn exactly_the_expected_changes_happen() {
        let mut seen = observed();
        check(json!({"changes": {}}), &seen, &[]);
        seen.tasks[0].completed = true;
        seen.tasks[1] = task(2, "Buy rice milk", false);
        seen.tasks.push(task(3, "Feed the owl", false));
        let all = json!({"changes": {"added": ["feed the owl"], "completed": ["1"],
            "renamed": {"2": {"has": ["rice"]}}}});
        check(all.clone(), &seen, &[]);
        check(
            json!({"changes": {}}),
            &seen,
            &[
                "unexpected: completed task 1 \u{201c}Buy oat milk\u{201d}",
                "unexpected: renamed task 2 \u{201c}Buy milk\u{201d} to \u{201c}Buy rice milk\u{201d}",
                "unexpected: added task \u{201c}Feed the owl\u{201d}",
            ],
        );
        check(
            all.clone(),
            &observed(),
            &[
                "added no task \u{201c}feed the owl\u{201d}",
                "task 1 is not completed",
                "task 2 is not renamed to \u{201c}rice\u{201d}",
            ],
        );
        seen.tasks.remove(0);
        check(
            all,
            &seen,
            &[
                "task 1 is not completed",
                "unexpected: deleted task 1 \u{201c}Buy oat milk\u{201d}",
            ],
        );
    }

    #[test]
    fn changes_have_to_have_the_words() {
        let mut seen = observed();
        seen.tasks[1] = task(2, "Buy rice milk", false);
        seen.tasks.push(task(3, "Feed the owl", false));
        check(
            json!({"changes": {"added": ["Feed owl"], "renamed": {"2": "Rice milk"}}}),
            &seen,
            &[
                "added no task \u{201c}Feed owl\u{201d}",
                "unexpected: renamed task 2 \u{201c}Buy milk\u{201d} to \u{201c}Buy rice milk\u{201d}",
                "unexpected: added task \u{201c}Feed the owl\u{201d}",
            ],
        );
        let mut reopened = observed();
        reopened.tasks_before[0].completed = true;
        check(
            json!({"changes": {}}),
            &reopened,
            &["unexpected: reopened task 1 \u{201c}Buy oat milk\u{201d}"],
        );
    }

    #[test]
    fn one_of_several_results_is_enough() {
        let expect = json!({"reply_has": ["cat"], "tools": [],
            "or": [{"reply_has": ["dog"]}, {"reply_has": ["owl"]}]});
        check(expect, &observed(), &[]);
        check(
            json!({"reply_has": ["cat"], "or": [{"reply_has": ["dog"]}]}),
            &observed(),
            &["the reply lacks \"cat\""],
        );
    }
}
