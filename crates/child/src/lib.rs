//! One way to start, watch and stop a child process.
//!
//! A child gets a complete environment, its own session and process group, and only the descriptors it was
//! given. It dies with its [`Child`] handle, and with this process. Linux only.

#[cfg(not(target_os = "linux"))]
compile_error!("beeuni-child knows process groups, Landlock and seccomp of Linux only");

mod calls;
mod child;
mod fork;
mod keeper;
mod procfs;
mod sandbox;
mod spawner;
mod spec;
mod stem;
mod support;
mod sys;
mod warden;

pub use child::{Child, Exit};
pub use spawner::{SpawnError, Spawner, StartError};
pub use spec::{Limits, Sandbox, Spec, Stdin};
pub use support::{Support, probe};
