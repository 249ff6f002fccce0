//! Seeds that nobody can guess, and that a report can name.

use std::fs::File;
use std::io::Read;

use anyhow::Context;

/// The largest seed: whole numbers up to here survive every JSON reader.
pub const MAX_SEED: u64 = (1 << 53) - 1;

/// A seed from the system's random source, at most [`MAX_SEED`]. Guessable initial grids could be prepared for.
pub fn random() -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    let source = "/dev/urandom";
    File::open(source).and_then(|mut file| file.read_exact(&mut bytes)).context(source)?;
    Ok(u64::from_le_bytes(bytes) & MAX_SEED)
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_seeds_differ_and_stay_in_range() {
        let (one, two) = (super::random().unwrap(), super::random().unwrap());
        assert!(one != two && one <= super::MAX_SEED && two <= super::MAX_SEED);
    }
}
