//! The program in the box: joins the manifest, the tool host and one harness. `beeuni run` and `beeuni tools call` use
//! the same code in their own process.

pub mod checkout;
mod daemon;
mod door;
mod environment;
mod journal;
mod secrets;

pub use daemon::{Daemon, Start, StartError};
pub use door::{Door, Hosting};
pub use environment::Environment;
pub use journal::{Clock, Journal, Reader, last_agent};
