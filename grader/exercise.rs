//! What is asked: the figures of reference/exercise.toml.
