//! The CUDA headers that heat.cu is compiled with for the host: ours, under every name by which it may include them.

use std::fs;
use std::io;
use std::path::Path;

/// Our CUDA headers, by the name under which heat.cu may include them.
const HEADERS: [(&str, &str); 12] = [
    ("cuda_runtime.h", include_str!("cuda_on_host/cuda_runtime.h")),
    ("math_constants.h", include_str!("cuda_on_host/math_constants.h")),
    ("hg_math.h", include_str!("cuda_on_host/hg_math.h")),
    ("hg_guards.h", include_str!("cuda_on_host/hg_guards.h")),
    ("hg_atomics.h", include_str!("cuda_on_host/hg_atomics.h")),
    ("hg_host_api.h", include_str!("cuda_on_host/hg_host_api.h")),
    ("cooperative_groups.h", include_str!("cuda_on_host/cooperative_groups.h")),
    ("cuda_pipeline.h", include_str!("cuda_on_host/cuda_pipeline.h")),
    ("hg_assert.h", include_str!("cuda_on_host/hg_assert.h")),
    ("hg_views.h", include_str!("cuda_on_host/hg_views.h")),
    ("hg_target.h", include_str!("cuda_on_host/hg_target.h")),
    ("hg_async.h", include_str!("cuda_on_host/hg_async.h")),
];

/// Headers of the toolkit by the one of ours that stands for them.
const ALIASES: [(&str, &[&str]); 6] = [
    (
        "cuda_runtime.h",
        &[
            "cuda_runtime_api.h",
            "device_launch_parameters.h",
            "device_functions.h",
            "device_atomic_functions.h",
            "sm_20_intrinsics.h",
            "vector_types.h",
            "vector_functions.h",
            "builtin_types.h",
            "driver_types.h",
            "host_defines.h",
            "math_functions.h",
            "cuda_profiler_api.h",
            "cuda_fp16.h",
            "cuda_bf16.h",
            "crt/device_functions.h",
            "crt/host_defines.h",
        ],
    ),
    ("cuda_pipeline.h", &["cuda_pipeline_primitives.h"]),
    (
        "cooperative_groups.h",
        &["cooperative_groups/memcpy_async.h", "cooperative_groups/reduce.h", "cooperative_groups/scan.h"],
    ),
    ("hg_target.h", &["nv/target"]),
    ("hg_views.h", &["cuda/std/span", "cuda/std/mdspan"]),
    ("hg_async.h", &["cuda/barrier", "cuda/pipeline", "cuda/version", "cuda_awbarrier.h"]),
];

/// Headers of the C++ library that heat.cu may include as `cuda/std/...`, where `cuda::std` is `std`.
const STANDARD: [&str; 14] = [
    "algorithm",
    "array",
    "atomic",
    "cassert",
    "cmath",
    "complex",
    "cstddef",
    "cstdint",
    "cstring",
    "functional",
    "limits",
    "tuple",
    "type_traits",
    "utility",
];

/// Writes all of them into a folder that g++ looks for headers in.
pub(super) fn write_headers(folder: &Path) -> io::Result<()> {
    let write = |name: &str, text: &str| -> io::Result<()> {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)
    };
    for (name, text) in HEADERS {
        write(name, text)?;
    }
    // Only this one says which version of the driver's interface it is.
    write("cuda.h", "#pragma once\n#define CUDA_VERSION 13000\n#include <cuda_runtime.h>\n")?;
    for (target, names) in ALIASES {
        for name in names {
            write(name, &format!("#pragma once\n#include <{target}>\n"))?;
        }
    }
    for name in ["cassert", "assert.h"] {
        // No #pragma once: each inclusion answers to NDEBUG anew, as the standard has it.
        write(name, "#include <hg_assert.h>\n")?;
    }
    for name in STANDARD {
        write(&format!("cuda/std/{name}"), &format!("#pragma once\n#include <hg_async.h>\n#include <{name}>\n"))?;
    }
    Ok(())
}
