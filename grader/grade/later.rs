//! A value that another thread is still making.

use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result};

/// Waits for a value; called once.
pub type Waiting<'e, T> = Box<dyn FnOnce() -> Result<T> + Send + 'e>;

/// A value that is waited for when it is first wanted.
pub struct Later<'e, T> {
    value: OnceLock<T>,
    waiting: Mutex<Option<Waiting<'e, T>>>,
}

impl<'e, T> Later<'e, T> {
    /// A value that `waiting` will bring.
    pub fn new(waiting: Waiting<'e, T>) -> Self {
        Self { value: OnceLock::new(), waiting: Mutex::new(Some(waiting)) }
    }

    /// The value; waits for it. An error when it could not be made, now or before.
    pub fn get(&self) -> Result<&T> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        // Held while it is waited for: whoever comes second waits as well.
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = waiting.take() {
            let value = waiting()?;
            return Ok(self.value.get_or_init(|| value));
        }
        self.value.get().context("it could not be made")
    }

    /// The value, if it has been waited for.
    pub fn known(&self) -> Option<&T> {
        self.value.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_waited_for_once_and_known_from_then_on() {
        let later = Later::new(Box::new(|| Ok(3)));
        assert_eq!(later.known(), None);
        assert_eq!(later.get().unwrap(), &3);
        assert_eq!((later.known(), later.get().unwrap()), (Some(&3), &3));
    }

    #[test]
    fn a_failure_is_told_to_everybody() {
        let later: Later<()> = Later::new(Box::new(|| anyhow::bail!("no room")));
        assert_eq!(later.get().unwrap_err().to_string(), "no room");
        assert!(later.get().is_err());
    }
}
