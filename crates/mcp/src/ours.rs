//! Names by which a client and a server of ours know each other.

/// The name under which a server of ours says in its capabilities, among the experimental ones,
/// that it is one.
pub(crate) const SERVER: &str = "adjutant";

/// The member of a call's `_meta` with which a client of ours says to such a server in which
/// conversation its agent calls, so that no agent asks itself, and again itself.
pub(crate) const CALLED_IN: &str = "adjutant/conversation";
