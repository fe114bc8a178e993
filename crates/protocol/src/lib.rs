//! What two Beeuni processes say to each other. Types and bytes only: no input or output happens here.
//!
//! - [`frame`]: how a message is cut into bytes on a stream.
//! - [`host`]: what the daemon and a Bun tool process say in those frames.
//! - [`event`]: what a session tells its listeners, in one shape for every harness.

pub mod event;
pub mod frame;
pub mod host;
