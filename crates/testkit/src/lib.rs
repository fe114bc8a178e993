//! Test support: a scripted model server, temporary projects, a spec runner.
