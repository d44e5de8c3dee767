#!/usr/bin/env python3
"""Fails when a built file would not load where glibc is as old as promised.

floor.py FLOOR [--program] FILE...: each asks for symbol versions of glibc up to FLOOR (as 2.17) and of nothing else; needs the C
library, the loader, and files that glibc once was split into; a program (--program) is position-independent, resolves everything
at load and keeps nothing of that writable. What the library alone has to be, and what it exports, is checked in tests/coverage. `floor.py --refused FLOOR FILE`
is the control: it fails unless FILE, which was built without a floor, is found wanting. `--self-test` proves that each rule can
fail. Run by ctest; reads with readelf, changes nothing.
"""
import re
import subprocess
import sys

MAY_NEED = re.compile(r"^(lib[cm]\.so\.6|libdl\.so\.2|libpthread\.so\.0|librt\.so\.1|ld-linux[-\w]*\.so\.\d)$")
# The compiler's own weak references, to things that nobody has to have; and tests for the presence of a constructor or a
# function that can never be called.
MAY_BE_MISSING = re.compile(r"^(_ITM_\w+|_ZGTt\w+|__gmon_start__|__cxa_pure_virtual|_ZTHN\w+)$")


def read(path):
    return subprocess.run(["readelf", "--wide", "--file-header", "--segments", "--dynamic", "--version-info", "--dyn-syms", path],
                          stdout=subprocess.PIPE, check=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def number(text):
    return tuple(int(part) for part in text.split("."))


def problems(readelf, floor, program):
    needs = readelf.partition("Version needs section")[2]
    versions = set(re.findall(r"Name: (\S+)\s+Flags:", needs))
    if not versions:
        yield "asks for no version at all: nothing was read?"
    for version in sorted(versions):
        match = re.fullmatch(r"GLIBC_([0-9.]+)", version)
        if match is None:
            yield "asks for %s" % version
        elif number(match[1]) > number(floor):
            users = re.findall(r"UND (\S+)@%s\b" % re.escape(version), readelf)
            yield "asks for %s (%s), newer than %s" % (version, ", ".join(sorted(users)), floor)
    for binding, name in re.findall(r"(WEAK|GLOBAL)\s+\w+\s+UND ([^@\s]+)$", readelf, re.M):
        if binding == "GLOBAL" or not MAY_BE_MISSING.match(name):
            yield "refers to %s, of no version" % name
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf)
    if "libc.so.6" not in needed:
        yield "does not need libc.so.6: nothing was read?"
    for name in needed:
        if not MAY_NEED.match(name):
            yield "needs %s" % name
    if re.search(r"\((RPATH|RUNPATH)\)", readelf):
        yield "has a path of its own to libraries"
    stack = re.search(r"^\s*GNU_STACK\s.*\s([RWE ]{3})\s+0x\w+$", readelf, re.M)
    if stack is None or "E" in stack[1]:
        yield "wants an executable stack"
    if not re.search(r"^\s*GNU_RELRO\s", readelf, re.M) or not re.search(r"\((FLAGS|FLAGS_1)\).*\b(BIND_NOW|NOW)\b", readelf):
        yield "leaves pointers to functions writable"
    if "GNU_HASH" not in readelf:
        yield "has no hash table that every loader reads"
    if re.search(r"\bRELR\b", readelf):
        yield "has relocations that old loaders do not know"
    if program and not re.search(r"^\s*INTERP\s", readelf, re.M):
        yield "is not a program"
    if program and not re.search(r"Type:\s+DYN\b", readelf):
        yield "lies at a fixed address"


GOOD = """
  Type:                              DYN (Position-Independent Executable file)
  INTERP         0x000318 0x0000000000000318 0x0000000000000318 0x00001c 0x00001c R   0x1
  GNU_STACK      0x000000 0x0000000000000000 0x0000000000000000 0x000000 0x000000 RW  0x10
  GNU_RELRO      0x0c5f90 0x00000000000c6f90 0x00000000000c6f90 0x006070 0x006070 R   0x1
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000001e (FLAGS)              BIND_NOW
 0x000000006ffffef5 (GNU_HASH)           0x3a0
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND memcpy@GLIBC_2.14 (3)
     2: 0000000000000000     0 NOTYPE  WEAK   DEFAULT  UND __gmon_start__
Version needs section '.gnu.version_r' contains 1 entry:
  0x0010:   Name: GLIBC_2.14  Flags: none  Version: 3
"""


def self_test():
    cases = {
        "newer than 2.17": GOOD.replace("2.14", "2.34"),
        "asks for GLIBC_PRIVATE": GOOD.replace("Name: GLIBC_2.14", "Name: GLIBC_PRIVATE"),
        "asks for GLIBCXX_3.4": GOOD.replace("Name: GLIBC_2.14", "Name: GLIBCXX_3.4"),
        "asks for no version": GOOD.replace("Name:", "Other:"),
        "refers to puts": GOOD.replace("memcpy@GLIBC_2.14 (3)", "puts"),
        "refers to environ": GOOD.replace("__gmon_start__", "environ"),
        "does not need libc": GOOD.replace("(NEEDED)", "(OTHER)"),
        "needs libstdc++.so.6": GOOD + " 0x0000000000000001 (NEEDED)             Shared library: [libstdc++.so.6]\n",
        "path of its own": GOOD + " 0x000000000000001d (RUNPATH)  Library runpath: [/tmp]\n",
        "executable stack": GOOD.replace("RW  0x10", "RWE 0x10"),
        "writable": GOOD.replace("BIND_NOW", ""),
        "hash table": GOOD.replace("GNU_HASH", "OTHER"),
        "old loaders": GOOD + " 0x0000000000000024 (RELR)               0x5a8\n",
        "is not a program": GOOD.replace("INTERP", "OTHER"),
        "fixed address": GOOD.replace("DYN", "EXEC"),
    }
    failures = ["a good file: " + line for line in problems(GOOD, "2.17", True)]
    for wanted, readelf in cases.items():
        if not any(wanted in line for line in problems(readelf, "2.17", True)):
            failures.append("was not reported: " + wanted)
    for line in failures:
        print(line)
    print("self-test of the floor: %d ways to spoil a file, %d failures" % (len(cases), len(failures)))
    return 1 if failures else 0


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) == 3 and arguments[0] == "--refused":
        found = [line for line in problems(read(arguments[2]), arguments[1], False) if "newer than" in line]
        print("%s: %s" % (arguments[2], "; ".join(found) or "nothing newer than %s was found in it" % arguments[1]))
        return 0 if found else 1
    if len(arguments) < 2:
        print("usage: floor.py FLOOR [--program] FILE... | --refused FLOOR FILE | --self-test", file=sys.stderr)
        return 2
    program, bad = False, 0
    for path in arguments[1:]:
        if path == "--program":
            program = True
            continue
        for line in problems(read(path), arguments[0], program):
            print("%s %s" % (path, line))
            bad += 1
    print("floor %s: %d problems" % (arguments[0], bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
