//! One submission down the pipe.

pub mod trials;
