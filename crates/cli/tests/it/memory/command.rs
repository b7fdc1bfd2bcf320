//! `adjutant memory`: facts that the user lists, adds, edits, forgets and restores.

use super::*;

#[test]
fn a_person_lists_searches_adds_edits_forgets_and_takes_back() {
    let (home, vault) = with_vault(FACTS);
    let (_, list) = home.json(&["memory", "list"]);
    assert_eq!(
        contents(&list),
        [
            "Ana prefers dark mode in all apps",
            "Ana rides to work on a folding bicycle"
        ]
    );
    let (_, found) = home.json(&["memory", "search", "bicycle"]);
    assert_eq!(contents(&found), ["Ana rides to work on a folding bicycle"]);

    let run = home
        .run(&["memory", "add", "Ana", "keeps", "three", "hens"])
        .succeeds();
    assert_eq!(
        run.stdout,
        "✎ remembered: Ana keeps three hens  (undo: adjutant memory undo)\n"
    );
    // Nearly the same words are another fact, unless they say that they are not.
    let (_, other) = home.json(&["memory", "add", "Berta keeps three hens"]);
    assert_eq!(other["status"], "added");
    let (_, corrected) = home.json(&[
        "memory",
        "edit",
        "Ana keeps three",
        "Ana keeps three brown hens",
    ]);
    assert_eq!(
        (corrected["status"].as_str(), corrected["before"].as_str()),
        (Some("updated"), Some("Ana keeps three hens"))
    );
    home.run(&["memory", "forget", "Berta"]).succeeds();
    assert_eq!(facts(&vault).matches("hens").count(), 1);

    let id = corrected["fact"]["id"].as_str().unwrap();
    for part in [&id[..4], &id[3..]] {
        let (code, edited) = home.json(&["memory", "edit", part, "--important"]);
        assert_eq!(code, 0, "{part}: {edited}");
    }
    assert!(
        facts(&vault).contains("- Ana keeps three brown hens #important"),
        "{}",
        facts(&vault)
    );
    let run = home.run(&["memory", "why", "hens"]).succeeds();
    assert!(
        run.stdout.contains("(was: Ana keeps three hens)") && run.stdout.contains("by you"),
        "{run:#?}"
    );

    let before = facts(&vault);
    home.run(&["memory", "forget", "folding bicycle"])
        .succeeds();
    assert!(!facts(&vault).contains("bicycle"));
    let run = home.run(&["memory", "undo"]).succeeds();
    assert_eq!(
        run.stdout,
        "Undone: “Ana rides to work on a folding bicycle” is remembered again.\n"
    );
    let without_time = |text: &str| {
        text.lines()
            .filter(|line| !line.starts_with("modified:"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(
        without_time(&facts(&vault)).trim_end(),
        without_time(&before).trim_end()
    );
}

#[test]
fn of_two_facts_that_cannot_both_be_true_a_person_says_which_holds() {
    let (home, vault) = with_vault("");
    home.run(&["memory", "add", "Ana lives in Berlin"])
        .succeeds();
    // Nobody can be asked: both are kept, and it is said.
    let run = home
        .run(&["memory", "add", "Ana lives in Munich"])
        .succeeds();
    assert!(
        run.stderr.contains("kept beside “Ana lives in Berlin”"),
        "{run:?}"
    );
    assert!(run.stderr.contains("adjutant memory forget "), "{run:?}");
    home.run(&["memory", "undo"]).succeeds();
    #[cfg(unix)]
    for (key, left) in [("n", 2), ("y", 1)] {
        let mut terminal = Terminal::start(&home, &["memory", "add", "Ana lives in Rome"]);
        terminal
            .sees("known: Ana lives in Berlin")
            .sees("Does the new fact take its place")
            .keys(key)
            .keys("\r");
        terminal.ends();
        assert!(facts(&vault).contains("Ana lives in Rome"));
        assert_eq!(
            facts(&vault).matches("Ana lives in").count(),
            left,
            "{}",
            facts(&vault)
        );
        home.run(&["memory", "undo"]).succeeds();
    }
    assert_eq!(
        facts(&vault).matches("Ana lives in").count(),
        1,
        "{}",
        facts(&vault)
    );
}

#[test]
fn several_facts_are_forgotten_only_after_a_yes() {
    let (home, vault) = with_vault(FACTS);
    let before = facts(&vault);
    let run = home
        .run(&["memory", "forget", "Ana"])
        .ends_with(4)
        .says("2 facts would be forgotten");
    assert!(
        run.stderr.contains("dark mode") && run.stdout.is_empty(),
        "{run:#?}"
    );
    assert_eq!(facts(&vault), before);
    let (code, forgotten) = home.json(&["memory", "forget", "Ana", "-y"]);
    assert_eq!(
        (code, forgotten.as_array().unwrap().len()),
        (0, 2),
        "{forgotten}"
    );
    assert_eq!(home.json(&["memory", "list"]).1, json!([]));
    home.run(&["memory", "undo"]).succeeds();
    home.run(&["memory", "undo"]).succeeds();
    assert_eq!(
        home.json(&["memory", "list"]).1.as_array().unwrap().len(),
        2
    );
    home.run(&["memory", "undo"])
        .ends_with(1)
        .says("nothing to undo");
}

#[test]
fn an_operation_that_fails_has_a_remedy() {
    let (home, vault) = with_vault(FACTS);
    home.run(&["memory", "forget", "giraffes"])
        .ends_with(1)
        .says("no fact matches");
    home.run(&["memory", "why", "Ana"])
        .ends_with(1)
        .says("may be any of");
    home.run(&["memory", "add", " "])
        .ends_with(2)
        .says("needs words");
    home.run(&["memory", "edit", "dark mode"])
        .ends_with(2)
        .says("nothing to change");
    let (code, error) = home.json(&["memory", "forget", "giraffes"]);
    assert_eq!(
        (code, error["error"]["code"].as_str()),
        (1, Some("unknown")),
        "{error}"
    );

    let config = format!(
        "[vault]\npath = {:?}\n[memory]\nmax_facts = 2\n",
        arg(&vault)
    );
    home.config(&config);
    let before = facts(&vault);
    home.run(&["memory", "add", "a third one about sailing"])
        .ends_with(6)
        .says("memory.max_facts is 2");
    assert_eq!(facts(&vault), before, "nothing is evicted");
    // Corrections still work.
    home.run(&[
        "memory",
        "add",
        "Actually, Ana prefers dark mode in all new apps",
    ])
    .succeeds();

    home.config("[memory]\ndatabase = false\n");
    home.run(&["memory", "list"])
        .ends_with(3)
        .says("adjutant init");
    assert!(!home.path("Notes/memory/x").exists());
}

#[test]
fn without_a_vault_facts_are_kept_in_the_database() {
    let home = Home::new();
    home.run(&["memory", "add", "Ana collects old maps"])
        .succeeds();
    home.run(&["memory", "add", "Ana lives in Munich"])
        .succeeds();
    home.run(&["memory", "add", "Actually, Ana lives in Oslo"])
        .succeeds();
    let facts = || home.json(&["memory", "list"]).1;
    assert_eq!(
        contents(&facts()),
        ["Ana collects old maps", "Ana lives in Oslo"]
    );
    home.run(&["memory", "undo"]).succeeds();
    assert_eq!(
        contents(&facts()),
        ["Ana collects old maps", "Ana lives in Munich"]
    );
    let model = home.script(&[
        r#"{"config": {"weak_tools": true}}"#,
        r#"{"text": "[{\"small-talk\": {\"text\": \"Nice!\"}}]", "repeat": true}"#,
    ]);
    let run = home
        .run(&["-m", &model, "Remember that my sister's name is Marlene"])
        .succeeds();
    assert!(
        run.stdout
            .contains("remembered: My sister's name is Marlene")
            && run.stderr.contains("facts about you, in the database"),
        "{run:#?}"
    );
    assert_eq!(contents(&facts()).len(), 3);
}

#[test]
fn a_vault_that_cannot_be_used_is_named_and_nothing_is_made_in_its_place() {
    let home = Home::new();
    let missing = home.path("gone");
    for args in [&["memory", "list"][..], &["-m", "demo", "hello"]] {
        let run = home
            .run(&[&["--vault", arg(&missing)], args].concat())
            .ends_with(3)
            .says("is not there");
        assert!(run.stderr.contains("vault.path"), "{run:#?}");
        assert!(!missing.exists());
    }
    let file = home.file("a-file", "text");
    home.run(&["--vault", arg(&file), "memory", "list"])
        .ends_with(3)
        .says("is not a folder");
    let (home, vault) = with_vault(FACTS);
    home.config(&format!(
        "[vault]\npath = {:?}\n[memory]\npath = \"../facts.md\"\n",
        arg(&vault)
    ));
    home.run(&["memory", "add", "x y"])
        .ends_with(3)
        .says("memory.path");
    // The tasks need no vault.
    home.config("[vault]\npath = \"/nowhere\"\n");
    home.run(&["tasks", "list"]).succeeds();
}

#[cfg(unix)]
#[test]
fn facts_that_may_not_be_written_stay_as_they_are() {
    use std::os::unix::fs::PermissionsExt as _;
    let (home, vault) = with_vault(FACTS);
    std::fs::set_permissions(
        vault.join("memory/facts.md"),
        std::fs::Permissions::from_mode(0o444),
    )
    .unwrap();
    home.run(&["memory", "add", "something new about sailing"])
        .ends_with(1)
        .says("read-only");
    assert_eq!(facts(&vault), FACTS);
    home.run(&["memory", "list"]).succeeds();
}

#[test]
fn processes_that_remember_at_once_lose_nothing() {
    let (home, vault) = with_vault(FACTS);
    let words = [
        "sailing boats",
        "mountain huts",
        "jazz records",
        "sourdough bread",
        "chess openings",
        "old maps",
    ];
    home.run(&["db", "migrate"]).succeeds();
    std::thread::scope(|scope| {
        for topic in words {
            let home = &home;
            scope.spawn(move || {
                home.run(&["memory", "add", "Ana", "collects", topic])
                    .succeeds()
            });
        }
    });
    let text = facts(&vault);
    for topic in words {
        assert_eq!(text.matches(topic).count(), 1, "{topic}: {text}");
    }
    for _ in words {
        home.run(&["memory", "undo"]).succeeds();
    }
    assert!(words.iter().all(|topic| !facts(&vault).contains(topic)));
}
