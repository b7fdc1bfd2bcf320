use adjutant_core::port::TokenStore;

use super::sample::user;

/// A token stands for its user until it is revoked; whoever lists tokens sees no secret of them.
pub async fn tokens_stand_for_their_user_until_revoked(store: &impl TokenStore) {
    let (anna, bert) = (user("anna"), user("bert"));
    assert_eq!(store.user_of(&[1; 32]).await.unwrap(), None);
    let first = store.create_token(&anna, "laptop", &[1; 32]).await.unwrap();
    let second = store.create_token(&bert, "phone", &[2; 32]).await.unwrap();
    assert_eq!(store.user_of(&[1; 32]).await.unwrap(), Some(anna.clone()));
    assert_eq!(store.user_of(&[2; 32]).await.unwrap(), Some(bert.clone()));
    assert_eq!(store.tokens(None).await.unwrap(), [first.clone(), second.clone()]);
    assert_eq!(store.tokens(Some(&bert)).await.unwrap(), std::slice::from_ref(&second));
    // The same secret twice is nobody's.
    store.create_token(&bert, "copy", &[1; 32]).await.unwrap_err();

    assert!(store.revoke_token(&first.id).await.unwrap());
    assert!(!store.revoke_token(&first.id).await.unwrap());
    assert!(!store.revoke_token("no such token").await.unwrap());
    assert_eq!(store.user_of(&[1; 32]).await.unwrap(), None);
    assert_eq!(store.user_of(&[2; 32]).await.unwrap(), Some(bert));
    let kept = &store.tokens(Some(&anna)).await.unwrap()[0];
    assert!(kept.revoked_at.is_some() && kept.name == "laptop");
}
