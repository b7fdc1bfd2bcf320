//! The embedded model from outside. Everything but `weights` runs on a tiny model of random numbers made here.

mod answers;
mod files;
mod port;
mod tiny;
mod weights;
