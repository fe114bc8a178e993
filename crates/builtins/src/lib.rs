//! The five Beeuni tools, as TypeScript modules.
