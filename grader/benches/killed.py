#!/usr/bin/env python3
"""Kills a `heat-grader batch --quick` outright at random moments, lets it end, and compares with a batch that was never killed.

    grader/benches/killed.py --grader target/release/heat-grader [--size 60] [--kills 3] [--seed 1]

Held against it: every report is the same byte for byte but for durations, none that was there at a kill was written again, and
neither processes nor temporary files of a killed batch are left once the next one has ended.
"""

import argparse
import importlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
a_class = importlib.import_module("class")


def reports(out):
    """The reports of a batch so far, as {name: (identity of the file, text)}; the identity changes with every writing."""
    found = {}
    for path in sorted((out / "reports").glob("*.json")):
        status = path.stat()
        found[path.name] = ((status.st_ino, status.st_mtime_ns), path.read_text(encoding="utf-8"))
    return found


def without_durations(text):
    report = json.loads(text)
    report.pop("durations")
    return json.dumps(report)


def processes(grader, temporary):
    """Command lines of processes that work in `temporary` or run `grader`."""
    left = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environment = (entry / "environ").read_bytes()
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if f"TMPDIR={temporary}".encode() in environment or str(temporary).encode() in line:
                left.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grader", type=pathlib.Path, default=a_class.ROOT / "target/release/heat-grader")
    parser.add_argument("--size", type=int, default=60)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="what the class and the moments are drawn from")
    options = parser.parse_args()
    draw, faults = random.Random(options.seed), []
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        folder, scratch = place / "class", place / "tmp"
        folder.mkdir()
        scratch.mkdir()
        a_class.make(folder, options.size, options.seed)
        environment = {**os.environ, "TMPDIR": str(scratch)}

        def batch(name):
            command = [options.grader.resolve(), "batch", folder, "--out", place / name, "--seed", "1", "--engine", "cpu", "--quick"]
            return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        began = time.monotonic()
        whole = batch("whole").wait()
        wall = time.monotonic() - began
        print(f"never killed: exit {whole}, {wall:.0f} s")
        before = {}
        for kill in range(options.kills + 1):
            running = batch("killed")
            if kill < options.kills:
                time.sleep(draw.uniform(0.05, 0.9) * wall / options.kills)
                running.send_signal(signal.SIGKILL)
            code = running.wait()
            after = reports(place / "killed")
            again = [name for name, (identity, _) in before.items() if after.get(name, (None,))[0] != identity]
            faults += [f"{name} was lost or written again" for name in again]
            print(f"run {kill + 1}: exit {code}, {len(after)} reports, {len(again)} of {len(before)} written again")
            before = after
        if code != whole:
            faults.append(f"exit {code}, not {whole}")
        expected = reports(place / "whole")
        faults += [f"{name} is there in one batch only" for name in sorted(expected.keys() ^ before.keys())]
        different = [name for name in expected.keys() & before.keys() if without_durations(expected[name][1]) != without_durations(before[name][1])]
        faults += [f"{name} differs" for name in sorted(different)]
        print(f"{len(expected) - len(different)} of {len(expected)} reports are the same")
        faults += [f"still running: {line}" for line in processes(options.grader, scratch)]
        faults += [f"left behind: {entry.name}" for entry in scratch.iterdir()]
    print("\n".join(faults) or "nothing to find fault with")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
