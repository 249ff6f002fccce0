//! Check `answer`.
