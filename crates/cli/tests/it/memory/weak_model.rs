//! Memory of a weak model: few tools, in English.

use super::*;

/// A model that cannot be trusted with tool calls, and always answers this.
fn small(home: &Home, answer: &Value) -> String {
    let answer = json!({ "text": answer.to_string(), "repeat": true });
    home.script(&[r#"{"config": {"weak_tools": true}}"#, &answer.to_string()])
}

#[test]
fn facts_for_a_small_model_are_kept_in_the_users_words_and_found() {
    let (home, vault) = with_vault(FACTS);
    // Whatever the model says, an order to keep something is carried out with the words of the
    // person.
    for (said, kept) in [
        (
            "Remember that my sister's name is Marlene",
            "My sister's name is Marlene",
        ),
        (
            "note that the spare fuse is behind the dryer. Our landlord is Dr. Okafor.",
            "The spare fuse is behind the dryer",
        ),
    ] {
        let model = small(
            &home,
            &json!([{ "small-talk": { "text": "I will remember that." } }]),
        );
        let run = home.run(&["-m", &model, said]).succeeds();
        assert!(
            run.stdout
                .contains(&format!("remembered: {kept}  (undo: adjutant memory undo)")),
            "{run:#?}"
        );
        assert!(facts(&vault).contains(kept), "{}", facts(&vault));
    }
    assert!(
        facts(&vault).contains("] Our landlord is Dr. Okafor\n"),
        "{}",
        facts(&vault)
    );
    let model = small(&home, &json!([{ "recall": {} }]));
    let run = home
        .run(&["-m", &model, "what is my sister's name?"])
        .succeeds();
    assert!(
        run.stdout.contains("Marlene") && !run.stdout.contains("fuse"),
        "{run:#?}"
    );
    assert!(run.stderr.contains("this model is small"), "{run:#?}");
    let run = home
        .run(&["-m", &model, "what is my brother's name?"])
        .succeeds();
    assert!(run.stdout.contains("do not know"), "{run:#?}");
    let run = home
        .run(&["-m", &model, "what do you know about me?"])
        .succeeds();
    assert!(
        run.stdout.contains("folding bicycle") && run.stdout.contains("Okafor"),
        "{run:#?}"
    );
}

#[test]
fn a_small_model_writes_todays_note_and_forgets_after_a_yes() {
    let (home, vault) = with_vault(FACTS);
    let model = small(
        &home,
        &json!([{ "write_daily_note": { "activity": "invented" } }]),
    );
    home.run(&["-m", &model, "write in my diary that we saw two otters"])
        .succeeds();
    let notes = bytes(&vault)
        .into_values()
        .map(|note| String::from_utf8(note).unwrap())
        .collect::<String>();
    assert!(
        notes.contains(" We saw two otters\n") && !notes.contains("invented"),
        "{notes}"
    );

    let model = small(&home, &json!([{ "forget": { "fact": "everything" } }]));
    let asked = home.run(&["-m", &model, "forget what I told you about the bicycle"]);
    asked.ends_with(4);
    assert!(facts(&vault).contains("bicycle"));
    let model = small(&home, &json!([{ "forget": { "fact": "everything" } }]));
    home.run(&[
        "-y",
        "-m",
        &model,
        "forget what I told you about the bicycle",
    ])
    .succeeds();
    assert!(
        !facts(&vault).contains("bicycle") && facts(&vault).contains("dark mode"),
        "{}",
        facts(&vault)
    );
}

#[test]
fn a_small_model_that_says_it_kept_something_is_not_believed() {
    let (home, vault) = with_vault("");
    for claim in [
        "I've noted that.",
        "Got it, saved!",
        "I will remember that.",
        "Noted",
        "I'll keep that in mind",
    ] {
        let model = small(&home, &json!([{ "small-talk": { "text": claim } }]));
        let run = home.run(&["-m", &model, "my cat is called Lux"]);
        assert!(
            run.stdout
                .contains("Do you want me to remember “My cat is called Lux”?"),
            "{claim}: {run:#?}"
        );
        let run = home.run(&["-m", &model, "what a day"]);
        assert!(run.stdout.contains("changed nothing"), "{claim}: {run:#?}");
    }
    assert_eq!(facts(&vault), "");
}
