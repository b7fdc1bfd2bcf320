//! The tasks in the notes behind the port of task stores: numbers, keys, and what a crash leaves.

use std::sync::Arc;

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, IdempotencyKey, UserId};
use adjutant_memory::{InMemoryTaskIndex, VaultTaskStore};
use adjutant_tools::{
    Task, TaskChange, TaskChanged, TaskDescription, TaskFilter, TaskId, TaskIndex, TaskStore,
};
use jiff::ToSpan;

use crate::harness::{Home, files};

/// The store of others' tasks, who have none.
struct Nobody;

impl TaskStore for Nobody {
    fn apply<'a>(
        &'a self,
        _user: &'a UserId,
        _change: &'a TaskChange,
        _key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        let id = TaskId::FIRST;
        Box::pin(std::future::ready(Ok(TaskChanged::NoSuchTask { id })))
    }

    fn list<'a>(
        &'a self,
        _: &'a UserId,
        _: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn list_last<'a>(
        &'a self,
        _: &'a UserId,
        _: TaskFilter,
        _: Option<TaskId>,
        _: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn get<'a>(
        &'a self,
        _: &'a UserId,
        _: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

fn store(home: &Home, index: &Arc<InMemoryTaskIndex>) -> VaultTaskStore {
    VaultTaskStore::new(
        home.memory.tasks().unwrap(),
        index.clone(),
        Arc::new(Nobody),
        "Tasks.md",
    )
}

fn id(number: u64) -> TaskId {
    TaskId::new(number).unwrap()
}

fn words(text: &str) -> TaskDescription {
    TaskDescription::new(text).unwrap()
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(text).unwrap()
}

/// `1 words` for each task, `1 x words` if it is done.
async fn listed(store: &VaultTaskStore, filter: TaskFilter) -> Vec<String> {
    let tasks = store.list(&UserId::local(), filter).await.unwrap();
    let done = |task: &Task| if task.completed { "x " } else { "" };
    tasks
        .iter()
        .map(|task| format!("{} {}{}", task.id, done(task), task.description))
        .collect()
}

async fn apply(store: &VaultTaskStore, change: TaskChange) -> TaskChanged {
    store.apply(&UserId::local(), &change, None).await.unwrap()
}

#[tokio::test]
async fn tasks_have_numbers_that_stay_whatever_is_done_to_the_notes() {
    let home = Home::new();
    home.write(
        "a.md",
        "- [ ] one 📅 2025-12-24\n- [x] two ✅ 2025-12-01\n- [ ] twin\n- [ ] twin\n",
    );
    let index = Arc::new(InMemoryTaskIndex::new());
    let tasks = store(&home, &index);
    assert_eq!(
        listed(&tasks, TaskFilter::All).await,
        ["1 one 📅 2025-12-24", "2 x two", "3 twin", "4 twin"]
    );
    assert_eq!(listed(&tasks, TaskFilter::Pending).await.len(), 3);
    assert_eq!(listed(&tasks, TaskFilter::Completed).await, ["2 x two"]);
    let last = tasks
        .list_last(&UserId::local(), TaskFilter::All, Some(id(4)), 2)
        .await
        .unwrap();
    assert_eq!(
        last.iter().map(|task| task.id).collect::<Vec<_>>(),
        [id(2), id(3)]
    );
    // By the owner: moved to another note, done, and new lines above.
    home.write(
        "a.md",
        "- [ ] new\n\n- [x] one 📅 2025-12-24 ✅ 2025-12-10\n- [ ] twin\n- [ ] between\n- [ ] twin\n",
    );
    home.write("b.md", "* [x] two ✅ 2025-12-01\n");
    assert_eq!(
        listed(&tasks, TaskFilter::All).await,
        [
            "1 x one 📅 2025-12-24",
            "2 x two",
            "3 twin",
            "4 twin",
            "5 new",
            "6 between"
        ]
    );
    // The second of two that read the same is the one that is meant.
    apply(&tasks, TaskChange::Complete { id: id(4) }).await;
    assert!(
        home.read("a.md")
            .ends_with("- [ ] twin\n- [ ] between\n- [x] twin ✅ 2025-12-10\n")
    );
    // Other words are another task: the old number means nothing.
    home.write("b.md", "* [x] quite another ✅ 2025-12-01\n");
    let two = TaskChange::Delete { id: id(2) };
    assert_eq!(
        apply(&tasks, two).await,
        TaskChanged::NoSuchTask { id: id(2) }
    );
    assert_eq!(
        listed(&tasks, TaskFilter::Completed).await.last().unwrap(),
        "7 x quite another"
    );
    assert_eq!(
        tasks
            .get(&UserId::local(), id(7))
            .await
            .unwrap()
            .unwrap()
            .description
            .as_str(),
        "quite another"
    );
    assert_eq!(
        store(&home, &index)
            .list(&UserId::new("eve").unwrap(), TaskFilter::All)
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn tasks_are_added_changed_completed_deleted_and_brought_back() {
    let home = Home::new();
    let tasks = store(&home, &Arc::new(InMemoryTaskIndex::new()));
    let TaskChanged::Added { task } = apply(
        &tasks,
        TaskChange::Add {
            description: words("call mom 📅 2025-12-24"),
            from_others: false,
        },
    )
    .await
    else {
        panic!("not added")
    };
    assert_eq!(
        (task.id, task.description.as_str()),
        (id(1), "call mom 📅 2025-12-24")
    );
    let change = TaskChange::Update {
        id: id(1),
        description: words("call dad"),
        from_others: false,
    };
    let TaskChanged::Updated { task, before } = apply(&tasks, change).await else {
        panic!("not updated")
    };
    assert_eq!(
        (task.description.as_str(), before.as_str()),
        ("call dad 📅 2025-12-24", "call mom 📅 2025-12-24")
    );
    assert_eq!(home.read("Tasks.md"), "- [ ] call dad 📅 2025-12-24\n");
    apply(
        &tasks,
        TaskChange::Add {
            description: words("water 🔁 every week 📅 2025-12-10"),
            from_others: false,
        },
    )
    .await;
    let complete = TaskChange::Complete { id: id(2) };
    let TaskChanged::Completed {
        task,
        already: false,
    } = apply(&tasks, complete.clone()).await
    else {
        panic!("not completed")
    };
    assert!(task.completed && task.completed_at.is_some() && task.id == id(2));
    assert!(matches!(
        apply(&tasks, complete).await,
        TaskChanged::Completed { already: true, .. }
    ));
    assert_eq!(
        home.read("Tasks.md"),
        "- [ ] call dad 📅 2025-12-24\n- [ ] water 🔁 every week 📅 2025-12-17\n\
         - [x] water 🔁 every week 📅 2025-12-10 ✅ 2025-12-10\n"
    );
    let delete = TaskChange::Delete { id: id(1) };
    assert!(matches!(
        apply(&tasks, delete.clone()).await,
        TaskChanged::Deleted { .. }
    ));
    assert_eq!(
        apply(&tasks, delete).await,
        TaskChanged::NoSuchTask { id: id(1) }
    );
    home.later(20.days());
    let restore = TaskChange::Restore { id: id(1) };
    let TaskChanged::Restored {
        task,
        already: false,
    } = apply(&tasks, restore.clone()).await
    else {
        panic!("not restored")
    };
    assert_eq!(
        (task.id, task.description.as_str()),
        (id(1), "call dad 📅 2025-12-24")
    );
    assert!(matches!(
        apply(&tasks, restore).await,
        TaskChanged::Restored { already: true, .. }
    ));
    assert!(
        home.read("Tasks.md")
            .starts_with("- [ ] call dad 📅 2025-12-24\n- [ ] water")
    );
    apply(&tasks, TaskChange::Delete { id: id(1) }).await;
    home.later(31.days());
    let late = apply(&tasks, TaskChange::Restore { id: id(1) }).await;
    assert_eq!(late, TaskChanged::NoSuchTask { id: id(1) });
    // An unsupported rule, and a vault that is away, have clear messages.
    apply(
        &tasks,
        TaskChange::Add {
            description: words("pay 🔁 every month on the 1st"),
            from_others: false,
        },
    )
    .await;
    let all = tasks
        .list(&UserId::local(), TaskFilter::Pending)
        .await
        .unwrap();
    let pay = TaskChange::Complete {
        id: all.last().unwrap().id,
    };
    let before = files(&home.vault());
    let refused = tasks.apply(&UserId::local(), &pay, None).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Refused { reason } if reason.contains("every month on the 1st")),
        "{refused}"
    );
    assert_eq!(files(&home.vault()), before);
    std::fs::remove_dir_all(home.vault()).unwrap();
    let away = tasks
        .list(&UserId::local(), TaskFilter::All)
        .await
        .unwrap_err();
    assert!(
        matches!(&away, StoreError::Refused { reason } if !reason.contains("/")),
        "{away}"
    );
}

#[tokio::test]
async fn the_same_key_has_one_effect_also_if_the_database_has_no_record() {
    for number in 0..4 {
        let home = Home::new();
        home.write("a.md", "- [ ] one\n- [ ] two 🔁 every day\n- [ ] three\n");
        let index = Arc::new(InMemoryTaskIndex::new());
        let tasks = store(&home, &index);
        assert_eq!(listed(&tasks, TaskFilter::All).await.len(), 3);
        let change = match number {
            0 => TaskChange::Complete { id: id(2) },
            1 => TaskChange::Update {
                id: id(1),
                description: words("other"),
                from_others: false,
            },
            2 => TaskChange::Delete { id: id(3) },
            _ => TaskChange::Add {
                description: words("four"),
                from_others: false,
            },
        };
        let (user, again) = (UserId::local(), key("call"));
        // The note was written, and then the process ended: what the index has is of before.
        let scope = adjutant_core::MemoryScope {
            user: user.clone(),
            vault: home.vault().canonicalize().unwrap().display().to_string(),
        };
        let numbers = index.numbers(&scope).await.unwrap();
        let first = tasks.apply(&user, &change, Some(&again)).await.unwrap();
        let written = files(&home.vault());
        let fresh = Arc::new(InMemoryTaskIndex::new());
        fresh.new_numbers(&user, 3).await.unwrap();
        let put = adjutant_tools::NumbersChange {
            put: &numbers,
            ..Default::default()
        };
        fresh.put_numbers(&scope, put).await.unwrap();
        let second = store(&home, &fresh)
            .apply(&user, &change, Some(&again))
            .await
            .unwrap();
        assert_eq!(files(&home.vault()), written, "{number}");
        assert_eq!(
            std::mem::discriminant(&first),
            std::mem::discriminant(&second),
            "{number}: {second:?}"
        );
        // And with the record in the database.
        assert_eq!(
            tasks.apply(&user, &change, Some(&again)).await.unwrap(),
            first
        );
        assert_eq!(files(&home.vault()), written, "{number}");
    }
}
