//! The batch script of a job array: one task a shard. Pure.

use std::fmt::Write;

/// What a script is made of. Paths are as they are on every node.
#[derive(Clone, Debug)]
pub struct Job {
    /// This program.
    pub grader: String,
    /// The folder that the other paths are seen from, absolute.
    pub from: String,
    /// The class.
    pub folder: String,
    /// The folder of the results together.
    pub out: String,
    /// How many shards the class has.
    pub shards: u32,
    /// Those that somebody is in.
    pub tasks: Vec<u32>,
    /// Whether each task asks for a GPU.
    pub gpu: bool,
    /// More options of `sbatch`, each `--name` or `--name=value`.
    pub options: Vec<String>,
    /// Options of `batch` that each task is given.
    pub words: Vec<String>,
}

/// The script. Every path and word in it is quoted.
pub fn render(job: &Job) -> String {
    let mut text =
        String::from("#!/usr/bin/env bash\n# heat-grader: grades a class in shards, one a task of a job array.\n");
    let mut options = vec![
        "--job-name=heat-grader".to_owned(),
        format!("--array={}", ranges(&job.tasks)),
        // The script sends it to the log itself: Slurm has a meaning of its own for too many characters of a path.
        "--output=/dev/null".to_owned(),
        "--requeue".to_owned(),
    ];
    options.extend(job.gpu.then(|| "--gres=gpu:1".to_owned()));
    options.extend(job.options.iter().cloned());
    for option in &options {
        writeln!(text, "#SBATCH {}", directive(option)).ok();
    }
    let (shards, jobs) = (job.shards, r#"--jobs "${SLURM_CPUS_ON_NODE:-1}""#);
    let given = job.words.iter().any(|word| word.starts_with("--jobs"));
    let words: Vec<String> = job.words.iter().map(|word| quoted(word)).collect();
    let words = [if given { String::new() } else { jobs.to_owned() }, words.join(" ")].join(" ");
    writeln!(
        text,
        r#"
# shellcheck disable=SC2016 # Paths mean themselves.
{{
    from={from}
    grader={grader}
    folder={folder}
    out={out}
}}
cd -- "$from" || exit 2
shard=$SLURM_ARRAY_TASK_ID
task="$out/slurm/${{SLURM_ARRAY_JOB_ID}}_$shard"
exec >>"$task.log" 2>&1
"$grader" batch --shard="$shard/{shards}" --out="$out/shards/$shard-of-{shards}" {words} -- "$folder"
code=$?
# Whoever watches knows by this that the task came to its end.
printf '%s\n' "$code" >"$task.part" && mv -- "$task.part" "$task.exit"
exit "$code""#,
        from = quoted(&job.from),
        grader = quoted(&job.grader),
        folder = quoted(&job.folder),
        out = quoted(&job.out),
        words = words.trim(),
    )
    .ok();
    text
}

/// A word as the shell takes it literally.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// An option as a `#SBATCH` line takes it: Slurm knows double quotes and backslashes there, and expands nothing.
fn directive(option: &str) -> String {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/%=+@".contains(c);
    if !option.contains('=') {
        name.to_owned()
    } else if value.chars().all(plain) {
        option.to_owned()
    } else {
        format!("{name}=\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
    }
}

/// Why this cannot be an option of `sbatch` here.
pub fn option(typed: &str) -> Result<String, String> {
    let (name, value) = typed.split_once('=').unwrap_or((typed, ""));
    let bare = name.trim_start_matches('-');
    let is_name = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !name.starts_with('-') || !is_name || value.chars().any(char::is_control) {
        return Err("an option of sbatch is written --name or --name=value".to_owned());
    }
    if ["a", "array", "o", "output", "W", "wait", "wrap", "parsable"].contains(&bare) {
        return Err(format!("{name} is heat-grader's own to set"));
    }
    Ok(typed.to_owned())
}

/// Ascending numbers as `sbatch --array` takes them: `0-3,5`.
pub fn ranges(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if number == *last + 1 => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn job() -> Job {
        Job {
            grader: "/opt/heat grader/bin/heat-grader".to_owned(),
            from: "/home/ada".to_owned(),
            folder: "it's $HOME `here`; \"x\"".to_owned(),
            out: "out 100%".to_owned(),
            shards: 4,
            tasks: vec![0, 1, 3],
            gpu: true,
            options: vec![
                "--partition=gpu".to_owned(),
                r#"--comment=the "end" of a\b"#.to_owned(),
                "--exclusive".to_owned(),
            ],
            words: vec!["--quick".to_owned(), "--engine=cpu".to_owned()],
        }
    }

    #[test]
    fn directives_say_what_slurm_is_to_do() {
        let script = render(&job());
        for line in [
            "#SBATCH --array=0-1,3",
            r#"#SBATCH --comment="the \"end\" of a\\b""#,
            "#SBATCH --gres=gpu:1",
            "#SBATCH --partition=gpu",
            "#SBATCH --exclusive",
        ] {
            assert!(script.lines().any(|written| written == line), "{line}\n{script}");
        }
        assert!(!render(&Job { gpu: false, ..job() }).contains("gres"));
        // Slurm reads no directive after the first command.
        assert!(script.rfind("#SBATCH") < script.find("from="));
    }

    #[test]
    fn the_shell_hands_every_word_on_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let grader = folder.path().join("the grader");
        std::fs::write(&grader, "#!/bin/sh\nprintf '[%s]' \"$@\"\nexit 3\n").unwrap();
        assert!(Command::new("chmod").arg("+x").arg(&grader).status().unwrap().success());
        std::fs::create_dir_all(folder.path().join("out 100%/slurm")).unwrap();
        let from = folder.path().to_str().unwrap().to_owned();
        let script = render(&Job { grader: grader.to_str().unwrap().to_owned(), from, ..job() });
        let file = folder.path().join("job.sh");
        std::fs::write(&file, script).unwrap();
        let output = Command::new("bash")
            .arg(&file)
            .current_dir("/")
            .env("SLURM_ARRAY_TASK_ID", "3")
            .env("SLURM_ARRAY_JOB_ID", "12")
            .env("SLURM_CPUS_ON_NODE", "2")
            .output()
            .unwrap();
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
        let said = std::fs::read_to_string(folder.path().join("out 100%/slurm/12_3.log")).unwrap();
        let words = "[batch][--shard=3/4][--out=out 100%/shards/3-of-4][--jobs][2][--quick][--engine=cpu][--]";
        assert_eq!(said, format!("{words}[it's $HOME `here`; \"x\"]"));
        assert_eq!(output.status.code(), Some(3));
        let done = folder.path().join("out 100%/slurm/12_3.exit");
        assert_eq!(std::fs::read_to_string(done).unwrap(), "3\n");
    }

    #[test]
    fn shellcheck_has_nothing_to_say() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("job.sh");
        std::fs::write(&file, render(&job())).unwrap();
        // Where there is no shellcheck there is nothing to ask; .ci/run installs it.
        let Ok(output) = Command::new("shellcheck").arg(&file).stderr(Stdio::null()).output() else { return };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }

    #[test]
    fn what_is_no_option_of_sbatch_or_not_to_be_touched_is_refused() {
        for typed in ["--partition=gpu", "--time=01:00:00", "--exclusive", "-pgpu", "--comment=a b"] {
            assert_eq!(option(typed), Ok(typed.to_owned()));
        }
        for typed in
            ["partition=gpu", "--", "", "--a b", "--comment=a\n#SBATCH --x", "--array=0-9", "--wrap=ls", "-o=x"]
        {
            assert!(option(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn numbers_that_follow_one_another_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 3, 5, 7, 8]), "0-3,5,7-8");
        assert_eq!((ranges(&[4]), ranges(&[])), ("4".to_owned(), String::new()));
    }
}
