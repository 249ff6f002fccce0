//! Asks the CUDA driver for its GPUs, without the engine that uses them. No driver is an answer too.

use std::ffi::{CStr, c_char, c_int, c_uint};

/// What the driver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Devices {
    /// The CUDA release that it speaks: (13, 0).
    pub release: (u32, u32),
    pub gpus: Vec<Device>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    pub name: String,
    /// Compute capability without its dot: 75 for sm_75; `None` when the GPU does not answer.
    pub arch: Option<u32>,
}

/// Asks libcuda for its GPUs.
pub(super) fn devices() -> Result<Devices, String> {
    // SAFETY: loading runs the library's constructors; libcuda is the driver's own and is made to be loaded so.
    let library = unsafe { libloading::Library::new("libcuda.so.1") };
    let library = library.map_err(|_| "no CUDA driver (libcuda) was found".to_owned())?;
    let driver = Driver::load(&library).map_err(|error| format!("the CUDA driver is incomplete: {error}"))?;
    driver.devices()
}

type Status = c_int;

/// The few driver functions used here, as cuda.h declares them (CUDA Driver API manual, sections 6.2 to 6.5).
struct Driver<'a> {
    init: libloading::Symbol<'a, unsafe extern "C" fn(c_uint) -> Status>,
    version: libloading::Symbol<'a, unsafe extern "C" fn(*mut c_int) -> Status>,
    count: libloading::Symbol<'a, unsafe extern "C" fn(*mut c_int) -> Status>,
    get: libloading::Symbol<'a, unsafe extern "C" fn(*mut c_int, c_int) -> Status>,
    name: libloading::Symbol<'a, unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status>,
    attribute: libloading::Symbol<'a, unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Status>,
}

impl<'a> Driver<'a> {
    fn load(library: &'a libloading::Library) -> Result<Self, libloading::Error> {
        // SAFETY: the types are those that cuda.h gives these names.
        unsafe {
            Ok(Self {
                init: library.get(b"cuInit\0")?,
                version: library.get(b"cuDriverGetVersion\0")?,
                count: library.get(b"cuDeviceGetCount\0")?,
                get: library.get(b"cuDeviceGet\0")?,
                name: library.get(b"cuDeviceGetName\0")?,
                attribute: library.get(b"cuDeviceGetAttribute\0")?,
            })
        }
    }

    fn devices(&self) -> Result<Devices, String> {
        let refused = |status: Status| {
            if status == 0 { Ok(()) } else { Err(format!("the CUDA driver answers with error {status}")) }
        };
        // SAFETY: cuInit takes no pointer; 0 is its only valid argument.
        refused(unsafe { (self.init)(0) })?;
        let (mut version, mut count) = (0, 0);
        // SAFETY: both write one int through a pointer to a live one.
        refused(unsafe { (self.version)(&raw mut version) })?;
        refused(unsafe { (self.count)(&raw mut count) })?;
        let release = (version.unsigned_abs() / 1000, version.unsigned_abs() % 1000 / 10);
        Ok(Devices { release, gpus: (0..count).map(|ordinal| self.describe(ordinal)).collect() })
    }

    fn describe(&self, ordinal: c_int) -> Device {
        const MAJOR: c_int = 75;
        const MINOR: c_int = 76;
        let mut device = 0;
        let mut name = [0 as c_char; 128];
        // SAFETY: the first call writes one int; the second at most 127 bytes and a zero into the array.
        let status = unsafe { (self.get)(&raw mut device, ordinal) | (self.name)(name.as_mut_ptr(), 127, device) };
        if status != 0 {
            return Device { name: format!("GPU {ordinal}, which does not answer"), arch: None };
        }
        let figure = |which| {
            let mut value = 0;
            // SAFETY: writes one int through a pointer to a live one.
            unsafe { (self.attribute)(&raw mut value, which, device) };
            value
        };
        // SAFETY: the array was zeroed and its last byte is out of the call's reach, so a zero ends the name.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy();
        let arch = Some((figure(MAJOR) * 10 + figure(MINOR)).unsigned_abs());
        Device { name: name.into_owned(), arch }
    }
}
