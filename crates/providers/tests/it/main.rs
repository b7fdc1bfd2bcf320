//! The adapters against a server on the loopback interface, and against recorded traffic.

mod cassette; // recordings of other projects
mod faults; // what a vendor may do to us
mod recordings; // what vendors did
mod server; // a vendor for a test
