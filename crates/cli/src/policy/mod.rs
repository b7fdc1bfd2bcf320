//! Permissions that the user gave at confirmations or with `adjutant policy`, for calls that then
//! run without asking.

pub(crate) mod file; // the file of permissions
mod grant; // one permission
mod session; // permissions that apply in a conversation

pub(crate) use file::forget_conversation;
pub(crate) use grant::{Grant, Lifetime};
pub(crate) use session::{Allowed, Permissions, new_id};
