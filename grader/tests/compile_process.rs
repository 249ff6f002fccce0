//! Tools that misbehave, played by /bin/sh.

use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use crate::compile::scratch::scratch;

fn shell(script: &str, limits: Limits) -> Finished {
    let folder = scratch().unwrap();
    Tool::new("/bin/sh", folder.path()).args(["-c", script]).limits(limits).run().unwrap()
}

fn limits() -> Limits {
    Limits { wall: Duration::from_secs(20), ..Limits::default() }
}

/// Whether a process lives (a zombie does not).
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

fn dies(pid: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(5);
    while lives(pid) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    !lives(pid)
}

/// What comes of a question within a moment.
fn soon<T>(ask: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match ask() {
            Some(answer) => return answer,
            None => assert!(Instant::now() < deadline, "nothing within 20 s"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_honest_tool_gives_its_output_and_exit_code() {
    let finished = shell("echo out; echo err >&2; exit 3", limits());
    assert_eq!((finished.status, finished.signal, finished.timed_out), (Some(3), None, None));
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
    assert!(!finished.truncated && !finished.success());
}

#[test]
fn grandchildren_are_gone_after_the_wall_limit() {
    let limits = Limits { wall: Duration::from_millis(500), ..limits() };
    let started = Instant::now();
    let finished = shell("for i in 1 2 3; do (sh -c 'echo $$; sleep 300; :') & done; echo $$; wait", limits);
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!((finished.timed_out, finished.signal), (Some(Limit::Wall), Some(libc::SIGKILL)));
    assert_eq!(finished.stdout.lines().count(), 4, "{}", finished.stdout);
    assert!(finished.stdout.lines().all(dies));
}

#[test]
fn grandchildren_that_outlive_their_parent_are_killed_and_hold_nobody_up() {
    let started = Instant::now();
    let finished = shell("sh -c 'echo $$; sleep 300; :' & sleep 0.2; exit 0", limits());
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(finished.success());
    assert!(dies(finished.stdout.trim()));
}

#[test]
fn a_process_that_left_the_group_ends_with_the_call() {
    let started = Instant::now();
    let finished = shell("setsid sh -c 'echo $$; exec sleep 300' & sleep 0.2; exit 0", limits());
    assert!(started.elapsed() < Duration::from_secs(4));
    assert!(finished.success());
    assert!(!lives(finished.stdout.trim()));
}

#[test]
fn a_double_forked_daemon_ends_with_the_wall_limit() {
    let limits = Limits { wall: Duration::from_millis(500), ..limits() };
    let script = "setsid sh -c 'setsid sh -c \"echo \\$\\$; trap : TERM HUP; sleep 300; :\" & exit 0' & sleep 300";
    let finished = shell(script, limits);
    assert_eq!(finished.timed_out, Some(Limit::Wall));
    assert!(finished.stdout.trim().parse::<u32>().is_ok(), "{finished:?}");
    assert!(!lives(finished.stdout.trim()));
}

#[test]
fn a_tool_whose_work_nobody_wants_any_more_ends_with_all_that_it_started() {
    let (folder, stop) = (scratch().unwrap(), Stop::default());
    let pid = folder.path().join("pid");
    let tool = Tool::new("/bin/sh", folder.path()).args(["-c", "echo $$ > pid; sleep 300; :"]).unless(&stop);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| tool.run());
        let child = soon(|| std::fs::read_to_string(&pid).ok().filter(|pid| pid.ends_with('\n')));
        stop.stop();
        assert!(run.join().unwrap().is_err());
        assert!(dies(child.trim()));
    });
}

#[test]
fn a_flood_on_both_pipes_is_cut_at_the_cap_and_read_to_its_end() {
    let limits = Limits { output: 1000, ..limits() };
    let finished = shell("head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2; exit 7", limits);
    assert_eq!((finished.stdout.len(), finished.stderr.len()), (1000, 1000));
    assert_eq!((finished.status, finished.truncated), (Some(7), true));
}

#[test]
fn an_endless_flood_meets_the_wall_limit() {
    let limits = Limits { wall: Duration::from_millis(400), ..limits() };
    let finished = shell("exec cat /dev/zero", limits);
    assert_eq!((finished.timed_out, finished.truncated), (Some(Limit::Wall), true));
}

#[test]
fn the_cpu_limit_ends_a_busy_loop() {
    let limits = Limits { cpu: Duration::from_secs(1), ..limits() };
    let finished = shell("while :; do :; done", limits);
    assert_eq!((finished.timed_out, finished.signal), (Some(Limit::Cpu), Some(libc::SIGXCPU)));
}

#[test]
fn the_address_space_limit_refuses_memory() {
    let limits = Limits { address_space: Some(64 << 20), ..limits() };
    let finished = shell("head -c 200000000 /dev/zero | tail -c 190000000 | wc -c", limits);
    assert!(finished.stdout.trim().parse::<u64>().unwrap_or(0) < 190_000_000, "{finished:?}");
}

#[test]
fn the_file_size_limit_ends_the_writer() {
    let limits = Limits { file_size: Some(1 << 20), ..limits() };
    let finished = shell("exec cat /dev/zero > big", limits);
    assert_eq!(finished.timed_out, Some(Limit::FileSize));
}

#[test]
fn nothing_of_the_environment_leaks_and_home_is_the_folder() {
    let folder = scratch().unwrap();
    let finished = Tool::new("/usr/bin/env", folder.path()).run().unwrap();
    let mut names: Vec<_> = finished.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "LANG", "LC_ALL", "PATH", "TMPDIR"]);
    assert!(finished.stdout.contains(&format!("HOME={}", folder.path().display())));
}

#[test]
fn stdin_is_empty() {
    assert_eq!(shell("cat; echo end", limits()).stdout, "end\n");
}

#[test]
fn a_missing_program_is_an_error() {
    let error = Tool::new("/nonexistent/nvcc", "/tmp").run().unwrap_err();
    assert_eq!(format!("{error:#}"), "cannot start /nonexistent/nvcc: No such file or directory (os error 2)");
}

#[test]
fn bytes_that_are_no_utf8_are_survived() {
    assert!(shell(r"printf '\377\376'", limits()).stdout.contains('\u{fffd}'));
}

#[test]
fn a_warden_on_its_own_ends_its_tree_when_the_leash_goes() {
    let folder = scratch().unwrap();
    let mut group = Tool::new("/bin/sh", folder.path()).args(["-c", "exec sleep 300"]).spawn().unwrap();
    let warden = group.child.id().to_string();
    let listed = format!("/proc/{warden}/task/{warden}/children");
    let tool = soon(|| Some(std::fs::read_to_string(&listed).unwrap()).filter(|listed| !listed.is_empty()));
    assert!(lives(tool.trim()));
    group.leash.release();
    assert!(dies(tool.trim()) && dies(&warden));
}

#[test]
fn a_warden_that_is_interrupted_before_it_began_is_no_end_of_its_tool() {
    // Whatever started the tests may have it ignored, as a shell's `&` does.
    // SAFETY: sets what a process begins with; nothing here handles the signal.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    let folder = scratch().unwrap();
    let ended_by = |signal| {
        let mut group = Tool::new("/bin/sh", folder.path()).args(["-c", "exec sleep 300"]).spawn().unwrap();
        rustix::process::kill_process(group.pid().unwrap(), signal).unwrap();
        group.end().unwrap().map(|status| status.signal())
    };
    // Now and then it has begun by the time of the signal, and the tool with it: then both are ended from here.
    let killed = Some(Some(libc::SIGKILL));
    let interrupted: Vec<_> = (0..20).map(|_| ended_by(Signal::INT)).collect();
    assert!(interrupted.iter().all(|ended| ended.is_none() || *ended == killed), "{interrupted:?}");
    assert!(interrupted.contains(&None), "{interrupted:?}");
    assert_eq!(ended_by(Signal::KILL), killed);
}

#[test]
fn dropping_a_running_tool_kills_its_group() {
    let folder = scratch().unwrap();
    let tool = Tool::new("/bin/sh", folder.path()).args(["-c", "sleep 300 & echo $! > pid; wait"]);
    let group = tool.spawn().unwrap();
    let file = folder.path().join("pid");
    let pid = soon(|| std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n')));
    assert!(lives(pid.trim()));
    drop(group);
    assert!(dies(pid.trim()));
}

#[test]
fn a_confined_tool_reads_its_own_folder_and_the_system_but_no_other_folder() {
    if confine::landlock::abi() == 0 {
        return;
    }
    let (folder, secret) = (scratch().unwrap(), scratch().unwrap());
    std::fs::write(secret.path().join("secret"), "42").unwrap();
    let system = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"].map(PathBuf::from);
    let script = format!(
        "cat {}; cat /etc/passwd; echo x > mine && cat mine; echo y > /dev/null && echo null",
        secret.path().join("secret").display()
    );
    let tool = Tool::new("/bin/sh", folder.path()).args(["-c", &script]);
    assert!(tool.run().unwrap().stdout.starts_with("42"));
    let finished = tool.confined(system.to_vec()).run().unwrap();
    assert_eq!(finished.stdout, "x\nnull\n", "{}", finished.stderr);
}

#[test]
fn a_confined_tool_gets_no_socket_and_no_namespace() {
    let (Some(bash), true) = (find_program("bash"), confine::offer().seccomp) else { return };
    let folder = scratch().unwrap();
    let script = "exec 2>&1; (exec 3<>/dev/tcp/127.0.0.1/9); unshare --help >/dev/null && unshare -U true";
    let run = |tool: Tool| tool.args(["-c", script]).run().unwrap().stdout;
    let confined = run(Tool::new(&bash, folder.path()).confined(confine::system_folders()));
    assert!(confined.contains("socket: Operation not permitted"), "{confined}");
    assert!(confined.contains("unshare failed: Operation not permitted"), "{confined}");
    assert!(!run(Tool::new(&bash, folder.path())).contains("socket: Operation not permitted"));
}

#[test]
fn relative_entries_of_path_are_dropped() {
    assert!(std::env::split_paths(&search_path()).all(|folder| folder.is_absolute()));
    assert!(find_program("sh").is_some_and(|path| path.is_absolute()));
    assert!(!is_executable(Path::new("/tmp")));
}
