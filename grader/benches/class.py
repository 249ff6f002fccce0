#!/usr/bin/env python3
"""Grades a made-up class with `heat-grader batch` and compares the wall time with its floor.

    grader/benches/class.py --grader target/release/heat-grader --size 300 [--quick] [--engine cuda|cpu] [--seed 1] [--keep DIR]

The class is drawn from fixtures/right and fixtures/wrong: each learner gets one of them, with the kernel's names changed, so
that no two files are the same. The floor is what the machine cannot do without: the processor time that the batch used over
the number of cores, or the time the GPU was busy, whichever is longer. GPU time is sampled from nvidia-smi.
"""

import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fixtures():
    """The fixtures that compile and run, as (name, text); hostile and slow ones are no part of an ordinary class."""
    found = []
    for kind in ("right", "wrong"):
        for folder in sorted((ROOT / "fixtures" / kind).iterdir()):
            source = folder / "heat.cu"
            if source.is_file():
                found.append((f"{kind}_{folder.name}", source.read_text(encoding="utf-8", errors="surrogateescape")))
    return found


def renamed(text, learner):
    """The same program with a comment of the learner's and locals of other names: another file, the same verdict."""
    names = {"centre": f"mid_{learner % 97}", "firstRow": f"row0_{learner % 89}", "firstCol": f"col0_{learner % 83}"}
    for old, new in names.items():
        text = re.sub(rf"\b{old}\b", new, text)
    # At the end: line numbers, and with them what verdict.json says, stay.
    return text.rstrip("\n") + f"\n// learner {learner}\n"


def make(folder, size, seed):
    """A folder a learner under `folder`; returns how many were drawn of each fixture."""
    draw, known = random.Random(seed), fixtures()
    for learner in range(size):
        name, text = known[draw.randrange(len(known))]
        home = folder / f"learner_{learner:03}_{name}"
        home.mkdir()
        (home / "heat.cu").write_text(renamed(text, learner), encoding="utf-8", errors="surrogateescape")


class GpuBusy:
    """The share of the time in which the GPU ran a kernel, from nvidia-smi; None where there is none."""

    def __init__(self):
        self.samples, self.reader, self.process = [], None, None
        if shutil.which("nvidia-smi"):
            command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-i", "0", "-lms", "200"]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self.reader = threading.Thread(target=self.read, daemon=True)
            self.reader.start()

    def read(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.samples.append(int(line))

    def stop(self):
        if self.process is None:
            return None
        self.process.terminate()
        self.process.wait()
        return sum(self.samples) / (100 * len(self.samples)) if self.samples else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grader", type=pathlib.Path, default=ROOT / "target/release/heat-grader")
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1, help="what the class is drawn from")
    parser.add_argument("--engine", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--keep", type=pathlib.Path, help="leave the results here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "class"
        folder.mkdir()
        make(folder, options.size, options.seed)
        out = options.keep or pathlib.Path(temporary) / "out"
        command = [options.grader.resolve(), "batch", folder, "--out", out, "--seed", "1", "--engine", options.engine]
        command += ["--quick"] * options.quick
        command += ["--jobs", str(options.jobs)] if options.jobs else []
        busy, began = GpuBusy(), time.monotonic()
        ended = subprocess.run(command, stdout=subprocess.DEVNULL)
        wall, gpu = time.monotonic() - began, busy.stop()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    cores = len(os.sched_getaffinity(0))
    cpu = used.ru_utime + used.ru_stime
    floor = max(cpu / cores, (gpu or 0) * wall)
    unreliable = sum("time" in row["warnings"] for row in summary["submissions"])
    print(f"exit {ended.returncode}; {summary['counts']}; `time` warns {unreliable} times")
    print(f"{options.size} submissions in {wall:.1f} s: {60 * options.size / wall:.1f} a minute")
    print(f"processors busy {cpu / cores / wall:.0%} of {cores} cores" + ("" if gpu is None else f", GPU busy {gpu:.0%}"))
    print(f"floor {floor:.1f} s, {floor / wall:.0%} of its throughput")


if __name__ == "__main__":
    main()
