//! Signals in the worker: a wild access, an abort, or the grader asking where a launch stands. The handler writes one
//! frame and ends the process.

use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

use anyhow::{Result, bail};

use super::lane;

/// Bytes of the alternate stack of each lane's OS thread.
const ALTERNATE: usize = 64 * 1024;
/// Words of the stack searched for return addresses into heat.cu.
const SEARCHED: usize = 256;
/// Most of them that are told.
const MOST_CODES: usize = 8;
/// How often the question may come at a moment in which the lane's own code does not tell the line.
const MOST_UNCLEAR: usize = 20;
const MOST_LANES: usize = 256;

static RESULT: AtomicI32 = AtomicI32::new(-1);
static BASE: AtomicUsize = AtomicUsize::new(0);
static CODE_START: AtomicUsize = AtomicUsize::new(0);
static CODE_BYTES: AtomicUsize = AtomicUsize::new(0);
static LANES: [AtomicU64; MOST_LANES] = [const { AtomicU64::new(0) }; MOST_LANES];
static LANE_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Lanes that the grader's question has gone to.
static ASKED: AtomicUsize = AtomicUsize::new(0);
static UNCLEAR: AtomicUsize = AtomicUsize::new(0);

/// Signals that end a run. SIGUSR1 is the grader's question.
const SIGNALS: [i32; 8] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGUSR1,
];
/// Where siginfo_t of SIGSYS holds the number of the system call (`si_syscall`, behind `si_call_addr`).
const SYSTEM_CALL: usize = 24;

/// Installs the handler; frames go to `result`, code addresses are told relative to the object at `base`, whose machine
/// code has the offsets `code`.
pub fn install(result: RawFd, base: usize, code: &Range<u64>) -> Result<()> {
    RESULT.store(result, Ordering::Relaxed);
    BASE.store(base, Ordering::Relaxed);
    CODE_START.store(base + code.start as usize, Ordering::Relaxed);
    CODE_BYTES.store((code.end - code.start) as usize, Ordering::Relaxed);
    for signal in SIGNALS {
        // SAFETY: the handler is async-signal-safe: atomics, raw writes, _exit.
        let failed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut()) != 0
        };
        if failed {
            bail!("cannot install the handler of signal {signal}");
        }
    }
    Ok(())
}

/// Gives the calling OS thread, a lane, its alternate stack. The stack is never freed: a lane lives as long as its trial,
/// and a handler may be running on it when the process ends.
pub fn enter_lane() -> Result<()> {
    thread_local!(static READY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
    if READY.replace(true) {
        return Ok(());
    }
    let stack = Box::leak(vec![0u8; ALTERNATE].into_boxed_slice());
    let alternate = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: ALTERNATE };
    // SAFETY: the stack is leaked, so it outlives every handler.
    if unsafe { libc::sigaltstack(&raw const alternate, std::ptr::null_mut()) } != 0 {
        bail!("cannot set an alternate signal stack");
    }
    let index = LANE_COUNT.fetch_add(1, Ordering::Relaxed);
    // SAFETY: gettid has no failure.
    LANES[index % MOST_LANES].store(unsafe { libc::syscall(libc::SYS_gettid) } as u64, Ordering::Relaxed);
    Ok(())
}

/// Blocks the grader's question on the calling OS thread, which is no lane.
pub fn keep_question_away() {
    // SAFETY: the set lives on this stack; the calls only change this thread's mask.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let lane = lane::current();
    // SAFETY: the kernel passes valid pointers; the lane belongs to this OS thread.
    unsafe {
        let running = !lane.is_null() && (*lane).running();
        if signal == libc::SIGUSR1 && !running && pass_on() {
            return;
        }
        let address = match signal {
            libc::SIGUSR1 => 0,
            libc::SIGSYS => info.byte_add(SYSTEM_CALL).cast::<i32>().read() as usize,
            _ => (*info).si_addr() as usize,
        };
        let registers = &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let (instruction, stack) =
            (registers[libc::REG_RIP as usize] as usize, registers[libc::REG_RSP as usize] as usize);
        let asked_from = if running { (*lane).asked_from.load(Ordering::Relaxed) } else { 0 };
        let unclear = running && asked_from == 0 && !inside(instruction);
        if signal == libc::SIGUSR1 && unclear && UNCLEAR.fetch_add(1, Ordering::Relaxed) < MOST_UNCLEAR {
            // On the way into a hook or out of it, whose frames are large enough to hold old return addresses: the grader
            // asks again.
            ASKED.store(0, Ordering::Relaxed);
            return;
        }
        let codes = match (signal, asked_from) {
            (libc::SIGSYS, _) => Codes::of(caller(stack)),
            (_, 0) => codes_in_object(instruction, stack),
            (_, address) => Codes::of(address - BASE.load(Ordering::Relaxed)),
        };
        let mut frame = Frame::default();
        frame.text("{\"signal\":{\"signal\":");
        frame.number(signal as u64);
        frame.text(",\"address\":");
        frame.number(address as u64);
        frame.text(",\"codes\":[");
        for (at, &code) in codes.offsets[..codes.count].iter().enumerate() {
            frame.text(if at == 0 { "" } else { "," });
            frame.number(code as u64);
        }
        frame.text("],\"actor\":");
        if running {
            let actor = (*lane).actor();
            frame.text("{\"block\":");
            frame.triple(actor.block);
            frame.text(",\"thread\":");
            frame.triple(actor.thread);
            frame.text("}");
        } else {
            frame.text("null");
        }
        let overflow = running && (*lane).stacks().guard_hit(address);
        frame.text(if overflow { ",\"stack_overflow\":true}}" } else { ",\"stack_overflow\":false}}" });
        frame.send();
        libc::_exit(1);
    }
}

/// Hands the grader's question to the next lane that has not been asked; false when there is none left.
fn pass_on() -> bool {
    loop {
        let index = ASKED.fetch_add(1, Ordering::Relaxed);
        if index >= LANE_COUNT.load(Ordering::Relaxed).min(MOST_LANES) {
            return false;
        }
        let thread = LANES[index].load(Ordering::Relaxed) as i32;
        // SAFETY: plain system calls.
        unsafe {
            if i64::from(thread) != libc::syscall(libc::SYS_gettid)
                && libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) == 0
            {
                return true;
            }
        }
    }
}

/// Whether an address is in the object's machine code.
fn inside(address: usize) -> bool {
    address.wrapping_sub(CODE_START.load(Ordering::Relaxed)) < CODE_BYTES.load(Ordering::Relaxed)
}

/// Return addresses as offsets in the object, the innermost first.
#[derive(Default)]
struct Codes {
    offsets: [usize; MOST_CODES],
    count: usize,
}

impl Codes {
    fn of(offset: usize) -> Self {
        let mut codes = Self::default();
        codes.push(offset);
        codes
    }

    fn push(&mut self, offset: usize) {
        if self.count < MOST_CODES {
            self.offsets[self.count] = offset;
            self.count += 1;
        }
    }
}

/// The offset in the object of the call of libc's function around a system call; 0 when the call came from elsewhere. Any
/// other return address on the stack may be an old one.
///
/// # Safety
/// `stack` is the stack pointer of a thread in a system call that was trapped.
unsafe fn caller(stack: usize) -> usize {
    // SAFETY: a function that was called has a return address on the stack.
    let value = unsafe { *(stack as *const usize) };
    if inside(value) { value - BASE.load(Ordering::Relaxed) } else { 0 }
}

/// The interrupted code, when it is the object's, and then the return addresses on the stack: what was interrupted may be one
/// of the object's stubs, a hook, or libc, none of which has a line of heat.cu.
///
/// # Safety
/// `stack` is the interrupted thread's stack pointer.
unsafe fn codes_in_object(instruction: usize, stack: usize) -> Codes {
    let base = BASE.load(Ordering::Relaxed);
    let mut codes = Codes::default();
    if inside(instruction) {
        codes.push(instruction - base + 1);
    }
    let lane = lane::current();
    // SAFETY: only words of the coroutine's own stack are read, below its top.
    unsafe {
        if lane.is_null() || !(*lane).stacks().contain(stack) {
            return codes;
        }
        for word in 0..SEARCHED {
            let at = stack + word * 8;
            if codes.count == MOST_CODES || !(*lane).stacks().contain(at) || (*lane).stacks().guard_hit(at) {
                break;
            }
            let value = *(at as *const usize);
            if inside(value) {
                codes.push(value - base);
            }
        }
    }
    codes
}

/// A frame put together without allocation.
struct Frame {
    bytes: [u8; 512],
    length: usize,
}

impl Default for Frame {
    fn default() -> Self {
        Self { bytes: [0; 512], length: 12 }
    }
}

impl Frame {
    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.length < self.bytes.len() {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
    }

    fn number(&mut self, mut value: u64) {
        let mut digits = [0u8; 20];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        for &digit in &digits[start..] {
            if self.length < self.bytes.len() {
                self.bytes[self.length] = digit;
                self.length += 1;
            }
        }
    }

    fn triple(&mut self, [x, y, z]: [u32; 3]) {
        self.text("[");
        self.number(u64::from(x));
        self.text(",");
        self.number(u64::from(y));
        self.text(",");
        self.number(u64::from(z));
        self.text("]");
    }

    fn send(&mut self) {
        let header = (self.length - 12) as u32;
        self.bytes[..4].copy_from_slice(&header.to_le_bytes());
        // SAFETY: the bytes are ours; a failed write leaves nothing to do.
        unsafe { libc::write(RESULT.load(Ordering::Relaxed), self.bytes.as_ptr().cast(), self.length) };
    }
}
