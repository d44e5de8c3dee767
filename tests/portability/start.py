#!/usr/bin/env python3
"""Fails when the library makes the start of programs that never use CUDA dearer than was agreed. No clock: what is counted is
files, mappings, relocations, look-ups, constructors and touched pages, and each has a bound in BOUNDS.

start.py LIBRARY: reads the file with readelf, then starts /bin/true and /bin/cat with and without it.
start.py --refused LIBRARY: the control; fails unless LIBRARY (start_heavy.c, which does everything wrong) breaks every bound.
start.py --figures LIBRARY: prints the counts and judges nothing.
Run by ctest. Changes nothing.
"""
import os
import pathlib
import re
import subprocess
import sys

# What was reached is in brackets (GCC 12, x86-64); a bound is above it by what another compiler or an ordinary change needs. If one
# is broken on purpose, say in the commit what is gained for it: every program on a machine with ld.so.preload pays.
BOUNDS = {
    "files": 2,  # needed libraries [2]: libc and the loader, which are in every process
    "segments": 2,  # parts of the file that are mapped [2]
    "constructors": 1,  # [1]
    "destructors": 1,  # [1]
    "relocations": 700,  # pointers to be set [591]
    "look_ups": 90,  # symbols to be found by name [75]
    "protected_pages": 2,  # pages of pointers, written at load and then read-only [2]
    "relocated_pages": 4,  # pages that setting pointers makes the process's own [3]
    "faults": 12,  # page faults of /bin/true that it does not have without [9.5; 4.5 with an empty library]
    "mapped_files": 0,  # files that /bin/cat has mapped for our sake, beside the library [0]
    "nameless": 1,  # mappings of no file: the library's zeroed data [1]
}
PAGE = 4096
RUNS = 25


def read(path):
    return subprocess.run(["readelf", "--wide", "--segments", "--dynamic", "--relocs", path], stdout=subprocess.PIPE, check=True,
                          text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def entries(readelf, kind):
    size = re.search(r"\(%s\)\s+(\d+) \(bytes\)" % kind, readelf)
    return int(size[1]) // 8 if size else 0


def in_file(readelf):
    """What readelf's text says of each bound that is about the file."""
    relocations = re.findall(r"^([0-9a-f]{12,16})\s+[0-9a-f]+\s+R_(?:X86_64|AARCH64)_(\w+)", readelf, re.M)
    relro = re.search(r"^\s*GNU_RELRO\s+\S+\s+(\S+)\s+\S+\s+\S+\s+(\S+)", readelf, re.M)
    first, size = (int(relro[1], 16), int(relro[2], 16)) if relro else (0, 0)
    by_name = ("JUMP_SLOT", "GLOB_DAT", "64", "ABS64")
    return {
        "files": len(re.findall(r"\(NEEDED\)", readelf)),
        "segments": len(re.findall(r"^\s*LOAD\s", readelf, re.M)),
        "constructors": entries(readelf, "INIT_ARRAYSZ") + len(re.findall(r"\(INIT\)", readelf)),
        "destructors": entries(readelf, "FINI_ARRAYSZ") + len(re.findall(r"\(FINI\)", readelf)),
        "relocations": sum(kind not in by_name for _, kind in relocations),
        "look_ups": sum(kind in by_name for _, kind in relocations),
        "protected_pages": (first + size + PAGE - 1) // PAGE - first // PAGE,
        "relocated_pages": len({int(address, 16) // PAGE for address, _ in relocations}),
    }


def preloaded(library):
    environment = {"PATH": "/usr/bin:/bin"}
    return dict(environment, LD_PRELOAD=str(library)) if library else environment


def faults_of_true(library):
    """The fewest of several runs: where the stack and the pieces come to lie adds one now and then."""
    fewest = None
    for _ in range(RUNS):
        pid = os.posix_spawn("/bin/true", ["/bin/true"], preloaded(library))
        _, status, usage = os.wait4(pid, 0)
        if status != 0:
            sys.exit("/bin/true with %s ended with %d" % (library, status))
        fewest = usage.ru_minflt if fewest is None else min(fewest, usage.ru_minflt)
    return fewest


def mapped_by_cat(library):
    done = subprocess.run(["/bin/cat", "/proc/self/maps"], env=preloaded(library), stdout=subprocess.PIPE, check=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    # A library that the loader passed over would look like one that costs nothing.
    if library and str(library) not in done.stdout:
        sys.exit("%s was not loaded into /bin/cat" % library)
    return {line[5] for line in lines if len(line) > 5 and line[5].startswith("/")}, sum(len(line) < 6 for line in lines)


def in_process(library):
    files, nameless = mapped_by_cat(library)
    files_without, nameless_without = mapped_by_cat(None)
    return {
        "faults": faults_of_true(library) - faults_of_true(None),
        "mapped_files": len(files - files_without - {str(library)}),
        "nameless": nameless - nameless_without,
    }


def main():
    arguments = sys.argv[1:]
    option = arguments.pop(0) if arguments and arguments[0].startswith("--") else ""
    if len(arguments) != 1 or option not in ("", "--refused", "--figures"):
        print("usage: start.py [--refused | --figures] LIBRARY", file=sys.stderr)
        return 2
    library = pathlib.Path(arguments[0]).resolve()
    readelf = read(library)
    if "There is no dynamic section" in readelf or "R_" not in readelf:
        sys.exit("%s: nothing was read" % library)
    found = {**in_file(readelf), **in_process(library)}
    broken = [name for name, bound in BOUNDS.items() if found[name] > bound]
    for name, bound in BOUNDS.items():
        print("%-16s %5d, at most %d%s" % (name, found[name], bound, "  <-- broken" if name in broken else ""))
    if option == "--figures":
        return 0
    if option == "--refused":
        kept = sorted(set(BOUNDS) - set(broken))
        print("all bounds were broken, as they should be" if not kept else "not broken: " + ", ".join(kept))
        return 1 if kept else 0
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
