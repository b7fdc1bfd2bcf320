use adjutant_tools::{
    NumbersChange, TaskChange, TaskChanged, TaskDescription, TaskId, TaskIndex, TaskNumber,
    TaskStore,
};

use super::fixture::{at, key, user};
use super::memory_ledger::scope;

fn number(id: u64, body: &str) -> TaskNumber {
    TaskNumber {
        id: TaskId::new(id).unwrap(),
        at: at(3),
        body: body.to_owned(),
    }
}

/// Numbers are written, replaced and removed for one user's vault only, together with the outcome
/// of a change.
pub async fn numbers_come_back_as_they_were(store: &impl TaskIndex) {
    let (anna, other, bert) = (
        scope("anna", "/v"),
        scope("anna", "/w"),
        scope("bert", "/v"),
    );
    let (one, two) = (number(1, "{\"é\":\"\u{1f600}\"}"), number(7, "x"));
    store
        .put_numbers(
            &anna,
            NumbersChange {
                put: &[two.clone(), one.clone()],
                ..Default::default()
            },
        )
        .await
        .unwrap();
    assert_eq!(store.numbers(&anna).await.unwrap(), [one, two.clone()]);
    assert_eq!(store.numbers(&other).await.unwrap(), []);
    assert_eq!(store.numbers(&bert).await.unwrap(), []);
    let gone = TaskChanged::NoSuchTask { id: two.id };
    let (applied, again) = (key("k"), number(7, "y"));
    let change = NumbersChange {
        put: std::slice::from_ref(&again),
        removed: &[TaskId::FIRST],
        applied: Some((&applied, &gone)),
    };
    assert_eq!(store.applied(&user("anna"), &applied).await.unwrap(), None);
    store.put_numbers(&anna, change).await.unwrap();
    assert_eq!(store.numbers(&anna).await.unwrap(), [again]);
    assert_eq!(
        store.applied(&user("anna"), &applied).await.unwrap(),
        Some(gone)
    );
    assert_eq!(store.applied(&user("bert"), &applied).await.unwrap(), None);
}

/// No number is given twice.
pub async fn numbers_are_shared_with_the_tasks_of_the_user<T: TaskIndex + TaskStore>(store: &T) {
    let anna = user("anna");
    let ids = |ids: &[u64]| {
        ids.iter()
            .filter_map(|id| TaskId::new(*id))
            .collect::<Vec<_>>()
    };
    assert_eq!(store.new_numbers(&anna, 2).await.unwrap(), ids(&[1, 2]));
    let add = TaskChange::Add {
        description: TaskDescription::new("buy milk").unwrap(),
        from_others: false,
    };
    let TaskChanged::Added { task } = store.apply(&anna, &add, None).await.unwrap() else {
        panic!("not added")
    };
    assert_eq!(vec![task.id], ids(&[3]));
    assert_eq!(store.new_numbers(&anna, 0).await.unwrap(), []);
    assert_eq!(store.new_numbers(&anna, 1).await.unwrap(), ids(&[4]));
    assert_eq!(
        store.new_numbers(&user("bert"), 1).await.unwrap(),
        ids(&[1])
    );
}
