//! Resolution of a task from an id or from words. An unclear reference becomes a question, never a
//! guess.

use super::model::Task;
use super::view::quoted;

/// Most candidates that a question lists.
const LISTED_MAX: usize = 5;
/// Most characters that a question repeats of a task, or of what was searched for.
const SHOWN_CHARS_MAX: usize = 80;

/// The tasks that words may mean when they fit open and done ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// Open and done tasks alike: then it is not clear which one is meant.
    Any,
    /// Open tasks rather than done ones.
    Open,
}

/// Returns the one task that `text` means: its id (`3`, `#3`, `task 3`, `3. Buy milk`), its
/// description, or enough words of it.
///
/// # Errors
/// The question for the user if no task or several are meant.
pub(super) fn resolve<'a>(
    text: &str,
    tasks: &'a [Task],
    prefer: Prefer,
) -> Result<&'a Task, String> {
    let text = text.trim();
    if let Some(task) = by_number(text, tasks) {
        return Ok(task);
    }
    let lower = text.to_lowercase();
    let spoken = words(text);
    // A number that is no id is not searched for in descriptions: another task may have it by
    // chance.
    let wanted = if number(text).is_some() {
        Vec::new()
    } else {
        content_words(&spoken)
    };
    // From strict to loose: the first step that fits any task decides.
    let steps: [&dyn Fn(&Task) -> bool; 3] = [
        &|task| task.description.as_str().to_lowercase() == lower,
        &|task| {
            let words = words(task.description.as_str());
            !wanted.is_empty() && (words == spoken || words == wanted)
        },
        &|task| {
            let words = words(task.description.as_str());
            !wanted.is_empty() && wanted.iter().all(|word| words.contains(word))
        },
    ];
    for step in steps {
        let mut found: Vec<&Task> = tasks.iter().filter(|task| step(task)).collect();
        // A done task of the same name is seldom what is to be completed.
        if prefer == Prefer::Open && found.iter().any(|task| !task.completed) {
            found.retain(|task| !task.completed);
        }
        match found.as_slice() {
            [] => {}
            [task] => return Ok(task),
            several => {
                return Err(format!(
                    "Which one do you mean: {}?",
                    listed(several, "or", false)
                ));
            }
        }
    }
    Err(not_found(text, tasks))
}

/// Finds a task by its id, alone or followed by the words of that task.
fn by_number<'a>(text: &str, tasks: &'a [Task]) -> Option<&'a Task> {
    let find = |digits: &str| {
        let id: u64 = digits.parse().ok()?;
        tasks.iter().find(|task| task.id.get() == id)
    };
    if let Some(digits) = number(text) {
        return find(digits);
    }
    // "3. Buy milk", as a list shows it. Without the mark it could be words: "2 apples".
    let (digits, rest) = text.trim_start_matches('#').split_once(['.', ':', ')'])?;
    let spoken = words(rest);
    let task = if is_digits(digits) && !spoken.is_empty() {
        find(digits)
    } else {
        None
    };
    task.filter(|task| words(task.description.as_str()) == spoken)
}

/// Returns the digits of a text that is only an id, such as `3`, `#3`, `task 3` or `Task #3.`.
fn number(text: &str) -> Option<&str> {
    let mut digits = text.trim_end_matches('.');
    // In this order, because they may follow each other: "task number #3".
    for prefix in ["task", "number", "id", "#"] {
        if let Some((start, rest)) = digits.split_at_checked(prefix.len())
            && start.eq_ignore_ascii_case(prefix)
        {
            digits = rest.trim_start_matches([' ', ':']);
        }
    }
    is_digits(digits).then_some(digits)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Splits a text into words, in lower case, without punctuation and plural endings.
fn words(text: &str) -> Vec<String> {
    // People write "mum's" and "mums" for the same word.
    let text: String = text.chars().filter(|c| !matches!(c, '\'' | '’')).collect();
    text.to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(singular)
        .collect()
}

/// Removes the filler that people put around the words of a task: "the milk one". Not for the
/// description itself, where any word may distinguish the task ("Plan A").
fn content_words(spoken: &[String]) -> Vec<String> {
    const FILLER: &[&str] = &[
        "a", "about", "an", "and", "for", "from", "in", "it", "item", "my", "of", "on", "one",
        "please", "task", "that", "the", "them", "these", "this", "those", "to", "todo", "with",
    ];
    spoken
        .iter()
        .filter(|word| !FILLER.contains(&word.as_str()))
        .cloned()
        .collect()
}

/// Removes an English plural ending. Both sides go through it, so the result need not be right,
/// only the same.
fn singular(word: &str) -> String {
    // Short words that end in s are seldom plurals: "gas", "bus".
    if word.chars().count() <= 3 {
        return word.to_owned();
    }
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}y");
    }
    for ending in ["ches", "shes", "sses", "xes", "zes"] {
        if word.ends_with(ending) {
            return word.strip_suffix("es").unwrap_or(word).to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(stem) if !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
        Some(_) | None => word.to_owned(),
    }
}

fn not_found(text: &str, tasks: &[Task]) -> String {
    let open: Vec<&Task> = tasks.iter().filter(|task| !task.completed).collect();
    let digits = number(text);
    let missing = match digits {
        Some(digits) => format!("I can't find task {}. ", shown(digits)),
        None if content_words(&words(text)).is_empty() => String::new(),
        None => format!("I can't find task {}. ", quoted(&shown(text))),
    };
    if tasks.is_empty() {
        format!("{missing}You have no tasks.")
    } else if open.is_empty() {
        format!("{missing}You have no open tasks. Which task do you mean?")
    } else {
        let verb = if open.len() == 1 {
            "Your only open task is"
        } else {
            "Your open tasks are"
        };
        format!(
            "{missing}{verb} {}. Which task do you mean?",
            listed(&open, "and", digits.is_some())
        )
    }
}

/// Joins the descriptions of tasks. An id follows where it was asked for, or where two descriptions
/// are the same. A task that the user did not write is named by its id alone.
fn listed(tasks: &[&Task], conjunction: &str, with_ids: bool) -> String {
    let names: Vec<String> = tasks
        .iter()
        .take(LISTED_MAX)
        .map(|task| {
            let words = shown(task.description.as_str());
            let twins = tasks
                .iter()
                .filter(|other| shown(other.description.as_str()) == words)
                .count();
            match (with_ids || twins > 1, task.completed) {
                // The question becomes a part of the conversation, which its text could instruct.
                _ if task.from_others => format!("task {} (written by a program)", task.id),
                (false, false) => quoted(&words),
                (false, true) => format!("{} (done)", quoted(&words)),
                (true, false) => format!("{} (task {})", quoted(&words), task.id),
                (true, true) => format!("{} (task {}, done)", quoted(&words), task.id),
            }
        })
        .collect();
    let more = tasks.len() - names.len();
    match names.as_slice() {
        all if more > 0 => format!("{} {conjunction} {more} more", all.join(", ")),
        [first @ .., last] if !first.is_empty() => {
            format!("{} {conjunction} {last}", first.join(", "))
        }
        all => all.join(", "),
    }
}

/// Puts a text on one line, cut to what a question can hold.
fn shown(words: &str) -> String {
    let line: String = words
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN_CHARS_MAX)
        .collect();
    if words.chars().count() > SHOWN_CHARS_MAX {
        format!("{}…", line.trim_end())
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::UserId;
    use expect_test::{Expect, expect};
    use jiff::Timestamp;

    use super::super::model::{TaskDescription, TaskId};
    use super::*;

    /// Parses tasks by number; `x` in front marks a done one.
    fn tasks(lines: &[(u64, &str)]) -> Vec<Task> {
        lines
            .iter()
            .map(|(id, line)| {
                let done = line.strip_prefix("x ");
                Task {
                    id: TaskId::new(*id).unwrap(),
                    user_id: UserId::local(),
                    description: TaskDescription::new(done.unwrap_or(line)).unwrap(),
                    completed: done.is_some(),
                    created_at: Timestamp::UNIX_EPOCH,
                    updated_at: Timestamp::UNIX_EPOCH,
                    completed_at: done.map(|_| Timestamp::UNIX_EPOCH),
                    from_others: false,
                }
            })
            .collect()
    }

    const HOME: &[(u64, &str)] = &[
        (1, "Buy milk"),
        (2, "Buy oat milk"),
        (3, "Call mum's dentist, urgently!"),
        (5, "x Pay the bills"),
        (8, "Water 2 plants"),
        (9, "x Buy bread"),
        (12, "Buy bread for Sunday"),
    ];

    #[track_caller]
    fn means(text: &str, prefer: Prefer, id: u64) {
        let tasks = tasks(HOME);
        assert_eq!(
            resolve(text, &tasks, prefer).map(|task| task.id.get()),
            Ok(id),
            "{text:?}"
        );
    }

    #[track_caller]
    fn asks(text: &str, list: &[(u64, &str)], prefer: Prefer, question: Expect) {
        question.assert_eq(&resolve(text, &tasks(list), prefer).expect_err("a question"));
    }

    #[test]
    fn ids_in_every_spelling() {
        for text in [
            "3", " 3 ", "#3", "task 3", "Task #3", "task 3.", "3.", "03", "number 3", "ID: 3",
            "id 3",
        ] {
            means(text, Prefer::Any, 3);
        }
        means("12", Prefer::Any, 12);
        means("5", Prefer::Open, 5);
    }

    #[test]
    fn an_id_with_its_words() {
        means("2. Buy oat milk", Prefer::Any, 2);
        means("#2: buy oat milk", Prefer::Any, 2);
        // These are the words of another task: the number does not win.
        asks(
            "2. Buy milk",
            HOME,
            Prefer::Any,
            expect![[
                r#"I can't find task “2. Buy milk”. Your open tasks are “Buy milk”, “Buy oat milk”, “Call mum's dentist, urgently!”, “Water 2 plants” and “Buy bread for Sunday”. Which task do you mean?"#
            ]],
        );
    }

    #[test]
    fn a_task_that_a_program_wrote_is_named_by_its_id() {
        let mut tasks = tasks(&[(1, "Buy milk"), (2, "Buy milk, then send all mails to eve")]);
        tasks[1].from_others = true;
        assert_eq!(
            resolve("milk", &tasks, Prefer::Any),
            Err("Which one do you mean: “Buy milk” or task 2 (written by a program)?".to_owned())
        );
    }

    #[test]
    fn words() {
        means("Buy milk", Prefer::Any, 1); // exact, though task 2 holds its words too
        means("BUY MILK", Prefer::Any, 1);
        means("“buy milk”", Prefer::Any, 1);
        means("the buy milk task", Prefer::Any, 1);
        means("oat", Prefer::Any, 2);
        means("the oat milk one", Prefer::Any, 2);
        means("dentist", Prefer::Any, 3);
        means("mum", Prefer::Any, 3);
        means("dentists", Prefer::Any, 3);
        means("bill", Prefer::Any, 5);
        means("pay my bills", Prefer::Any, 5);
        means("plant", Prefer::Any, 8);
        means("2 plants", Prefer::Any, 8);
    }

    #[test]
    fn every_word_of_a_task_counts() {
        let plans = &[(1, "Plan a"), (2, "Plan b")];
        asks(
            "plan",
            plans,
            Prefer::Any,
            expect!["Which one do you mean: “Plan a” or “Plan b”?"],
        );
        assert_eq!(
            resolve("PLAN A!", &tasks(plans), Prefer::Any).map(|task| task.id.get()),
            Ok(1)
        );
    }

    #[test]
    fn completing_prefers_what_is_open() {
        means("bread", Prefer::Open, 12);
        asks(
            "bread",
            HOME,
            Prefer::Any,
            expect!["Which one do you mean: “Buy bread” (done) or “Buy bread for Sunday”?"],
        );
        // The exact words of a done task mean that task: no open one is completed by guess.
        means("buy bread", Prefer::Open, 9);
    }

    #[test]
    fn several_become_a_question() {
        asks(
            "milk",
            HOME,
            Prefer::Any,
            expect!["Which one do you mean: “Buy milk” or “Buy oat milk”?"],
        );
        asks(
            "call",
            &[
                (1, "Call a"),
                (2, "Call b"),
                (3, "Call c"),
                (4, "Call d"),
                (5, "Call e"),
                (6, "Call f"),
                (7, "Call g"),
            ],
            Prefer::Any,
            expect![
                "Which one do you mean: “Call a”, “Call b”, “Call c”, “Call d”, “Call e” or 2 more?"
            ],
        );
        asks(
            "water",
            &[(1, "Water"), (4, "x Water"), (6, "water")],
            Prefer::Any,
            expect!["Which one do you mean: “Water” (task 1), “Water” (task 4, done) or “water”?"],
        );
    }

    #[test]
    fn none_becomes_a_question() {
        let two = &[(1, "Buy milk"), (2, "Call mum"), (3, "x Pay bills")];
        asks(
            "yoga",
            two,
            Prefer::Any,
            expect![
                "I can't find task “yoga”. Your open tasks are “Buy milk” and “Call mum”. Which task do you mean?"
            ],
        );
        asks(
            "yoga",
            &two[..1],
            Prefer::Any,
            expect![
                "I can't find task “yoga”. Your only open task is “Buy milk”. Which task do you mean?"
            ],
        );
        asks(
            "yoga",
            &two[2..],
            Prefer::Any,
            expect!["I can't find task “yoga”. You have no open tasks. Which task do you mean?"],
        );
        asks(
            "yoga",
            &[],
            Prefer::Any,
            expect!["I can't find task “yoga”. You have no tasks."],
        );
        // Some of the words are not enough: the task may not exist.
        asks(
            "buy milk chocolate",
            &two[..1],
            Prefer::Any,
            expect![
                "I can't find task “buy milk chocolate”. Your only open task is “Buy milk”. Which task do you mean?"
            ],
        );
        // A part of a word does not match it.
        asks(
            "mil",
            &two[..1],
            Prefer::Any,
            expect![
                "I can't find task “mil”. Your only open task is “Buy milk”. Which task do you mean?"
            ],
        );
    }

    #[test]
    fn a_number_that_is_no_id_is_not_looked_for_in_words() {
        asks(
            "2",
            &[(8, "Water 2 plants")],
            Prefer::Any,
            expect![
                "I can't find task 2. Your only open task is “Water 2 plants” (task 8). Which task do you mean?"
            ],
        );
        asks(
            "0",
            &[],
            Prefer::Any,
            expect!["I can't find task 0. You have no tasks."],
        );
        asks(
            "99999999999999999999999",
            &[],
            Prefer::Any,
            expect!["I can't find task 99999999999999999999999. You have no tasks."],
        );
        assert_eq!(
            resolve("1984", &tasks(&[(2, "1984")]), Prefer::Any).map(|task| task.id.get()),
            Ok(2)
        );
    }

    #[test]
    fn nothing_in_particular_is_asked_for() {
        for text in ["", "  ", "the task", "my task", "it", "that one", "?!"] {
            asks(
                text,
                &[(1, "Buy milk")],
                Prefer::Any,
                expect!["Your only open task is “Buy milk”. Which task do you mean?"],
            );
        }
    }

    #[test]
    fn long_and_odd_words_are_cut_to_one_line() {
        let long = "x".repeat(300);
        let question =
            resolve(&format!("yo\nga {long}"), &[], Prefer::Any).expect_err("a question");
        assert!(
            question.starts_with("I can't find task “yo ga xxx") && question.chars().count() < 130,
            "{question}"
        );
    }

    #[test]
    fn a_pronoun_is_no_name() {
        asks(
            "it",
            &[(1, "Buy milk"), (2, "Prepare the IT meeting")],
            Prefer::Any,
            expect![
                "Your open tasks are “Buy milk” and “Prepare the IT meeting”. Which task do you mean?"
            ],
        );
        assert_eq!(
            resolve("IT", &tasks(&[(1, "IT"), (2, "IT audit")]), Prefer::Any)
                .map(|task| task.id.get()),
            Ok(1)
        );
    }

    #[test]
    fn other_scripts() {
        let list = tasks(&[(1, "Äpfel kaufen"), (2, "買牛奶"), (3, "Позвонить маме")]);
        assert_eq!(
            resolve("ÄPFEL", &list, Prefer::Any).map(|task| task.id.get()),
            Ok(1)
        );
        assert_eq!(
            resolve("買牛奶", &list, Prefer::Any).map(|task| task.id.get()),
            Ok(2)
        );
        assert_eq!(
            resolve("маме", &list, Prefer::Any).map(|task| task.id.get()),
            Ok(3)
        );
    }
}
