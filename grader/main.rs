//! heat-grader: see the library's documentation for the pipeline, and [`heat_grader::cli`] for the commands.

fn main() -> std::process::ExitCode {
    heat_grader::cli::main().into()
}
