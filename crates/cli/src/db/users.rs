//! Users of a database that somebody should look at: names that are almost the same, and the
//! machine's own among others.

use std::collections::BTreeMap;

use adjutant_core::UserId;

/// Returns what is worth a look, in words. Nothing of it is wrong by itself: what two users share
/// by mistake cannot be told from what is one user's, so that whoever knows them has to.
pub(super) fn notices(users: &[UserId]) -> Vec<String> {
    let mut alike: BTreeMap<String, Vec<&UserId>> = BTreeMap::new();
    for user in users {
        let words: Vec<&str> = user.as_str().split_whitespace().collect();
        alike.entry(words.join(" ")).or_default().push(user);
    }
    let mut notices: Vec<String> = alike
        .into_values()
        .filter(|users| users.len() > 1)
        .map(|users| {
            let names: Vec<String> = users.iter().map(|user| format!("{:?}", user.as_str())).collect();
            format!(
                "{} differ by white space only, and are {} users: earlier versions left out white space around the names \
                 that a proxy or an issuer gave, so the data of them all may be with one",
                names.join(", "),
                users.len()
            )
        })
        .collect();
    let others = users
        .iter()
        .filter(|user| **user != UserId::local())
        .count();
    if others > 0 && others < users.len() {
        notices.push(format!(
            "the user \"local\", who is whoever works on this machine, has data beside {others} others: if the service was open to \
             names from a proxy or an issuer, one of them may have been called so too, and what is there may be theirs in part"
        ));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<String> {
        let users: Vec<UserId> = names
            .iter()
            .map(|name| UserId::new(*name).unwrap())
            .collect();
        notices(&users)
    }

    #[test]
    fn names_that_differ_by_white_space_only_are_told_with_what_cannot_be_seen() {
        let told = of(&["ana", "ana ", "ana\u{a0}", "bert", "Ana"]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with(r#""ana", "ana ", "ana\u{a0}" differ"#),
            "{told:?}"
        );
        assert_eq!(of(&["ana", "bert", "an a"]), [""; 0]);
    }

    #[test]
    fn the_machines_own_user_is_told_beside_others_only() {
        assert_eq!(of(&["local"]), [""; 0]);
        assert_eq!(of(&["ana", "bert"]), [""; 0]);
        let told = of(&["ana", "bert", "local"]);
        assert!(
            told.len() == 1 && told[0].contains("beside 2 others"),
            "{told:?}"
        );
    }
}
