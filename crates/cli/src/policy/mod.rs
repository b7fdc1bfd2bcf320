//! Permissions that a person gave at a question, so that they are not asked again:
//! `adjutant policy`.

mod command; // listing, allowing and taking back
mod file; // where it is kept
mod grant; // one permission
mod session; // what applies in one conversation

pub(crate) use command::{Policy, listed, run};
pub(crate) use file::forget_conversation;
pub(crate) use grant::Lasting;
pub(crate) use session::{Allowed, Permissions};
