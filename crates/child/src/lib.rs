//! One way to start, watch and stop a child process.
