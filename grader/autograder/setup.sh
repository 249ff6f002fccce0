#!/usr/bin/env bash
# Gradescope runs this once, as root, while it builds the image: it installs what is missing, builds heat-grader from
# the sources beside it and has it fetch the CUDA compiler, so that no grading run needs the network.
#
# setup.sh STEP... makes single steps. AUTOGRADER_ROOT names another root than /autograder, to try it out.
set -euo pipefail
exec </dev/null

root=${AUTOGRADER_ROOT:-/autograder}
sources=$root/source/heat-grader
grader=$root/bin/heat-grader
export HEAT_GRADER_CACHE=$root/cache

say() { printf '%s\n' "$*"; }

# What the grader needs besides Rust.
packages() {
    local missing=()
    command -v g++ >/dev/null || missing+=(g++)
    python3 -m pip --version >/dev/null 2>&1 || missing+=(python3 python3-pip)
    command -v curl >/dev/null || missing+=(ca-certificates curl)
    if ((${#missing[@]})); then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
    fi
}

# Whether this rustc is at least what Cargo.toml asks for.
new_enough() {
    local needed found
    needed=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$sources/Cargo.toml")
    found=$(rustc --version 2>/dev/null | cut -d ' ' -f 2) || return 1
    [[ -n $found && $(printf '%s\n' "$needed" "$found" | sort -V | head -n 1) == "$needed" ]]
}

# The image's own Rust where that will do, else one under the root.
choose_rust() {
    if ! new_enough; then
        export RUSTUP_HOME=$root/rust/rustup CARGO_HOME=$root/rust/cargo
        PATH=$CARGO_HOME/bin:$PATH
    fi
}

# Ubuntu's own Rust is too old; newer releases have rustup as a package, for the others there is its installer.
rust() {
    choose_rust
    if new_enough; then return; fi
    if apt-cache show rustup >/dev/null 2>&1; then
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rustup
        rustup set profile minimal
        rustup default stable
    else
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y -q --profile minimal --no-modify-path
    fi
}

build() {
    choose_rust
    cargo build --release --locked --bin heat-grader --manifest-path "$sources/Cargo.toml" --target-dir "$root/build"
    install -D -m 755 "$root/build/release/heat-grader" "$grader"
}

# Grades a kernel that is right: that fetches the CUDA compiler, and an image that cannot grade is not built.
prove() {
    local report=$root/setup-report.json
    "$grader" doctor
    "$grader" check "$sources/fixtures/right/plain" --engine cpu --outer-sandbox --report "$report"
    if ! grep -q '"nvcc": "' "$report"; then
        say "no CUDA compiler could be fetched: every submission would be ungraded"
        return 1
    fi
    say "The container is the sandbox (--outer-sandbox); Landlock and seccomp are used inside it where it lets them."
}

# An image is downloaded for every run.
tidy() {
    rm -rf "$root/build" "$root/rust" "$root/setup-report.json"
}

if (($#)); then steps=("$@"); else steps=(packages rust build prove tidy); fi
for step in "${steps[@]}"; do
    say "== $step"
    "$step"
done
