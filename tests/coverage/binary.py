#!/usr/bin/env python3
"""Fails when the built library is not what may be preloaded into a stranger's program.

binary.py LIBGPUCAP LIBCUDA: the first exports exactly the names of the hook tables and the loader's functions; hides the hooks
from dlsym (see shim/exports.map); needs the C library and the loader only; has no private, unique or writable-and-executable
thing in it. The second, the fake driver, exports every hooked name. With --libm it may need libm too: fmt rounds a number with ceil(), which only GCC's optimiser replaces, so that a
debug build or Clang's asks for it; what is released does not. `--self-test` proves that each rule can fail. Run by ctest; reads with nm and readelf, changes nothing.
"""
import re
import subprocess
import sys

from coverage import HOOKS, ROOT, rows

TABLES = {"GPUCAP_HOOK": HOOKS, "GPUCAP_RUNTIME": ROOT / "shim/runtime/runtime_table.inc", "GPUCAP_NVML": ROOT / "shim/nvml/nvml_table.inc"}
LOADER = {"dlopen", "dlsym", "dlvsym"}
MAY_NEED = re.compile(r"^(libc\.so\.6|libdl\.so\.2|libpthread\.so\.0|librt\.so\.1|ld-linux[-\w]*\.so\.\d)$")


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def symbols(nm):
    """{name without version: kind letter} of what `nm -D --defined-only` printed; version nodes themselves are no functions."""
    found = {}
    for line in nm.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] != "A":
            found[fields[2].split("@")[0]] = fields[1]
    return found


def check_library(nm, readelf, wanted, libm=False):
    found = symbols(nm)
    for name in sorted(set(found) - wanted):
        yield "exports %s, which no table names" % name
    for name in sorted(wanted - set(found)):
        yield "does not export %s" % name
    for name in re.findall(r"^\w+ [^A] (\S+)$", nm, re.M):
        if name.split("@")[0] not in LOADER and not re.search(r"[^@]@[^@]", name):
            yield "exports %s so that dlsym finds it where there may be no such library" % name
    for name in re.findall(r"^\w+ [^A] (\S+@\S+)$", nm, re.M):
        if name.split("@")[0] in LOADER:
            yield "exports %s for one version of the C library only" % name
    for name, kind in sorted(found.items()):
        if kind != "T":
            yield "exports %s as '%s', not as a plain function" % (name, kind)
    if "GLIBC_PRIVATE" in readelf:
        yield "uses a private symbol of the C library"
    if re.search(r"\bUNIQUE\b", readelf):
        yield "has a GNU_UNIQUE symbol"
    stack = re.search(r"^\s*GNU_STACK\s.*\s([RWE ]{3})\s+0x\w+$", readelf, re.M)
    if stack is None or "E" in stack.group(1):
        yield "wants an executable stack"
    if re.search(r"^\s*LOAD\s.*\s(RWE|.WE)\s+0x\w+$", readelf, re.M):
        yield "has memory that is writable and executable"
    if not re.search(r"^\s*GNU_RELRO\s", readelf, re.M):
        yield "has no GNU_RELRO part"
    if not re.search(r"\((FLAGS|FLAGS_1)\).*\b(BIND_NOW|NOW)\b", readelf):
        yield "does not resolve all symbols at load, so its pointers stay writable"
    if "(TEXTREL)" in readelf:
        yield "has relocations in its code"
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf)
    if "libc.so.6" not in needed:
        yield "does not need libc.so.6: nothing was read?"
    for name in needed:
        if not MAY_NEED.match(name) and not (libm and name == "libm.so.6"):
            yield "needs %s" % name
    if re.search(r"\((RPATH|RUNPATH)\)", readelf):
        yield "has a path of its own to libraries"


def check_driver(nm, hooks):
    for name in sorted(hooks - set(symbols(nm))):
        yield "the fake driver does not export %s" % name


GOOD_NM = "0000000000001000 T cuInit@V_1\n0000000000001010 T dlsym\n0000000000000000 A V_1\n"
GOOD_ELF = """
  LOAD           0x000000 0x0000000000000000 0x0000000000000000 0x012ef8 0x012ef8 R E 0x1000
  GNU_STACK      0x000000 0x0000000000000000 0x0000000000000000 0x000000 0x000000 RW  0x10
  GNU_RELRO      0x0c5f90 0x00000000000c6f90 0x00000000000c6f90 0x006070 0x006070 R   0x1
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000001e (FLAGS)              BIND_NOW STATIC_TLS
  000:   0 (*local*)       2 (GLIBC_2.2.5)
"""


def self_test():
    wanted = {"cuInit", "dlsym"}
    failures = ["a good library: " + line for line in check_library(GOOD_NM, GOOD_ELF, wanted)]
    cases = {
        "exports _ZSt4cout": (GOOD_NM + "0000000000001020 T _ZSt4cout\n", GOOD_ELF),
        "does not export dlsym": (GOOD_NM.replace("dlsym", "dlvsym"), GOOD_ELF),
        "not as a plain function": (GOOD_NM.replace("T cuInit", "u cuInit"), GOOD_ELF),
        "exports cuInit so that dlsym": (GOOD_NM.replace("cuInit@V_1", "cuInit"), GOOD_ELF),
        "exports cuInit@@V_1 so that dlsym": (GOOD_NM.replace("cuInit@V_1", "cuInit@@V_1"), GOOD_ELF),
        "exports dlsym@V_1 for one version": (GOOD_NM.replace("dlsym", "dlsym@V_1"), GOOD_ELF),
        "private symbol": (GOOD_NM, GOOD_ELF.replace("GLIBC_2.2.5", "GLIBC_PRIVATE")),
        "GNU_UNIQUE": (GOOD_NM, GOOD_ELF + "    12: 0000000000000040     8 OBJECT  UNIQUE DEFAULT   23 guard\n"),
        "executable stack": (GOOD_NM, GOOD_ELF.replace("RW  0x10", "RWE 0x10")),
        "writable and executable": (GOOD_NM, GOOD_ELF.replace("R E 0x1000", "RWE 0x1000")),
        "no GNU_RELRO": (GOOD_NM, GOOD_ELF.replace("GNU_RELRO", "GNU_OTHER")),
        "stay writable": (GOOD_NM, GOOD_ELF.replace("BIND_NOW", "")),
        "relocations in its code": (GOOD_NM, GOOD_ELF + " 0x0000000000000016 (TEXTREL)  0x0\n"),
        "needs libstdc++.so.6": (GOOD_NM, GOOD_ELF + " 0x0000000000000001 (NEEDED)  Shared library: [libstdc++.so.6]\n"),
        "needs libm.so.6": (GOOD_NM, GOOD_ELF + " 0x0000000000000001 (NEEDED)  Shared library: [libm.so.6]\n"),
        "does not need libc.so.6": (GOOD_NM, GOOD_ELF.replace("(NEEDED)", "(OTHER)")),
        "path of its own": (GOOD_NM, GOOD_ELF + " 0x000000000000001d (RUNPATH)  Library runpath: [/tmp]\n"),
    }
    for wanted_text, (nm, readelf) in cases.items():
        if not any(wanted_text in line for line in check_library(nm, readelf, wanted)):
            failures.append("was not reported: " + wanted_text)
    if list(check_driver(GOOD_NM, {"cuInit"})) or not list(check_driver(GOOD_NM, {"cuMemGrab"})):
        failures.append("the check of the fake driver")
    for line in failures:
        print(line)
    print("self-test of the library check: %d ways to spoil a library, %d failures" % (len(cases) + 1, len(failures)))
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    arguments = [argument for argument in sys.argv[1:] if argument != "--libm"]
    if len(arguments) != 2:
        print("usage: binary.py [--libm] LIBGPUCAP LIBCUDA | --self-test", file=sys.stderr)
        return 2
    named = {macro: {name for name, _ in rows(path.read_text(encoding="utf-8"), macro)} for macro, path in TABLES.items() if path.exists()}
    wanted = LOADER.union(*named.values())
    library, driver = arguments
    readelf = output("readelf", "--wide", "--segments", "--dynamic", "--version-info", "--dyn-syms", library)
    problems = list(check_library(output("nm", "-D", "--defined-only", library), readelf, wanted, "--libm" in sys.argv))
    problems += check_driver(output("nm", "-D", "--defined-only", driver), named["GPUCAP_HOOK"])
    for line in problems:
        print(line)
    print("%d names wanted, %d problems" % (len(wanted), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
