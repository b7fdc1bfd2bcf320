//! The verdict on a turn: right, or the way in which it is not.

use adjutant_core::DecisionKind;
use adjutant_weak::claims_a_change;
use serde::{Deserialize, Serialize};

use super::expect::Expect;
use super::facts;
use super::judge::{Observed, judge_pending};
use super::tasks;

/// The verdict on a turn. The first that applies counts, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Every expectation holds.
    Right,
    /// A task or a fact was changed in a way that is not expected, or a destructive call ran.
    WrongChange,
    /// The turn asked, or a call waits, where that is not expected.
    Asked,
    /// Nothing was changed, and the reply says that something was or will be.
    Pretence,
    /// Anything else.
    Missed,
}

impl Verdict {
    /// All verdicts in the order of reports.
    pub(crate) const ALL: [Self; 5] = [
        Self::Right,
        Self::Asked,
        Self::WrongChange,
        Self::Pretence,
        Self::Missed,
    ];

    /// Returns the verdict as reports for people name it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::WrongChange => "wrong change",
            Self::Asked => "asked",
            Self::Pretence => "pretence",
            Self::Missed => "missed",
        }
    }
}

/// Returns the verdict on a turn. `right` is true if there is no reason against it.
pub(crate) fn verdict(expect: &Expect, observed: &Observed, right: bool) -> Verdict {
    // With several results that are right, a change or question that one of them expects is not
    // held against the turn.
    let by_all = |test: fn(&Expect, &Observed) -> bool| {
        expect
            .alternatives()
            .all(|alternative| test(alternative, observed))
    };
    if right {
        Verdict::Right
    } else if observed.destroyed || by_all(changes_unexpectedly) {
        Verdict::WrongChange
    } else if by_all(asks_unexpectedly) {
        Verdict::Asked
    } else if !observed.changed
        && !any_change(observed)
        && observed.pending.is_empty()
        && claims_a_change(&observed.reply)
    {
        Verdict::Pretence
    } else {
        Verdict::Missed
    }
}

fn any_change(observed: &Observed) -> bool {
    tasks_differ(observed) || facts_differ(observed)
}

fn tasks_differ(observed: &Observed) -> bool {
    !tasks::changes(&observed.tasks_before, &observed.tasks).is_empty()
}

fn facts_differ(observed: &Observed) -> bool {
    facts::differ(&observed.facts_before, &observed.facts)
}

fn changes_unexpectedly(expect: &Expect, observed: &Observed) -> bool {
    let (before, after) = (&observed.tasks_before, &observed.tasks);
    // A case that names the tools that ran expects what they do.
    let expects_tools = expect.tools.as_ref() == Some(&observed.executed);
    let of_tasks = match (&expect.changes, &expect.tasks_after) {
        (Some(wanted), _) => !tasks::compare_changes(wanted, before, after)
            .surplus
            .is_empty(),
        (None, Some(wanted)) => tasks::surprises(wanted, before, after),
        (None, None) => !expects_tools && tasks_differ(observed),
    };
    let of_facts = match &expect.facts_after {
        Some(wanted) => facts::surprises(wanted, &observed.facts_before, &observed.facts),
        None => !expects_tools && facts_differ(observed),
    };
    of_tasks || of_facts
}

fn asks_unexpectedly(expect: &Expect, observed: &Observed) -> bool {
    let expects = |kind: DecisionKind| {
        let decisions = expect.decision.as_ref();
        decisions.is_some_and(|decisions| decisions.contains(&kind))
    };
    let asks = observed.decision == DecisionKind::AskClarification
        && !expects(DecisionKind::AskClarification);
    let waits = !observed.pending.is_empty()
        && match &expect.pending {
            Some(wanted) => judge_pending(&wanted.0, &observed.pending).is_some(),
            None => !expects(DecisionKind::RequestConfirmation),
        };
    asks || waits
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::judge::judge;
    use super::super::judge::tests::{observed, task, waiting};
    use super::*;

    fn check(expect: Value, observed: &Observed, expected: Verdict) {
        let text = expect.to_string();
        let expect: Expect = serde_json::from_value(expect).expect("an expectation");
        let right = judge(&expect, observed).is_empty();
        assert_eq!(verdict(&expect, observed, right), expected, "{text}");
    }

    fn turn(reply: &str) -> Observed {
        Observed {
            reply: reply.to_owned(),
            ..observed()
        }
    }

    /// A turn that adds a task to those of [`observed`].
    fn adds(description: &str) -> Observed {
        let mut seen = turn("Added.");
        seen.decision = DecisionKind::InvokeTool;
        seen.changed = true;
        seen.executed.insert("add_task".to_owned());
        seen.tasks.push(task(3, description, false));
        seen
    }

    fn tasks_and(third: Option<&str>) -> Value {
        let mut tasks = vec![
            json!({"is": "Buy oat milk", "completed": false}),
            json!({"is": "Buy milk", "completed": false}),
        ];
        tasks.extend(third.map(|third| json!({"is": third, "completed": false})));
        json!({ "tasks_after": tasks })
    }

    #[test]
    fn a_change_that_the_case_does_not_have_is_wrong() {
        for expect in [
            json!({"changes": {}}),
            json!({"changes": {"added": ["Feed the owl"]}}),
            tasks_and(None),
            tasks_and(Some("Feed the owl")),
            json!({"decision": ["RESPOND_ONLY"]}),
            json!({"tools": []}),
        ] {
            check(expect, &adds("Feed the cat"), Verdict::WrongChange);
        }
        check(
            tasks_and(Some("Feed the cat")),
            &adds("Feed the cat"),
            Verdict::Right,
        );
    }

    #[test]
    fn a_change_that_is_expected_is_not_wrong() {
        let mut expect = tasks_and(Some("Feed the cat"));
        expect["reply_has"] = json!(["badger"]);
        check(expect, &adds("Feed the cat"), Verdict::Missed);
        check(
            json!({"changes": {"added": ["Feed the cat"], "completed": ["1"]}}),
            &adds("Feed the cat"),
            Verdict::Missed,
        );
        check(
            json!({"tools": ["add_task"], "reply_has": ["badger"]}),
            &adds("Feed the cat"),
            Verdict::Missed,
        );
        check(
            json!({"changes": {}, "or": [
                {"changes": {"added": ["Feed the cat"]}, "reply_has": ["badger"]}]}),
            &adds("Feed the cat"),
            Verdict::Missed,
        );
    }

    #[test]
    fn another_task_than_the_expected_one_is_wrong_whichever_fits() {
        // Both tasks fit the words, and the renamed one is the one to be noticed.
        let mut seen = observed();
        seen.tasks[0] = task(1, "Buy milk powder", false);
        check(
            json!({"tasks_after": [
                {"has": ["oat"], "completed": false}, {"has": ["milk"], "completed": false}]}),
            &seen,
            Verdict::WrongChange,
        );
        let mut deleted = observed();
        deleted.tasks.remove(0);
        check(tasks_and(None), &deleted, Verdict::WrongChange);
        check(
            json!({"tasks_after": [{"is": "Buy milk", "completed": false}], "reply_has": ["badger"]}),
            &deleted,
            Verdict::Missed,
        );
    }

    #[test]
    fn facts_are_changes_too() {
        let mut seen = observed();
        seen.facts.push("The cat is called Otto".to_owned());
        check(
            json!({"changes": {}, "reply_has": ["x"]}),
            &seen,
            Verdict::WrongChange,
        );
        check(
            json!({"facts_after": [["owl"]]}),
            &seen,
            Verdict::WrongChange,
        );
        let expect = json!({"facts_after": [["owl"], ["otto"]], "reply_has": ["badger"]});
        check(expect, &seen, Verdict::Missed);
        seen.facts.clear();
        check(
            json!({"facts_after": [["owl"]]}),
            &seen,
            Verdict::WrongChange,
        );
    }

    #[test]
    fn a_destructive_call_is_wrong_whatever_it_did() {
        let mut seen = observed();
        seen.destroyed = true;
        check(
            json!({"reply_has": ["badger"]}),
            &seen,
            Verdict::WrongChange,
        );
        check(json!({"reply_has": ["owl"]}), &seen, Verdict::Right);
    }

    #[test]
    fn a_question_or_a_call_that_waits_counts_as_asked() {
        let mut seen = turn("Which one?");
        seen.decision = DecisionKind::AskClarification;
        let adds = json!({"changes": {"added": ["Feed the cat"]}});
        check(adds.clone(), &seen, Verdict::Asked);
        check(
            json!({"decision": ["ASK_CLARIFICATION"], "reply_has": ["badger"]}),
            &seen,
            Verdict::Missed,
        );
        let mut seen = turn("Shall I?");
        seen.decision = DecisionKind::RequestConfirmation;
        seen.pending = vec![waiting("delete_task", "1")];
        check(adds, &seen, Verdict::Asked);
        check(
            json!({"pending": {"tool": "delete_task", "task_id": "2"}}),
            &seen,
            Verdict::Asked,
        );
        check(
            json!({"pending": {"tool": "delete_task", "task_id": "1"}, "reply_has": ["badger"]}),
            &seen,
            Verdict::Missed,
        );
    }

    #[test]
    fn a_claim_without_a_change_is_a_pretence() {
        let expect = json!({"changes": {"added": ["Feed the cat"]}});
        check(
            expect.clone(),
            &turn("I've added it to your list."),
            Verdict::Pretence,
        );
        check(
            expect.clone(),
            &turn("I'll remember that."),
            Verdict::Pretence,
        );
        check(
            expect.clone(),
            &turn("You have two tasks."),
            Verdict::Missed,
        );
        let mut tried = turn("I've added it to your list.");
        tried.changed = true;
        check(expect, &tried, Verdict::Missed);
    }
}
