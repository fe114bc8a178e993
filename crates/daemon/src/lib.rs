//! The program in the box: joins manifest, tool host and one harness.
