//! A session on a terminal: how its events look, and how its questions are asked.

pub(crate) mod asking;
pub(crate) mod desk;
pub(crate) mod interrupts;
pub(crate) mod model;
pub(crate) mod view;
