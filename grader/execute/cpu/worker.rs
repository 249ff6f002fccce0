//! The worker process: this binary's hidden subcommand. It alone runs learner's code, and never holds the answer.

use std::cell::Cell;
use std::io::BufReader;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow};

use super::arena::Arena;
use super::hooks;
use super::launch::{Told, run_trial};
use super::message::{Reply, Request};
use super::object::{LoadedObject, ObjectMap};
use super::{print, signals};
use crate::confine;
use crate::execute::service::{end_with_grader, end_with_parent, flush_prints, keep_own_words_apart, take_over_stdout};
use crate::execute::{DeviceState, Watch, wire};

/// The loader takes a library's thread-local segment into the static one only if the executable's own is aligned as
/// strictly; this variable makes it so, for shared arrays declared with up to that alignment.
#[repr(align(1024))]
struct Aligned(Cell<u8>);

thread_local!(static ALIGNMENT: Aligned = const { Aligned(Cell::new(0)) });

/// Serves requests on standard input until it ends. Replies go to what was standard output; from then on, whatever the
/// kernel prints goes to standard error, which the grader captures.
pub fn main() -> Result<()> {
    ALIGNMENT.with(|aligned| std::hint::black_box(aligned).0.set(1));
    // Files that stay open would count against this process's own few.
    confine::close_inherited();
    end_with_grader()?;
    let mut replies = take_over_stdout()?;
    keep_own_words_apart();
    let mut requests = BufReader::with_capacity(1 << 20, std::io::stdin());
    let mut arena = Arena::map()?;
    let mut loaded: Option<(LoadedObject, Arc<ObjectMap>)> = None;
    while let Some((request, blob)) = wire::read::<Request>(&mut requests)? {
        let result = match request {
            Request::Load { object, map } => load(&object, &map, replies.as_raw_fd()).map(|object| {
                loaded = Some((object, Arc::new(map)));
                Reply::Ready
            }),
            Request::Construct => {
                let (object, map) = loaded.as_ref().ok_or_else(|| anyhow!("nothing was loaded"))?;
                object.construct(map);
                Ok(Reply::Ready)
            }
            Request::Restore(variables) => {
                let (object, map) = loaded.as_ref().ok_or_else(|| anyhow!("nothing was loaded"))?;
                object.restore(map, &DeviceState { variables, bytes: blob });
                Ok(Reply::Ready)
            }
            Request::Run(run) => {
                let (object, map) = loaded.as_mut().ok_or_else(|| anyhow!("nothing was loaded"))?;
                object.install(hooks::table(run.watch));
                print::begin_trial();
                let initial = wire::cells_of(&blob);
                let mut to = &replies;
                let tell = |told: Told| match told {
                    Told::Launch(launch) => wire::write(&mut to, &Reply::Launch(launch), &[]),
                    Told::Grid(launch, cells) => wire::write(&mut to, &Reply::Grid(launch), wire::bytes_of(cells)),
                    Told::State(launch, state) => {
                        wire::write(&mut to, &Reply::State(launch, state.variables), &state.bytes)
                    }
                };
                run_trial(object, map, &mut arena, &run, &initial, tell).map(|seen| Reply::Done(Box::new(seen)))
            }
        };
        flush_prints();
        let reply = result.unwrap_or_else(|error| Reply::Failed(format!("{error:#}")));
        wire::write(&mut replies, &reply, &[])?;
    }
    Ok(())
}

/// Loads the one object of this process. Walls come first: files before it has a second thread, the rest before any of the
/// learner's code runs.
fn load(path: &Path, map: &ObjectMap, replies: RawFd) -> Result<LoadedObject> {
    confine::worker::before_loading(path)?;
    end_with_parent(signals::keep_question_away);
    let mut object = LoadedObject::load(path, map)?;
    // Constructors print, too.
    object.install(hooks::table(Watch::Fast));
    signals::install(replies, object.base, &map.code)?;
    confine::worker::before_running()?;
    Ok(object)
}
