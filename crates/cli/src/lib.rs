//! The beeuni program.
