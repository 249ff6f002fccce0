//! Tests of whole parts and of the binary, in one program: it is linked once, and its tests share the cores.

mod fake;

mod cli_faces;
mod cli_kept;
mod cli_leaks;
mod cli_submissions;
mod cli_watch;
mod engine_cpu;
mod engine_cuda;
mod hostile;
mod judge_causes;
mod judge_sanitizer;
mod judge_trials;
mod report_formats;
