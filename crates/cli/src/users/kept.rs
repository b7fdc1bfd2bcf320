//! Counts of what is kept of a user.

use adjutant_core::UserId;
use adjutant_store::TableRows;

use crate::error::CliError;
use crate::store::Store;

/// Counts what is kept of a user, by table.
///
/// # Errors
/// Nothing is, or the store cannot be read.
pub(super) async fn kept(store: &dyn Store, user: &UserId) -> Result<Vec<TableRows>, CliError> {
    let kept = store.kept_of(user).await?;
    if kept.iter().all(|table| table.rows == 0) {
        let error = CliError::unknown(format!("nothing is kept of {:?}", user.as_str()));
        return Err(error.or_try("adjutant users list"));
    }
    Ok(kept)
}
