//! The library as its users see it.

mod tool_macro;
