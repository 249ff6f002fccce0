//! A class in parts, for several machines: which learners are whose. Pure.
//!
//! A learner's part follows from the name alone, so that machines that look at the class at different times, when one more
//! has been handed in say, never both grade somebody, and never both leave somebody out.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// Most parts: no class is larger.
pub const MOST: u32 = 10_000;

/// One part of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: u32,
    /// How many parts there are.
    pub count: u32,
}

impl Shard {
    /// Whether this learner is graded in this part.
    pub fn takes(self, learner: &str) -> bool {
        Self::of(learner, self.count) == self.index
    }

    /// The part, of so many, that a learner is in.
    pub fn of(learner: &str, count: u32) -> u32 {
        let digest = Sha256::digest(learner);
        let number = digest.iter().take(8).fold(0, |number: u64, byte| (number << 8) | u64::from(*byte));
        (number % u64::from(count.max(1))) as u32
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let numbers = typed.split_once('/').and_then(|(index, count)| Some((number(index)?, number(count)?)));
        match numbers {
            Some((index, count)) if index < count && count <= MOST => Ok(Self { index, count }),
            Some((_, count)) if count > MOST => Err(format!("{MOST} shards are the most")),
            Some((_, count @ 1..)) => Err(format!("the shards of {count} are 0/{count} to {}/{count}", count - 1)),
            _ => Err("a shard is written k/n: 0/4 is the first of four".to_owned()),
        }
    }
}

/// Digits alone: no sign.
fn number(typed: &str) -> Option<u32> {
    typed.parse().ok().filter(|_| typed.bytes().all(|byte| byte.is_ascii_digit()))
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_learner_is_in_one_shard_and_no_shard_is_left_without() {
        let learners: Vec<String> = (0..400).map(|number| format!("learner_{number}")).collect();
        for count in [1, 2, 7] {
            let shards: Vec<Shard> = (0..count).map(|index| Shard { index, count }).collect();
            let mut sizes = vec![0; count as usize];
            for learner in &learners {
                let takers: Vec<_> = shards.iter().filter(|shard| shard.takes(learner)).collect();
                assert_eq!(takers.len(), 1, "{learner}");
                sizes[takers[0].index as usize] += 1;
            }
            assert!(sizes.iter().all(|size| *size > 400 / count / 2), "{sizes:?}");
        }
    }

    #[test]
    fn a_learners_shard_stays_the_same_in_every_version() {
        assert_eq!(["ann", "bob", "cy", "dot"].map(|learner| Shard::of(learner, 3)), [2, 2, 0, 1]);
    }

    #[test]
    fn shards_count_from_0() {
        assert_eq!("3/4".parse(), Ok(Shard { index: 3, count: 4 }));
        assert_eq!(Shard { index: 3, count: 4 }.to_string(), "3/4");
        for typed in ["4/4", "0/0", "1", "-1/4", "+1/4", "a/b", "1/4/2", "0/10001", ""] {
            assert!(typed.parse::<Shard>().is_err(), "{typed}");
        }
        assert!("4/4".parse::<Shard>().unwrap_err().contains("0/4 to 3/4"));
    }
}
