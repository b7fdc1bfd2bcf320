//! The settings of users.

use adjutant_core::port::{StoreError, UserSettingStore, UserSettings};
use adjutant_core::{BoxFuture, UserId};

use super::{Backend, Connection, SqlStore, values};

impl<B: Backend> UserSettingStore for SqlStore<B> {
    fn user_settings<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<UserSettings, StoreError>> {
        self.explained(async move {
            let rows = self
                .backend
                .fetch_all(
                    "SELECT time_zone FROM adjutant_user_setting WHERE user_id = $1",
                    values![user.as_str()],
                )
                .await?;
            let mut settings = UserSettings::default();
            for mut row in rows {
                settings.time_zone = row.get("time_zone")?;
            }
            Ok(settings)
        })
    }

    fn put_user_settings<'a>(
        &'a self,
        user: &'a UserId,
        settings: &'a UserSettings,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.write((user.clone(), settings.clone()), |tx, (user, settings)| {
            Box::pin(async move {
                tx.execute(
                    "INSERT INTO adjutant_user_setting (user_id, time_zone) VALUES ($1, $2)
                     ON CONFLICT (user_id) DO UPDATE SET time_zone = excluded.time_zone",
                    values![user.as_str(), settings.time_zone.as_deref()],
                )
                .await?;
                Ok(())
            })
        })
    }
}
