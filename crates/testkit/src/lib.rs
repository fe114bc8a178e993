//! Test support: a scripted model server, temporary projects, a spec runner.
//!
//! It is an independent witness: it shares no code with the product, so that a fault on both sides cannot hide itself.

pub mod model;
