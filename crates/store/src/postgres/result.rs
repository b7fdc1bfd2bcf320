//! Conversion of the driver's rows.

use std::sync::Arc;

use sqlx::postgres::PgRow;
use sqlx::{Column as _, Row as _, TypeInfo as _, ValueRef as _};

use crate::sql::{Cell, Failure, Row};

/// Converts rows of one result.
pub(super) fn to_rows(rows: &[PgRow]) -> Result<Vec<Row>, Failure> {
    let names = rows.first().map(names).unwrap_or_default();
    rows.iter()
        .map(|row| Ok(Row::new(&names, cells(row)?)))
        .collect()
}

/// Converts a row whose result had no other.
pub(super) fn to_row(row: &PgRow) -> Result<Row, Failure> {
    Ok(Row::new(&names(row), cells(row)?))
}

fn names(row: &PgRow) -> Arc<[String]> {
    row.columns()
        .iter()
        .map(|column| column.name().to_owned())
        .collect()
}

fn cells(row: &PgRow) -> Result<Vec<Cell>, sqlx::Error> {
    let cells = (0..row.len()).map(|column| {
        let value = row.try_get_raw(column)?;
        Ok(match (value.is_null(), value.type_info().name()) {
            (true, _) => Cell::Null,
            (false, "INT8") => Cell::Int(row.try_get(column)?),
            (false, "FLOAT8") => Cell::Real(row.try_get(column)?),
            // All other columns are text, also times, ids and JSON.
            (false, _) => Cell::Text(row.try_get(column)?),
        })
    });
    cells.collect()
}
