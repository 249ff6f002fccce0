#!/usr/bin/env python3
"""Times whole grades of one submission against their floors, and prints ratios.

    grader/benches/whole.py [--grader target/release/heat-grader] [--runs 3] [--only quick,again] [SUBMISSION ...]

A floor is what the machine cannot do without. `compilers`: nvcc -ptx and ptxas alone, by hand, on the same file, without walls.
`cores`: the processor time of the whole grade, its compilers and workers, over the number of cores. `GPU`: the time in which
the GPU was busy, sampled by nvidia-smi. The floor of a grade is the longest of them, and on engine cuda the sum of compilers
and GPU. Medians of the runs; each row's figures are those of its median run. `first` is when the first sign of life appears on
a terminal.
"""

import argparse
import json
import os
import pathlib
import pty
import resource
import select
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
OFF = {"HEAT_GRADER_NO_CACHE": "1"}

# Name, command line, environment, what the cache holds beforehand.
ROWS = [
    ("quick", ["check", "--engine", "cpu"], OFF, "nothing"),
    ("compiled", ["check", "--engine", "cpu", "--fresh"], {}, "compiled"),
    ("again", ["check", "--engine", "cpu"], {}, "checked"),
    ("full", ["check", "--engine", "cpu", "--full"], OFF, "nothing"),
    ("grade", ["grade", "--engine", "cpu"], OFF, "nothing"),
    ("cuda", ["grade", "--engine", "cuda"], OFF, "nothing"),
    ("cuda compiled", ["grade", "--engine", "cuda"], {}, "compiled"),
]


class GpuBusy:
    """Seconds in which the GPU ran a kernel, from nvidia-smi; None where there is none."""

    def __init__(self):
        self.samples, self.process, self.began = [], None, time.monotonic()
        if shutil.which("nvidia-smi"):
            query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-i", "0", "-lms", "50"]
            self.process = subprocess.Popen(query, stdout=subprocess.PIPE, text=True)
            threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.samples.append(int(line))

    def stop(self):
        if self.process is None:
            return None
        self.process.terminate()
        self.process.wait()
        wall = time.monotonic() - self.began
        return wall * sum(self.samples) / (100 * len(self.samples)) if self.samples else None


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def watched(command, environment):
    """Runs a command with a terminal for its standard error: its exit code, and seconds to its first words and its end."""
    master, slave = pty.openpty()
    began, first = time.monotonic(), None
    child = subprocess.Popen(command, env={**os.environ, **environment}, stdout=slave, stderr=slave, stdin=subprocess.DEVNULL)
    os.close(slave)
    while True:
        ready, _, _ = select.select([master], [], [], 0.02)
        if not ready:
            if child.poll() is not None:
                break
            continue
        try:
            said = os.read(master, 65536)
        except OSError:
            break
        if said and first is None:
            first = time.monotonic() - began
    code = child.wait()
    os.close(master)
    return code, first, time.monotonic() - began


def asks_memory(words, environment):
    return words[0] == "check" and "--fresh" not in words and environment is not OFF


def once(grader, words, environment, submission, report):
    """One grade: its figures in seconds."""
    busy, before = GpuBusy(), children()
    # A check with a report never answers from memory.
    wanted = [] if asks_memory(words, environment) else ["--report", str(report)]
    code, first, wall = watched([str(grader), *words, str(submission), *wanted], environment)
    cpu = children() - before
    told = json.loads(report.read_text(encoding="utf-8"))["durations"] if wanted else {}
    return {"code": code, "first": first, "wall": wall, "cpu": cpu, "gpu": busy.stop(), **told}


def compilers(submission, arch):
    """Seconds that nvcc and ptxas take alone; None where there is no nvcc."""
    homes = [pathlib.Path(os.environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    nvcc = shutil.which("nvcc", path=os.pathsep.join([*map(str, homes), os.environ["PATH"], "/usr/local/cuda/bin"]))
    if nvcc is None:
        return None
    ptxas = pathlib.Path(nvcc).resolve().parent / "ptxas"
    source = submission / "heat.cu" if submission.is_dir() else submission
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        flags = ["-std=c++17", "-O3", "-ptx", "-lineinfo", f"-arch=sm_{arch}", "-allow-unsupported-compiler"]
        made = subprocess.run([nvcc, *flags, source.resolve(), "-o", "heat.ptx"], cwd=folder, capture_output=True)
        if made.returncode == 0:
            subprocess.run([ptxas, f"-arch=sm_{arch}", "heat.ptx", "-o", "heat.cubin"], cwd=folder, capture_output=True)
        return time.monotonic() - began


def row(name, words, environment, grader, submission, options, alone):
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        runs = [once(grader, words, environment, submission, report) for _ in range(options.runs)]
    middle = sorted(runs, key=lambda run: run["wall"])[(len(runs) - 1) // 2]
    parts = {"cores": middle["cpu"] / cores}
    if not name.startswith(("compiled", "again", "cuda compiled")) and alone:
        parts["compilers"] = alone
    if "cuda" in words:
        parts = {"compilers + GPU": parts.get("compilers", 0.0) + (middle["gpu"] or 0.0)}
    of, floor = max(parts.items(), key=lambda part: part[1])
    spread = max(run["wall"] for run in runs) - min(run["wall"] for run in runs)
    stages = " ".join(f"{stage} {middle[stage]:.2f}" for stage in ("compile", "trials") if stage in middle)
    print(
        f"{submission.name:<22}{name:<14}exit {middle['code']}  {middle['wall']:7.2f} s (spread {spread:.2f})  floor {floor:7.2f} s"
        f" ({of})  ratio {middle['wall'] / floor if floor else float('nan'):5.2f}  first {middle['first'] or 0.0:.2f} s  {stages}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("submissions", nargs="*", type=pathlib.Path, default=[ROOT / "fixtures/right/plain"])
    parser.add_argument("--grader", type=pathlib.Path, default=ROOT / "target/release/heat-grader")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="rows, by name, with commas between them; all of them when empty")
    parser.add_argument("--arch", type=int, default=75, help="what the compilers alone compile for: 75 is sm_75")
    options = parser.parse_args()
    wanted = [name.strip() for name in options.only.split(",") if name.strip()]
    grader = options.grader.resolve()
    has_gpu = shutil.which("nvidia-smi") is not None
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    for submission in options.submissions:
        alone = [took for took in (compilers(submission, options.arch) for _ in range(options.runs)) if took]
        alone = statistics.median(alone) if alone else None
        if alone:
            print(f"{submission.name:<22}compilers alone {alone:.2f} s")
        for name, words, environment, beforehand in ROWS:
            if (wanted and name not in wanted) or ("cuda" in words and not has_gpu):
                continue
            if beforehand != "nothing":
                # What the row is to find in the cache.
                again = [*words, "--fresh"] if beforehand == "checked" else words
                report = ["--report", os.devnull] if words[0] == "grade" else []
                subprocess.run([grader, *again, submission, *report], capture_output=True)
            row(name, words, environment, grader, submission, options, alone)


if __name__ == "__main__":
    main()
