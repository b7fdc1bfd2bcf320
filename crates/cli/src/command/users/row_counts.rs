//! The stored data of a user, counted by table.

use adjutant_core::UserId;
use adjutant_store::TableRows;

use crate::error::CliError;
use crate::store::Store;

/// Returns the row counts by table.
///
/// # Errors
/// There is no data of the user, or the store cannot be read.
pub(super) async fn row_counts(
    store: &dyn Store,
    user: &UserId,
) -> Result<Vec<TableRows>, CliError> {
    let kept = store.count_rows_of(user).await?;
    if kept.iter().all(|table| table.rows == 0) {
        let error = CliError::unknown(format!("nothing is kept of {:?}", user.as_str()));
        return Err(error.or_try("adjutant users list"));
    }
    Ok(kept)
}
