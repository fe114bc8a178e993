//! The experimental harness: our own loop, in the daemon.
