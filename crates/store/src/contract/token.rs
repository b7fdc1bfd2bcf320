use adjutant_core::UserId;
use adjutant_core::port::{
    Role, TokenGrant, TokenKind, TokenRefused, TokenScope, TokenScopes, TokenStore,
};
use jiff::{SignedDuration, Timestamp};

use super::fixture::user;

/// Returns the user of a secret, if its token is valid.
async fn user_of(store: &impl TokenStore, digest: &[u8; 32]) -> Option<UserId> {
    let found = store.find_token(digest).await.unwrap()?;
    found
        .refused(found.created_at)
        .is_none()
        .then_some(found.grant.user)
}

/// A token identifies its user until it is revoked. Listing tokens reveals no secret.
pub async fn tokens_are_valid_for_their_user_until_revoked(store: &impl TokenStore) {
    let (anna, bert) = (user("anna"), user("bert"));
    let grant = |user: &UserId, name: &str| TokenGrant::token(user.clone(), name);
    assert_eq!(user_of(store, &[1; 32]).await, None);
    let first = store
        .create_token(&grant(&anna, "laptop"), &[1; 32])
        .await
        .unwrap();
    let second = store
        .create_token(&grant(&bert, "phone"), &[2; 32])
        .await
        .unwrap();
    assert_eq!(user_of(store, &[1; 32]).await, Some(anna.clone()));
    assert_eq!(user_of(store, &[2; 32]).await, Some(bert.clone()));
    assert_eq!(
        store.tokens(None).await.unwrap(),
        [first.clone(), second.clone()]
    );
    assert_eq!(
        store.tokens(Some(&bert)).await.unwrap(),
        std::slice::from_ref(&second)
    );
    // A second token with the same secret is refused.
    store
        .create_token(&grant(&bert, "copy"), &[1; 32])
        .await
        .unwrap_err();

    assert!(store.revoke_token(&first.id).await.unwrap());
    assert!(!store.revoke_token(&first.id).await.unwrap());
    assert!(!store.revoke_token("no such token").await.unwrap());
    assert_eq!(user_of(store, &[1; 32]).await, None);
    assert_eq!(user_of(store, &[2; 32]).await, Some(bert));
    let kept = &store.tokens(Some(&anna)).await.unwrap()[0];
    assert!(
        kept.grant.name == "laptop" && kept.refused(kept.created_at) == Some(TokenRefused::Revoked)
    );
}

/// A token is read with the properties it was created with; its last use and new expiry are
/// recorded.
pub async fn a_token_has_the_properties_it_was_created_with(store: &impl TokenStore) {
    let at = |minutes: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
    let grant = TokenGrant {
        role: Role::Operator,
        kind: TokenKind::Session,
        expires_at: Some(at(4_000_000_000)),
        ends_at: Some(at(4_000_000_009)),
        parent: Some("p".to_owned()),
        ..TokenGrant::token(user("anna"), "Zoë’s “laptop”")
    };
    let made = store.create_token(&grant, &[1; 32]).await.unwrap();
    assert_eq!(made.grant, grant);
    assert_eq!(
        store.find_token(&[1; 32]).await.unwrap().as_ref(),
        Some(&made)
    );
    for role in Role::ALL.iter().copied() {
        let grant = TokenGrant {
            role,
            ..TokenGrant::token(user("anna"), "")
        };
        let digest = [10 + role as u8; 32];
        store.create_token(&grant, &digest).await.unwrap();
        assert_eq!(
            store.find_token(&digest).await.unwrap().unwrap().grant,
            grant
        );
    }

    for (number, scopes) in [
        TokenScopes::ALL,
        [TokenScope::Read, TokenScope::Write].into_iter().collect(),
        [TokenScope::Answer].into_iter().collect(),
    ]
    .into_iter()
    .enumerate()
    {
        let grant = TokenGrant {
            scopes,
            ..TokenGrant::token(user("anna"), "")
        };
        let digest = [20 + u8::try_from(number).unwrap(); 32];
        store.create_token(&grant, &digest).await.unwrap();
        assert_eq!(
            store.find_token(&digest).await.unwrap().unwrap().grant,
            grant
        );
    }

    let found = async || store.find_token(&[1; 32]).await.unwrap().unwrap();
    let end = at(4_000_000_005);
    store.token_used(&made.id, at(7), Some(end)).await.unwrap();
    assert_eq!(
        (found().await.used_at, found().await.grant.expires_at),
        (Some(at(7)), Some(end))
    );
    // An earlier use that is reported later changes nothing.
    store
        .token_used(&made.id, at(6), Some(at(1)))
        .await
        .unwrap();
    assert_eq!(
        (found().await.used_at, found().await.grant.expires_at),
        (Some(at(7)), Some(end))
    );
    assert_eq!(found().await.refused(at(1)), None);
    assert_eq!(found().await.refused(end), Some(TokenRefused::Expired));
    store.revoke_token(&made.id).await.unwrap();
    store.token_used(&made.id, at(9), None).await.unwrap();
    assert_eq!(found().await.used_at, Some(at(7)));
    store
        .token_used("no such token", at(9), None)
        .await
        .unwrap();
}

/// A token is revoked with its parent, and with all of its user's; other users' tokens stay valid.
pub async fn tokens_created_by_a_token_are_revoked_with_it(store: &impl TokenStore) {
    let (anna, bert) = (user("anna"), user("bert"));
    let made = async |number: u8, user: &UserId, kind, parent: Option<&str>| {
        let parent = parent.map(str::to_owned);
        let grant = TokenGrant {
            kind,
            parent,
            ..TokenGrant::token(user.clone(), "")
        };
        store.create_token(&grant, &[number; 32]).await.unwrap().id
    };
    let first = made(1, &anna, TokenKind::Token, None).await;
    let session = made(2, &anna, TokenKind::Session, Some(&first)).await;
    made(3, &anna, TokenKind::Token, Some(&session)).await;
    made(4, &anna, TokenKind::Session, None).await;
    made(5, &anna, TokenKind::Token, None).await;
    made(6, &bert, TokenKind::Session, None).await;
    let open = async || {
        let mut open = Vec::new();
        for number in 1..=6_u8 {
            if user_of(store, &[number; 32]).await.is_some() {
                open.push(number);
            }
        }
        open
    };
    assert!(store.revoke_token(&first).await.unwrap());
    assert_eq!(open().await, [4, 5, 6]);
    assert_eq!(
        store
            .revoke_tokens_of(&anna, Some(TokenKind::Session))
            .await
            .unwrap(),
        1
    );
    assert_eq!(open().await, [5, 6]);
    assert_eq!(store.revoke_tokens_of(&anna, None).await.unwrap(), 1);
    assert_eq!(open().await, [6]);
    assert_eq!(store.revoke_tokens_of(&anna, None).await.unwrap(), 0);
}

/// A new session removes the user's expired sessions; tokens stay listed.
pub async fn expired_sessions_are_forgotten(store: &impl TokenStore) {
    let expired = Some(Timestamp::UNIX_EPOCH);
    let grant = |kind, expires_at| TokenGrant {
        kind,
        expires_at,
        ..TokenGrant::token(user("anna"), "")
    };
    store
        .create_token(&grant(TokenKind::Session, expired), &[1; 32])
        .await
        .unwrap();
    store
        .create_token(&grant(TokenKind::Token, expired), &[2; 32])
        .await
        .unwrap();
    let other = TokenGrant {
        user: user("bert"),
        ..grant(TokenKind::Session, expired)
    };
    store.create_token(&other, &[3; 32]).await.unwrap();
    store
        .create_token(&grant(TokenKind::Session, None), &[4; 32])
        .await
        .unwrap();
    let found = async |number: u8| store.find_token(&[number; 32]).await.unwrap().is_some();
    assert!(!found(1).await && found(2).await && found(3).await && found(4).await);
}
