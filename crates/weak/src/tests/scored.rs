//! Messages whose actions were scored: what is done, asked and left to the model.

use adjutant_core::{ActionKind, ActionScores, Language, RESERVED};

use super::*;
use crate::LastExchange;

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

/// Returns the texts that new tasks of a message may have: those that the model chooses from, or the
/// only one.
fn offered_texts(scores: ActionScores, message: &str) -> Vec<String> {
    let schema = encoded_with(scores, LIST, message).response_schema.unwrap();
    match schema.pointer("/items/properties/add_task/properties/description/enum") {
        Some(texts) => serde_json::from_value(texts.clone()).unwrap(),
        None => {
            let only = decided(scores, LIST, None, message, "[]");
            vec![only.strip_prefix("add_task ").unwrap().to_owned()]
        }
    }
}

#[test]
fn texts_of_new_tasks_are_words_of_the_message_without_order_and_list() {
    use Language::{English, French, German, Portuguese, Spanish};
    for (language, message, text) in [
        (
            English,
            "please add oat milk to my list, thanks",
            "oat milk",
        ),
        (
            English,
            "stikc stapler refills on teh list",
            "stapler refills",
        ),
        (
            English,
            "remind me to call mum on Sunday",
            "call mum on Sunday",
        ),
        (
            English,
            "add return the book, no wait, the film",
            "return the film",
        ),
        (
            English,
            "next Tuesday hand in the form",
            "next Tuesday hand in the form",
        ),
        (
            English,
            "remind me tomorrow at 6 to put the bins out",
            "put the bins out tomorrow at 6",
        ),
        (German, "erinner mich daran Mama anzurufen", "Mama anrufen"),
        (German, "setz bitte Kerzen auf meine Liste", "Kerzen"),
        (
            German,
            "schreib auf: Zahnarzt am Mittwoch nee Donnerstag",
            "Zahnarzt am Donnerstag",
        ),
        (
            English,
            "in two weeks I need to renew the licence",
            "in two weeks renew the licence",
        ),
        (English, "add read chapter 7.3", "read chapter 7.3"),
        (
            German,
            "schreib bitte Hustensaft auf die Liste",
            "Hustensaft",
        ),
        (
            German,
            "ich muss noch die Hecke schneiden",
            "die Hecke schneiden",
        ),
        (
            French,
            "ajoute des mouchoirs à ma liste stp",
            "des mouchoirs",
        ),
        (
            Spanish,
            "añade comprar sombrero a la lista",
            "comprar sombrero",
        ),
        (Portuguese, "põe pilhas na minha lista por favor", "pilhas"),
    ] {
        let scores = likely(language, &[(ActionKind::Create, 0.9)]);
        let offered = offered_texts(scores, message);
        let is_offered = |offer: &String| offer.to_lowercase() == text.to_lowercase();
        assert!(offered.iter().any(is_offered), "{message}: {offered:?}");
    }
}

#[test]
fn every_text_that_the_model_chooses_becomes_a_task_and_no_other() {
    let scores = likely(Language::English, &[(ActionKind::Create, 0.9)]);
    let message = "add wax, rope and a tent";
    let chosen = json!([
        { "add_task": { "description": "wax" } },
        { "add_task": { "description": "rope" } },
        { "add_task": { "description": "a tent" } },
        { "add_task": { "description": "a boat" } },
    ]);
    assert_eq!(
        decided(scores, LIST, None, message, &chosen.to_string()),
        "add_task Wax; add_task Rope; add_task A tent"
    );
    let nothing = "ask_user What exactly should I add?";
    assert_eq!(decided(scores, LIST, None, message, "[]"), nothing);
    assert_eq!(decided(scores, LIST, None, message, "no JSON"), nothing);
    assert_eq!(
        decided(scores, &["Buy wax"], None, "add buy wax", "[]"),
        "ask_user \u{201c}Buy wax\u{201d} is already there. Do you want me to add it again?"
    );
}

#[test]
fn a_choice_that_the_model_was_not_sure_of_is_asked_about() {
    let scores = likely(Language::English, &[(ActionKind::Create, 0.9)]);
    let decided = |message: &str, chosen: &Value, certainty: f32| {
        let mut response = answer(&chosen.to_string(), FinishReason::Stop);
        response.certainty = Some(certainty);
        let request = request(None, message);
        let response = weak().decode(response, &request, &[], Some(&scores));
        let calls: Vec<String> = response
            .tool_calls()
            .map(|call| call.name.clone())
            .collect();
        calls.join(" ")
    };
    let row = "add call the vet, water the plants and buy oat milk";
    let texts = offered_texts(scores, row);
    let adds = |texts: &[String]| -> Value {
        let add = |text: &String| json!({ "add_task": { "description": text } });
        texts.iter().map(add).collect()
    };
    // These are the likeliest by their words too.
    let three = "add_task add_task add_task";
    assert_eq!(decided(row, &adds(&texts), 0.1), three, "{texts:?}");
    let other = "add prepare demo for Thursday, call the vet and buy oat milk";
    let texts_of_other = ["prepare demo for Thursday", "call the vet", "buy oat milk"];
    let texts_of_other = texts_of_other.map(str::to_owned);
    assert_eq!(decided(other, &adds(&texts_of_other), 0.1), three);
    assert_eq!(decided(row, &adds(&texts[..2]), 0.9), "add_task add_task");
    assert_eq!(decided(row, &adds(&texts[..2]), 0.4), "ask_user");
}

#[test]
fn a_new_text_of_an_entity_is_decided_by_its_words_and_not_by_the_model() {
    let scores = likely(Language::English, &[(ActionKind::Reword, 0.9)]);
    let message = "the call goes to Uncle Max, not Pete";
    let schema = encoded_with(scores, LIST, message).response_schema.unwrap();
    assert_eq!(schema["maxItems"], 0);
    assert_eq!(
        decided(scores, LIST, None, message, "[]"),
        "update_task 4 Ring Uncle Max"
    );
    assert_eq!(
        decided(scores, LIST, None, "change uncle pete", "[]"),
        "ask_user What should \u{201c}Ring Uncle Pete\u{201d} say instead?"
    );
}

#[test]
fn a_text_that_may_be_wrong_is_asked_about_and_a_yes_takes_it() {
    let create = likely(Language::English, &[(ActionKind::Create, 0.9)]);
    let story = "quick brain dump: the bell works fine now, the candles have got new stickers so \
        there are no worries at all, and Jade banked the money on her way back home";
    let chosen = json!([{ "add_task": { "description": offered_texts(create, story)[0] } }]);
    let asked = decided(create, &[], None, story, &chosen.to_string());
    let asked_to_add = "ask_user Do you want me to add \u{201c}";
    assert!(asked.starts_with(asked_to_add), "{asked}");
    // Of a long message every change is asked about.
    let story = format!("{story}, so the demo for Thursday is prepared, I sent it to the client");
    let kinds = [(ActionKind::Create, 0.9), (ActionKind::Complete, 0.9)];
    let both = likely(Language::English, &kinds);
    let list = &["Prepare demo for Thursday"];
    let asked = decided(both, list, None, &story, &chosen.to_string());
    let complete = "Do you want me to complete \u{201c}Prepare demo for Thursday\u{201d}?";
    assert!(
        asked.starts_with("ask_user") && asked.contains(complete),
        "{asked}"
    );
    let reword = likely(Language::English, &[(ActionKind::Reword, 0.9)]);
    let asked = decided(
        reword,
        list,
        None,
        "the demo has been put back to the 23rd and lunch goes to Ben",
        "[]",
    );
    let asked_to_change =
        "ask_user Do you want me to change \u{201c}Prepare demo for Thursday\u{201d} to \u{201c}";
    assert!(asked.starts_with(asked_to_change), "{asked}");
    for (question, yes, becomes) in [
        (
            "Do you want me to add \u{201c}Milk\u{201d}, \u{201c}Dark bread\u{201d}?",
            "yes please",
            "add_task Milk; add_task Dark bread",
        ),
        (
            "Soll ich \u{201e}Prepare demo for Thursday\u{201c} in \u{201e}Demo am Mittwoch\u{201c} \u{e4}ndern?",
            "Ja, mach das",
            "update_task 1 Demo am Mittwoch",
        ),
        (
            "Dois-je marquer \u{ab} Prepare demo for Thursday \u{bb} comme termin\u{e9}e ?",
            "oui",
            "complete_task 1",
        ),
        (
            "\u{bf}Quieres que borre \u{ab}Prepare demo for Thursday\u{bb}?",
            "s\u{ed}, por favor",
            "delete_task 1",
        ),
        (
            "Quer que eu adicione \u{201c}P\u{e3}o\u{201d}?",
            "ok",
            "add_task P\u{e3}o",
        ),
        // The questions of a long message, the last one of which a yes does not answer.
        (
            "Do you want me to complete \u{201c}Prepare demo for Thursday\u{201d}? Do you want me to add \
             \u{201c}Tea\u{201d}? Which task do you mean?",
            "yes, go ahead",
            "complete_task 1; add_task Tea; ask_user Which task do you mean?",
        ),
    ] {
        // Whatever a model makes of such a short message.
        let scores = likely(Language::English, &[(ActionKind::Reply, 0.9)]);
        assert_eq!(decided(scores, list, Some(question), yes, "[]"), becomes);
        let other = decided(
            scores,
            list,
            Some(question),
            "yes, but call Ann first",
            "[]",
        );
        assert!(!other.contains(becomes), "{other}");
    }
    // A task that is gone by now is not changed.
    let question = "Do you want me to complete \u{201c}Gone\u{201d}?";
    let scores = likely(Language::English, &[(ActionKind::Ask, 0.9)]);
    let gone = decided(scores, list, Some(question), "yes", "[]");
    assert!(gone.starts_with("ask_user"), "{gone}");
}

#[test]
fn a_new_text_takes_the_place_of_all_words_or_of_some() {
    use Language::{English, French, German, Portuguese, Spanish};
    for (language, label, message, text) in [
        (
            English,
            "Order 25 kg flour",
            "flour should read 30 kg",
            "Order 30 kg flour",
        ),
        (
            English,
            "Read chapter 9",
            "move chapter 9 to Sunday",
            "Read chapter 9 Sunday",
        ),
        (
            English,
            "Sow carrots",
            "rename 1 to sow the beets",
            "Sow the beets",
        ),
        (
            English,
            "Fix the gate",
            "call task 1 \u{201c}Paint it\u{201d}",
            "Paint it",
        ),
        (
            German,
            "Flug nach Wien buchen",
            "der Flug geht nach Prag, nicht nach Wien",
            "Flug nach Prag buchen",
        ),
        (
            German,
            "Hecke schneiden",
            "nenne Aufgabe 1 Hecke pflanzen um",
            "Hecke pflanzen",
        ),
        (
            French,
            "Acheter des poires",
            "remplace poires par prunes",
            "Acheter des prunes",
        ),
        (
            Spanish,
            "Pintar la sala",
            "la 1 debe decir pintar la cocina",
            "Pintar la cocina",
        ),
        (
            Portuguese,
            "Regar as rosas",
            "muda a 1 para podar as rosas",
            "Podar as rosas",
        ),
        // The words right in front of the new ones are those that it takes the place of.
        (
            English,
            "Buy medicine for father",
            "in the medicine task change father to mother",
            "Buy medicine for mother",
        ),
        // The entity may be named behind the new words.
        (
            English,
            "Yoga class on Wednesday",
            "change Wednesday to Thursday for the yoga",
            "Yoga class on Thursday",
        ),
        (
            German,
            "Schrank bei Frau Voss liefern",
            "Der Termin bei Frau Voss ist jetzt am 3. März",
            "Schrank bei Frau Voss liefern 3. März",
        ),
        (
            English,
            "Sell the sofa",
            "sell the sofa -> give the sofa away",
            "Give the sofa away",
        ),
        (
            French,
            "Graver les alliances",
            "changez « Graver les alliances » en « Récupérer les alliances »",
            "Récupérer les alliances",
        ),
    ] {
        let scores = likely(language, &[(ActionKind::Reword, 0.9)]);
        let becomes = decided(scores, &[label], None, message, "[]").to_lowercase();
        let (label, text) = (label.to_lowercase(), text.to_lowercase());
        let is_asked = becomes.starts_with("ask_user")
            && becomes.contains(&format!("{label}\u{201d} to \u{201c}{text}\u{201d}"));
        assert!(
            becomes == format!("update_task 1 {text}") || is_asked,
            "{message}: {becomes}"
        );
    }
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
