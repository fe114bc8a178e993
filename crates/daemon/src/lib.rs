//! The program in the box: joins the manifest, the tool host and one harness. `beeuni run` and `beeuni tools call` use
//! the same code in their own process.

pub mod checkout;
pub mod environment;
pub mod journal;
mod secrets;

pub use secrets::Secrets;
