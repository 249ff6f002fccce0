//! What a lane notices beside running the kernel: words read, accesses out of range, races, never-written reads.

use std::collections::HashMap;
use std::sync::Arc;

use super::arena::{GridMap, Spot};
use super::lane::{MAX_THREADS, MemoryOf};
use super::object::ObjectMap;
use super::raw::{RawHazard, Site};
use super::shadow::{Access, Conflict, Now, Shadow};
use super::tally::Tally;
use crate::execute::{Actor, HazardKind, Memory, Watch};

/// Distinct hazards kept; more are counted only.
const MOST_HAZARDS: usize = 200;

/// One access of the running thread.
#[derive(Clone, Copy)]
pub struct Touch {
    pub address: usize,
    pub bytes: usize,
    /// Return address of the hook.
    pub code: usize,
    pub kind: TouchKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TouchKind {
    Read,
    Write,
    Atomic,
}

/// Where the running thread stands; the lane keeps it up to date.
#[derive(Clone, Copy)]
pub struct Standing {
    pub grids: GridMap,
    /// Flat numbers: x fastest.
    pub block: u32,
    pub thread: usize,
    /// Dynamic shared bytes of the launch.
    pub dynamic: usize,
    pub n: usize,
}

/// A race between two writes, waiting to see whether the second one writes the same value.
struct PendingWrite {
    address: usize,
    bytes: usize,
    before: [u8; 16],
    hazard: RawHazard,
}

/// An index outside its array's dimension, waiting to see where the access lands.
struct PendingIndex {
    site: Site,
    name: String,
    index: i64,
    actor: Actor,
}

/// What orders accesses: times at which the launch, the running block and the running barrier interval began.
struct Clock {
    time: u32,
    launch: u32,
    block: u32,
    interval: u32,
    /// For every thread, when a warp operation last joined it with each lane of its warp.
    joined: Vec<[u32; 32]>,
}

impl Clock {
    fn advance(&mut self) {
        self.time = self.time.saturating_add(1);
    }

    fn now(&self, standing: &Standing) -> Now<'_> {
        Now {
            access: Access::new(self.time, standing.block, standing.thread),
            launch: self.launch,
            block: self.block,
            interval: self.interval,
            joined: &self.joined[standing.thread],
        }
    }
}

/// What an access to shared memory came to.
enum Found {
    OutOfRange,
    NeverWritten,
    Race(Conflict),
}

/// The checker of one lane.
pub struct Checker {
    pub watch: Watch,
    object: Arc<ObjectMap>,
    /// Where the object is loaded, and this lane's shared memory: its thread-local segment.
    pub base: usize,
    segment: usize,
    pub launch: u32,
    hazards: Vec<RawHazard>,
    known: HashMap<(HazardKind, Option<Site>, u8), usize>,
    clock: Clock,
    shared: Shadow,
    /// By buffer of the arena, not by role: a role changes with every launch.
    grids: [Shadow; 2],
    device: Shadow,
    pending_write: Option<PendingWrite>,
    pending_index: Option<PendingIndex>,
    /// Of the launch under way, where it is wanted.
    pub tally: Option<Box<Tally>>,
    /// Block shape of the launch, to turn flat threads into actors.
    pub shape: ([u32; 3], [u32; 3]),
}

impl Checker {
    /// `segment` is the start and length in bytes of the lane's shared memory; `grids` the two grids' first bytes and length.
    pub fn new(
        watch: Watch,
        object: Arc<ObjectMap>,
        base: usize,
        segment: (usize, usize),
        grids: ([usize; 2], usize),
    ) -> Self {
        let full = watch == Watch::Full;
        let sized = |bytes: usize| if full { bytes } else { 0 };
        let device = object.data.clone();
        Self {
            watch,
            base,
            segment: segment.0,
            launch: 0,
            hazards: Vec::new(),
            known: HashMap::new(),
            clock: Clock {
                time: 1,
                launch: 1,
                block: 1,
                interval: 1,
                joined: vec![[0; 32]; if full { MAX_THREADS } else { 0 }],
            },
            shared: Shadow::new(segment.0, sized(segment.1)),
            grids: grids.0.map(|start| Shadow::new(start, sized(grids.1))),
            device: Shadow::new(base + device.start as usize, sized((device.end - device.start) as usize)),
            pending_write: None,
            pending_index: None,
            tally: None,
            shape: ([1; 3], [1; 3]),
            object,
        }
    }

    pub fn begin_launch(&mut self, launch: u32, block: [u32; 3], grid: [u32; 3]) {
        self.launch = launch;
        self.shape = (block, grid);
        self.clock.advance();
        self.clock.launch = self.clock.time;
    }

    #[inline]
    pub fn begin_block(&mut self) {
        if self.watch == Watch::Full {
            self.settle(None);
            self.clock.advance();
            self.clock.block = self.clock.time;
            self.clock.interval = self.clock.time;
        }
    }

    #[inline]
    pub fn begin_interval(&mut self) {
        if self.watch == Watch::Full {
            self.settle(None);
            self.clock.advance();
            self.clock.interval = self.clock.time;
        }
    }

    pub fn warp_synced(&mut self, warp: usize, mask: u32) {
        if self.watch != Watch::Full {
            return;
        }
        self.settle(None);
        self.clock.advance();
        let lanes = || (0..32).filter(move |lane| mask >> lane & 1 == 1);
        for lane in lanes() {
            for other in lanes() {
                self.clock.joined[warp * 32 + lane][other] = self.clock.time;
            }
        }
    }

    /// A thread waits at the barrier `here` while another waits at the barrier `there` (HG_SITE of cuda_runtime.h).
    pub fn barrier_divergence(&mut self, actor: Actor, here: u32, other: Actor, there: u32) {
        let there = Some(Site::Line(line_of(there)));
        self.barrier_hazard(HazardKind::BarrierDivergence, actor, here, Some((other, there)));
    }

    pub fn barrier_after_exit(&mut self, waiting: Actor, barrier: u32) {
        self.barrier_hazard(HazardKind::BarrierAfterExit, waiting, barrier, None);
    }

    fn barrier_hazard(&mut self, kind: HazardKind, actor: Actor, barrier: u32, other: Option<(Actor, Option<Site>)>) {
        if self.watch != Watch::Full {
            return;
        }
        let site = Some(Site::Line(line_of(barrier)));
        self.note(RawHazard {
            kind,
            memory: None,
            store: false,
            bytes: 0,
            site,
            actor,
            other,
            launch: self.launch,
            count: 1,
        });
    }

    /// Notes a hazard, or counts it when its site is known.
    fn note(&mut self, hazard: RawHazard) {
        let class = hazard.memory.as_ref().map_or(0, memory_class);
        let key = (hazard.kind, hazard.site, class);
        if let Some(&position) = self.known.get(&key) {
            self.hazards[position].count += 1;
        } else if self.hazards.len() < MOST_HAZARDS {
            self.known.insert(key, self.hazards.len());
            self.hazards.push(hazard);
        }
    }

    /// All hazards so far; settles what waits.
    pub fn take_hazards(&mut self) -> Vec<RawHazard> {
        self.settle(None);
        self.known.clear();
        std::mem::take(&mut self.hazards)
    }

    /// Who last wrote the cell at `address` of the output grid of the last launch, and where in the code.
    pub fn writer(&self, output: usize, address: usize) -> Option<(Actor, Site)> {
        let (access, site) = self.grids[output].last_write(address)?;
        (access.time() >= self.clock.launch).then(|| (self.actor_of(access), Site::Code(site.into())))
    }

    /// An index left its array's dimension (the compiler's bounds check); `name` is the array's type.
    pub fn out_of_bounds(&mut self, line: u32, name: String, index: i64, actor: Actor) {
        if self.watch != Watch::Full {
            return;
        }
        self.settle(None);
        self.pending_index = Some(PendingIndex { site: Site::Line(line), name, index, actor });
    }

    /// Settles what waited for the access to happen: `next` is the access that follows, if any.
    fn settle(&mut self, next: Option<&Touch>) {
        if let Some(pending) = self.pending_write.take() {
            // SAFETY: the thread has just stored there, so the bytes are mapped.
            let now = unsafe { std::slice::from_raw_parts(pending.address as *const u8, pending.bytes) };
            let mut hazard = pending.hazard;
            if now == &pending.before[..pending.bytes] {
                hazard.kind = HazardKind::SameValueRace;
            }
            self.note(hazard);
        }
        if let Some(pending) = self.pending_index.take() {
            let landed = next.and_then(|touch| self.shared_memory(touch.address));
            let memory = landed.unwrap_or(Memory::Local { name: pending.name, index: pending.index });
            self.note(RawHazard {
                kind: HazardKind::OutOfRange,
                memory: Some(memory),
                store: next.is_some_and(|touch| touch.kind != TouchKind::Read),
                bytes: 0,
                site: Some(pending.site),
                actor: pending.actor,
                other: None,
                launch: self.launch,
                count: 1,
            });
        }
    }

    /// The shared array around an address of this lane's segment; the nearest one before it when it lies between.
    fn shared_memory(&self, address: usize) -> Option<Memory> {
        let offset = address.wrapping_sub(self.segment);
        if offset >= self.object.segment_bytes as usize {
            return None;
        }
        let symbol = self.object.shared.iter().rev().find(|symbol| symbol.offset as usize <= offset)?;
        Some(Memory::Shared {
            name: symbol.name.clone(),
            byte: offset as i64 - symbol.offset as i64,
            lengths: Vec::new(),
        })
    }

    /// Full check of one access. Returns the bytes to count as read from global memory.
    pub fn touch(&mut self, touch: Touch, standing: &Standing) -> usize {
        let index_told = self.pending_index.is_some();
        if self.pending_write.is_some() || index_told {
            self.settle(Some(&touch));
        }
        if let Some(spot) = standing.grids.spot(touch.address) {
            self.touch_grid(touch, spot, standing);
            return if touch.kind == TouchKind::Write { 0 } else { touch.bytes };
        }
        let offset = touch.address.wrapping_sub(self.segment);
        if offset < self.object.segment_bytes as usize {
            self.touch_shared(touch, offset, standing);
            return 0;
        }
        let offset = touch.address.wrapping_sub(self.base) as u64;
        if self.object.constants.iter().any(|range| range.contains(&offset)) {
            self.touch_constant(touch, offset, standing);
            return 0;
        }
        if self.object.data.contains(&offset) {
            self.touch_device(touch, offset, standing);
            if self.object.folded.iter().any(|range| range.contains(&offset)) {
                return 0;
            }
        } else if offset >= self.object.image_bytes {
            // An index that led there has been told, with its array's name.
            if !index_told {
                let memory = Memory::Wild { address: touch.address as u64 };
                self.hazard(HazardKind::OutOfRange, memory, touch, standing, None);
            }
            return 0;
        }
        // What nobody can write, text say, lies in a GPU's global memory as variables do.
        if let Some(tally) = &mut self.tally {
            tally.other(touch, standing.block);
        }
        if touch.kind == TouchKind::Write { 0 } else { touch.bytes }
    }

    /// An access to the local memory of another thread, or of one that has ended (`None`).
    pub fn touch_foreign(&mut self, touch: Touch, standing: &Standing, owner: Option<usize>) {
        // An index that led there is told by its array's name.
        let index_told = self.pending_index.is_some();
        self.settle(Some(&touch));
        if !index_told {
            let owner = owner.map(|thread| (self.actor_of(Access::new(0, standing.block, thread)), None));
            let memory = Memory::Local { name: String::new(), index: 0 };
            self.hazard(HazardKind::ForeignLocal, memory, touch, standing, owner);
        }
    }

    /// An access leaves a local array that the compiler sees it in.
    pub fn beyond_local(&mut self, touch: Touch, standing: &Standing) {
        // An index that led there is told by its array's name.
        let index_told = self.pending_index.is_some();
        self.settle(Some(&touch));
        if index_told {
            return;
        }
        let memory = Memory::Local { name: String::new(), index: 0 };
        self.hazard(HazardKind::OutOfRange, memory, touch, standing, None);
    }

    fn touch_grid(&mut self, touch: Touch, spot: Spot, standing: &Standing) {
        if !standing.grids.inside(spot, touch.bytes) {
            self.hazard(HazardKind::OutOfRange, spot.memory(), touch, standing, None);
            return;
        }
        if self.watch != Watch::Full {
            return;
        }
        if let Some(tally) = &mut self.tally {
            tally.grid(touch, spot.input, spot.offset as usize, standing.block);
        }
        let buffer = if spot.input { standing.grids.input } else { standing.grids.input.other() } as usize;
        if touch.kind == TouchKind::Read {
            let (code, now) = (self.code(touch), self.clock.now(standing));
            let report = self.grids[buffer].read(touch.address, touch.bytes, code, now);
            if let Some(conflict) = report.conflict {
                self.race(conflict, spot.memory(), touch, standing);
            } else if !spot.input && report.written < self.clock.launch && interior(spot, standing.n) {
                self.hazard(HazardKind::NeverWritten, spot.memory(), touch, standing, None);
            }
            return;
        }
        if spot.input {
            self.hazard(HazardKind::InputWritten, spot.memory(), touch, standing, None);
        }
        let (code, now) = (self.code(touch), self.clock.now(standing));
        let conflict = self.grids[buffer].write(touch.address, touch.bytes, code, now, touch.kind == TouchKind::Atomic);
        if let Some(conflict) = conflict {
            self.race(conflict, spot.memory(), touch, standing);
        }
    }

    fn touch_shared(&mut self, touch: Touch, offset: usize, standing: &Standing) {
        let Some(at) = self.object.shared.iter().rposition(|symbol| symbol.offset as usize <= offset) else { return };
        let symbol = &self.object.shared[at];
        let bytes = if symbol.dynamic { standing.dynamic } else { symbol.bytes as usize };
        let byte = offset - symbol.offset as usize;
        let inside = byte + touch.bytes <= bytes;
        if inside && (symbol.hidden || self.watch != Watch::Full) {
            return;
        }
        if let Some(tally) = &mut self.tally {
            tally.shared(touch, at, (byte, bytes), (standing.block, standing.thread));
        }
        let found = if inside { self.look_up_shared(touch, standing) } else { Some(Found::OutOfRange) };
        let Some(found) = found else { return };
        let memory =
            Memory::Shared { name: self.object.shared[at].name.clone(), byte: byte as i64, lengths: Vec::new() };
        match found {
            Found::OutOfRange => self.hazard(HazardKind::OutOfRange, memory, touch, standing, None),
            Found::NeverWritten => self.hazard(HazardKind::NeverWritten, memory, touch, standing, None),
            Found::Race(conflict) => self.race(conflict, memory, touch, standing),
        }
    }

    /// What the shadow of shared memory says of an access inside an array.
    fn look_up_shared(&mut self, touch: Touch, standing: &Standing) -> Option<Found> {
        // Shared memory begins anew with every block: what came before is no past of it.
        let (code, now) = (self.code(touch), Now { launch: self.clock.block, ..self.clock.now(standing) });
        if touch.kind == TouchKind::Read {
            let report = self.shared.read(touch.address, touch.bytes, code, now);
            if report.written < self.clock.block {
                return Some(Found::NeverWritten);
            }
            return report.conflict.map(Found::Race);
        }
        self.shared.write(touch.address, touch.bytes, code, now, touch.kind == TouchKind::Atomic).map(Found::Race)
    }

    /// In which memory an address of the object's own lies.
    pub fn memory_of_variable(&self, address: usize) -> MemoryOf {
        let offset = address.wrapping_sub(self.base) as u64;
        if self.object.constants.iter().any(|range| range.contains(&offset)) {
            MemoryOf::Constant
        } else if offset < self.object.image_bytes {
            MemoryOf::Global
        } else {
            MemoryOf::None
        }
    }

    /// A __constant__ variable: a kernel can only read it, and its words are none of global memory's.
    fn touch_constant(&mut self, touch: Touch, offset: u64, standing: &Standing) {
        if touch.kind != TouchKind::Read {
            let name = self.object.variable(offset).unwrap_or_default().to_owned();
            self.hazard(HazardKind::ConstantWritten, Memory::Constant { name }, touch, standing, None);
        }
    }

    /// A __device__ variable: global memory too.
    fn touch_device(&mut self, touch: Touch, offset: u64, standing: &Standing) {
        if self.watch != Watch::Full || !self.device.covers(touch.address, touch.bytes) {
            return;
        }
        let (code, now) = (self.code(touch), self.clock.now(standing));
        let conflict = match touch.kind {
            TouchKind::Read => self.device.read(touch.address, touch.bytes, code, now).conflict,
            kind => self.device.write(touch.address, touch.bytes, code, now, kind == TouchKind::Atomic),
        };
        if let Some(conflict) = conflict {
            let name = self.object.variable(offset).unwrap_or_default().to_owned();
            self.race(conflict, Memory::Device { name }, touch, standing);
        }
    }

    /// The code offset that the shadow remembers.
    fn code(&self, touch: Touch) -> u32 {
        touch.code.wrapping_sub(self.base) as u32
    }

    fn actor_of(&self, access: Access) -> Actor {
        let ([bx, by, _], [gx, gy, _]) = self.shape;
        let (thread, block) = (access.thread() as u32, access.block());
        let split = |flat: u32, x: u32, y: u32| {
            let (x, y) = (x.max(1), y.max(1));
            [flat % x, flat / x % y, flat / x / y]
        };
        Actor { block: split(block, gx, gy), thread: split(thread, bx, by) }
    }

    fn actor(&self, standing: &Standing) -> Actor {
        self.actor_of(Access::new(0, standing.block, standing.thread))
    }

    fn race(&mut self, conflict: Conflict, memory: Memory, touch: Touch, standing: &Standing) {
        let other = Some((self.actor_of(conflict.past), Some(Site::Code(u64::from(conflict.past_site)))));
        let store = touch.kind != TouchKind::Read;
        if !(store && conflict.past_wrote) {
            self.hazard(HazardKind::ReadWriteRace, memory, touch, standing, other);
            return;
        }
        let hazard = self.describe(HazardKind::WriteWriteRace, memory, touch, standing, other);
        if touch.bytes > 16 || touch.kind == TouchKind::Atomic {
            self.note(hazard);
            return;
        }
        let mut before = [0; 16];
        // SAFETY: the thread is about to store there and the address lies in memory this runtime mapped.
        let there = unsafe { std::slice::from_raw_parts(touch.address as *const u8, touch.bytes) };
        before[..touch.bytes].copy_from_slice(there);
        self.pending_write = Some(PendingWrite { address: touch.address, bytes: touch.bytes, before, hazard });
    }

    fn hazard(
        &mut self,
        kind: HazardKind,
        memory: Memory,
        touch: Touch,
        standing: &Standing,
        other: Option<(Actor, Option<Site>)>,
    ) {
        let hazard = self.describe(kind, memory, touch, standing, other);
        self.note(hazard);
    }

    fn describe(
        &self,
        kind: HazardKind,
        memory: Memory,
        touch: Touch,
        standing: &Standing,
        other: Option<(Actor, Option<Site>)>,
    ) -> RawHazard {
        RawHazard {
            kind,
            memory: Some(memory),
            store: touch.kind != TouchKind::Read,
            bytes: touch.bytes as u32,
            site: super::lane::site(touch.code, self.base),
            actor: self.actor(standing),
            other,
            launch: self.launch,
            count: 1,
        }
    }
}

/// The line of a barrier, in the low 20 bits of its number.
fn line_of(barrier: u32) -> u32 {
    barrier & 0xf_ffff
}

fn interior(spot: Spot, n: usize) -> bool {
    let cell = (spot.offset / 4) as usize;
    let (row, column) = (cell / n, cell % n);
    row > 0 && column > 0 && row < n - 1 && column < n - 1
}

fn memory_class(memory: &Memory) -> u8 {
    match memory {
        Memory::In { .. } => 1,
        Memory::Out { .. } => 2,
        Memory::Shared { .. } | Memory::SharedRow { .. } => 3,
        Memory::Local { .. } => 4,
        Memory::Device { .. } => 5,
        Memory::Wild { .. } => 6,
        Memory::Constant { .. } => 7,
    }
}
