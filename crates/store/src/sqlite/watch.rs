//! What other processes write into the file: seen by a number that SQLite keeps, without a
//! statement.

use std::sync::Weak;
use std::time::Duration;

use crate::sql::{Backend, Failure, work};

/// Interval at which the number is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// A file that others may write into.
pub(super) trait Watched: Backend {
    /// Returns a number that changes when another connection than the one that writes here has
    /// committed (sqlite.org/pragma.html#pragma_data_version).
    fn version(&self) -> impl Future<Output = Result<i64, Failure>> + Send;
}

/// Looks as long as somebody listens to the news, and the store is there.
pub(super) async fn watch(file: Weak<impl Watched>) {
    let mut seen = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(file) = file.upgrade().filter(|file| file.news().goes_on()) else {
            return;
        };
        // What was written until now may have been missed; a look that fails is one look later.
        if let Ok(version) = file.version().await
            && seen != Some(version)
            && let Ok(changes) = work::look(&*file).await
        {
            seen = Some(version);
            for change in changes {
                file.news().tell(|| change);
            }
        }
    }
}
