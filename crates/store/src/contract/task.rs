use adjutant_core::UserId;
use adjutant_tools::{
    Task, TaskChange, TaskChanged, TaskDescription, TaskFilter, TaskId, TaskStore,
};

use super::fixture::{key, user};

/// Tasks are added, listed, read, changed, completed and removed; a missing task is reported.
pub async fn tasks_are_added_changed_and_removed(store: &impl TaskStore) {
    let anna = user("anna");
    assert_eq!(store.list(&anna, TaskFilter::All).await.unwrap(), []);

    let milk = add(store, &anna, "buy milk").await;
    assert_eq!(
        (milk.id, milk.user_id.clone(), milk.description.as_str()),
        (id(1), anna.clone(), "buy milk")
    );
    assert_eq!(
        (milk.completed, milk.completed_at, milk.updated_at),
        (false, None, milk.created_at)
    );
    let bread = add(store, &anna, "buy bread").await;
    assert_eq!(bread.id, id(2));
    assert_eq!(store.get(&anna, id(1)).await.unwrap(), Some(milk.clone()));

    let change = TaskChange::Update {
        id: id(1),
        description: words("buy oat milk"),
        from_others: false,
    };
    let TaskChanged::Updated { task: oat, before } = apply(store, &anna, &change).await else {
        panic!("not updated")
    };
    assert_eq!(
        (before, oat.description.as_str()),
        (milk.description, "buy oat milk")
    );
    assert_eq!(oat.created_at, milk.created_at);
    assert!(oat.updated_at >= milk.updated_at);
    assert_eq!(store.get(&anna, id(1)).await.unwrap(), Some(oat.clone()));

    let TaskChanged::Completed {
        task: done,
        already: false,
    } = apply(store, &anna, &TaskChange::Complete { id: id(1) }).await
    else {
        panic!("not completed")
    };
    assert!(done.completed && done.completed_at == Some(done.updated_at));
    assert_eq!(
        store.list(&anna, TaskFilter::All).await.unwrap(),
        [done.clone(), bread.clone()]
    );
    assert_eq!(
        store.list(&anna, TaskFilter::Completed).await.unwrap(),
        std::slice::from_ref(&done)
    );
    assert_eq!(
        store.list(&anna, TaskFilter::Pending).await.unwrap(),
        std::slice::from_ref(&bread)
    );
    for (filter, before, limit, expected) in [
        (TaskFilter::All, None, 9, vec![&done, &bread]),
        (TaskFilter::All, None, 1, vec![&bread]),
        (TaskFilter::All, Some(2), 9, vec![&done]),
        (TaskFilter::All, None, 0, vec![]),
        (TaskFilter::Pending, None, 9, vec![&bread]),
        (TaskFilter::Pending, Some(2), 9, vec![]),
        (TaskFilter::Completed, None, 1, vec![&done]),
        (TaskFilter::Completed, Some(1), 1, vec![]),
        (TaskFilter::All, Some(u64::MAX), 1, vec![&bread]),
    ] {
        let last = store
            .list_last(&anna, filter, before.and_then(TaskId::new), limit)
            .await
            .unwrap();
        assert_eq!(
            last.iter().collect::<Vec<_>>(),
            expected,
            "{filter:?} {before:?} {limit}"
        );
    }

    let change = TaskChange::Delete { id: id(1) };
    assert_eq!(
        apply(store, &anna, &change).await,
        TaskChanged::Deleted { task: done }
    );
    assert_eq!(
        apply(store, &anna, &change).await,
        TaskChanged::NoSuchTask { id: id(1) }
    );
    assert_eq!(store.get(&anna, id(1)).await.unwrap(), None);
    let far = TaskId::new(u64::MAX).unwrap();
    assert_eq!(store.get(&anna, far).await.unwrap(), None);
    for change in [
        TaskChange::Complete { id: far },
        TaskChange::Update {
            id: far,
            description: words("x"),
            from_others: false,
        },
    ] {
        assert_eq!(
            apply(store, &anna, &change).await,
            TaskChanged::NoSuchTask { id: far }
        );
    }
}

/// The id of a deleted task is never used again.
pub async fn task_ids_are_never_reused(store: &impl TaskStore) {
    let anna = user("anna");
    for number in 1..=3 {
        let task = add(store, &anna, "again").await;
        assert_eq!(task.id, id(number));
        apply(store, &anna, &TaskChange::Delete { id: task.id }).await;
    }
    assert_eq!(store.list(&anna, TaskFilter::All).await.unwrap(), []);
    assert_eq!(add(store, &anna, "again").await.id, id(4));
}

/// Each user has ids from 1, and cannot see or change another's tasks. Idempotency keys are
/// separate, too.
pub async fn tasks_belong_to_their_user(store: &impl TaskStore) {
    let (anna, bert) = (user("anna"), user("Anna"));
    let annas = add(store, &anna, "anna's").await;
    add(store, &anna, "anna's second").await;
    let change = TaskChange::Add {
        description: words("bert's"),
        from_others: false,
    };
    let berts = store.apply(&bert, &change, Some(&key("k"))).await.unwrap();
    let TaskChanged::Added { task: berts } = berts else {
        panic!("not added")
    };
    assert_eq!((annas.id, berts.id), (id(1), id(1)));
    assert_eq!(
        store.list(&bert, TaskFilter::All).await.unwrap(),
        std::slice::from_ref(&berts)
    );
    assert_eq!(store.get(&bert, id(2)).await.unwrap(), None);

    let delete = TaskChange::Delete { id: id(1) };
    assert_eq!(
        store.apply(&anna, &delete, Some(&key("k"))).await.unwrap(),
        TaskChanged::Deleted { task: annas }
    );
    assert_eq!(store.get(&bert, id(1)).await.unwrap(), Some(berts));
    assert_eq!(
        apply(store, &bert, &TaskChange::Complete { id: id(2) }).await,
        TaskChanged::NoSuchTask { id: id(2) }
    );
}

/// A repeated key changes nothing and returns the first outcome, even if the task has changed
/// since.
pub async fn a_repeated_key_has_one_effect(store: &impl TaskStore) {
    let anna = user("anna");
    let (first, second) = (
        key("conversation/turn/call_1"),
        key("conversation/turn/call_2"),
    );
    let change = TaskChange::Add {
        description: words("buy milk"),
        from_others: false,
    };
    let added = store.apply(&anna, &change, Some(&first)).await.unwrap();
    apply(store, &anna, &TaskChange::Complete { id: id(1) }).await;
    assert_eq!(
        store.apply(&anna, &change, Some(&first)).await.unwrap(),
        added
    );
    assert_eq!(store.list(&anna, TaskFilter::All).await.unwrap().len(), 1);

    let delete = TaskChange::Delete { id: id(1) };
    let deleted = store.apply(&anna, &delete, Some(&second)).await.unwrap();
    assert!(matches!(deleted, TaskChanged::Deleted { .. }));
    assert_eq!(
        store.apply(&anna, &delete, Some(&second)).await.unwrap(),
        deleted
    );

    // A missing task is an outcome as well, which stays although the id exists later.
    let complete = TaskChange::Complete { id: id(2) };
    let nothing = TaskChanged::NoSuchTask { id: id(2) };
    assert_eq!(
        store
            .apply(&anna, &complete, Some(&key("third")))
            .await
            .unwrap(),
        nothing
    );
    assert_eq!(add(store, &anna, "buy bread").await.id, id(2));
    assert_eq!(
        store
            .apply(&anna, &complete, Some(&key("third")))
            .await
            .unwrap(),
        nothing
    );
    assert_eq!(store.list(&anna, TaskFilter::Completed).await.unwrap(), []);
}

/// Completing a completed task succeeds, says so, and keeps the first time.
pub async fn completing_twice_is_reported(store: &impl TaskStore) {
    let anna = user("anna");
    add(store, &anna, "buy milk").await;
    let complete = TaskChange::Complete { id: id(1) };
    let TaskChanged::Completed {
        task: first,
        already: false,
    } = apply(store, &anna, &complete).await
    else {
        panic!("not completed")
    };
    assert_eq!(
        apply(store, &anna, &complete).await,
        TaskChanged::Completed {
            task: first,
            already: true
        }
    );
}

/// A task says that a program wrote its description, until the user writes another.
pub async fn a_task_says_if_a_program_wrote_it(store: &impl TaskStore) {
    let anna = user("anna");
    let words = |words: &str| TaskDescription::new(words).unwrap();
    let write = |description: &str, from_others| TaskChange::Update {
        id: id(1),
        description: words(description),
        from_others,
    };
    let added = TaskChange::Add {
        description: words("one"),
        from_others: true,
    };
    for (change, expected) in [
        (added, true),
        (TaskChange::Complete { id: id(1) }, true),
        (TaskChange::Delete { id: id(1) }, true),
        (TaskChange::Restore { id: id(1) }, true),
        (write("two", false), false),
        (write("three", true), true),
    ] {
        apply(store, &anna, &change).await;
        if let Some(task) = store.get(&anna, id(1)).await.unwrap() {
            assert_eq!(task.from_others, expected, "{change:?}");
            let all = store.list(&anna, TaskFilter::All).await.unwrap();
            assert_eq!(all, [task], "{change:?}");
        }
    }
}

/// A deleted task is restored with its id, once, and only by its user.
pub async fn a_deleted_task_comes_back_as_it_was(store: &impl TaskStore) {
    let (anna, bert) = (user("anna"), user("bert"));
    for words in ["one", "two", "three"] {
        add(store, &anna, words).await;
    }
    let TaskChanged::Completed { task: done, .. } =
        apply(store, &anna, &TaskChange::Complete { id: id(2) }).await
    else {
        panic!("not completed")
    };
    let restore = TaskChange::Restore { id: id(2) };
    let there = TaskChanged::Restored {
        task: done.clone(),
        already: true,
    };
    assert_eq!(apply(store, &anna, &restore).await, there);
    for round in 0..2 {
        apply(store, &anna, &TaskChange::Delete { id: id(2) }).await;
        assert_eq!(
            apply(store, &bert, &restore).await,
            TaskChanged::NoSuchTask { id: id(2) }
        );
        let back = TaskChanged::Restored {
            task: done.clone(),
            already: false,
        };
        assert_eq!(apply(store, &anna, &restore).await, back, "{round}");
        let all = store.list(&anna, TaskFilter::All).await.unwrap();
        assert_eq!(
            all.iter().map(|task| task.id).collect::<Vec<_>>(),
            [id(1), id(2), id(3)]
        );
    }
    let never = TaskChange::Restore { id: id(9) };
    assert_eq!(
        apply(store, &anna, &never).await,
        TaskChanged::NoSuchTask { id: id(9) }
    );
}

/// Any text is read as it was written.
pub async fn descriptions_hold_any_unicode(store: &impl TaskStore) {
    let anna = user("änna 👋🏽");
    let longest = "👩‍👩‍👧‍👦"
        .chars()
        .cycle()
        .take(999)
        .chain(['!'])
        .collect::<String>();
    let texts = [
        "Ünïcödé",
        "日本語のタスク",
        "مهمة",
        "a\u{301}",
        "'; DROP TABLE task; --",
        "%_\\ \"?1\"",
        &longest,
    ];
    for text in texts {
        add(store, &anna, text).await;
    }
    let stored = store.list(&anna, TaskFilter::All).await.unwrap();
    assert_eq!(
        stored
            .iter()
            .map(|task| task.description.as_str())
            .collect::<Vec<_>>(),
        texts
    );
}

async fn apply(store: &impl TaskStore, user: &UserId, change: &TaskChange) -> TaskChanged {
    store.apply(user, change, None).await.unwrap()
}

async fn add(store: &impl TaskStore, user: &UserId, text: &str) -> Task {
    let TaskChanged::Added { task } = apply(
        store,
        user,
        &TaskChange::Add {
            description: words(text),
            from_others: false,
        },
    )
    .await
    else {
        panic!("{text:?} was not added")
    };
    task
}

fn words(text: &str) -> TaskDescription {
    TaskDescription::new(text).unwrap()
}

fn id(number: u64) -> TaskId {
    TaskId::new(number).unwrap()
}
