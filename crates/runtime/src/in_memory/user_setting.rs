//! The settings of users.

use std::future::ready;

use adjutant_core::port::{StoreError, UserSettingStore, UserSettings};
use adjutant_core::{BoxFuture, UserId};

use super::InMemory;

impl UserSettingStore for InMemory {
    fn user_settings<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<UserSettings, StoreError>> {
        let settings = self.state().user_settings.get(user).cloned();
        Box::pin(ready(Ok(settings.unwrap_or_default())))
    }

    fn put_user_settings<'a>(
        &'a self,
        user: &'a UserId,
        settings: &'a UserSettings,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let all = &mut self.state().user_settings;
        if *settings == UserSettings::default() {
            all.remove(user);
        } else {
            all.insert(user.clone(), settings.clone());
        }
        Box::pin(ready(Ok(())))
    }
}
