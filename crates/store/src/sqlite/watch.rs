//! Detection of other processes' writes to the file, by a counter of SQLite that is read without
//! touching a table.

use std::sync::Weak;
use std::time::Duration;

use crate::sql::{Backend, Failure, lease};

/// Interval at which the counter is read.
const LOOK: Duration = Duration::from_secs(1);

/// A database file that other processes may write to.
pub(super) trait Watched: Backend {
    /// Returns a number that changes when any other connection has committed
    /// (sqlite.org/pragma.html#pragma_data_version).
    fn version(&self) -> impl Future<Output = Result<i64, Failure>> + Send;
}

/// Polls the counter while there are subscribers and the store exists.
pub(super) async fn watch(file: Weak<impl Watched>) {
    let mut seen = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(file) = file
            .upgrade()
            .filter(|file| file.change_feed().keeps_watching())
        else {
            return;
        };
        // Writes from before the first poll may have been missed, so the first one always looks. A
        // failure is repaired by the next poll.
        if let Ok(version) = file.version().await
            && seen != Some(version)
            && let Ok(changes) = lease::find_waiting(&*file).await
        {
            seen = Some(version);
            for change in changes {
                file.change_feed().publish(|| change);
            }
        }
    }
}
