//! The GPU's clocks and what holds them back, from NVML where there is one. Every failure is "not known".

use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};

use super::message::Clocks;

type Status = c_int;
type Device = *mut c_void;

/// NVML's numbers for the clocks and the sensor asked for (nvml.h).
const CLOCK_SM: c_int = 1;
const CLOCK_MEMORY: c_int = 2;
const SENSOR_GPU: c_int = 0;

/// What holds clocks back, by bit (nvml.h, nvmlClocksEventReason*).
const REASONS: [(u64, &str); 9] = [
    (0x1, "idle"),
    (0x2, "application clocks setting"),
    (0x4, "power cap"),
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "software thermal slowdown"),
    (0x40, "hardware thermal slowdown"),
    (0x80, "power brake"),
    (0x100, "display clock setting"),
];

/// NVML, initialised.
pub struct Nvml(libloading::Library);

/// NVML with a handle of one GPU.
pub struct Sensors {
    nvml: Nvml,
    device: Device,
}

impl Nvml {
    /// Loads the driver's library.
    pub fn load() -> Option<Self> {
        // SAFETY: loading runs the library's constructors; NVML is the driver's own and is made to be loaded so.
        let library = unsafe { libloading::Library::new("libnvidia-ml.so.1") }.ok()?;
        // SAFETY: the type is that of nvml.h.
        let status = unsafe {
            let init: libloading::Symbol<unsafe extern "C" fn() -> Status> = library.get(b"nvmlInit_v2\0").ok()?;
            init()
        };
        (status == 0).then_some(Self(library))
    }

    /// The compute capability (75 for 7.5) of every GPU of the machine, where it is one: known a tenth of a second before
    /// the CUDA driver has started.
    pub fn common_arch(&self) -> Option<u32> {
        let mut count: c_uint = 0;
        // SAFETY: the types are those that nvml.h gives these names; pointers are to live values.
        unsafe {
            let counted: libloading::Symbol<unsafe extern "C" fn(*mut c_uint) -> Status> =
                self.0.get(b"nvmlDeviceGetCount_v2\0").ok()?;
            let by_index: libloading::Symbol<unsafe extern "C" fn(c_uint, *mut Device) -> Status> =
                self.0.get(b"nvmlDeviceGetHandleByIndex_v2\0").ok()?;
            let capability: libloading::Symbol<unsafe extern "C" fn(Device, *mut c_int, *mut c_int) -> Status> =
                self.0.get(b"nvmlDeviceGetCudaComputeCapability\0").ok()?;
            if counted(&raw mut count) != 0 {
                return None;
            }
            let arch = |index: c_uint| {
                let (mut device, mut major, mut minor): (Device, c_int, c_int) = (std::ptr::null_mut(), 0, 0);
                let known =
                    by_index(index, &raw mut device) == 0 && capability(device, &raw mut major, &raw mut minor) == 0;
                known.then_some((major * 10 + minor).unsigned_abs())
            };
            let first = arch(0)?;
            (1..count).all(|index| arch(index) == Some(first)).then_some(first)
        }
    }

    /// Finds a GPU by its UUID (`GPU-...`).
    pub fn sensors(self, uuid: &str) -> Option<Sensors> {
        let uuid = CString::new(uuid).ok()?;
        let mut device: Device = std::ptr::null_mut();
        // SAFETY: the type is that of nvml.h; both pointers are to live values.
        let status = unsafe {
            let by_uuid: libloading::Symbol<unsafe extern "C" fn(*const c_char, *mut Device) -> Status> =
                self.0.get(b"nvmlDeviceGetHandleByUUID\0").ok()?;
            by_uuid(uuid.as_ptr(), &raw mut device)
        };
        (status == 0).then_some(Sensors { nvml: self, device })
    }
}

impl Sensors {
    /// The clocks now.
    pub fn clocks(&self) -> Option<Clocks> {
        let held_by = reasons(self.reasons()?);
        Some(Clocks {
            sm_mhz: self.figure(b"nvmlDeviceGetClockInfo\0", CLOCK_SM)?,
            memory_mhz: self.figure(b"nvmlDeviceGetClockInfo\0", CLOCK_MEMORY)?,
            temperature: self.figure(b"nvmlDeviceGetTemperature\0", SENSOR_GPU)?,
            held_by,
        })
    }

    fn figure(&self, name: &[u8], which: c_int) -> Option<u32> {
        let mut value: c_uint = 0;
        // SAFETY: both functions asked for have this type in nvml.h.
        let status = unsafe {
            let get: libloading::Symbol<unsafe extern "C" fn(Device, c_int, *mut c_uint) -> Status> =
                self.nvml.0.get(name).ok()?;
            get(self.device, which, &raw mut value)
        };
        (status == 0).then_some(value)
    }

    fn reasons(&self) -> Option<u64> {
        // Drivers before 535 know it by its older name.
        let names: [&[u8]; 2] =
            [b"nvmlDeviceGetCurrentClocksEventReasons\0", b"nvmlDeviceGetCurrentClocksThrottleReasons\0"];
        let mut value: c_ulonglong = 0;
        // SAFETY: both names have this type in nvml.h.
        let status = unsafe {
            type Get = unsafe extern "C" fn(Device, *mut c_ulonglong) -> Status;
            let get: libloading::Symbol<Get> = names.iter().find_map(|name| self.nvml.0.get(*name).ok())?;
            get(self.device, &raw mut value)
        };
        (status == 0).then_some(value)
    }
}

/// The reasons in words.
fn reasons(bits: u64) -> Vec<String> {
    REASONS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, words)| (*words).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_words() {
        assert_eq!(reasons(0x24), ["power cap", "software thermal slowdown"]);
        assert!(reasons(0).is_empty());
    }
}
