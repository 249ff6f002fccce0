//! The shared object that heat.cu was compiled to: what its symbols say, and its loaded form.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use crate::compile::thread_loops::MADE;
use anyhow::{Context, Result, anyhow};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationFlags, SectionKind, SymbolKind};
use serde::{Deserialize, Serialize};

use super::abi::{KernelFn, SLOTS};
use crate::compile::host::{TABLE, UNSEEN_CALL, UNSEEN_TABLE};
use crate::compile::thread_loops;
use crate::execute::DeviceState;

/// A variable in shared memory, by its place in the thread-local segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SharedSymbol {
    /// Its name in heat.cu, without the function around it.
    pub name: String,
    /// The function around it, demangled; empty at namespace scope.
    pub function: String,
    pub offset: u64,
    pub bytes: u64,
    /// The dynamic shared array, whose size the launch gives.
    pub dynamic: bool,
    /// This runtime's own.
    pub hidden: bool,
}

/// A __device__ or __constant__ variable, by its offset from the load address.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    /// Its mangled name, the same in both builds of a program.
    pub symbol: String,
    pub range: Range<u64>,
}

impl Variable {
    fn bytes(&self) -> usize {
        (self.range.end - self.range.start) as usize
    }
}

/// A constant table in global memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub name: String,
    /// The line of heat.cu (0: not known) of a read.
    pub line: u32,
    /// Whether its reads have hooks.
    pub seen: bool,
}

/// Where an object keeps what. Offsets are from the load address, or from the thread-local segment's start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ObjectMap {
    /// Ascending by offset.
    pub shared: Vec<SharedSymbol>,
    pub segment_bytes: u64,
    /// Offset of the variable that anchors the segment's address.
    pub anchor: u64,
    /// Writable data, where __device__ variables live.
    pub data: Range<u64>,
    pub constants: Vec<Range<u64>>,
    pub variables: Vec<Variable>,
    pub image_bytes: u64,
    /// Machine code.
    pub code: Range<u64>,
    /// Pointers to the static constructors, which run on request only.
    pub constructors: Range<u64>,
    /// Whether loading it runs code, which the host build leaves no honest way to.
    pub runs_when_loaded: bool,
    /// The line of heat.cu (0: not known) of a structure that a call takes or gives and no hook sees.
    pub unseen_call: Option<u32>,
    /// Constant tables in global memory that are read at no fixed place here.
    pub tables: Vec<Table>,
    /// Those of them whose reads a GPU's compiler folds: they count nothing.
    pub folded: Vec<Range<u64>>,
}

const ANCHOR: &str = "hg_thread_idx";
const DYNAMIC: &str = "hg_dynamic_shared";
/// What hooks.inc defines, so that nobody else can. A learner's names may begin with hg_ too.
const OWN: [&str; 6] = [ANCHOR, "hg_block_idx", "hg_block_dim", "hg_grid_dim", DYNAMIC, "hg_table"];
/// The section of no_constructors.ld.
const CONSTRUCTORS: &str = ".hg_constructors";

impl ObjectMap {
    /// Reads the symbols of the object at `path`.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).context("cannot read the compiled kernel")?;
        let file = object::File::parse(&*bytes).context("cannot parse the compiled kernel")?;
        let mut map = Self::default();
        map.image_bytes = file.segments().map(|segment| segment.address() + segment.size()).max().unwrap_or(0);
        let thread_local =
            || file.sections().filter(|s| matches!(s.kind(), SectionKind::Tls | SectionKind::UninitializedTls));
        let segment_start = thread_local().map(|s| s.address()).min().unwrap_or(0);
        map.segment_bytes = thread_local().map(|s| s.address() + s.size() - segment_start).max().unwrap_or(0);
        map.read_sections(&file);
        map.runs_when_loaded = runs_when_loaded(&file);
        for symbol in file.symbols() {
            map.read_symbol(&symbol);
        }
        map.shared.sort_by_key(|symbol| symbol.offset);
        map.shared.dedup_by_key(|symbol| symbol.offset);
        let anchor = map.shared.iter().find(|symbol| symbol.name == ANCHOR);
        map.anchor = anchor.ok_or_else(|| anyhow!("the compiled kernel lacks {ANCHOR}"))?.offset;
        Ok(map)
    }

    fn read_sections(&mut self, file: &object::File) {
        let (mut low, mut high) = (u64::MAX, 0);
        let text = file.section_by_name(".text");
        self.code = text.map_or(0..0, |text| text.address()..text.address() + text.size());
        for section in file.sections() {
            let range = section.address()..section.address() + section.size();
            if section.name() == Ok(CONSTRUCTORS) {
                self.constructors = range;
            } else if section.name().is_ok_and(|name| name.starts_with("hg_constant.")) {
                self.constants.push(range);
            } else if matches!(section.kind(), SectionKind::Data | SectionKind::UninitializedData) {
                low = low.min(range.start);
                high = high.max(range.end);
            }
        }
        self.data = low.min(high)..high;
    }

    fn read_symbol(&mut self, symbol: &object::Symbol) {
        let Ok(mangled) = symbol.name() else { return };
        let line = u32::try_from(symbol.address());
        if mangled == UNSEEN_CALL {
            self.unseen_call = line.ok();
            return;
        }
        let table = mangled.strip_prefix(TABLE).map(|name| (name, true));
        if let Some((name, seen)) = table.or(mangled.strip_prefix(UNSEEN_TABLE).map(|name| (name, false))) {
            self.tables.push(Table { name: name.to_owned(), line: line.unwrap_or(0), seen });
            return;
        }
        let (function, name) = split_name(mangled);
        match symbol.kind() {
            SymbolKind::Tls => self.shared.push(SharedSymbol {
                dynamic: mangled == DYNAMIC,
                hidden: mangled != DYNAMIC && (OWN.contains(&mangled) || is_made(&function)),
                name: if mangled == DYNAMIC { "dynamic shared memory".to_owned() } else { name },
                function,
                offset: symbol.address(),
                bytes: symbol.size(),
            }),
            SymbolKind::Data if symbol.size() > 0 && !OWN.contains(&mangled) => {
                let range = symbol.address()..symbol.address() + symbol.size();
                self.variables.push(Variable { name, symbol: mangled.to_owned(), range });
            }
            _ => {}
        }
    }

    /// The same where a GPU's compiler loads none but these variables, by their mangled names there.
    pub fn folding_all_but(mut self, loaded: &BTreeSet<String>) -> Self {
        let is_loaded = |table: &Table| loaded.iter().any(|symbol| symbol.contains(&table.name));
        let (tables, folded): (Vec<_>, Vec<_>) = self.tables.into_iter().partition(is_loaded);
        let of =
            |tables: &[Table], variable: &Variable| tables.iter().any(|table| variable.symbol.contains(&table.name));
        let is_folded = |variable: &&Variable| of(&folded, variable) && !of(&tables, variable);
        self.folded = self.variables.iter().filter(is_folded).map(|variable| variable.range.clone()).collect();
        self.tables = tables;
        self
    }

    /// The variable at an offset from the load address.
    pub fn variable(&self, offset: u64) -> Option<&str> {
        self.variables.iter().find(|variable| variable.range.contains(&offset)).map(|variable| variable.name.as_str())
    }

    /// Static shared memory of the functions whose demangled name starts like `kernel`, bytes.
    pub fn static_shared(&self, kernel: &str) -> u64 {
        let own = |symbol: &&SharedSymbol| !symbol.dynamic && !symbol.hidden && symbol.function.contains(kernel);
        self.shared.iter().filter(own).map(|symbol| symbol.bytes).sum()
    }
}

/// Whether the loader calls a function of the object: to resolve a symbol (ifunc), or by an entry of the dynamic section.
fn runs_when_loaded(file: &object::File) -> bool {
    let resolves = |flags| matches!(flags, RelocationFlags::Elf { r_type: object::elf::R_X86_64_IRELATIVE });
    let by_relocation = file.dynamic_relocations().into_iter().flatten().any(|(_, moved)| resolves(moved.flags()));
    const CALLED: [u64; 3] = [12, 25, 32]; // DT_INIT, DT_INIT_ARRAY, DT_PREINIT_ARRAY
    let dynamic = file.section_by_name(".dynamic").and_then(|section| section.data().ok()).unwrap_or_default();
    let tag = |entry: &[u8]| entry.first_chunk().map(|tag| u64::from_le_bytes(*tag));
    let by_symbol = file.dynamic_symbols().any(|symbol| {
        let object::SymbolFlags::Elf { st_info, .. } = symbol.flags() else { return false };
        st_info.st_type() == object::elf::STT_GNU_IFUNC && !symbol.is_undefined()
    });
    by_relocation || by_symbol || dynamic.chunks(16).filter_map(tag).any(|tag| CALLED.contains(&tag))
}

/// Splits a demangled name like `ns::twoStep(float const*, ...)::tile` into the function and `tile`.
/// Whether a demangled function is one of those that thread_loops.rs makes: `float* hg_kept<3, float>()`.
fn is_made(function: &str) -> bool {
    let head = function.split(['(', '<']).next().unwrap_or_default();
    let name = head.rsplit([' ', ':', '*', '&']).next().unwrap_or_default();
    MADE.iter().any(|prefix| name.starts_with(prefix))
}

fn split_name(mangled: &str) -> (String, String) {
    let demangled = cpp_demangle::Symbol::new(mangled).ok().and_then(|symbol| symbol.demangle().ok());
    let full = demangled.unwrap_or_else(|| mangled.to_owned());
    match full.rfind(")::") {
        Some(position) => (full[..=position].to_owned(), full[position + 3..].to_owned()),
        None => (String::new(), full),
    }
}

/// The object, loaded. None of its code has run.
pub struct LoadedObject {
    /// Load address.
    pub base: usize,
    pub kernel: KernelFn,
    /// A whole block as loops over its threads, where the host build found how.
    pub block: Option<KernelFn>,
    data: Range<usize>,
    table: *mut [usize; SLOTS],
    library: Library,
}

// SAFETY: lanes only read from it; the table is written through &mut, when no lane runs.
unsafe impl Sync for LoadedObject {}

impl LoadedObject {
    /// Loads the object at `path`, whose symbols are in `map`.
    pub fn load(path: &Path, map: &ObjectMap) -> Result<Self> {
        // SAFETY: loading runs none of the object's code (see ObjectMap::runs_when_loaded).
        let library =
            unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.context("cannot load the compiled kernel")?;
        // SAFETY: the host build defines these two symbols with these types.
        let (kernel, table) = unsafe {
            let kernel = *library.get::<KernelFn>(b"hg_kernel\0").context("the compiled kernel lacks hg_kernel")?;
            let table =
                *library.get::<*mut [usize; SLOTS]>(b"hg_table\0").context("the compiled kernel lacks hg_table")?;
            (kernel, table)
        };
        // SAFETY: the host build gives it this type where it defines it.
        let block = unsafe { library.get::<KernelFn>(b"hg_block\0") }.ok().map(|symbol| *symbol);
        // SAFETY: dladdr only reads; the structure is plain data.
        let base = unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(kernel as *const libc::c_void, &raw mut info) == 0 {
                return Err(anyhow!("cannot find where the compiled kernel was loaded"));
            }
            info.dli_fbase as usize
        };
        // Empty where the object has none.
        let data = map.data.start.min(map.data.end) as usize + base..map.data.end as usize + base;
        Ok(Self { base, kernel, block, data, table, library })
    }

    /// Addresses of its writable data, where __device__ variables live.
    pub fn data(&self) -> Range<usize> {
        self.data.clone()
    }

    /// What the program's variables hold; `None` where it has none, or more than `most` bytes of them. No kernel may be running.
    pub fn state(&self, map: &ObjectMap, most: usize) -> Option<DeviceState> {
        let mut state = DeviceState::default();
        for variable in self.kept_variables(map) {
            state.variables.push((variable.symbol.clone(), variable.bytes()));
            if state.bytes.len() + variable.bytes() > most {
                return None;
            }
            let address = self.base + variable.range.start as usize;
            // SAFETY: a variable of the loaded object's own data.
            state.bytes.extend(unsafe { std::slice::from_raw_parts(address as *const u8, variable.bytes()) });
        }
        Some(state).filter(|state| !state.variables.is_empty())
    }

    /// Gives the program's variables what those of another build of it held. No kernel may be running.
    pub fn restore(&self, map: &ObjectMap, state: &DeviceState) {
        let mut rest = &state.bytes[..];
        for (symbol, size) in &state.variables {
            let Some((bytes, later)) = rest.split_at_checked(*size) else { return };
            rest = later;
            let mut own = self.kept_variables(map);
            if let Some(own) = own.find(|own| own.symbol == *symbol && own.bytes() == *size) {
                let address = (self.base + own.range.start as usize) as *mut u8;
                // SAFETY: a variable of the loaded object's own writable data, of this size.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address, *size) };
            }
        }
    }

    /// The variables that keep what a kernel leaves in them.
    fn kept_variables<'m>(&self, map: &'m ObjectMap) -> impl Iterator<Item = &'m Variable> {
        let within =
            |variable: &&Variable| map.data.contains(&variable.range.start) && variable.range.end <= map.data.end;
        map.variables.iter().filter(within)
    }

    /// Runs the static constructors.
    pub fn construct(&self, map: &ObjectMap) {
        let bytes = map.constructors.end.saturating_sub(map.constructors.start) as usize;
        let first = (self.base + map.constructors.start as usize) as *const Option<extern "C" fn()>;
        for at in 0..bytes / size_of::<usize>() {
            // SAFETY: the section holds as many pointers to functions; this process exists to run the learner's code.
            if let Some(constructor) = unsafe { *first.add(at) } {
                constructor();
            }
        }
    }

    /// Installs the runtime's answers; no kernel may be running.
    pub fn install(&mut self, table: [usize; SLOTS]) {
        // SAFETY: the table is the object's own writable array of this size.
        unsafe { *self.table = table };
    }

    /// The variables of the calling OS thread.
    pub fn lane_variables(&self, map: &ObjectMap) -> Result<LaneVariables> {
        let variable = |name: &[u8]| -> Result<*mut [u32; 4]> {
            // SAFETY: hooks.inc defines these thread-local variables of 16 bytes; dlsym gives this thread's copy.
            let symbol = unsafe { self.library.get::<*mut [u32; 4]>(name) }
                .context("the compiled kernel lacks a CUDA variable")?;
            Ok(symbol.as_raw_ptr().cast())
        };
        let thread = variable(b"hg_thread_idx\0")?;
        let segment = thread as usize - map.anchor as usize;
        let arrays = map.shared.iter().filter(|symbol| !symbol.hidden && !symbol.dynamic);
        let loop_arrays = map.shared.iter().filter(|symbol| symbol.function.contains(thread_loops::PREFIX));
        let place = |symbol: &SharedSymbol| (segment + symbol.offset as usize, symbol.bytes as usize);
        Ok(LaneVariables {
            thread,
            block: variable(b"hg_block_idx\0")?,
            block_dim: variable(b"hg_block_dim\0")?,
            grid_dim: variable(b"hg_grid_dim\0")?,
            segment,
            segment_bytes: map.segment_bytes as usize,
            arrays: arrays.map(place).collect(),
            loop_arrays: loop_arrays.map(place).collect(),
            dynamic: map.shared.iter().find(|symbol| symbol.dynamic).map_or(segment, |s| segment + s.offset as usize),
        })
    }
}

/// The CUDA variables and the shared memory of one OS thread.
#[derive(Clone)]
pub struct LaneVariables {
    thread: *mut [u32; 4],
    block: *mut [u32; 4],
    block_dim: *mut [u32; 4],
    grid_dim: *mut [u32; 4],
    segment: usize,
    segment_bytes: usize,
    arrays: Vec<(usize, usize)>,
    /// The same arrays of the kernel as loops.
    loop_arrays: Vec<(usize, usize)>,
    dynamic: usize,
}

/// What shared memory holds before a block writes it: the bits of a NaN.
const POISON: u8 = 0xff;

impl LaneVariables {
    #[inline(always)]
    pub fn set_thread(&self, index: [u32; 4]) {
        // SAFETY: points to this OS thread's variable, alive as long as the thread and the object.
        unsafe { *self.thread = index };
    }

    pub fn set_block(&self, [x, y, z]: [u32; 3]) {
        // SAFETY: as above.
        unsafe { *self.block = [x, y, z, 0] };
    }

    pub fn set_shape(&self, [bx, by, bz]: [u32; 3], [gx, gy, gz]: [u32; 3]) {
        // SAFETY: as above.
        unsafe {
            *self.block_dim = [bx, by, bz, 0];
            *self.grid_dim = [gx, gy, gz, 0];
        }
    }

    /// Poisons all shared arrays and the first `dynamic` bytes of the dynamic one. The kernel as loops has its own copies of
    /// the arrays in the kernel; those at namespace scope it shares with the kernel.
    pub fn poison_shared(&self, dynamic: u32, loops: bool) {
        let own: &[_] = if loops { &self.loop_arrays } else { &[] };
        for &(address, bytes) in self.arrays.iter().chain(own).chain(&[(self.dynamic, dynamic as usize)]) {
            // SAFETY: the arrays lie in this OS thread's segment; the dynamic one is as large as any launch may ask for.
            unsafe { std::ptr::write_bytes(address as *mut u8, POISON, bytes) };
        }
    }

    pub fn segment(&self) -> usize {
        self.segment
    }

    /// Whether an address lies in this OS thread's shared memory.
    #[inline(always)]
    pub fn in_segment(&self, address: usize) -> bool {
        address.wrapping_sub(self.segment) < self.segment_bytes
    }
}
