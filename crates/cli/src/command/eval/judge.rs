//! Compares the result of a turn with the expectation of its case. Pure: observations in, reasons
//! of failure out.

use std::collections::BTreeSet;

use adjutant_core::{DecisionKind, PendingCall};
use adjutant_tools::Task;

use crate::terminal::display::plural;

use super::case::{Expect, PendingExpected, TaskAfter, open_or_done};

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
    /// All tasks after the turn.
    pub(crate) tasks: Vec<Task>,
    /// All facts after the turn.
    pub(crate) facts: Vec<String>,
    /// Today's note; empty if there is none.
    pub(crate) note_today: String,
}

/// Returns a reason for each expectation that does not hold; empty if the case passed.
pub(crate) fn judge(expect: &Expect, observed: &Observed) -> Vec<String> {
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
        reasons.extend(judge_pending(wanted, &observed.pending));
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

fn contains(text: &str, word: &str) -> bool {
    text.to_lowercase().contains(&word.to_lowercase())
}

/// Returns the reason why the pending call is not the expected one, if it is not. It is compared by
/// its task, or without one by its question.
fn judge_pending(wanted: &PendingExpected, pending: &[PendingCall]) -> Option<String> {
    let task_of = |call: &PendingCall| {
        let id = call.arguments.get("task_id").and_then(|id| id.as_str());
        format!("{} of task {}", call.tool, id.unwrap_or("(none)"))
    };
    let by_question = |call: &PendingCall| format!("{} ({})", call.tool, call.preview);
    let (expected, waiting): (String, Vec<String>) = match wanted.task_id {
        Some(task) => (
            format!("{} of task {task}", wanted.tool),
            pending.iter().map(task_of).collect(),
        ),
        None => (
            format!("{} of {}", wanted.tool, wanted.has.join(" ")),
            pending.iter().map(by_question).collect(),
        ),
    };
    let is_expected = |call: &PendingCall| match wanted.task_id {
        Some(_) => task_of(call) == expected,
        None => {
            call.tool == wanted.tool && wanted.has.iter().all(|word| contains(&call.preview, word))
        }
    };
    match pending {
        [only] if is_expected(only) => None,
        [] => Some(format!("nothing waits, expected {expected}")),
        _ => Some(format!(
            "{} waits, expected {expected}",
            waiting.join(" and ")
        )),
    }
}

/// Matches each expectation with the first remaining fact that fits.
fn judge_facts(wanted: &[Vec<String>], facts: &[String]) -> Vec<String> {
    let mut left: Vec<&String> = facts.iter().collect();
    let mut reasons = Vec::new();
    for words in wanted {
        match left
            .iter()
            .position(|fact| words.iter().all(|word| contains(fact, word)))
        {
            Some(at) => {
                left.remove(at);
            }
            None => reasons.push(format!("no fact \u{201c}{}\u{201d}", words.join(" "))),
        }
    }
    reasons.extend(
        left.iter()
            .map(|fact| format!("unexpected fact \u{201c}{fact}\u{201d}")),
    );
    reasons
}

fn judge_tasks(wanted: &[TaskAfter], tasks: &[Task]) -> Vec<String> {
    let mut reasons = Vec::new();
    if wanted.len() != tasks.len() {
        reasons.push(format!(
            "{} after the turn, expected {}",
            plural(tasks.len() as u64, "task", "tasks"),
            wanted.len()
        ));
    }
    let fits: Vec<Vec<usize>> = wanted
        .iter()
        .map(|wanted| {
            let indexes = 0..tasks.len();
            indexes.filter(|&task| fits(wanted, &tasks[task])).collect()
        })
        .collect();
    let mut owners = vec![None; tasks.len()];
    for (index, wanted) in wanted.iter().enumerate() {
        // An expectation that has a task keeps one, so what is unmatched now stays unmatched.
        if !assign(index, &fits, &mut owners, &mut BTreeSet::new()) {
            reasons.push(format!("no task {wanted}"));
        }
    }
    for (task, _) in tasks
        .iter()
        .zip(&owners)
        .filter(|(_, owner)| owner.is_none())
    {
        reasons.push(format!(
            "unexpected task \u{201c}{}\u{201d} {}",
            task.description,
            open_or_done(task.completed)
        ));
    }
    reasons
}

/// Gives an expectation a task that fits it, and returns false if there is none. `owners` has the
/// expectation of each task so far.
///
/// A task may fit several expectations ("buy", "milk" fits "Buy milk" and "Buy oat milk"), so the
/// first fit is not good enough: an expectation takes a task from another one whenever that one can
/// have a different task (Kuhn's algorithm for a maximum one-to-one matching).
fn assign(
    wanted: usize,
    fits: &[Vec<usize>],
    owners: &mut [Option<usize>],
    tried: &mut BTreeSet<usize>,
) -> bool {
    for &task in &fits[wanted] {
        // Each task is tried once, else two expectations would take it from each other forever.
        if !tried.insert(task) {
            continue;
        }
        if owners[task].is_none_or(|owner| assign(owner, fits, owners, tried)) {
            owners[task] = Some(wanted);
            return true;
        }
    }
    false
}

fn fits(wanted: &TaskAfter, task: &Task) -> bool {
    let description = task.description.as_str();
    wanted.completed == task.completed && wanted.has.iter().all(|word| contains(description, word))
}

fn format_tools(tools: &BTreeSet<String>) -> String {
    if tools.is_empty() {
        return "no tool".to_owned();
    }
    let names: Vec<&str> = tools.iter().map(String::as_str).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use adjutant_core::{CallId, UserId};
    use adjutant_tools::{TaskDescription, TaskId};
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn observed() -> Observed {
        Observed {
            decision: DecisionKind::RespondOnly,
            executed: BTreeSet::new(),
            pending: Vec::new(),
            reply: "Fine, your Owl is fed.".to_owned(),
            tasks: vec![task(1, "Buy oat milk", false), task(2, "Buy milk", false)],
            facts: vec!["The owl is called Ida".to_owned()],
            note_today: "- 14:05 Fed the owl".to_owned(),
        }
    }

    fn task(id: u64, description: &str, completed: bool) -> Task {
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

    fn waiting(tool: &str, id: &str) -> PendingCall {
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
}
