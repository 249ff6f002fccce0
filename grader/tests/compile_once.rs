use std::os::unix::fs::symlink;

use super::*;
use crate::compile::host::{self, HostCode, Wanted};
use crate::compile::kept::BUILDS;
use crate::compile::nvcc::Assembled;
use crate::compile::preprocessed::Preprocessed;
use crate::compile::process::Stop;
use crate::compile::toolkit::{Origin, find_host_compiler};

fn built(path: &Path, bytes: &[u8]) -> Result<Build<PathBuf>> {
    fs::write(path, bytes)?;
    Ok(Build {
        outcome: Outcome::Compiled(path.to_owned()),
        warnings: Diagnostics::default(),
        wall: std::time::Duration::ZERO,
    })
}

#[test]
fn an_object_is_made_once_for_each_key() {
    let (cache, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shelf = Shelf::within(cache.path(), BUILDS);
    let path = folder.path().join("fast.so");
    let mut made = 0;
    let mut get = |part: &str| {
        let key = Key::default().with(part);
        object(&shelf, &key, path.clone(), || {
            made += 1;
            built(&path, part.as_bytes())
        })
        .unwrap();
        fs::read_to_string(&path).unwrap()
    };
    assert_eq!([get("a"), get("b"), get("a"), get("b")], ["a", "b", "a", "b"]);
    assert_eq!(made, 2);
}

#[test]
fn a_rejection_and_a_link_out_of_the_compilers_folder_are_not_kept() {
    let (cache, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shelf = Shelf::within(cache.path(), BUILDS);
    let (path, secret) = (folder.path().join("fast.so"), folder.path().join("secret"));
    fs::write(&secret, "secret").unwrap();
    let key = Key::default().with("a");
    object(&shelf, &key, path.clone(), || {
        let outcome = Outcome::Rejected(Diagnostics::default());
        Ok(Build { outcome, ..built(&path, b"")? })
    })
    .unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&secret, &path).unwrap();
    object(&shelf, &key, path.clone(), || {
        let outcome = Outcome::Compiled(path.clone());
        Ok(Build { outcome, warnings: Diagnostics::default(), wall: std::time::Duration::ZERO })
    })
    .unwrap();
    assert_eq!(shelf.bytes(), 0);
}

#[test]
fn line_markers_name_the_headers_of_the_machine() {
    let text = "# 0 \"heat.cu\"\n# 1 \"/usr/include/a b.h\" 1 3 4\nint x;\n# 7 \"heat.cu\" 2\n# 1 \"<built-in>\"\n";
    assert_eq!(included(text), BTreeSet::from([PathBuf::from("/usr/include/a b.h")]));
}

#[test]
fn a_text_that_asks_for_the_hour_is_compiled_each_time() {
    assert!(depends_on_more("const char* now = __TIME__;") && depends_on_more("#if __has_include(<a>)"));
    assert!(!depends_on_more("__global__ void k();"));
}

/// A toolkit that is not there: whatever is not kept is an error.
fn no_tools() -> (Toolkit, HostCompiler) {
    let absent = PathBuf::from("/no/such/folder");
    let (nvcc, ptxas, gxx) = (absent.join("nvcc"), absent.join("ptxas"), absent.join("g++"));
    let toolkit = Toolkit { nvcc, ptxas, root: absent, version: "13.0.88".to_owned(), origin: Origin::Path };
    (toolkit, HostCompiler { gxx, version: "12.2.0".to_owned() })
}

#[test]
fn what_nvcc_made_is_taken_until_text_kernel_architecture_compiler_or_a_header_changes() {
    let (cache, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shelf = Shelf::within(cache.path(), BUILDS);
    let (toolkit, gxx) = no_tools();
    let header = folder.path().join("math.h");
    fs::write(&header, "a").unwrap();
    let assembled = Assembled { cubin: vec![1, 2], kernels: Vec::new() };
    let preprocessed = Some(Preprocessed::of("# 1 \"heat.cu\"\nvoid k() { int a; }\n", None));
    let cuda = Cuda { ptx: "ptx".to_owned(), entry: Some("k".to_owned()), arch: 75, assembled, preprocessed };
    let made =
        Made { cuda: cuda.clone(), builds: None, warnings: Diagnostics::default(), headers: vec![Stamp::of(&header)] };
    shelf.put(&key_of_cuda(&toolkit, &gxx, "text", Some("k"), 75), &made);
    let get = |toolkit: &Toolkit, gxx: &HostCompiler, text: &str, kernel, arch| {
        let built = check_and_build(&shelf, toolkit, gxx, text, kernel, arch);
        built.ok().map(|build| build.outcome)
    };
    assert_eq!(get(&toolkit, &gxx, "text", Some("k"), 75), Some(Outcome::Compiled((cuda, None))));
    assert!(headers_of(&shelf, &toolkit, &gxx, "text", Some("k"), 75).is_some());
    for (text, kernel, arch) in [("texts", Some("k"), 75), ("text", None, 75), ("text", Some("k"), 90)] {
        assert_eq!(get(&toolkit, &gxx, text, kernel, arch), None);
    }
    let other = Toolkit { version: "13.0.90".to_owned(), ..toolkit.clone() };
    assert_eq!(get(&other, &gxx, "text", Some("k"), 75), None);
    let other = HostCompiler { version: "13.1.0".to_owned(), ..gxx.clone() };
    assert_eq!(get(&toolkit, &other, "text", Some("k"), 75), None);
    fs::write(&header, "other").unwrap();
    assert_eq!(get(&toolkit, &gxx, "text", Some("k"), 75), None);
    assert!(headers_of(&shelf, &toolkit, &gxx, "text", Some("k"), 75).is_none());
}

#[test]
fn gxx_builds_a_text_once_and_another_text_again() {
    let Some(gxx) = find_host_compiler().found() else { return };
    let cache = tempfile::tempdir().unwrap();
    let shelf = Shelf::within(cache.path(), BUILDS);
    let kernel = |scale: &str| {
        format!("__global__ void k(const float* in, float* out, int n, float r) {{ out[n] = {scale} * r * in[n]; }}\n")
    };
    let build = |text: &str| {
        let built =
            host::build_once(&shelf, &gxx, text, "k", Wanted::FastAndChecked, HostCode::Reached("k"), &Stop::default());
        let Outcome::Compiled(builds) = built.unwrap().outcome else { panic!("g++ takes it") };
        (fs::read(&builds.fast).unwrap(), fs::read(builds.checked.unwrap()).unwrap(), builds.preprocessed)
    };
    let entries = || fs::read_dir(cache.path().join(BUILDS.folder)).unwrap().flatten().map(|entry| entry.path());
    let first = build(&kernel("1.0f"));
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    entries().for_each(|path| File::open(path).unwrap().set_modified(long_ago).unwrap());
    assert!(build(&kernel("1.0f")) == first);
    // What is used is young again.
    assert!(entries().all(|path| fs::metadata(path).unwrap().modified().unwrap() > long_ago));
    assert_eq!(entries().count(), 2);
    assert!(build(&kernel("2.0f")).0 != first.0);
    assert_eq!(entries().count(), 4);
}
