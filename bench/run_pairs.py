#!/usr/bin/env python3
"""What gpucap costs: the same programs with and without the preload, in turn, in one run.

    bench/run_pairs.py [--build DIR] [--out DIR] [--only REGEX] [--minutes M] [--fake] [--quick]

Writes results.json and results.md (the table of docs/measurements.md) into --out, anew after each part, so that a run that
is cut short leaves what it has. docs/benchmarks.md says what is measured and how. Needs a finished build and python3.
Exit status: 0 when every part ran or said what it lacks, 1 when one failed. A missed bound is no failure: it is a row.
"""
import argparse
import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

import processes
import report
import rows
import single
import spread
from processes import Failed, Place, ProcessPair, Skipped, Until


class Run:
    def __init__(self, arguments):
        self.arguments = arguments
        self.place = Place(arguments.build.resolve(), arguments.out.resolve(), arguments.fake)
        self.place.out.mkdir(parents=True, exist_ok=True)
        self.results, self.parts, self.notes, self.failed, self.about = {}, {}, [], False, {}

    def wanted(self, name):
        return re.search(self.arguments.only, name) is not None

    def chosen(self, some_rows):
        return {row.name: (row.case, row.options) for row in some_rows if self.wanted(row.name)}

    def steady(self, some_rows):
        return set() if self.arguments.quick else {row.name for row in some_rows if row.steady}

    def command(self):
        return [self.place.program("driver_bench"), "serve"]

    def pairs(self, some_rows, seconds, limit="16G", pin=True, rename=None):
        chosen = self.chosen(some_rows)
        if not chosen:
            return
        quick = self.arguments.quick
        until = Until(seconds, most_groups=1 if quick else 200)
        found = processes.measure(self.place, self.command(), chosen, until, self.place.preloaded(limit),
                                  round_ns=3e5 if quick else 3e6, fours=2 if quick else 20, steady=self.steady(some_rows), pin=pin)
        for name, summary in found.items():
            if summary is None:
                self.notes.append("%s: no time was left for it" % name)
            else:
                self.results[(rename or {}).get(name, name)] = summary

    def live(self, seconds):
        some = [row for row in rows.LIVE if self.wanted(row.name)]
        if not any(row.kind == "growth" for row in some):
            return
        if self.arguments.quick:
            for row in some:
                row.options = {key: 1000 for key in row.options}
            self.notes.append("live blocks: 1000 instead of 1,000,000 (--quick)")
        self.pairs(some, seconds, rename={row.name: row.name + "_beside_live" for row in some if row.kind == "shown"})

    def torch(self, seconds):
        chosen = [row for row in rows.TORCH if self.wanted(row.name)]
        if not chosen:
            return
        if self.place.fake:
            raise Skipped("PyTorch needs a card")
        python = os.environ.get("GPUCAP_BENCH_PYTHON", sys.executable)
        command = [python, str(processes.HERE / "torch_steps.py")]
        probe = processes.Served(command, self.place.plain, self.place.out / "stderr-torch")
        said = probe.answer()
        probe.close()
        if "missing" in said:
            raise Skipped(said["missing"])
        # One pair of processes measures all rows of an allocator, and each for a while: PyTorch takes long to start and to warm up.
        # Rounds are short, so that the two take turns often, but no step is alone in one.
        deadline = time.monotonic() + seconds
        allocators = [name for name in rows.ALLOCATORS if any(row.options["allocator"] == name for row in chosen)]
        for index, name in enumerate(allocators):
            some = {row.name: (row.case, {"empty_cache": row.options["empty_cache"]}) for row in chosen if row.options["allocator"] == name}
            setting = {"PYTORCH_CUDA_ALLOC_CONF": rows.ALLOCATORS[name]} if rows.ALLOCATORS[name] else {}
            until = Until((deadline - time.monotonic()) / (len(allocators) - index), most_groups=1 if self.arguments.quick else 200)
            found = processes.measure(self.place, command, some, until, self.place.preloaded("64G", **setting),
                                      round_ns=3e7, fours=1 if self.arguments.quick else 3, pin=True,
                                      seconds_each=0 if self.arguments.quick else 2.5, fewest_operations=2,
                                      environment_without=dict(self.place.plain, **setting))
            for row_name, summary in found.items():
                if summary is None:
                    self.notes.append("%s: no time was left for it" % row_name)
                else:
                    self.results[row_name] = dict(summary, torch=said["torch"])
            self.write()

    def others(self, seconds):
        quick, place = self.arguments.quick, self.place
        steps = [
            (["start_true", "start_python"], lambda: single.starts(place, 1 if quick else seconds * 0.3)),
            (["left_in_true"], lambda: single.mappings(place)),
            (["first_allocation", "first_allocation_nvml"], lambda: single.first_allocation(place, 1 if quick else seconds * 0.3)),
            (["storm_p50", "storm_p99"], lambda: single.storm(place, 0.1, 8, 1) if quick else single.storm(place, seconds * 0.2)),
            (["memory_per_block", "memory_fixed", "memory_nvml"], lambda: single.memory(place, 20000 if quick else single.LIVE)),
            (["looks_near_cap"], lambda: single.looks_near_cap(place, 0.3 if quick else 3)),
            (["reader_rate"], lambda: single.reader(place, 0.2 if quick else 3)),
        ]
        for names, step in steps:
            if any(self.wanted(name) for name in names):
                self.results.update(step())
        if self.wanted("publish_1_thread"):
            found, self.parts = single.parts(place, 0.001 if quick else 0.2)
            self.results.update(found)

    def run(self):
        seconds = 60.0 * self.arguments.minutes
        self.about = {"fake": self.place.fake, "quick": self.arguments.quick, "machine": machine(self.place), "command": " ".join(sys.argv[1:]),
                      "library": hashlib.sha256(self.place.library.read_bytes()).hexdigest()}
        # Share of the time that each part may take; what one leaves goes to the next.
        parts = [("calls", 0.2, lambda s: self.pairs(rows.CALLS, s)),
                 ("threads", 0.06, lambda s: self.pairs(rows.THREADS, s, pin=False)),
                 ("near the cap", 0.1, lambda s: self.pairs(rows.NEAR_CAP, s, "4G")),
                 ("live blocks", 0.14, self.live), ("others", 0.15, self.others), ("torch", 0.35, self.torch)]
        start, shares = time.monotonic(), 1.0
        for name, share, part in parts:
            left = seconds - (time.monotonic() - start)
            try:
                part(max(1.0, left * share / shares))
            except Skipped as reason:
                self.notes.append("%s: SKIPPED: %s" % (name, reason))
            except (Failed, subprocess.SubprocessError, OSError, KeyError, StopIteration) as reason:
                self.notes.append("%s: FAILED: %r" % (name, reason))
                self.failed = True
            shares -= share
            self.write()
            print("%6.0f s  %s" % (time.monotonic() - start, name), flush=True)
        return 1 if self.failed else 0

    def write(self):
        about = dict(self.about, when=time.strftime("%Y-%m-%d %H:%M"))
        whole = {"about": about, "rows": self.results, "parts_ns": self.parts, "notes": self.notes}
        (self.place.out / "results.json").write_text(json.dumps(whole, indent=1) + "\n")
        (self.place.out / "results.md").write_text(report.markdown([whole]))


def machine(place):
    """What is known of the machine, in words."""
    words = [platform.machine(), "%d cores" % (os.cpu_count() or 0), "Linux " + platform.release(), " ".join(platform.libc_ver())]
    if not place.fake:
        try:
            asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], env=place.plain,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=False, text=True)
            words = [line.strip() for line in asked.stdout.splitlines()[:1]] + words
        except (OSError, subprocess.TimeoutExpired):
            words.append("nvidia-smi does not answer")
    return ", ".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=processes.ROOT / "build/release")
    parser.add_argument("--out", type=pathlib.Path, default=processes.ROOT / "build/bench")
    parser.add_argument("--only", default="", help="measure the rows whose names hold this regular expression")
    parser.add_argument("--minutes", type=float, default=9.0, help="the time that may be taken, roughly")
    parser.add_argument("--fake", action="store_true", help="on the fake driver: proves that this works, and no figure")
    parser.add_argument("--quick", action="store_true", help="seconds, and no figure worth reading")
    arguments = parser.parse_args()
    run = Run(arguments)
    for program in (run.place.library, run.place.program("driver_bench")):
        if not os.path.exists(program):
            sys.exit("run_pairs.py: %s is missing: run scripts/build.sh first" % program)
    status = run.run()
    print((run.place.out / "results.md").read_text())
    return status


if __name__ == "__main__":
    sys.exit(main())
