//! What the process tells its caller.

use crate::verdict::Verdict;

/// The exit status of `heat-grader`. Part of the contract: pipelines branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// The submission passed; or a command that grades nothing did its work.
    Passed = 0,
    /// The submission failed; the fault is the learner's to mend.
    Failed = 1,
    /// The command line is wrong, or names a path that does not exist. clap's own usage errors exit with 2 as well.
    Usage = 2,
    /// Nothing could be decided, through the grader's or the machine's fault; never counted against the learner.
    Ungraded = 3,
    /// Ctrl-C, SIGTERM or SIGHUP came before the work was done: what a shell expects of a program that Ctrl-C ended.
    Interrupted = 130,
}

impl ExitCode {
    /// The status for a verdict.
    pub fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Passed,
            Verdict::Fail => Self::Failed,
            Verdict::Ungraded => Self::Ungraded,
        }
    }

    /// The code that a report carries as a number; unknown numbers are ungraded.
    pub fn from_status(status: u8) -> Self {
        match status {
            0 => Self::Passed,
            1 => Self::Failed,
            2 => Self::Usage,
            _ => Self::Ungraded,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
