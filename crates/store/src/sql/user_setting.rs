//! The settings of users.

use adjutant_core::port::{StoreError, UserSettingStore, UserSettings};
use adjutant_core::{BoxFuture, UserId};

use super::{Backend, Connection, SqlStore, values};
use crate::record;

impl<B: Backend> UserSettingStore for SqlStore<B> {
    fn user_settings<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<UserSettings, StoreError>> {
        self.explained(async move {
            let rows = self
                .backend
                .fetch_all(
                    "SELECT time_zone, allowed_tools FROM adjutant_user_setting WHERE user_id = $1",
                    values![user.as_str()],
                )
                .await?;
            let mut settings = UserSettings::default();
            for mut row in rows {
                settings.time_zone = row.get("time_zone")?;
                let tools: Option<String> = row.get("allowed_tools")?;
                if let Some(tools) = tools {
                    settings.allowed_tools =
                        record::from_json(&tools, &format!("settings of {user}"))?;
                }
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
                let tools = match settings.allowed_tools.is_empty() {
                    true => None,
                    false => Some(record::to_json(&settings.allowed_tools)?),
                };
                tx.execute(
                    "INSERT INTO adjutant_user_setting (user_id, time_zone, allowed_tools) VALUES ($1, $2, $3)
                     ON CONFLICT (user_id) DO UPDATE SET time_zone = excluded.time_zone, allowed_tools = excluded.allowed_tools",
                    values![user.as_str(), settings.time_zone.as_deref(), tools.as_deref()],
                )
                .await?;
                Ok(())
            })
        })
    }
}
