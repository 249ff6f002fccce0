//! The cache, with a shell script that poses as python3; one ignored test fetches the real thing.

use std::process::Command;
use std::time::Instant;

use super::*;
use crate::compile::process::find_program;
use crate::compile::scratch::{Scratch, scratch};
use crate::compile::toolkit::{Lookup, Places, find_host_compiler, find_toolkit_in};

/// Names the cache folder of [`fetches_when_told_to`].
const HELPER: &str = "HEAT_GRADER_TEST_FETCH";

/// A python3 whose pip runs `body` in place of an install, and a count of its installs beside it.
struct FakePython {
    folder: Scratch,
}

impl FakePython {
    fn new(body: &str) -> Self {
        let python = Self { folder: scratch().unwrap() };
        let script = format!(
            "#!/bin/sh\n[ \"$3\" = --version ] && {{ echo pip 24.0; exit 0; }}\necho x >> \"$0.runs\"\n{body}\n"
        );
        write_program(&python.program(), &script);
        python
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("python3")
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.folder.path().join("python3.runs")).unwrap_or_default().lines().count()
    }
}

/// Writes through a shell: a descriptor of this process could be inherited by a fork of another test's thread, and
/// the kernel refuses to run a file that is open for writing.
fn write_program(path: &Path, script: &str) {
    let status = Command::new("/bin/sh")
        .args(["-c", "printf %s \"$2\" > \"$1\" && chmod +x \"$1\"", "sh"])
        .arg(path)
        .arg(script)
        .status()
        .unwrap();
    assert!(status.success());
}

/// What a pip that works leaves: enough of a toolkit to answer.
const INSTALL: &str = r#"
root=install/nvidia/cu13
mkdir -p $root/bin $root/nvvm/bin $root/nvvm/libdevice $root/include $root/lib
touch $root/include/cuda_runtime.h $root/lib/libnvvm.so.4
for tool in bin/ptxas bin/cudafe++ nvvm/bin/cicc; do printf '#!/bin/sh\n' > $root/$tool; chmod +x $root/$tool; done
printf '#!/bin/sh\necho Cuda compilation tools, release 13.0, V13.0.88\n' > $root/bin/nvcc
chmod +x $root/bin/nvcc
"#;

fn cache() -> (Scratch, Cache) {
    let folder = scratch().unwrap();
    let cache = Cache { folder: folder.path().join("cache") };
    (folder, cache)
}

/// What lies in the cache folder, the lock aside.
fn kept(cache: &Cache) -> Vec<String> {
    let entries = fs::read_dir(&cache.folder).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "lock");
    names
}

#[test]
fn a_fetch_is_made_once_and_then_found() {
    let (_folder, cache) = cache();
    let python = FakePython::new(INSTALL);
    assert_eq!(cache.toolkit(), None);
    let toolkit = fetch(&cache, Some(&python.program())).unwrap();
    assert_eq!((toolkit.version.as_str(), toolkit.origin), ("13.0.88", Origin::Cache));
    assert_eq!(cache.toolkit(), Some(toolkit.clone()));
    assert_eq!(fetch(&cache, Some(&python.program())), Ok(toolkit.clone()));
    assert_eq!((python.runs(), kept(&cache).len()), (1, 1));
    assert!(!toolkit.root.join("lib/libnvvm.so.4").exists() && toolkit.root.join("lib64").exists());
}

#[test]
fn pip_is_asked_for_pinned_hashed_wheels_in_one_call() {
    let (folder, cache) = cache();
    let record = folder.path().join("asked");
    let python =
        FakePython::new(&format!("echo \"$@\" > {0}; cat requirements.txt >> {0}\n{INSTALL}", record.display()));
    fetch(&cache, Some(&python.program())).unwrap();
    let asked = fs::read_to_string(record).unwrap();
    for word in ["--require-hashes", "--only-binary=:all:", "--no-deps", "--target install", "-r requirements.txt"] {
        assert!(asked.contains(word), "{asked}");
    }
    assert_eq!(asked.matches("--hash=sha256:").count(), 5);
}

#[test]
fn a_failed_fetch_leaves_nothing_and_says_why() {
    let failures = [
        ("echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES' >&2; exit 1", "hash mismatch"),
        ("echo 'NewConnectionError: failed' >&2; exit 1", "could not be reached"),
        ("echo 'ERROR: No matching distribution found for x' >&2; exit 1", "none that this python3 takes"),
        ("echo 'ERROR: see https://user:secret@index.example/simple' >&2; exit 1", "pip said: ERROR: see (address)"),
        ("mkdir -p install/nvidia/cu13/lib; exit 0", "does not run"),
    ];
    for (body, reason) in failures {
        let (_folder, cache) = cache();
        let failure = fetch(&cache, Some(&FakePython::new(body).program())).unwrap_err();
        assert!(failure.reason.contains(reason), "{failure:?}");
        assert_eq!(cache.toolkit(), None);
        assert!(kept(&cache).iter().all(|name| !name.starts_with(PARTIAL)), "{:?}", kept(&cache));
    }
}

#[test]
fn a_missing_python_or_pip_is_a_reason_and_no_crash() {
    let (_folder, cache) = cache();
    assert!(fetch(&cache, None).unwrap_err().reason.contains("no python3"));
    let bare = scratch().unwrap();
    let python = bare.path().join("python3");
    write_program(&python, "#!/bin/sh\necho No module named pip >&2; exit 1\n");
    let failure = fetch(&cache, Some(&python)).unwrap_err();
    assert!(failure.reason.contains("no pip") && failure.remedy.contains("python3-pip"), "{failure:?}");
    assert!(fetch(&cache, Some(Path::new("/nonexistent/python3"))).unwrap_err().reason.contains("does not start"));
}

#[test]
fn a_cache_folder_that_cannot_be_made_is_a_reason() {
    let cache = Cache { folder: "/proc/nowhere".into() };
    let failure = fetch(&cache, Some(Path::new("/bin/sh"))).unwrap_err();
    assert!(failure.remedy.contains("HEAT_GRADER_CACHE"), "{failure:?}");
}

#[test]
fn graders_that_come_together_fetch_once() {
    let (_folder, cache) = cache();
    let python = FakePython::new(&format!("sleep 0.3\n{INSTALL}"));
    let program = python.program();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| fetch(&cache, Some(&program)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(outcomes.iter().all(|outcome| outcome == &outcomes[0] && outcome.is_ok()), "{outcomes:?}");
    assert_eq!(python.runs(), 1);
}

#[test]
fn a_damaged_install_is_fetched_again_and_leftovers_go() {
    let (_folder, cache) = cache();
    let python = FakePython::new(INSTALL);
    let toolkit = fetch(&cache, Some(&python.program())).unwrap();
    for damage in ["#!/bin/sh\nexit 1\n", "not a program"] {
        write_program(&toolkit.nvcc, damage);
        assert_eq!(cache.toolkit(), None);
        fs::create_dir_all(cache.folder.join("partial-old/install")).unwrap();
        assert_eq!(fetch(&cache, Some(&python.program())), Ok(toolkit.clone()));
    }
    fs::remove_file(toolkit.root.join("nvvm/bin/cicc")).unwrap();
    assert_eq!(fetch(&cache, Some(&python.program())), Ok(toolkit));
    assert_eq!((python.runs(), kept(&cache).len()), (4, 1));
}

/// Not a test of its own: the process that the next test kills.
#[test]
fn fetches_when_told_to() {
    let Some(told) = std::env::var_os(HELPER).map(PathBuf::from) else { return };
    fetch(&Cache { folder: told.join("cache") }, Some(&told.join("python3"))).ok();
}

#[test]
fn a_grader_killed_half_way_leaves_nothing_usable_and_the_next_one_fetches() {
    let python = FakePython::new(&format!("{INSTALL}\necho $$ > \"$0.pid\"\nexec sleep 300"));
    let cache = Cache { folder: python.folder.path().join("cache") };
    let test = "compile::fetch::tests::fetches_when_told_to";
    let mut grader = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(HELPER, python.folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let pid = loop {
        let text = fs::read_to_string(python.folder.path().join("python3.pid")).unwrap_or_default();
        match text.strip_suffix('\n') {
            Some(pid) => break pid.to_owned(),
            None if Instant::now() > deadline => panic!("the helper never came to its pip"),
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    grader.kill().unwrap();
    grader.wait().unwrap();
    assert_eq!(cache.toolkit(), None);
    assert!(kept(&cache).iter().any(|name| name.starts_with(PARTIAL)));
    let next = FakePython::new(INSTALL);
    assert!(fetch(&cache, Some(&next.program())).is_ok());
    assert_eq!(kept(&cache).len(), 1);
    assert!(!Path::new("/proc").join(pid).join("exe").exists(), "pip outlived its grader");
}

#[test]
fn places_are_tried_in_order_and_offline_never_fetches() {
    let (folder, cache) = cache();
    let old = folder.path().join("nvcc");
    write_program(&old, "#!/bin/sh\necho Cuda compilation tools, release 10.2, V10.2.89\n");
    let nvccs = vec![(folder.path().join("absent"), Origin::CudaHome), (old, Origin::Path)];
    let places = Places { nvccs, cache: Some(cache.clone()) };
    let Lookup::Missing { reason, remedy } = find_toolkit_in(&places, true) else { panic!() };
    assert!(reason.contains("is release 10.2.89, and 11 or later is needed"), "{reason}");
    assert!(remedy.contains("--offline") && !cache.folder.exists());

    fetch(&cache, Some(&FakePython::new(INSTALL).program())).unwrap();
    assert_eq!(find_toolkit_in(&places, true).found().map(|toolkit| toolkit.origin), Some(Origin::Cache));

    let bin = folder.path().join("cuda/bin");
    fs::create_dir_all(&bin).unwrap();
    write_program(&bin.join("nvcc"), "#!/bin/sh\necho Cuda compilation tools, release 12.6, V12.6.85\n");
    write_program(&bin.join("ptxas"), "#!/bin/sh\n");
    let places = Places { nvccs: vec![(bin.join("nvcc"), Origin::UsrLocal)], cache: Some(cache) };
    let toolkit = find_toolkit_in(&places, true).found().unwrap();
    assert_eq!((toolkit.version.as_str(), toolkit.origin), ("12.6.85", Origin::UsrLocal));
    assert!(toolkit.root.ends_with("cuda"));
}

#[test]
fn the_size_of_a_growing_folder_is_its_files() {
    let folder = scratch().unwrap();
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::write(folder.path().join("a/b"), [0; 1000]).unwrap();
    fs::write(folder.path().join("c"), [0; 24]).unwrap();
    assert_eq!(size_of(folder.path()), 1024);
    assert_eq!(size_of(Path::new("/nonexistent")), 0);
}

/// Needs the network; 104.5 MB. Run by hand: `cargo test --release the_real_fetch -- --ignored --nocapture`.
#[test]
#[ignore = "needs the network and fetches 104.5 MB"]
fn the_real_fetch_gives_a_compiler_that_compiles() {
    use crate::compile::nvcc::{LESSON_ARCH, Outcome, check_as_cuda};
    let (_folder, cache) = cache();
    let started = Instant::now();
    let toolkit = fetch(&cache, find_program("python3").as_deref()).unwrap();
    eprintln!(
        "fetched in {:.1} s, {} MB installed",
        started.elapsed().as_secs_f64(),
        size_of(&cache.folder) / 1_000_000
    );
    let gxx = find_host_compiler().found().unwrap();
    let source = "#include <cooperative_groups.h>\n#include <cuda_pipeline.h>\n#include <cuda/std/array>\n\
                  __global__ void k(float* a) { cooperative_groups::this_thread_block().sync(); a[0] = 1; }\n";
    let build = check_as_cuda(&toolkit, &gxx, source, None, LESSON_ARCH).unwrap();
    assert!(matches!(build.outcome, Outcome::Compiled(_)), "{build:?}");
}
