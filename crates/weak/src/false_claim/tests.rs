//! Claims and honest answers in the languages of the lists, and answers of real models.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::*;

/// Answers of which one may be taken for a claim.
const HONEST_PER_ERROR: usize = 200;

/// A text of `tests/claims.jsonl`.
#[derive(Deserialize)]
struct Written {
    language: String,
    claims: bool,
    text: String,
}

fn corpus() -> Vec<Written> {
    let lines = include_str!("../tests/claims.jsonl").lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn claims_in_five_languages_are_recognised_and_honest_answers_pass() {
    let mut counts: BTreeMap<(String, bool), usize> = BTreeMap::new();
    let (mut missed, mut wrong) = (Vec::new(), Vec::new());
    for Written {
        language,
        claims,
        text,
    } in corpus()
    {
        match (claims, claims_a_change(&text)) {
            (true, false) => missed.push(format!("{language}: {text}")),
            (false, true) => wrong.push(format!("{language}: {text}")),
            (true, true) | (false, false) => {}
        }
        *counts.entry((language, claims)).or_default() += 1;
    }
    let of = |claims: bool| {
        counts
            .iter()
            .filter(move |((_, is_claim), _)| *is_claim == claims)
            .map(|(_, count)| *count)
    };
    assert!(of(true).count() == 5 && of(true).all(|count| count >= 30));
    assert!(of(false).count() == 5 && of(false).all(|count| count >= 50));
    let (claims, honest): (usize, usize) = (of(true).sum(), of(false).sum());
    println!("not recognised: {missed:#?}\ntaken for claims: {wrong:#?}");
    assert!(
        missed.len() * 20 <= claims,
        "{} of {claims} claims are not recognised: {missed:#?}",
        missed.len()
    );
    assert!(
        wrong.len() <= honest / HONEST_PER_ERROR,
        "{} of {honest} honest answers are taken for claims: {wrong:#?}",
        wrong.len()
    );
}

/// Recorded answers that do say that something was done or will be, as they were given after calls
/// of the provider's own tools or about a request that asks for these words.
const RECORDED_CLAIMS: [&str; 2] = ["Noted", "has been booked."];

/// An answer of recorded traffic, as the provider's own SDK understood it.
#[derive(Deserialize)]
struct Recorded {
    #[serde(default)]
    text: String,
    #[serde(default)]
    tool_calls: Vec<serde_json::Value>,
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "where recordings of other projects are is known to whoever runs the tests"
)]
fn recorded_answers_without_calls_are_no_claims() {
    let Some(folder) = std::env::var_os("ADJUTANT_FIXTURES") else {
        eprintln!("NOT RUN: ADJUTANT_FIXTURES does not name the folder of recordings");
        return;
    };
    let recorded = std::fs::read_to_string(Path::new(&folder).join("expected.jsonl")).unwrap();
    let answers: BTreeSet<String> = recorded
        .lines()
        .map(|line| serde_json::from_str::<Recorded>(line).unwrap())
        .filter(|answer| answer.tool_calls.is_empty() && !answer.text.trim().is_empty())
        .map(|answer| answer.text)
        .filter(|text| !RECORDED_CLAIMS.iter().any(|claim| text.contains(claim)))
        .collect();
    let wrong: Vec<&String> = answers
        .iter()
        .filter(|text| claims_a_change(text))
        .collect();
    assert!(
        wrong.len() <= answers.len() / HONEST_PER_ERROR,
        "{} of {} recorded answers are taken for claims: {wrong:#?}",
        wrong.len(),
        answers.len()
    );
}

#[test]
fn a_fact_that_is_only_taken_note_of_is_claimed_to_be_understood() {
    for (message, reply) in [
        ("my name is Sarah, not Chad", "I see, you are Sarah."),
        ("I'm Sarah", "Got it, you are Sarah now."),
        ("I hate liver", "I know, it's not my favorite."),
        ("I live in Berlin.", "Okay."),
        ("My name is Ana.", "Nice to meet you, Ana!"),
        ("Ich heiße Sarah.", "Alles klar, du heißt Sarah."),
        ("Ich bin Vegetarier.", "Gut zu wissen!"),
        ("Je m'appelle Sarah.", "Enchanté, Sarah !"),
        ("J'habite à Lyon.", "D'accord, tu habites à Lyon."),
        ("Me llamo Sara.", "Mucho gusto, Sara."),
        ("No me gusta el cilantro.", "Entendido."),
        ("Meu nome é Sara.", "Prazer, Sara!"),
        ("Moro em Lisboa.", "Entendi, você mora em Lisboa."),
    ] {
        assert!(claims_understanding(message, reply), "{message}: {reply}");
    }
    for (message, reply) in [
        ("What is my name?", "I see, you are curious."),
        ("I'm Sarah. Who are you?", "Hi, I'm an assistant."),
        ("My name is Sarah.", "I cannot remember that."),
        ("My name is Sarah.", "Should I remember that you are Sarah?"),
        ("I have a question", "Which one?"),
        ("Remind me that my car is red", "Okay."),
        ("thanks", "You are welcome."),
        ("Ich heiße Sarah.", "Das kann ich mir leider nicht merken."),
        ("Je m'appelle Sarah.", "Dois-je le noter ?"),
        ("Me llamo Sara.", "No puedo recordarlo."),
        ("Meu nome é Sara.", "Quer que eu anote isso?"),
    ] {
        assert!(!claims_understanding(message, reply), "{message}: {reply}");
    }
}

#[test]
fn languages_beyond_the_lists_are_known() {
    for (reply, message) in [
        ("Ho aggiunto il latte alla tua lista.", "aggiungi latte"),
        ("Ik heb melk aan je lijst toegevoegd.", "voeg melk toe"),
        ("Jag har lagt till mjölk på din lista.", "lägg till mjölk"),
        ("Dodałem mleko do twojej listy.", "dodaj mleko"),
        ("Я добавил молоко в список.", "добавь молоко"),
        ("牛乳を追加しました。", "牛乳を追加して"),
        ("Aggiunto!", "aggiungi latte"),
    ] {
        assert!(!coverage::is_covered(reply, message), "{reply}");
    }
    for (reply, message) in [
        ("Hello! How can I help you today?", "hi"),
        ("Du hast zwei Aufgaben.", "was steht an"),
        ("Bonjour !", "bonjour"),
        ("Paris.", "What is the capital of France?"),
        ("42", "6 * 7"),
        ("¿En qué puedo ayudarte?", "hola"),
        ("Você tem duas tarefas.", "lista"),
    ] {
        assert!(coverage::is_covered(reply, message), "{reply}");
    }
}
