use adjutant_core::port::{UserSettingStore, UserSettings};

use super::fixture::user;

/// The settings of a user are read as they were stored last, and are nobody else's.
pub async fn settings_belong_to_their_user(store: &impl UserSettingStore) {
    let (anna, ben) = (user("anna"), user("ben"));
    let in_zone = |name: &str| UserSettings {
        time_zone: Some(name.to_owned()),
        ..UserSettings::default()
    };
    let allowing = UserSettings {
        allowed_tools: [("mail__list".to_owned(), "fingerprint".to_owned())].into(),
        ..in_zone("Europe/Berlin")
    };
    let nothing = UserSettings::default();
    assert_eq!(store.user_settings(&anna).await.unwrap(), nothing);
    for settings in [in_zone("Asia/Kolkata"), allowing, in_zone("Europe/Berlin")] {
        store.put_user_settings(&anna, &settings).await.unwrap();
        assert_eq!(store.user_settings(&anna).await.unwrap(), settings);
    }
    store
        .put_user_settings(&ben, &in_zone("Europe/Paris"))
        .await
        .unwrap();
    store.put_user_settings(&anna, &nothing).await.unwrap();
    assert_eq!(store.user_settings(&anna).await.unwrap(), nothing);
    assert_eq!(
        store.user_settings(&ben).await.unwrap(),
        in_zone("Europe/Paris")
    );
}
