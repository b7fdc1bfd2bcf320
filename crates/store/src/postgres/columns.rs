//! Rows as PostgreSQL sends them.

use sqlx::postgres::PgRow;
use sqlx::{Row as _, TypeInfo as _, ValueRef as _};

use crate::sql::{Cell, Columns, Failure};

pub(super) fn all_columns(rows: &[PgRow]) -> Result<Vec<Columns>, Failure> {
    rows.iter().map(|row| Ok(columns(row)?)).collect()
}

pub(super) fn columns(row: &PgRow) -> Result<Columns, sqlx::Error> {
    let cells = (0..row.len()).map(|at| {
        let value = row.try_get_raw(at)?;
        Ok(match (value.is_null(), value.type_info().name()) {
            (true, _) => Cell::Null,
            (false, "INT8") => Cell::Int(row.try_get(at)?),
            (false, "FLOAT8") => Cell::Real(row.try_get(at)?),
            (false, _) => Cell::Text(row.try_get(at)?),
        })
    });
    Ok(Columns::new(
        cells.collect::<Result<Vec<_>, sqlx::Error>>()?,
    ))
}
