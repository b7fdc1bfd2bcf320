//! Messages whose actions were scored: what is done, asked and left to the model.

use adjutant_core::{ActionKind, ActionScores, Language, RESERVED};

use super::*;
use crate::LastExchange;

mod texts;

/// Scores of one likely kind.
fn likely(language: Language, kinds: &[(ActionKind, f32)]) -> ActionScores {
    kinds.iter().fold(
        ActionScores::new(language),
        |scores, (kind, probability)| scores.with(*kind, *probability),
    )
}

/// Returns what becomes of a message if the model chooses `chosen`, a part a line.
fn decided(
    scores: ActionScores,
    list: &[&str],
    before: Option<&str>,
    message: &str,
    chosen: &str,
) -> String {
    let response = weak().decode(
        answer(chosen, FinishReason::Stop),
        &request(before, message),
        &references(list),
        Some(&scores),
    );
    let lines = response.parts.iter().map(|part| match &part.content {
        Content::Text { text } => format!("says {text}"),
        Content::ToolCall(call) if RESERVED.contains(&call.name.as_str()) => {
            let text = call.arguments.values().next().and_then(Value::as_str);
            format!("{} {}", call.name, text.unwrap_or_default())
        }
        Content::ToolCall(call) => {
            let arguments: Vec<&str> = call.arguments.values().filter_map(Value::as_str).collect();
            format!("{} {}", call.name, arguments.join(" "))
        }
        other => format!("{other:?}"),
    });
    lines.collect::<Vec<_>>().join("; ")
}

fn completed(language: Language, list: &[&str], before: Option<&str>, message: &str) -> String {
    let scores = likely(language, &[(ActionKind::Complete, 0.9)]);
    decided(scores, list, before, message, "[]")
}

fn encoded_with(scores: ActionScores, list: &[&str], message: &str) -> GenerateRequest {
    weak().encode(&request(None, message), &references(list), Some(&scores))
}

#[test]
fn entities_are_meant_by_their_words_in_five_languages() {
    use Language::{English, French, German, Portuguese, Spanish};
    for (language, list, message, becomes) in [
        (
            English,
            &["Feed the rabbits", "Wash the car"][..],
            "fed the rabits",
            "complete_task 1",
        ),
        (
            German,
            &["Rosen schneiden", "Hecke schneiden"],
            "die rosen hab ich geschnitten",
            "complete_task 1",
        ),
        (
            German,
            &["Brot kaufen", "Milch kaufen"],
            "milch ist eingekauft",
            "complete_task 2",
        ),
        (
            French,
            &["Acheter du pain", "Appeler l'arbitre"],
            "j’ai appelé l’arbitre",
            "complete_task 2",
        ),
        (
            Spanish,
            &["Comprar púas", "Afinar la guitarra"],
            "ya compré las puas",
            "complete_task 1",
        ),
        (
            Portuguese,
            &["Regar as plantas", "Pagar o DAS"],
            "reguei as plantas",
            "complete_task 1",
        ),
    ] {
        assert_eq!(
            completed(language, list, None, message),
            becomes,
            "{message}"
        );
    }
}

#[test]
fn several_entities_of_one_message_are_several_calls() {
    let list = &[
        "Feed the rabbits",
        "Wash the car",
        "Bake bread",
        "Ring Uncle Pete",
    ];
    for (message, becomes) in [
        (
            "fed the rabbits, washed the car and rang pete",
            "complete_task 1; complete_task 2; complete_task 4",
        ),
        (
            "1, 3 and 4 are done",
            "complete_task 1; complete_task 3; complete_task 4",
        ),
        (
            "2-4 done",
            "complete_task 2; complete_task 3; complete_task 4",
        ),
        (
            "the first and the last one",
            "complete_task 1; complete_task 4",
        ),
        (
            "all done except the bread",
            "complete_task 1; complete_task 2; complete_task 4",
        ),
        (
            "bread is not baked yet, but the car is washed",
            "complete_task 2",
        ),
        ("done with the car, no wait, the bread", "complete_task 3"),
        ("paid 50 for the car", "complete_task 2"),
        ("paid 4 for the bread", "complete_task 3"),
    ] {
        let becomes_now = completed(Language::English, list, None, message);
        assert_eq!(becomes_now, becomes, "{message}");
    }
}

#[test]
fn pronouns_and_positions_mean_tasks_of_the_last_exchange() {
    let list = &["Feed the rabbits", "Wash the car", "Bake bread"];
    for (before, message, becomes) in [
        (
            "Added \u{201c}Wash the car\u{201d} to your list.",
            "done that one",
            "complete_task 2",
        ),
        (
            "Which task do you mean: 2. Wash the car, or 3. Bake bread?",
            "both",
            "complete_task 2; complete_task 3",
        ),
        (
            "Which task do you mean: 2. Wash the car, or 3. Bake bread?",
            "the second one",
            "complete_task 3",
        ),
        (
            "Which task do you mean: 2. Wash the car, or 3. Bake bread?",
            "2",
            "complete_task 2",
        ),
    ] {
        let becomes_now = completed(Language::English, list, Some(before), message);
        assert_eq!(becomes_now, becomes, "{before} {message}");
    }
}

#[test]
fn a_negation_is_of_the_entity_that_only_its_clause_names() {
    use Language::{English, German};
    let invoices = &["Email Doctor Kapoor", "Email Doctor Kaplan"][..];
    let exams = &["Klausur 9c korrigieren", "Klausur 9b korrigieren"][..];
    for (language, list, message, becomes) in [
        (
            English,
            invoices,
            "not Kapoor, Kaplan has been emailed",
            "complete_task 2",
        ),
        (
            German,
            exams,
            "die 9c liegt immer noch da, die 9b ist korrigiert",
            "complete_task 2",
        ),
        (
            English,
            invoices,
            "I haven't emailed Kapoor",
            "ask_user Which task do you mean: 1. Email Doctor Kapoor, or 2. Email Doctor Kaplan?",
        ),
        // What the clause behind it asks for is done all the same.
        (
            English,
            invoices,
            "don't delete Kapoor, tick it off",
            "complete_task 1",
        ),
    ] {
        let becomes_now = completed(language, list, None, message);
        assert_eq!(becomes_now, becomes, "{message}");
    }
}

#[test]
fn numbers_inside_of_labels_are_words() {
    let list = &[
        "Send invoice 2041",
        "Send invoice 2042",
        "Mark year 9 essays",
    ];
    for (message, becomes) in [
        ("invoice 2042 is out", "complete_task 2"),
        ("year nine essays marked", "complete_task 3"),
        (
            "the invoice is out",
            "ask_user Which task do you mean: 1. Send invoice 2041, or 2. Send invoice 2042?",
        ),
        ("both invoices are out", "complete_task 1; complete_task 2"),
    ] {
        assert_eq!(
            completed(Language::English, list, None, message),
            becomes,
            "{message}"
        );
    }
}

#[test]
fn names_that_fit_no_open_task_are_asked_about() {
    let list = &["Feed the rabbits", "Wash the car*"];
    let unnamed = "ask_user Which task do you mean: 1. Feed the rabbits, or another one?";
    for message in ["the piano is tuned", "the car is washed", "fed the hens"] {
        assert_eq!(
            completed(Language::English, list, None, message),
            unnamed,
            "{message}"
        );
    }
    assert_eq!(
        completed(Language::English, list, None, "number 7 is done"),
        "ask_user There is no task 7. Which task do you mean?"
    );
}

#[test]
fn too_little_evidence_is_a_question_in_the_language_of_the_message() {
    let doubtful = [(ActionKind::Complete, 0.4)];
    for (language, list, message, becomes) in [
        (
            Language::English,
            "Wash the car",
            "the car",
            "ask_user Do you want me to complete \u{201c}Wash the car\u{201d}?",
        ),
        (
            Language::German,
            "Auto waschen",
            "das auto",
            "ask_user Soll ich \u{201e}Auto waschen\u{201c} als erledigt abhaken?",
        ),
        (
            Language::French,
            "Laver la voiture",
            "la voiture",
            "ask_user Dois-je marquer \u{ab} Laver la voiture \u{bb} comme terminée ?",
        ),
        (
            Language::Spanish,
            "Lavar el coche",
            "el coche",
            "ask_user ¿Quieres que marque \u{ab}Lavar el coche\u{bb} como hecha?",
        ),
        (
            Language::Portuguese,
            "Lavar o carro",
            "o carro",
            "ask_user Quer que eu marque \u{201c}Lavar o carro\u{201d} como feita?",
        ),
    ] {
        let becomes_now = decided(likely(language, &doubtful), &[list], None, message, "[]");
        assert_eq!(becomes_now, becomes);
    }
    // An order that may be a deletion is not taken for a completion: the person confirms it.
    let either = likely(
        Language::English,
        &[(ActionKind::Complete, 0.7), (ActionKind::Delete, 0.6)],
    );
    assert_eq!(
        decided(either, &["Wash the car"], None, "done with the car", "[]"),
        "delete_task 1"
    );
}

#[test]
fn a_change_that_names_nothing_is_of_what_was_just_spoken_of() {
    use Language::{English, German};
    for (language, label, message, becomes) in [
        (English, "Milk", "no, I meant goat milk", "Goat milk"),
        (
            German,
            "Arzt am Dienstag",
            "mach Freitag draus",
            "Arzt am Freitag",
        ),
    ] {
        let scores = likely(language, &[(ActionKind::Reword, 0.9)]);
        let before = format!("Added \u{201c}{label}\u{201d}.");
        let list = &["Feed the rabbits", label];
        let becomes_now = decided(scores, list, Some(&before), message, "[]");
        assert_eq!(becomes_now, format!("update_task 2 {becomes}"), "{message}");
    }
}

#[test]
fn an_entity_that_was_just_taken_away_can_be_added_again() {
    let scores = likely(Language::English, &[(ActionKind::Create, 0.9)]);
    let before = Some("Deleted \u{201c}Mow the lawn\u{201d}.");
    assert_eq!(
        decided(scores, LIST, before, "no, put it back", "[]"),
        "add_task Mow the lawn"
    );
}

#[test]
fn each_clause_asks_for_an_action_of_its_own() {
    use ActionKind::{Complete, Create, Delete, Reword};
    for (kinds, message, becomes) in [
        (
            [Complete, Delete],
            "the car is washed, remove the bread",
            "complete_task 2; delete_task 3",
        ),
        (
            [Complete, Delete],
            "mark 1 as done and delete 3 and 4",
            "complete_task 1; delete_task 3; delete_task 4",
        ),
        // A clause that names nothing is about the one before it.
        (
            [Complete, Delete],
            "the car is washed, the bread is cancelled, get rid of it",
            "complete_task 2; delete_task 3",
        ),
        (
            [Complete, Delete],
            "the car: done\nthe bread: delete",
            "complete_task 2; delete_task 3",
        ),
        (
            [Create, Delete],
            "delete the bread and add oat milk",
            "delete_task 3; add_task Oat milk",
        ),
        (
            [Complete, Reword],
            "the car is washed, rename 3 to bake rolls",
            "complete_task 2; update_task 3 Bake rolls",
        ),
    ] {
        let scores = likely(Language::English, &kinds.map(|kind| (kind, 0.8)));
        assert_eq!(
            decided(scores, LIST, None, message, "[]"),
            becomes,
            "{message}"
        );
    }
}

#[test]
fn words_have_a_share_in_the_evidence() {
    let scores = likely(
        Language::English,
        &[(ActionKind::Create, 0.42), (ActionKind::Reply, 0.4)],
    );
    let message = "please add oat milk to my list";
    assert_eq!(
        decided(scores, LIST, None, message, "[]"),
        "add_task Oat milk"
    );
    let message = "oat milk is such a strange thing";
    let asked = decided(scores, LIST, None, message, "[]");
    assert!(!asked.starts_with("add_task"), "{asked}");
}

#[test]
fn done_entries_are_deleted_together_or_with_all_others() {
    let scores = likely(Language::English, &[(ActionKind::Delete, 0.9)]);
    let list = &["Feed the rabbits", "Wash the car*", "Bake bread*"];
    for (message, becomes) in [
        ("remove all finished tasks", "delete_task 2; delete_task 3"),
        (
            "delete everything",
            "delete_task 1; delete_task 2; delete_task 3",
        ),
        ("delete 1, no, 2", "delete_task 2"),
    ] {
        assert_eq!(
            decided(scores, list, None, message, "[]"),
            becomes,
            "{message}"
        );
    }
}

#[test]
fn a_message_that_leaves_nothing_to_choose_is_sent_without_the_list() {
    let scores = likely(Language::English, &[(ActionKind::Complete, 0.9)]);
    let encoded = encoded_with(scores, LIST, "the car is washed");
    assert!(accepts(&encoded, "[]"));
    assert!(!accepts(&encoded, &complete("Wash the car")));
    assert_eq!(
        encoded.messages.last().unwrap().text(),
        "Message: the car is washed"
    );
}

#[test]
fn a_refusal_is_a_fixed_sentence_and_small_talk_claims_nothing() {
    let decline = likely(Language::German, &[(ActionKind::Decline, 0.9)]);
    let declined = decided(decline, LIST, None, "wie wird das wetter?", "[]");
    assert!(declined.starts_with("decline Ich kümmere mich nur um deine Aufgabenliste"));
    let reply = likely(Language::English, &[(ActionKind::Reply, 0.9)]);
    let says = |text: &str| {
        let chosen = json!([{ "small-talk": { "text": text } }]).to_string();
        decided(reply, LIST, None, "hello there", &chosen)
    };
    assert_eq!(says("Hello!"), "says Hello!");
    assert!(says("I've added it.").starts_with("says I keep your to-do list"));
    let in_spanish = says("\u{a1}De nada! Hasta luego, que te vaya bien.");
    assert!(
        in_spanish.starts_with("says I keep your to-do list"),
        "{in_spanish}"
    );
    assert_eq!(
        decided(reply, LIST, None, "I have not washed the car", "[]"),
        "says All right, I changed nothing."
    );
    // A task that was just spoken of is not what such a question is about.
    let before = Some("Added \u{201c}Wash the car\u{201d}. Anything else?");
    let help = decided(reply, LIST, before, "what can you do?", "[]");
    assert!(help.starts_with("says I keep your to-do list"), "{help}");
}

#[test]
fn tools_of_another_shape_are_not_judged_by_scores() {
    let scores = likely(Language::English, &[(ActionKind::Complete, 0.9)]);
    let mut request = request(None, "fed the rabbits");
    let mut twice = tools();
    twice.push(ToolDefinition::new("copy_task", "Copies.", json!({ "type": "object" })).unwrap());
    request.tools = twice.into();
    let scored = weak().encode(&request, &references(LIST), Some(&scores));
    let plain = weak().encode(&request, &references(LIST), None);
    assert_eq!(scored.response_schema, plain.response_schema);
    assert_eq!(scored.messages, plain.messages);
}

#[test]
fn an_answer_to_the_question_which_is_scored_with_what_the_question_was_about() {
    let asked = request(
        Some("Which task do you mean: 1. Wash the car, or 2. Bake bread?"),
        "the car",
    );
    let exchange = LastExchange::of(&asked);
    assert_eq!(exchange.utterance().message, "something earlier: the car");
    assert_eq!(exchange.utterance().before, None);
    let told = request(Some("Added \u{201c}Wash the car\u{201d}."), "thanks");
    let exchange = LastExchange::of(&told);
    assert_eq!(exchange.utterance().message, "thanks");
    assert_eq!(exchange.utterance().earlier, Some("something earlier"));
}

#[test]
fn news_of_something_else_completes_nothing_without_a_question() {
    use Language::{English, French, German};
    let list = &["Flour", "Rent"];
    let complete = &[(ActionKind::Complete, 0.95)][..];
    let added = "Added \u{201c}Flour\u{201d}.";
    let open = "Do you want me to complete \u{201c}Flour\u{201d}?";
    for (language, before, message, decision) in [
        (
            English,
            added,
            "my sister finished her homework",
            "ask_user",
        ),
        (English, open, "my sister finished her homework", "ask_user"),
        (English, open, "finished the homework", "ask_user"),
        (
            German,
            added,
            "die Nachbarn haben ihr Dach fertig",
            "ask_user",
        ),
        (French, added, "les voisins ont fini leur toit", "ask_user"),
        (English, added, "my sister finished it", "complete_task 1"),
        (English, added, "that's bought already", "complete_task 1"),
        (English, added, "got it from the bakery", "complete_task 1"),
        (English, open, "absolutely", "complete_task 1"),
        (German, added, "hab es schon eingekauft", "complete_task 1"),
    ] {
        let done = decided(
            likely(language, complete),
            list,
            Some(before),
            message,
            "[]",
        );
        assert!(done.starts_with(decision), "{message}: {done}");
        assert!(
            !done.starts_with("ask_user") || done.contains("Flour"),
            "{message}: {done}"
        );
    }
}
