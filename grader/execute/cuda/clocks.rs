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

/// NVML with a handle of one GPU.
pub struct Nvml {
    library: libloading::Library,
    device: Device,
}

impl Nvml {
    /// Loads NVML and finds the GPU by its UUID (`GPU-...`).
    pub fn open(uuid: &str) -> Option<Self> {
        // SAFETY: loading runs the library's constructors; NVML is the driver's own and is made to be loaded so.
        let library = unsafe { libloading::Library::new("libnvidia-ml.so.1") }.ok()?;
        let uuid = CString::new(uuid).ok()?;
        let mut device: Device = std::ptr::null_mut();
        // SAFETY: the types are those that nvml.h gives these names; both pointers are to live values.
        unsafe {
            let init: libloading::Symbol<unsafe extern "C" fn() -> Status> = library.get(b"nvmlInit_v2\0").ok()?;
            let by_uuid: libloading::Symbol<unsafe extern "C" fn(*const c_char, *mut Device) -> Status> =
                library.get(b"nvmlDeviceGetHandleByUUID\0").ok()?;
            if init() != 0 || by_uuid(uuid.as_ptr(), &raw mut device) != 0 {
                return None;
            }
        }
        Some(Self { library, device })
    }

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
                self.library.get(name).ok()?;
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
            let get: libloading::Symbol<Get> = names.iter().find_map(|name| self.library.get(*name).ok())?;
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
