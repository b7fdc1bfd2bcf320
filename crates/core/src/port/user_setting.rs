use std::collections::BTreeMap;

use crate::BoxFuture;
use crate::id::UserId;
use crate::port::StoreError;

/// Settings that belong to a user, whatever program they use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserSettings {
    /// Time zone of the user, by its name in the IANA database. The time of a message is stated in it
    /// if whoever sends the message names none.
    pub time_zone: Option<String>,
    /// Tools of MCP servers whose calls the user always allows
    /// ([`Answer::always`](crate::Answer::always)), by name, each with the fingerprint of the
    /// definition that was allowed ([`ToolDefinition::fingerprint`](crate::ToolDefinition::fingerprint)).
    pub allowed_tools: BTreeMap<String, String>,
}

/// Reads and writes [`UserSettings`]. A user without stored ones has the defaults.
pub trait UserSettingStore: Send + Sync + 'static {
    /// Returns the settings of a user; the defaults if none were stored.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn user_settings<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<UserSettings, StoreError>>;

    /// Replaces the settings of a user.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if they cannot be written.
    fn put_user_settings<'a>(
        &'a self,
        user: &'a UserId,
        settings: &'a UserSettings,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}
