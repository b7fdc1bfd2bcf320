//! Names of users that somebody else gave: an issuer's, or a proxy's.

use adjutant_core::UserId;

use crate::problem::Problem;

/// A user's name from outside may have this many bytes.
const USER_ID_MAX: usize = 255;

/// What whoever runs the service is told of a name that is not taken.
const LOCAL_REFUSED: &str = "a proxy or an issuer named the user \"local\", who is whoever works on this machine: refused. Give \
                             that account another name there";

/// Returns the user whom somebody else named, byte for byte: two names that differ in anything are two users. The user of
/// this machine is nobody's to name but its own tokens'.
pub(super) fn user_id(name: &str) -> Result<UserId, Problem> {
    if name.len() > USER_ID_MAX || name.chars().any(char::is_control) {
        return Err(Problem::unauthorized("the user's name is too long or no text"));
    }
    let user = UserId::new(name).map_err(|_| Problem::unauthorized("the user's name is empty"))?;
    if user == UserId::local() {
        let detail = "no proxy and no issuer may name the user of the machine itself";
        return Err(Problem::unauthorized(detail).noting(LOCAL_REFUSED));
    }
    Ok(user)
}
