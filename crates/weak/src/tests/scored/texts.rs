//! Texts of new tasks and new texts of tasks: which are taken, and which are asked about.

use super::*;

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
fn a_yes_with_an_exception_carries_out_the_other_proposals() {
    let list = &["Milk", "Oat milk for Ann", "Dark bread"];
    let complete = "Do you want me to complete \u{201c}Milk\u{201d}, \u{201c}Oat milk for Ann\u{201d}, \
                    \u{201c}Dark bread\u{201d}?";
    for (yes, done) in [
        (
            "yes, but not the oat milk",
            "complete_task 1; complete_task 3",
        ),
        ("ok, except the bread", "complete_task 1; complete_task 2"),
        (
            "yes, not the second one",
            "complete_task 1; complete_task 3",
        ),
        (
            "yes except the last one",
            "complete_task 1; complete_task 2",
        ),
        (
            "ja, aber nicht die dritte",
            "complete_task 1; complete_task 2",
        ),
        (
            "oui, sauf la premi\u{e8}re",
            "complete_task 2; complete_task 3",
        ),
        (
            "s\u{ed}, pero no la segunda",
            "complete_task 1; complete_task 3",
        ),
        ("sim, menos a terceira", "complete_task 1; complete_task 2"),
    ] {
        let scores = likely(Language::English, &[(ActionKind::Complete, 0.95)]);
        assert_eq!(
            decided(scores, list, Some(complete), yes, "[]"),
            done,
            "{yes}"
        );
    }
    // It is not known which of them are meant.
    for yes in [
        "yes, but not the butter",
        "yes, but not all",
        "yes, but not that one",
    ] {
        let scores = likely(Language::English, &[(ActionKind::Complete, 0.95)]);
        let asked = format!("ask_user {complete}");
        assert_eq!(
            decided(scores, list, Some(complete), yes, "[]"),
            asked,
            "{yes}"
        );
    }
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
