//! All calls of the CUDA driver: a context with one stream, memory, modules, launches, events.
//!
//! Used in the worker process only. Every operation goes through the one stream, so they happen in the order of the
//! calls. Nothing here blocks on a kernel but [`Gpu::synchronise`].

use std::ffi::{CString, c_void};
use std::fmt;
use std::ops::Range;

use cudarc::driver::result;
use cudarc::driver::sys::{
    self, CUdevice_attribute_enum as DeviceAttribute, CUdeviceptr, CUevent_flags_enum, CUfunction_attribute_enum,
    CUresult,
};
use data_encoding::HEXLOWER;

use super::message::{GpuInfo, KernelFacts};
use crate::submission::Geometry;

/// Shared memory that a block has without opting in, bytes.
const SHARED_UNASKED: u64 = 48 * 1024;

/// The driver's answer when it is not success, by its number in cuda.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverError(pub u32);

pub type Answer<T> = std::result::Result<T, DriverError>;

impl fmt::Display for DriverError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the CUDA driver answers with error {}", self.0)
    }
}

impl std::error::Error for DriverError {}

impl From<result::DriverError> for DriverError {
    fn from(error: result::DriverError) -> Self {
        Self(error.0 as u32)
    }
}

fn checked(status: CUresult) -> Answer<()> {
    if status == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(DriverError(status as u32)) }
}

/// The first GPU that the process may use, its context current on the thread that opened it.
pub struct Gpu {
    device: Device,
    context: sys::CUcontext,
    stream: sys::CUstream,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Sync for Gpu {}

/// A kernel of a loaded module. Modules stay loaded for the life of the process.
#[derive(Clone, Copy)]
pub struct Function {
    handle: sys::CUfunction,
    pub facts: KernelFacts,
}

/// A loaded module.
#[derive(Clone, Copy)]
pub struct Module(sys::CUmodule);

/// The first GPU that the process may use, before there is a context on it.
pub struct Device(sys::CUdevice);

/// A failure as a sentence on why there is no GPU to work on.
fn refused(what: &'static str) -> impl Fn(DriverError) -> String {
    move |error| match error.0 {
        100 => "the CUDA driver finds no GPU".to_owned(),
        46 => format!("{what}: the GPU is busy or unavailable (is it in exclusive mode?)"),
        2 => format!("{what}: the GPU's memory is full"),
        803 | 804 => format!("{what}: the installed driver and its library do not match"),
        _ => format!("{what}: {error}"),
    }
}

impl Device {
    /// Loads the driver. The error is a sentence on why there is no GPU to work on.
    pub fn find() -> std::result::Result<Self, String> {
        // SAFETY: loading runs the library's constructors; libcuda is the driver's own and is made to be loaded so.
        if !unsafe { sys::is_culib_present() } {
            return Err("no CUDA driver (libcuda) was found".to_owned());
        }
        let start = || -> Answer<sys::CUdevice> {
            result::init()?;
            Ok(result::device::get(0)?)
        };
        start().map(Self).map_err(refused("the CUDA driver did not start"))
    }

    /// Compute capability without its dot.
    pub fn arch(&self) -> Answer<u32> {
        let major = self.figure(DeviceAttribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.figure(DeviceAttribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok((major * 10 + minor).unsigned_abs())
    }

    /// Makes a context, which takes a while. Errors as of [`Device::find`].
    pub fn open(self) -> std::result::Result<Gpu, String> {
        let context = || -> Answer<(sys::CUcontext, sys::CUstream)> {
            // SAFETY: the device comes from the driver; the context is never released.
            let context = unsafe { result::primary_ctx::retain(self.0)? };
            // SAFETY: as above.
            unsafe { result::ctx::set_current(context)? };
            let mut stream = std::ptr::null_mut();
            // SAFETY: writes one handle through a pointer to a live one.
            checked(unsafe { sys::cuStreamCreate(&raw mut stream, 0) })?;
            Ok((context, stream))
        };
        let (context, stream) = context().map_err(refused("no context could be made on the GPU"))?;
        Ok(Gpu { device: self, context, stream })
    }

    fn figure(&self, which: DeviceAttribute) -> Answer<i32> {
        // SAFETY: the device comes from the driver.
        Ok(unsafe { result::device::get_attribute(self.0, which) }?)
    }
}

impl Gpu {
    /// What the driver says of the GPU, without its clocks.
    pub fn info(&self) -> Answer<GpuInfo> {
        let device = &self.device;
        let mut version = 0;
        // SAFETY: writes one int through a pointer to a live one.
        checked(unsafe { sys::cuDriverGetVersion(&raw mut version) })?;
        let shared = device.figure(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let multiprocessors = device.figure(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Ok(GpuInfo {
            name: result::device::get_name(device.0)?,
            uuid: uuid_words(result::device::get_uuid(device.0)?.bytes.map(|byte| byte as u8)),
            arch: device.arch()?,
            driver: format!("{}.{}", version / 1000, version % 1000 / 10),
            // SAFETY: the device comes from the driver.
            memory: unsafe { result::device::total_mem(device.0)? } as u64,
            multiprocessors: multiprocessors.unsigned_abs(),
            shared_per_block: shared.unsigned_abs(),
            clocks: None,
        })
    }

    /// Loads a cubin.
    pub fn load(&self, image: &[u8]) -> Answer<Module> {
        // SAFETY: a cubin is an ELF file that carries its own sizes; it comes from ptxas and is only read.
        Ok(Module(unsafe { result::module::load_data(image.as_ptr().cast())? }))
    }

    /// Gives a module back, with its kernels and variables.
    pub fn unload(&self, module: Module) {
        // SAFETY: the caller has no use left for the module's kernels, and none of them runs. A failure leaves it where it is.
        let _ = unsafe { result::module::unload(module.0) };
    }

    /// A kernel by name.
    pub fn function(&self, module: Module, entry: &str) -> Answer<Function> {
        let name = CString::new(entry).map_err(|_| DriverError(500))?;
        // SAFETY: whoever unloads a module has no use for its functions.
        unsafe {
            let handle = result::module::get_function(module.0, name)?;
            let figure = |which| result::function::get_function_attribute(handle, which).map(i32::unsigned_abs);
            let facts = KernelFacts {
                static_shared: figure(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?.into(),
                registers: figure(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
                local: figure(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?.into(),
                most_threads: figure(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            };
            Ok(Function { handle, facts })
        }
    }

    /// A global variable by name: its address and size.
    pub fn global(&self, module: Module, name: &str) -> Answer<(CUdeviceptr, usize)> {
        let name = CString::new(name).map_err(|_| DriverError(500))?;
        // SAFETY: as above.
        Ok(unsafe { result::module::get_global(module.0, name)? })
    }

    /// Opts in to the launch's dynamic shared memory where that is needed.
    pub fn opt_in(&self, function: &Function, geometry: &Geometry) -> Answer<()> {
        if u64::from(geometry.shared) + function.facts.static_shared <= SHARED_UNASKED {
            return Ok(());
        }
        let most = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function belongs to a loaded module.
        unsafe { result::function::set_function_attribute(function.handle, most, geometry.shared as i32) }
            .map_err(DriverError::from)
    }

    /// Puts a launch on the stream. Its own failure shows later, one of an earlier launch may show here.
    pub fn launch(
        &self,
        function: &Function,
        geometry: &Geometry,
        [input, output]: [CUdeviceptr; 2],
        n: usize,
        r: f32,
    ) -> Answer<()> {
        let (mut input, mut output, mut n, mut r) = (input, output, n as i32, r);
        let mut arguments: [*mut c_void; 4] =
            [(&raw mut input).cast(), (&raw mut output).cast(), (&raw mut n).cast(), (&raw mut r).cast()];
        let Geometry { grid, block, shared } = *geometry;
        let (grid, block) = ((grid[0], grid[1], grid[2]), (block[0], block[1], block[2]));
        // SAFETY: the kernel has these four parameters (the contract of `Kernel::entry`); the driver copies them before
        // the call returns.
        unsafe { result::launch_kernel(function.handle, grid, block, shared, self.stream, &mut arguments) }
            .map_err(DriverError::from)
    }

    /// Waits until all that was put on the stream is done; the error is that of what failed. Blocks for as long as a kernel
    /// runs, which may be for ever. It must be this call that comes upon a failed kernel first: once another one has (asking
    /// whether the stream is done, say), what the kernel printed and which assertion failed is lost.
    pub fn synchronise(&self) -> Answer<()> {
        // SAFETY: the context lives as long as the process.
        unsafe { result::ctx::set_current(self.context)? };
        Ok(result::ctx::synchronize()?)
    }

    /// Device memory, never freed but by [`Gpu::free`].
    pub fn allocate(&self, bytes: usize) -> Answer<CUdeviceptr> {
        // SAFETY: a plain allocation.
        Ok(unsafe { result::malloc_sync(bytes)? })
    }

    /// Gives back what [`Gpu::allocate`] gave.
    pub fn free(&self, address: CUdeviceptr) {
        // SAFETY: the caller owns the allocation; a failure only leaks it.
        let _ = unsafe { result::free_sync(address) };
    }

    /// Copies words to the GPU; returns when `from` may be reused.
    pub fn upload<T: Copy>(&self, to: CUdeviceptr, from: &[T]) -> Answer<()> {
        // SAFETY: `from` is live, and pageable memory is staged before the call returns.
        unsafe { result::memcpy_htod_async(to, from, self.stream) }.map_err(DriverError::from)
    }

    /// Puts a copy to pinned memory on the stream, to the first `length` values.
    pub fn download<T: Copy>(&self, to: &mut Pinned<T>, from: CUdeviceptr, length: usize) -> Answer<()> {
        self.download_part(to, 0..length, from)
    }

    /// Puts a copy to a part of pinned memory on the stream.
    pub fn download_part<T: Copy>(&self, to: &mut Pinned<T>, part: Range<usize>, from: CUdeviceptr) -> Answer<()> {
        // SAFETY: the pinned memory outlives the copy: callers wait for the stream before they read or free it.
        unsafe { result::memcpy_dtoh_async(&mut to.slice_mut()[part], from, self.stream) }.map_err(DriverError::from)
    }

    /// Puts a copy within the GPU on the stream.
    pub fn copy(&self, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> Answer<()> {
        // SAFETY: both ranges are allocations of the caller's.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream) }.map_err(DriverError::from)
    }

    /// Puts a fill of `rows` rows of `width` words, `pitch` bytes apart, on the stream.
    pub fn fill(&self, at: CUdeviceptr, pitch: usize, word: u32, (width, rows): (usize, usize)) -> Answer<()> {
        // SAFETY: the range is an allocation of the caller's.
        checked(unsafe { sys::cuMemsetD2D32Async(at, pitch, word, width, rows, self.stream) })
    }

    /// Lets the stream write a word to pinned memory when it gets here.
    pub fn mark(&self, at: &Pinned<u32>, word: u32) -> Answer<()> {
        // SAFETY: the pinned memory lives as long as the process (see `Progress`).
        checked(unsafe { sys::cuStreamWriteValue32_v2(self.stream, at.device, word, 0) })
    }

    /// An event that notes the time.
    pub fn event(&self) -> Answer<sys::CUevent> {
        Ok(result::event::create(CUevent_flags_enum::CU_EVENT_DEFAULT)?)
    }

    /// Puts the event on the stream.
    pub fn record(&self, event: sys::CUevent) -> Answer<()> {
        // SAFETY: events live as long as the process.
        unsafe { result::event::record(event, self.stream) }.map_err(DriverError::from)
    }

    /// Milliseconds between two events that have passed.
    pub fn elapsed(&self, from: sys::CUevent, to: sys::CUevent) -> Answer<f64> {
        // SAFETY: as above.
        Ok(unsafe { result::event::elapsed(from, to)? }.into())
    }
}

/// Host memory that the GPU reaches directly.
pub struct Pinned<T> {
    host: *mut T,
    device: CUdeviceptr,
    length: usize,
}

impl<T: Copy> Pinned<T> {
    /// Room for `length` values, zero to begin with.
    pub fn new(length: usize) -> Answer<Self> {
        let bytes = length.max(1) * size_of::<T>();
        // SAFETY: a plain allocation, at least page-aligned; zeroed before it is looked at.
        let host = unsafe { result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_DEVICEMAP)? };
        // SAFETY: just allocated with this size.
        unsafe { host.cast::<u8>().write_bytes(0, bytes) };
        let mut device = 0;
        // SAFETY: writes one address through a pointer to a live one.
        checked(unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut device, host, 0) })?;
        Ok(Self { host: host.cast(), device, length })
    }

    pub fn slice(&self) -> &[T] {
        // SAFETY: allocated with this length; T is plain data, zeroed at first.
        unsafe { std::slice::from_raw_parts(self.host, self.length) }
    }

    pub fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.host, self.length) }
    }

    /// The first value, which the GPU may be writing.
    pub fn first(&self) -> T {
        // SAFETY: allocated with at least one value; a word is written whole.
        unsafe { self.host.read_volatile() }
    }

    /// Sets the first value; the stream must be idle.
    pub fn set_first(&mut self, value: T) {
        // SAFETY: as above.
        unsafe { self.host.write_volatile(value) };
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`, and callers wait for the stream before they drop it; a failure only leaks it.
        let _ = unsafe { result::free_host(self.host.cast()) };
    }
}

/// As nvidia-smi writes it.
fn uuid_words(bytes: [u8; 16]) -> String {
    let groups =
        [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(|part| HEXLOWER.encode(part));
    format!("GPU-{}", groups.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_in_five_groups() {
        let bytes = std::array::from_fn(|at| at as u8);
        assert_eq!(uuid_words(bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
