//! Loads and calls tool modules in Bun.
