//! Corrections: which texts replace a stored fact, and which stand beside it.

use adjutant_memory::{Cause, FactChange};

use crate::harness::Home;

/// Announced corrections in many languages: where the grammar is not known, a text with more than
/// 70 % of the keywords of the larger corrects.
#[tokio::test]
async fn corrections_that_are_announced_are_found_in_many_languages() {
    for (known, new, corrects) in [
        // Numbers and names are words like others.
        (
            "Josh works on floor 3 of the north office",
            "Josh works on floor 4 of the north office",
            true,
        ),
        ("Josh is on floor 3", "Josh is on floor 4", true),
        (
            "The budget is 1,000 euros per month",
            "The budget is 2,000 euros per month",
            true,
        ),
        (
            "The meeting is on Monday",
            "The meeting is on Tuesday",
            true,
        ),
        ("Anna drinks tea", "Bert drinks tea", false),
        // A negation is about the same thing.
        ("Josh eats meat", "Josh does not eat meat", true),
        ("Josh likes cats", "Josh doesn't like cats", true),
        // Case, punctuation, order and word forms do not count.
        (
            "josh PREFERS Dark-Mode!!!",
            "dark mode: Josh preferred (it)",
            true,
        ),
        ("Josh’s cars are red", "The car of Josh is red.", true),
        (
            "Josh wohnt im dritten Stock eines Hauses in Berlin",
            "Josh wohnt im vierten Stock eines Hauses in Berlin",
            true,
        ),
        ("Josh mag keine Katzen", "Josh mag die Katze", true),
        ("Josh mag Katzen", "Josh mag Hunde", false),
        (
            "Josh travaille au troisième étage du bâtiment nord",
            "Josh travaille au quatrième étage du bâtiment nord",
            true,
        ),
        (
            "Josh n'aime pas les chats noirs",
            "Josh aime le chat noir",
            true,
        ),
        ("Josh aime le thé", "Josh aime le café", false),
        (
            "Josh trabaja en la oficina de Madrid los lunes",
            "Josh trabajó en las oficinas de Madrid los lunes",
            true,
        ),
        ("Josh bebe café", "Josh bebe té", false),
        (
            "Джош живёт в большой квартире в центре Москвы",
            "Джош живет в большом доме в центре Москвы",
            true,
        ),
        ("Джош любит кошек", "Джош любит собак", false),
        (
            "ジョシュは毎朝濃い緑茶を飲みます",
            "ジョシュは毎朝濃い紅茶を飲みます",
            true,
        ),
        ("ジョシュは猫が好き", "会議は月曜日です", false),
        ("我每天早上在家喝绿茶", "我每天早上在家喝咖啡", true),
        ("我喜欢绿茶", "我喜欢咖啡", false),
        (
            "조쉬는 매일 아침 녹차를 마신다",
            "조쉬는 매일 아침 홍차를 마신다",
            true,
        ),
        ("🎉", "🎊", false),
        ("#work", "#home", false),
    ] {
        let home = Home::new();
        home.remember(known).await;
        home.correct(new).await;
        let now = home.contents().await;
        let expected: &[&str] = if corrects { &[new] } else { &[known, new] };
        assert_eq!(now, expected, "{known} / {new}");
        // Not announced, both are kept.
        let home = Home::new();
        home.remember(known).await;
        home.remember(new).await;
        assert_eq!(home.contents().await, [known, new], "{known} / {new}");
    }
}

#[tokio::test]
async fn the_same_words_in_other_capitals_are_the_same_fact() {
    let home = Home::new();
    home.remember("Cafe\u{301} Central öffnet um 9").await;
    home.remember("café central ÖFFNET um 9!").await;
    assert_eq!(home.contents().await, ["café central ÖFFNET um 9!"]);
}

/// 100 corrections and 100 that only look like one, in five languages; each beside all facts of its
/// language.
#[tokio::test]
async fn corrections_are_taken_and_no_true_fact_is_lost() {
    let rows: Vec<[&str; 4]> = include_str!("../data/corrections.tsv")
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>().try_into().unwrap())
        .collect();
    let (mut taken, mut lost, mut missed) = (0, Vec::new(), Vec::new());
    for [language, kind, known, said] in &rows {
        let mut facts: Vec<&str> = rows
            .iter()
            .filter(|row| row[0] == *language)
            .map(|row| row[2])
            .collect();
        facts.sort_unstable();
        facts.dedup();
        let home = Home::new();
        let lines: String = facts
            .iter()
            .map(|fact| format!("- [2025-11-01] {fact}\n"))
            .collect();
        home.write(
            "memory/facts.md",
            format!("# Key Facts\n\n## Recent\n\n{lines}"),
        );
        let change = home
            .memory
            .facts()
            .add(said, false, &Cause::person())
            .await
            .unwrap();
        let replaced = match &change {
            FactChange::Updated { before, .. } => Some(before.as_str()),
            _ => None,
        };
        match (*kind, replaced) {
            ("yes", Some(before)) if before == *known => taken += 1,
            (_, Some(before)) => lost.push(format!("{said} took the place of {before}")),
            ("yes", None) => missed.push(format!("{said} did not correct {known}")),
            (_, None) => {}
        }
    }
    assert_eq!(rows.len(), 200);
    assert!(lost.is_empty(), "{lost:#?}");
    assert!(taken >= 90, "{taken} of 100 were taken: {missed:#?}");
}

/// Values of properties that a person has one of, in five languages.
#[tokio::test]
async fn a_new_value_of_a_property_takes_the_place_of_the_old_one() {
    for row in include_str!("../data/updates.tsv").lines() {
        let [_, known, update] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let home = Home::new();
        home.remember(known).await;
        home.remember(update).await;
        assert_eq!(home.contents().await, [update], "{known}");
    }
}

#[tokio::test]
async fn the_last_of_several_moves_is_the_home() {
    let home = Home::new();
    for text in [
        "I live in Berlin",
        "I moved to Munich",
        "No, I live in Hamburg",
    ] {
        home.remember(text).await;
    }
    assert_eq!(home.contents().await, ["I live in Hamburg"]);
}

#[tokio::test]
async fn words_that_announce_a_correction_are_not_stored() {
    for (text, stored) in [
        ("No, my cat is called Lina", "My cat is called Lina"),
        ("Actually, I like black tea", "I like black tea"),
        ("Oh no, sorry: my cat is black", "My cat is black"),
        ("Nein, ich trinke nur Tee", "Ich trinke nur Tee"),
        ("Actually", "Actually"),
        ("No dogs are allowed here", "No dogs are allowed here"),
        ("No como carne", "No como carne"),
    ] {
        let home = Home::new();
        home.remember(text).await;
        assert_eq!(home.contents().await, [stored]);
    }
}

#[tokio::test]
async fn facts_that_are_true_together_are_all_kept() {
    let home = Home::new();
    let facts: Vec<&str> = include_str!("../data/true_facts.txt").lines().collect();
    for fact in &facts {
        home.remember(fact).await;
    }
    assert_eq!(home.contents().await, facts);
}
