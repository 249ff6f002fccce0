//! What each instruction of PTX reads from global memory. What is not listed here cannot be counted.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::NotCountable;
use super::text::{Instruction, NAME};
use crate::compile::diagnostics::pattern;

/// What an instruction reads from global memory when its guard lets it run, bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    Nothing,
    Fixed(u64),
    /// As many if the address, a generic one, lies in global memory.
    Generic {
        address: String,
        bytes: u64,
    },
    /// As many as an operand says: a register or a number.
    Operand(String),
    /// `cp.async` with a fourth operand: fewer bytes, or a predicate that says to read none.
    Partial {
        operand: String,
        bytes: u64,
    },
}

/// Instructions that read no memory but shared, local and parameters, or that only write.
const READ_NOTHING: &str = "abs activemask add addc alloca and applypriority bar barrier bfe bfi bfind bmsk bra brev brkpt brx \
    clz cnot copysign cos createpolicy cvt cvta discard div dp2a dp4a elect ex2 exit fence fma fns getctarank \
    griddepcontrol isspacep ldmatrix lg2 lop3 mad mad24 madc mapa match max mbarrier membar min mma mov movmatrix mul \
    mul24 nanosleep neg not or pmevent popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg \
    setp shf shfl shl shr sin slct sqrt st stackrestore stacksave stmatrix sub subc szext tanh testp trap vabsdiff \
    vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4 vshl \
    vshr vsub vsub2 vsub4 xor";

/// Functions of the driver that a kernel may call; none reads the grids.
pub const SYSTEM: [&str; 4] = ["vprintf", "__assertfail", "malloc", "free"];

const SCOPES: &str = "cta|cluster|gpu|sys";
const HINTS: &str = r"L1::\w+|L2::\w+|level::\w+";

/// What `instruction` reads. `functions` are those with a body, which do their own counting.
pub fn read_by(instruction: &Instruction, functions: &BTreeSet<&str>, line: Option<u32>) -> Result<Read, NotCountable> {
    static FREE: LazyLock<BTreeSet<&str>> = LazyLock::new(|| READ_NOTHING.split_whitespace().collect());
    let opcode = instruction.opcode.as_str();
    let read = match opcode {
        "ld" | "ldu" => load(instruction),
        "atom" => atomic(instruction),
        "cp" => copy(instruction),
        "call" => return called(instruction, functions, line),
        _ if FREE.contains(opcode) => Some(Read::Nothing),
        _ => None,
    };
    read.ok_or_else(|| NotCountable::ordinary(named(instruction), line))
}

/// The construct as a learner knows it.
fn named(instruction: &Instruction) -> String {
    let kind = match instruction.opcode.as_str() {
        "tex" | "tld4" | "txq" => "a texture read",
        "suld" | "sust" | "sured" | "suq" | "istypep" => "a surface access",
        "wmma" | "wgmma" | "tcgen05" => "a tensor-core instruction",
        "multimem" => "an access to multicast memory",
        "cp" if instruction.has("tensor") => "a tensor copy",
        "ld" | "ldu" | "atom" | "cp" => "a read in a form that the grader does not know",
        _ => "an instruction that the grader does not know",
    };
    format!("{kind} ({})", instruction.spelt())
}

/// Bytes of a value: exactly one type, at most one vector.
fn width(instruction: &Instruction) -> Option<u64> {
    static TYPE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:[busf](8|16|32|64|128)|bf(16))(x2)?$"));
    let mut types = instruction.modifiers.iter().filter_map(|modifier| TYPE.captures(modifier));
    let (found, None) = (types.next()?, types.next()) else { return None };
    let bits: u64 = found.get(1).or(found.get(2))?.as_str().parse().ok()?;
    let pair = if found.get(3).is_some() { 2 } else { 1 };
    let mut vectors = instruction.modifiers.iter().filter_map(|modifier| match modifier.as_str() {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    });
    let (vector, None) = (vectors.next().unwrap_or(1), vectors.next()) else { return None };
    Some(bits / 8 * pair * vector)
}

/// Whether every modifier is a type, a vector or one of these.
fn only(instruction: &Instruction, allowed: &Regex) -> bool {
    static SIZES: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:[busf]\d+|b?f16x2|bf16|v[248])$"));
    instruction.modifiers.iter().all(|modifier| SIZES.is_match(modifier) || allowed.is_match(modifier))
}

/// The state space; `None` inside when it is generic, outside when there are several.
fn space(instruction: &Instruction) -> Option<Option<&str>> {
    const SPACES: [&str; 5] = ["global", "shared", "local", "param", "const"];
    let base = |modifier: &'_ str| SPACES.into_iter().find(|space| modifier.split("::").next() == Some(*space));
    let mut spaces = instruction.modifiers.iter().filter_map(|modifier| base(modifier));
    let first = spaces.next();
    spaces.next().is_none().then_some(first)
}

fn load(instruction: &Instruction) -> Option<Read> {
    static ALLOWED: LazyLock<Regex> = LazyLock::new(|| {
        let spaces = "global|local|const|shared(?:::cta|::cluster)?|param(?:::entry|::func)?";
        pattern(&format!("^(?:weak|relaxed|acquire|volatile|mmio|nc|unified|c[agsv]|lu|{SCOPES}|{spaces}|{HINTS})$"))
    });
    reading(instruction, &ALLOWED)
}

fn atomic(instruction: &Instruction) -> Option<Read> {
    static ALLOWED: LazyLock<Regex> = LazyLock::new(|| {
        let operations = "and|or|xor|cas|exch|add|inc|dec|min|max";
        let orders = "relaxed|acquire|release|acq_rel|noftz";
        pattern(&format!("^(?:{operations}|{orders}|{SCOPES}|global|shared(?:::cta|::cluster)?|{HINTS})$"))
    });
    reading(instruction, &ALLOWED)
}

fn reading(instruction: &Instruction, allowed: &Regex) -> Option<Read> {
    let bytes = width(instruction).filter(|_| only(instruction, allowed))?;
    match space(instruction)? {
        Some("global") => Some(Read::Fixed(bytes)),
        Some(_) => Some(Read::Nothing),
        None => {
            let address = instruction.operands.get(1)?.strip_prefix('[')?.strip_suffix(']')?.trim().to_owned();
            Some(Read::Generic { address, bytes })
        }
    }
}

fn copy(instruction: &Instruction) -> Option<Read> {
    static ALLOWED: LazyLock<Regex> = LazyLock::new(|| {
        let spaces = "global|shared(?:::cta|::cluster)?";
        pattern(&format!(
            "^(?:async|bulk|ca|cg|bulk_group|mbarrier::complete_tx::bytes|multicast::cluster|cp_mask|{spaces}|{HINTS})$"
        ))
    });
    let waits = ["commit_group", "wait_group", "wait_all", "arrive"];
    if instruction.has("tensor") || !instruction.has("async") {
        None
    } else if ["reduce", "prefetch"].into_iter().chain(waits).any(|other| instruction.has(other)) {
        Some(Read::Nothing)
    } else if !instruction.modifiers.iter().all(|own| ALLOWED.is_match(own)) {
        None
    } else if instruction.has("bulk") {
        // One of the two says how the copy ends, and with it which way it goes.
        match (instruction.has("mbarrier::complete_tx::bytes"), instruction.has("bulk_group")) {
            (true, false) if instruction.has("global") => Some(Read::Operand(instruction.operands.get(2)?.clone())),
            (true, false) | (false, true) => Some(Read::Nothing),
            _ => None,
        }
    } else {
        small_copy(instruction)
    }
}

/// `cp.async.ca.shared.global [to], [from], 16{, fewer or predicate}{, policy}`
fn small_copy(instruction: &Instruction) -> Option<Read> {
    let bytes = instruction.operands.get(2)?.parse().ok().filter(|bytes| [4, 8, 16].contains(bytes))?;
    let policy = usize::from(instruction.has("L2::cache_hint"));
    match instruction.operands.len().checked_sub(3 + policy)? {
        0 => Some(Read::Fixed(bytes)),
        1 => Some(Read::Partial { operand: instruction.operands.get(3)?.clone(), bytes }),
        _ => None,
    }
}

/// `call.uni (result), name, (arguments)`
fn called(instruction: &Instruction, functions: &BTreeSet<&str>, line: Option<u32>) -> Result<Read, NotCountable> {
    static TARGET: LazyLock<Regex> = LazyLock::new(|| {
        let list = r"\([^()]*\)";
        pattern(&format!(r"^(?:{list}\s*,\s*)?({NAME})(?:\s*,\s*{list})?$"))
    });
    let text = instruction.operands.join(", ");
    let target = TARGET.captures(&text).map(|found| found[1].to_owned());
    match target {
        Some(target) if functions.contains(target.as_str()) || SYSTEM.contains(&target.as_str()) => Ok(Read::Nothing),
        Some(target) if !target.starts_with('%') => {
            let target: String = target.chars().take(60).collect();
            Err(NotCountable::ordinary(format!("a call of a function that is not in heat.cu ({target})"), line))
        }
        _ => Err(NotCountable::ordinary("a call through a function pointer", line)),
    }
}
