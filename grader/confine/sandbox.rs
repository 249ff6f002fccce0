//! Which walls stood, as a report has it. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which walls stood while a report was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    pub kind: Kind,
    /// Landlock's version; null when it was not used.
    pub landlock_abi: Option<u32>,
    /// Whether system calls were filtered.
    pub seccomp: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Landlock and seccomp.
    Full,
    /// Not all of them: this kernel does not offer it.
    Partial,
    /// A container was said to be the wall; what worked inside it was used.
    Outer,
    /// None, as asked for.
    None,
}

impl Sandbox {
    /// What is missing, as a sentence about this machine; `None` when nothing is.
    pub fn lack(&self) -> Option<String> {
        let missing = match (self.landlock_abi, self.seccomp) {
            (None, false) => "neither Landlock nor seccomp filters",
            (None, true) => "no Landlock",
            (Some(_), false) => "no seccomp filters",
            (Some(_), true) => return None,
        };
        Some(format!("this kernel, or the container around it, offers {missing}"))
    }

    /// One sentence for a reader, where the walls are not the usual ones.
    pub fn words(&self) -> Option<String> {
        Some(match self.kind {
            Kind::Full => return None,
            Kind::Partial => format!("not everything could be walled in: {}", self.lack().unwrap_or_default()),
            Kind::Outer => {
                let inside = self.lack().map_or("Landlock and seccomp hold inside it as well".to_owned(), |lack| lack);
                format!("the container around this process is the wall (--outer-sandbox); {inside}")
            }
            Kind::None => {
                "no sandbox: compilers and kernels ran with all of this user's rights (--no-sandbox)".to_owned()
            }
        })
    }
}
