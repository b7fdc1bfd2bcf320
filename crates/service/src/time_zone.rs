//! Time zones that clients name.

use jiff::tz::TimeZone;

use crate::problem::Problem;

/// Returns the time zone of a request.
///
/// # Errors
/// The name is not in the database of time zones.
pub(crate) fn parse(name: Option<&str>) -> Result<Option<TimeZone>, Problem> {
    let unknown = |_| {
        Problem::invalid(
            "time_zone is no name of the IANA time zone database, such as Europe/Berlin",
        )
    };
    name.map(|name| TimeZone::get(name).map_err(unknown))
        .transpose()
}
