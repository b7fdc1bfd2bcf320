use super::super::dialogue::Dialogue;
use super::{Quoted, SpeechActs};

/// Describes the speech acts of a message in one line: `keep`, `KEEP` if it is certain, and so on;
/// `-` for none.
fn read(said: &Dialogue) -> String {
    let speech = SpeechActs::from_dialogue(said);
    let shown = |name: &str, quoted: &Option<Quoted>| {
        quoted.as_ref().map(|Quoted { texts, certain }| {
            let name = if *certain {
                name.to_uppercase()
            } else {
                name.to_owned()
            };
            format!("{name} {}", texts.join(" | "))
                .trim_end()
                .to_owned()
        })
    };
    let all = [
        shown("keep", &speech.keep),
        shown("log", &speech.entry),
        shown("seek", &speech.seek),
        shown("forget", &speech.forget),
        speech
            .has_more
            .then(|| if speech.beyond { "beyond" } else { "more" }.to_owned()),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    if all.is_empty() {
        "-".to_owned()
    } else {
        all.join(" + ")
    }
}

fn check(table: &[(&str, &str)]) {
    for (message, expected) in table {
        let said = Dialogue {
            message: (*message).to_owned(),
            ..Dialogue::default()
        };
        assert_eq!(read(&said), *expected, "{message}");
    }
}

#[test]
fn an_order_to_keep_has_the_words_that_are_to_be_kept() {
    check(&[
        (
            "Remember that my sister's name is Anna",
            "KEEP My sister's name is Anna",
        ),
        (
            "please remember that I take my coffee black.",
            "KEEP I take my coffee black",
        ),
        (
            "Can you remember that the spare key hangs behind the boiler?",
            "KEEP The spare key hangs behind the boiler",
        ),
        (
            "note that Omar is back on 3.5. from Oslo",
            "KEEP Omar is back on 3.5. from Oslo",
        ),
        (
            "Don't forget that Lea is allergic to nuts!",
            "KEEP Lea is allergic to nuts",
        ),
        ("Keep in mind: my knee is weak", "KEEP My knee is weak"),
        ("remember my blood type is A", "KEEP My blood type is A"),
        (
            "my bike has a blue lock, remember that",
            "KEEP My bike has a blue lock",
        ),
        (
            "Our landlord is Mr. Voss, please remember that.",
            "KEEP Our landlord is Mr. Voss",
        ),
        (
            "I'd like you to remember that Jo hates coriander",
            "KEEP Jo hates coriander",
        ),
        ("Can you remember something for me?", "KEEP"),
        (
            "for the record, Tom is left-handed",
            "KEEP Tom is left-handed",
        ),
        // Several sentences are several facts.
        (
            "Remember that I live in Bonn. My doctor is Dr. Weiss.",
            "KEEP I live in Bonn | My doctor is Dr. Weiss",
        ),
        (
            "remember that my boss is Tom and add water the ferns",
            "KEEP My boss is Tom + more",
        ),
        // What is to be done is a task.
        ("remember to ring the plumber", "more"),
        ("remember that I have to ring the plumber", "more"),
        ("Remember the milk", "more"),
        ("don't let me forget the plumber", "more"),
    ]);
}

#[test]
fn what_a_person_says_of_themselves_is_stated() {
    check(&[
        ("My sister's name is Anna", "keep My sister's name is Anna"),
        (
            "I prefer dark mode in all apps",
            "keep I prefer dark mode in all apps",
        ),
        ("my main project is DIANA", "keep My main project is DIANA"),
        (
            "Josh prefers dark mode in all apps",
            "keep Josh prefers dark mode in all apps",
        ),
        (
            "I'm allergic to penicillin",
            "keep I'm allergic to penicillin",
        ),
        ("I don't eat meat", "keep I don't eat meat"),
        ("I no longer live in Bonn", "keep I no longer live in Bonn"),
        (
            "I've worked nights since May",
            "keep I've worked nights since May",
        ),
        ("hi Diana, I live in Bremen", "keep I live in Bremen"),
        ("Actually, I moved to Lübeck", "keep I moved to Lübeck"),
        (
            "No, my sister's name is Hanna",
            "keep My sister's name is Hanna",
        ),
        (
            "Anna's birthday is on 3 May",
            "keep Anna's birthday is on 3 May",
        ),
        ("Anna is my sister", "keep Anna is my sister"),
        ("I have two kids", "keep I have two kids"),
        ("call me Al", "keep Call me Al"),
        ("we have a dog called Rex", "keep We have a dog called Rex"),
        // For the moment, or about something else.
        ("I'm tired", "more"),
        ("I am fine, thanks", "-"),
        ("I have a question", "more"),
        ("I like it", "-"),
        ("I'm done with the visa form", "more"),
        ("my back hurts today", "more"),
        ("the kettle is descaled", "more"),
        ("I need to insure the boat", "more"),
        ("I have invited the neighbours", "more"),
        ("my password is hunter2", "more"),
        ("She lives in Munich", "more"),
    ]);
}

#[test]
fn questions_about_what_was_told_are_told_from_others() {
    check(&[
        (
            "What is my sister's name?",
            "SEEK What is my sister's name?",
        ),
        ("when is Anna's birthday", "SEEK when is Anna's birthday"),
        (
            "what do you know about Josh?",
            "SEEK what do you know about Josh?",
        ),
        ("What do you know about me?", "SEEK"),
        ("what do you remember?", "SEEK"),
        (
            "Do you remember where the spare key is?",
            "SEEK Do you remember where the spare key is?",
        ),
        ("where does Anna live?", "seek where does Anna live?"),
        (
            "tell me what you know about the boiler",
            "SEEK tell me what you know about the boiler",
        ),
        (
            "what did I write in my diary?",
            "SEEK what did I write in my diary?",
        ),
        (
            "am I allergic to anything?",
            "seek am I allergic to anything?",
        ),
        ("what do I have to do?", "-"),
        ("which tasks are open?", "more"),
        ("what's the capital of Peru?", "more"),
        ("who painted the Mona Lisa?", "more"),
        ("tell me a joke", "more"),
        ("can you help me?", "more"),
    ]);
}

#[test]
fn entries_and_what_is_to_be_forgotten() {
    check(&[
        (
            "Write in my diary that I ran five miles",
            "LOG I ran five miles",
        ),
        (
            "note for today: the boiler was repaired. It cost 90 euros.",
            "LOG The boiler was repaired. It cost 90 euros",
        ),
        (
            "Log that I worked on CLI features",
            "LOG I worked on CLI features",
        ),
        ("put lunch with Mia into my journal", "LOG Lunch with Mia"),
        ("Write a note about our meeting", "LOG Our meeting"),
        ("add to today's note: bought a kayak", "LOG Bought a kayak"),
        ("dear diary, I ran five miles", "LOG I ran five miles"),
        ("write something in my diary", "LOG Something"),
        ("write in my diary", "LOG"),
        ("can you write in my diary that it snowed?", "LOG It snowed"),
        ("write me a poem about ferns", "more"),
        ("log in to the server", "more"),
        ("Forget my sister's name", "FORGET My sister's name"),
        ("please forget that I live in Bonn", "FORGET I live in Bonn"),
        ("forget what I told you about Anna", "FORGET Anna"),
        ("forget everything", "FORGET"),
        ("forget it", "-"),
        ("never mind, forget it", "-"),
        ("forget about the ferns, take it off the list", "more"),
        ("create a new note called Ferns", "beyond"),
        ("please delete the note about ferns", "beyond"),
        ("create a task for the note about ferns", "more"),
    ]);
}

#[test]
fn an_answer_completes_what_was_begun() {
    let check = |earlier: &str, before: &str, message: &str, expected: &str| {
        let said = Dialogue {
            message: message.to_owned(),
            assistant_before: Some(before.to_owned()),
            user_before: Some(earlier.to_owned()),
        };
        assert_eq!(read(&said), expected, "{earlier} / {before} / {message}");
    };
    let which = "What exactly should I remember?";
    check(
        "can you remember something for me?",
        which,
        "the spare key is at Mia's",
        "KEEP the spare key is at Mia's",
    );
    check(
        "can you remember something for me?",
        which,
        "never mind",
        "-",
    );
    check(
        "write in my diary",
        "What exactly should I write?",
        "ran five miles",
        "LOG ran five miles",
    );
    let sure = "Do you want me to remember “My cat is called Lux”?";
    check(
        "my cat is called Lux",
        sure,
        "yes please",
        "KEEP My cat is called Lux",
    );
    check("my cat is called Lux", sure, "no", "-");
    check(
        "my cat is called Lux",
        "Nice name.",
        "remember that",
        "KEEP My cat is called Lux",
    );
}

/// The scores of the task assistant hold for one that has a memory too: the requests are the same.
#[test]
fn no_sentence_of_the_suites_about_tasks_is_for_other_tools() {
    for cases in [
        include_str!("../../../../evals/todo.jsonl"),
        include_str!("../../../../evals/todo-lists.jsonl"),
        include_str!("../../../../evals/held-out.jsonl"),
    ] {
        for case in cases.lines().filter(|line| !line.is_empty()) {
            let case: serde_json::Value = serde_json::from_str(case).unwrap();
            let said = Dialogue {
                message: case["input"].as_str().unwrap().to_owned(),
                ..Dialogue::default()
            };
            let read = read(&said);
            assert!(matches!(read.as_str(), "-" | "more"), "{said:?}: {read}");
        }
    }
}
