//! Automatic recall: the facts in the instruction, and those that are attached to a message.

use adjutant_core::{Message, RecalledText};
use adjutant_memory::{Cause, RecallLimits};

use crate::harness::{Home, tokens};

/// Limits by which facts are chosen, however few they are.
const CHOSEN: RecallLimits = RecallLimits {
    all_tokens: 0,
    facts: usize::MAX,
    tokens: 520,
};

impl Home {
    /// The facts that are chosen for a message at the beginning of a conversation.
    async fn chosen(&self, message: &str) -> Vec<String> {
        let recalled = self
            .memory
            .recall_for_message(message, &[], CHOSEN, &tokens)
            .await
            .unwrap();
        recalled.into_iter().map(|fact| fact.text).collect()
    }

    /// Writes facts of successive days.
    fn write_facts(&self, facts: impl IntoIterator<Item = String>) {
        let mut date: jiff::civil::Date = "2025-01-01".parse().unwrap();
        let mut text = String::from("# Key Facts\n\n## Recent\n\n");
        for fact in facts {
            text.push_str(&format!("- [{date}] {fact}\n"));
            date = date.tomorrow().unwrap();
        }
        self.write("memory/facts.md", text);
    }
}

#[tokio::test]
async fn as_long_as_all_facts_fit_all_are_recalled_in_one_order() {
    let home = Home::new();
    let facts = |number: usize| (0..number).map(|at| format!("Josh knows neighbour {at} by name"));
    home.write_facts(facts(40));
    let recalled = home.recalled("Who is neighbour 7?").await;
    assert_eq!(recalled.len(), 40);
    assert!(
        recalled[0].contains("neighbour 39 ") && recalled[39].contains("neighbour 0 "),
        "{recalled:#?}"
    );
    assert_eq!(home.recalled("hello").await, recalled);
    // With more of them they are chosen, as many as fit.
    home.write_facts(facts(80));
    let recalled = home.recalled("Who is neighbour 7?").await;
    let size: u32 = recalled.iter().map(|line| tokens(line)).sum();
    assert!((490..=520).contains(&size), "{size}");
    assert!(recalled[0].contains("neighbour 7 "), "{recalled:#?}");
    assert_eq!(home.recalled("hello").await.len(), 3, "only the newest");
}

#[tokio::test]
async fn facts_of_the_instruction_count_as_facts_that_have_to_fit() {
    let home = Home::new();
    let line = |at: usize| format!("- Josh knows neighbour {at} by name\n");
    let lines = |range: std::ops::Range<usize>| range.map(line).collect::<String>();
    home.write(
        "memory/facts.md",
        format!(
            "# Key Facts\n\n## Important\n\n{}\n## Recent\n\n{}",
            lines(0..8),
            lines(8..60)
        ),
    );
    let instruction = tokens(&home.instruction().await);
    let recalled = home.recalled("Who is neighbour 20?").await;
    let size: u32 = recalled.iter().map(|line| tokens(line)).sum();
    assert!(recalled.len() < 52, "{}", recalled.len());
    assert!(
        (490..=520).contains(&(instruction + size)),
        "{instruction} and {size}"
    );
}

#[tokio::test]
async fn of_two_that_are_alike_the_newer_is_recalled_first() {
    let home = Home::new();
    home.write_facts(
        [
            "My boss is Tom",
            "Josh grows roses",
            "My boss is Karen from the third floor now",
        ]
        .map(str::to_owned),
    );
    let recalled = home.chosen("Who is my boss?").await;
    assert!(
        recalled[0].contains("Karen") && recalled[1].contains("Tom"),
        "{recalled:#?}"
    );
}

#[tokio::test]
async fn the_instruction_has_the_important_facts_newest_first_and_says_they_may_be_stale() {
    let home = Home::new();
    assert_eq!(home.instruction().await, "");
    let mut text = String::from("# Key Facts\n\n## Important\n\n");
    for number in 1..=30 {
        text.push_str(&format!(
            "- [2025-11-{number:02}] imp{number} is one that matters #important\n"
        ));
    }
    text.push_str("\n## Recent\n\n- [2025-12-31] something else\n");
    home.write("memory/facts.md", text);
    let instruction = home.memory.facts().instruction(&tokens).await.unwrap();
    let lines: Vec<&str> = instruction
        .text
        .lines()
        .filter(|line| line.starts_with("- "))
        .collect();
    assert!(
        lines[0].starts_with("- [2025-11-30] imp30 is one that matters ("),
        "{}",
        instruction.text
    );
    assert!(
        (5..30).contains(&lines.len()) && lines.len() + instruction.left_out == 30,
        "{instruction:?}"
    );
    assert!(tokens(&lines.join("\n")) <= 250, "{instruction:?}");
    assert!(
        instruction.text.contains("may be stale") && instruction.text.contains("not instructions"),
        "{}",
        instruction.text
    );
    assert!(!instruction.text.contains("something else"));
    // A fact beyond the bound is recalled where it fits; one in the instruction is not repeated.
    assert!(home.chosen("what about imp1?").await[0].contains(" imp1 is one"));
    assert!(
        home.recalled("what about imp30?")
            .await
            .iter()
            .all(|line| !line.contains(" imp30 "))
    );
}

#[tokio::test]
async fn facts_that_fit_a_message_are_recalled_and_else_the_newest_only() {
    let home = Home::new();
    let facts = [
        ("2025-03-02", "Anna moved to Munich"),
        ("2025-03-02", "Her flat there has three rooms"),
        ("2025-04-01", "Bert's sister lives in Rome"),
        ("2025-05-01", "Josh likes green tea"),
        ("2025-06-01", "Josh has a boat"),
        ("2025-07-01", "The boat is blue"),
    ];
    let lines: String = facts
        .iter()
        .map(|(date, fact)| format!("- [{date}] {fact}\n"))
        .collect();
    home.write(
        "memory/facts.md",
        format!("# Key Facts\n\n## Recent\n\n{lines}"),
    );
    let recalled = home.chosen("Where has Anna been living since March?").await;
    assert!(
        recalled[0].starts_with("- [2025-03-02] Anna moved to Munich ("),
        "{recalled:#?}"
    );
    assert!(
        recalled.iter().any(|line| line.contains("three rooms")),
        "a neighbour is recalled: {recalled:#?}"
    );
    let newest = home.chosen("hello").await;
    assert_eq!(newest.len(), 3, "{newest:#?}");
    assert!(
        newest[0].contains("The boat is blue") && newest[2].contains("green tea"),
        "{newest:#?}"
    );
    // The words before it count too.
    let history = [Message::user("Tell me of Anna").unwrap()];
    let recalled = home
        .memory
        .recall_for_message("and where is her flat?", &history, CHOSEN, &tokens)
        .await
        .unwrap();
    assert!(
        recalled[..2]
            .iter()
            .any(|recalled| recalled.text.contains("Munich")),
        "{recalled:#?}"
    );
}

#[tokio::test]
async fn a_fact_in_the_history_is_recalled_once_and_withdrawn_when_it_holds_no_more() {
    let home = Home::new();
    home.remember("Josh lives in Berlin").await;
    let [line] = &home.recalled("where do I live?").await[..] else {
        panic!("one fact")
    };
    let recalled = format!(
        "{}hello",
        adjutant_core::recall_block::format(&[RecalledText {
            id: None,
            text: line.clone()
        }])
        .unwrap()
    );
    let history = [Message::user(recalled).unwrap()];
    let again = |history: Vec<Message>| {
        let memory = home.memory.clone();
        async move {
            let recalled = memory
                .recall_for_message(
                    "where do I live?",
                    &history,
                    RecallLimits::default(),
                    &tokens,
                )
                .await
                .unwrap();
            recalled
                .into_iter()
                .map(|recalled| recalled.text)
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(again(history.to_vec()).await, Vec::<String>::new());
    home.memory
        .facts()
        .edit(
            "Berlin",
            Some("Josh lives in Munich"),
            None,
            &Cause::person(),
        )
        .await
        .unwrap();
    let recalled = again(history.to_vec()).await;
    assert_eq!(
        recalled[0],
        "- Withdrawn, it does not hold any more: Josh lives in Berlin"
    );
    assert!(
        recalled[1].contains("Josh lives in Munich"),
        "{recalled:#?}"
    );
}

#[tokio::test]
async fn a_line_by_hand_is_recalled_up_to_the_bound_and_kept_whole() {
    let home = Home::new();
    let line = "x".repeat(600);
    home.write(
        "memory/facts.md",
        format!("# Key Facts\n\n## Important\n\n- {line}\n"),
    );
    let context = home.instruction().await;
    assert!(
        context.contains(&format!("- {}… (cut at 500 characters) (", "x".repeat(500))),
        "{context}"
    );
    assert_eq!(home.contents().await, [line]);
}
