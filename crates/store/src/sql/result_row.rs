//! Rows of a query's result, read by the names of their columns.

use std::sync::Arc;

use adjutant_core::port::StoreError;

use crate::decode_error::{parse, unreadable};

/// Converts a count of rows, which is never negative.
pub(crate) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// A value of a column, in the types that both databases share.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
}

/// One row of a query's result.
///
/// A column is found by its name, so a statement may list its columns in any order. Each can be
/// read once: the value is moved out, because bodies of events can be long.
#[derive(Debug)]
pub struct Row {
    /// The columns' names, shared by all rows of the result.
    names: Arc<[String]>,
    /// The values in the order of `names`; `None` once a value was read.
    cells: Vec<Option<Cell>>,
}

impl Row {
    pub(crate) fn new(names: &Arc<[String]>, cells: Vec<Cell>) -> Self {
        Self {
            names: names.clone(),
            cells: cells.into_iter().map(Some).collect(),
        }
    }

    /// Returns the value of the column `name`.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if there is no such column, it was read before, or it holds
    /// another type.
    pub(crate) fn get<T: FromCell>(&mut self, name: &str) -> Result<T, StoreError> {
        let position = self.names.iter().position(|known| known == name);
        let cell = position
            .and_then(|position| self.cells.get_mut(position))
            .and_then(Option::take)
            .ok_or_else(|| unreadable("a row", format!("it has no column {name:?} to read")))?;
        T::from_cell(cell).map_err(|cell| unexpected(name, &cell))
    }

    /// Parses the text in the column `name`, `what` being the row's name in the error.
    pub(crate) fn parse<T>(&mut self, name: &str, what: &str) -> Result<T, StoreError>
    where
        T: std::str::FromStr<Err: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        parse(&self.get::<String>(name)?, what)
    }

    /// Parses the text in the column `name` as [`Row::parse`] does. `None` for `NULL`.
    pub(crate) fn parse_optional<T>(
        &mut self,
        name: &str,
        what: &str,
    ) -> Result<Option<T>, StoreError>
    where
        T: std::str::FromStr<Err: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        let text: Option<String> = self.get(name)?;
        text.map(|text| parse(&text, what)).transpose()
    }

    /// Returns the value of the first column, for a statement that has only one.
    pub(crate) fn scalar<T: FromCell>(self) -> Result<T, StoreError> {
        let cell = self.into_cells().next().unwrap_or(Cell::Null);
        T::from_cell(cell).map_err(|cell| unexpected("1", &cell))
    }

    /// Returns the values that were not read yet, in the order of the statement.
    pub(crate) fn into_cells(self) -> impl Iterator<Item = Cell> {
        self.cells.into_iter().flatten()
    }
}

/// Decodes the rows of a result, which are of the driver or of a record already.
pub(crate) fn decode_all<R, T>(
    rows: impl IntoIterator<Item = R>,
    decode: impl FnMut(R) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    rows.into_iter().map(decode).collect()
}

fn unexpected(name: &str, cell: &Cell) -> StoreError {
    unreadable(
        "a row",
        format!("the column {name} holds {cell:?}, which does not belong there"),
    )
}

/// A type that a column's value can be read as.
pub trait FromCell: Sized + Send {
    /// Converts the value, or gives it back if it has another type.
    fn from_cell(cell: Cell) -> Result<Self, Cell>;
}

impl FromCell for i64 {
    fn from_cell(cell: Cell) -> Result<Self, Cell> {
        match cell {
            Cell::Int(value) => Ok(value),
            other => Err(other),
        }
    }
}

/// A count, which is never negative.
impl FromCell for u64 {
    fn from_cell(cell: Cell) -> Result<Self, Cell> {
        i64::from_cell(cell).map(count)
    }
}

/// Neither database's dialect of ours has booleans: a flag is 0 or 1.
impl FromCell for bool {
    fn from_cell(cell: Cell) -> Result<Self, Cell> {
        i64::from_cell(cell).map(|value| value != 0)
    }
}

impl FromCell for f64 {
    fn from_cell(cell: Cell) -> Result<Self, Cell> {
        match cell {
            Cell::Real(value) => Ok(value),
            other => Err(other),
        }
    }
}

impl FromCell for String {
    fn from_cell(cell: Cell) -> Result<Self, Cell> {
        match cell {
            Cell::Text(value) => Ok(value),
            other => Err(other),
        }
    }
}

impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell) -> Result<Self, Cell> {
        match cell {
            Cell::Null => Ok(None),
            other => T::from_cell(other).map(Some),
        }
    }
}

/// A record that can be read from a row, usually by [`from_row`].
pub trait FromRow: Sized + Send {
    fn from_row(row: &mut Row) -> Result<Self, StoreError>;
}

/// Implements [`FromRow`] for a struct: each field is read from the column of its own name. `nested`
/// fields are records of the same row, `default` ones are no columns.
macro_rules! from_row {
    (
        $name:ident { $($field:ident),* $(,)? }
        $(nested { $($record:ident),* })?
        $(default { $($other:ident),* })?
    ) => {
        impl $crate::sql::FromRow for $name {
            fn from_row(
                row: &mut $crate::sql::Row,
            ) -> Result<Self, adjutant_core::port::StoreError> {
                Ok(Self {
                    $($field: row.get(stringify!($field))?,)*
                    $($($record: $crate::sql::FromRow::from_row(row)?,)*)?
                    $($($other: Default::default(),)*)?
                })
            }
        }
    };
}
pub(crate) use from_row;

#[cfg(test)]
mod tests {
    use super::*;

    struct Pair {
        first: i64,
        second: Option<String>,
    }
    from_row! { Pair { first, second } }

    fn row() -> Row {
        let names = Arc::from(["second".to_owned(), "first".to_owned()]);
        Row::new(&names, vec![Cell::Text("b".to_owned()), Cell::Int(1)])
    }

    #[test]
    fn columns_are_read_by_name_whatever_their_order() {
        let pair = Pair::from_row(&mut row()).unwrap();
        assert_eq!((pair.first, pair.second.as_deref()), (1, Some("b")));
    }

    #[test]
    fn a_column_of_another_name_or_type_is_an_error() {
        assert!(row().get::<i64>("third").is_err());
        assert!(row().get::<i64>("second").is_err());
        let mut row = row();
        row.get::<i64>("first").unwrap();
        assert!(row.get::<i64>("first").is_err(), "it was moved out");
    }
}
