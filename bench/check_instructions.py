#!/usr/bin/env python3
"""How many instructions of ours the hot paths take, compared with bench/instructions.json: a guard that needs no clock.

Runs guard_bench under valgrind's callgrind on the fake driver, with the library preloaded. Counted is what the library's
own code executes and what it calls of libc (locks, copies), never the driver behind it. Run by ctest (bench.instructions).
  --record    writes the counts into instructions.json in the place of the old ones: after a change that is meant to cost
  --functions lists by function where the instructions go
Exit status: 0 within the tolerance, 1 not, 77 where it cannot be told (no valgrind, or nothing recorded for this compiler).
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = HERE / "instructions.json"
TIMES = 2000
SKIPPED = 77
PATHS = ("async_pair", "small_pair", "large_pair", "memory_info", "publish", "note_and_take")
ALONE = ("publish", "note_and_take")  # parts that are linked into guard_bench: all within counts


def count(build, scratch):
    """{path: {function: instructions each time}} with what a function calls of libc added to it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUCAP_", "LD_"))}
    environment.update(LD_LIBRARY_PATH=str(build / "fake_cuda"), FAKE_CUDA_STATE=str(scratch / "state"),
                       LD_PRELOAD="%s:%s" % (build / "bench/still_clock.so", build / "libgpucap.so"),
                       GPUCAP_LIMIT="8G", GPUCAP_DIR=str(scratch / "segments"))
    command = ["valgrind", "--tool=callgrind", "--dump-line=no", "--compress-strings=no", "--compress-pos=no",
               "--callgrind-out-file=%s" % (scratch / "out")]
    command += ["--dump-%s=guard_%s" % (when, path) for path in PATHS for when in ("before", "after")]
    done = subprocess.run(command + [str(build / "bench/guard_bench"), str(TIMES)], env=environment, cwd=scratch,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit("guard_bench under callgrind ended with %d:\n%s" % (done.returncode, done.stdout[-3000:]))
    found = {}
    for file in sorted(scratch.glob("out.*"), key=lambda path: int(path.suffix[1:])):
        text = file.read_text(errors="replace")
        trigger = re.search(r"^desc: Trigger: --dump-after=guard_(\w+)", text, re.M)
        if trigger:
            found[trigger.group(1)] = read(text, trigger.group(1) in ALONE)  # a later dump is the one that counts
    return found


def read(text, everything):
    """Instructions each time by function, from one dump."""
    counted = collections.Counter()
    objects = {"ob": "", "cob": "", "fn": ""}
    called = None  # the object of the call whose cost the next line holds
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key in ("ob", "fn", "cob"):
            objects[key] = value
            if key == "ob":
                objects["cob"] = value
        elif equals and key == "calls":
            called = objects["cob"]
            objects["cob"] = objects["ob"]  # named again for the next call, if it is another
        elif re.match(r"[+\-*\d]\S* \d+$", line):
            cost = int(line.split()[1])
            if called is not None:
                of_libc = re.search(r"/(libc|ld-linux[^/]*|libm)\.so|still_clock", called) is not None
                if of_libc and "libgpucap" in objects["ob"]:
                    counted[objects["fn"]] += cost
                called = None
            elif everything or "libgpucap" in objects["ob"]:
                counted[objects["fn"]] += cost
    return {name: number / TIMES for name, number in counted.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True, help="what instructions.json knows this build by")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--functions", action="store_true")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("SKIPPED: valgrind is not installed (scripts/setup.sh --dev does it)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as scratch:
        found = count(arguments.build.resolve(), pathlib.Path(scratch))
    missing = set(PATHS) - set(found)
    if missing:
        sys.exit("callgrind counted nothing within: " + ", ".join(sorted(missing)))
    now = {path: round(sum(found[path].values()), 1) for path in PATHS}
    if arguments.functions:
        for path in PATHS:
            print("%s: %.1f" % (path, now[path]))
            for name, number in sorted(found[path].items(), key=lambda item: -item[1]):
                print("  %8.1f  %s" % (number, name))
    recorded = json.loads(RECORDED.read_text())
    if arguments.record:
        recorded["counts"][arguments.compiler] = now
        RECORDED.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n")
        print("recorded for %s: %s" % (arguments.compiler, now))
        return 0
    if arguments.compiler not in recorded["counts"]:
        print("SKIPPED: no counts are recorded for %s, only for %s; these are: %s" %
              (arguments.compiler, ", ".join(sorted(recorded["counts"])), now))
        return SKIPPED
    before, tolerance, status = recorded["counts"][arguments.compiler], recorded["tolerance"], 0
    for path in PATHS:
        change = now[path] / before[path] - 1
        wrong = abs(change) > tolerance
        status = status or int(wrong)
        print("%-14s %8.1f instructions, recorded %8.1f, %+.1f %%%s" %
              (path, now[path], before[path], 100 * change, "  <-- beyond %g %%" % (100 * tolerance) if wrong else ""))
    if status:
        print("If this is meant (also when it got less), record it: bench/check_instructions.py --record --build %s --compiler %s\n"
              "Where they go: the same with --functions instead." % (arguments.build, arguments.compiler))
    return status


if __name__ == "__main__":
    sys.exit(main())
