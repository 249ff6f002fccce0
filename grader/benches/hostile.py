#!/usr/bin/env python3
"""Grades every hostile fixture, and a right submission after each; says how long each took and how much memory.

    grader/benches/hostile.py --grader target/release/heat-grader [--engine cpu] [--seed 1] [NAME...]

Memory is the largest sum over the grader and all that descends from it, looked at fifty times a second, each page counted once
for every process that has it. Exit code 1 where a right submission does not pass, or a process or a temporary file is left.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RIGHT = ROOT / "fixtures/right/plain"
VERDICTS = {0: "pass", 1: "fail", 3: "ungraded"}


def descendants(root):
    """The process `root` and all that descends from it, as far as parents tell."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = pathlib.Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(entry))
    found, rest = [], [root]
    while rest:
        process = rest.pop()
        found.append(process)
        rest.extend(parents.get(process, []))
    return found


def resident(process):
    """Resident memory of a process, bytes; 0 for one that has ended."""
    try:
        return int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


class Peak(threading.Thread):
    """The largest memory of a process and its descendants, bytes, and all of these that were ever seen."""

    def __init__(self, root):
        super().__init__(daemon=True)
        self.root, self.bytes, self.seen, self.over = root, 0, set(), False
        self.start()

    def run(self):
        while not self.over:
            tree = descendants(self.root)
            self.seen.update(tree)
            self.bytes = max(self.bytes, sum(map(resident, tree)))
            time.sleep(0.02)

    def stop(self):
        self.over = True
        self.join()


def is_left(process):
    """Whether a process that was seen earlier still runs; a zombie that nobody reaps yet does not."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def grade(grader, folder, arguments, temporary):
    """Grades a submission: its verdict, seconds, bytes at the peak, and processes that outlived it."""
    command = [grader, "grade", folder, "--report", temporary / "report.json", *arguments]
    kept = temporary / "tmp"
    kept.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(kept), "HEAT_GRADER_NO_CACHE": "1"}
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    peak = Peak(child.pid)
    status = child.wait()
    seconds = time.monotonic() - began
    peak.stop()
    # A process that is being killed is gone a moment later.
    for _ in range(50):
        left = [process for process in peak.seen if process != child.pid and is_left(process)]
        if not left:
            break
        time.sleep(0.02)
    return VERDICTS.get(status, f"exit {status}"), seconds, peak.bytes, left, list(kept.iterdir())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grader", type=pathlib.Path, default=ROOT / "target/release/heat-grader")
    parser.add_argument("--engine", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", help="hostile fixtures; all when left out")
    chosen = parser.parse_args()
    folders = [ROOT / "fixtures/hostile" / name for name in chosen.names]
    folders = folders or sorted(path for path in (ROOT / "fixtures/hostile").iterdir() if path.is_dir())
    arguments = ["--engine", chosen.engine, "--seed", str(chosen.seed)]
    faults = []
    print(f"{'submission':44} {'verdict':9} {'seconds':>8} {'MiB':>6}   right one after it")
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        for folder in folders:
            verdict, seconds, peak, left, files = grade(chosen.grader, folder, arguments, temporary)
            after, after_seconds, _, left_after, files_after = grade(chosen.grader, RIGHT, arguments, temporary)
            print(f"{folder.name:44} {verdict:9} {seconds:8.1f} {peak / 2**20:6.0f}   {after}, {after_seconds:.1f} s", flush=True)
            if verdict not in VERDICTS.values():
                faults.append(f"{folder.name} ended with {verdict}")
            if after != "pass":
                faults.append(f"the right submission after {folder.name}: {after}")
            if left or left_after:
                faults.append(f"{folder.name} left processes: {left + left_after}")
            if files or files_after:
                faults.append(f"{folder.name} left files: {[path.name for path in files + files_after]}")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(folders)} hostile submissions, {len(faults)} faults of the grader")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
