#!/usr/bin/env python3
"""Fails when an entry point of the driver is in none of the three lists, or in two of them.

Every name that a real driver exports and every spelling that a cuda.h can make must be hooked (shim/driver/hook_table.inc),
passed through with a reason (shim/driver/passed_through.inc), or named as having nothing to do with memory (no_memory.txt).
Run by ctest, once for each cuda.h at hand: coverage.py CUDA_H. `coverage.py --self-test` proves that each rule can fail.
The built libraries are checked by binary.py. Reads files only.
"""
import fnmatch
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOOKS = ROOT / "shim/driver/hook_table.inc"
PASSED = ROOT / "shim/driver/passed_through.inc"
NO_MEMORY = HERE / "no_memory.txt"
EXPORTS = ROOT / "tests/data/libcuda-580-exports.txt"

# A name like these takes, gives back or reports memory, whatever no_memory.txt says. Copies, fills and events are not meant.
SHAPED = re.compile(r"^cu(?!Memcpy|Memset|Ipc\w*Event|\w*Semaphore|Graph\w*(Memcpy|Memset|Semaphores?)\w*Node)\w*("
                    r"Alloc|Free|Mem(Get|Set|Create|Map|Unmap|Release|Retain|Pool|Address|Export|Import|Host|Range|Advise|Prefetch|Discard)"
                    r"|TotalMem|GraphMem|Ipc|Import|Export|External|Multicast|Array|Mipmapped|Graphics|GLMap|GLRegister|CtxCreate|"
                    r"CtxDestroy|PrimaryCtx(Retain|Release|Reset)|ModuleLoad|ModuleUnload|LibraryLoad|LibraryUnload|SetLimit|Launch|"
                    r"Instantiate|Checkpoint)")
# Names that have one of those words in them and still only copy, describe or refer.
NOT_SHAPED = re.compile(r"^cu(LaunchHostFunc(_ptsz)?|TexRef\w+|SurfRef\w+)$")


def rows(text, macro):
    """The rows of a table as (name, rest of the row)."""
    return re.findall(r"^%s\((\w+),\s*(.*)\)\s*$" % macro, text, re.M)


def patterns(text):
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def exported(text):
    names = [line.split()[-1] for line in text.splitlines() if line.strip()]
    return {name for name in names if not name.startswith("cudbg")}  # the debugger's own interface


def declared(header):
    """Every function name that including this cuda.h can lead to: declarations, and what its macros rename them to."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.S)
    names = set(re.findall(r"\bCUDAAPI\s+(cu\w+)\s*\(", text))
    for target in re.findall(r"^\s*#\s*define\s+cu\w+\s+(\S.*)$", text, re.M):
        spelling = re.fullmatch(r"(?:__CUDA_API_(PTSZ|PTDS)\s*\(\s*)?(cu\w+)\s*\)?\s*", target.strip())
        if spelling:
            suffix, name = spelling.groups()
            names.add(name)
            if suffix:
                names.add("%s_%s" % (name, suffix.lower()))
    return names - set(re.findall(r"\bstatic\s+inline\s+CUresult\s+(cu\w+)\s*\(", text))  # bodies in the header itself


def check(hook_text, passed_text, no_memory_text, sources):
    """Yields one line for each thing that is wrong. `sources` is {where a name comes from: names}."""
    lists = {"the hook table": [name for name, _ in rows(hook_text, "GPUCAP_HOOK")],
             "the pass-through list": [name for name, _ in rows(passed_text, "GPUCAP_PASSED")]}
    globs = patterns(no_memory_text)
    known = set().union(*sources.values())
    if not all(lists.values()) or not globs or not all(sources.values()):
        yield "nothing was read from one of the lists"
        return
    for where, names in lists.items():
        for name in sorted({n for n in names if names.count(n) > 1}):
            yield "%s is twice in %s" % (name, where)
        for name in sorted(set(names) - known):
            yield "%s is in %s, but no driver and no header has it" % (name, where)
    for name, reason in rows(passed_text, "GPUCAP_PASSED"):
        if not re.fullmatch(r'"[^"\s][^"]{9,}"', reason):
            yield "%s is passed through without a reason" % name
    for glob in sorted({g for g in globs if globs.count(g) > 1}):
        yield "%s is twice in no_memory.txt" % glob
    for glob in globs:
        if not any(fnmatch.fnmatchcase(name, glob) for name in known):
            yield "%s in no_memory.txt matches no entry point" % glob
    for name in sorted(known):
        homes = [where for where, names in lists.items() if name in names]
        matching = [glob for glob in globs if fnmatch.fnmatchcase(name, glob)]
        homes += ["no_memory.txt (%s)" % glob for glob in matching]
        if not homes:
            origin = " and ".join(sorted(where for where, names in sources.items() if name in names))
            yield "%s (%s) is in no list: hook it, pass it through with a reason, or say that it has to do with no memory" % (
                name, origin)
        elif len(homes) > 1:
            yield "%s is in more than one list: %s" % (name, ", ".join(homes))
        if matching and SHAPED.match(name) and not NOT_SHAPED.match(name):
            yield "%s is in no_memory.txt, but its name speaks of memory" % name


def read_all():
    return [path.read_text(encoding="utf-8") for path in (HOOKS, PASSED, NO_MEMORY)]


def self_test():
    """Breaks the real lists in one way at a time and wants exactly that reported, and nothing while they are whole."""
    hooks, passed, no_memory = read_all()
    sources = {"the driver's exports": exported(EXPORTS.read_text(encoding="utf-8"))}
    row = next(line for line in passed.splitlines() if line.startswith("GPUCAP_PASSED(cuMemHostAlloc,"))
    hook = next(line for line in hooks.splitlines() if line.startswith("GPUCAP_HOOK(cuMemAlloc_v2,"))
    glob = "cuStreamWait*"
    cases = {
        "a removed hook": (hooks.replace(hook, ""), passed, no_memory, {}, r"^cuMemAlloc_v2 .*is in no list"),
        "a removed pass": (hooks, passed.replace(row, ""), no_memory, {}, r"^cuMemHostAlloc .*is in no list"),
        "a removed pattern": (hooks, passed, no_memory.replace("cuGetErrorName", ""), {}, r"^cuGetErrorName .*is in no list"),
        "a stray hook": (hooks + "\n" + hook.replace("cuMemAlloc_v2", "cuMemAlloc_v9"), passed, no_memory, {},
                         r"^cuMemAlloc_v9 is in the hook table, but no"),
        "a stray pass": (hooks, passed + '\nGPUCAP_PASSED(cuNothing, "a good reason")', no_memory, {},
                         r"^cuNothing is in the pass-through list, but no"),
        "a stray pattern": (hooks, passed, no_memory + "\ncuNothing*\n", {}, r"^cuNothing\* in no_memory.txt matches no"),
        "a double hook": (hooks + "\n" + hook, passed, no_memory, {}, r"^cuMemAlloc_v2 is twice"),
        "a double pass": (hooks, passed + "\n" + row, no_memory, {}, r"^cuMemHostAlloc is twice"),
        "a double pattern": (hooks, passed, no_memory + "\n" + glob, {}, r"^cuStreamWait|.*twice"),
        "two lists": (hooks, passed + '\nGPUCAP_PASSED(cuMemAlloc_v2, "a good reason")', no_memory, {},
                      r"^cuMemAlloc_v2 is in more than one list"),
        "a pattern that is too wide": (hooks, passed, no_memory + "\ncuIpc*\n", {}, r"^cuIpc"),
        "memory called no memory": (hooks, passed.replace(row, ""), no_memory + "\ncuMemHostAlloc\n", {},
                                    r"^cuMemHostAlloc is in no_memory.txt, but"),
        "no reason": (hooks, passed.replace(row, 'GPUCAP_PASSED(cuMemHostAlloc, "")'), no_memory, {}, r"^cuMemHostAlloc .*without a reason"),
        "a new export": (hooks, passed, no_memory, {"a new driver": {"cuMemTakeAll_v2"}}, r"^cuMemTakeAll_v2 \(a new driver\) is in no"),
        "a new declaration": (hooks, passed, no_memory, {"a new cuda.h": declared(
            "CUresult CUDAAPI cuInit(unsigned int Flags);\n/* CUresult CUDAAPI cuOld(void); */\n"
            "    #define cuMemGrab __CUDA_API_PTSZ(cuMemGrab_v2)\n#define cuHelper cuHelper_v2\n"
            "static inline CUresult cuHelper_v2(int a) {\n")},
            r"^cuMemGrab_v2(_ptsz)? \(a new cuda.h\) is in no list"),
    }
    failures = ["whole lists: " + line for line in check(hooks, passed, no_memory, sources)]
    for name, (h, p, n, more, wanted) in cases.items():
        found = list(check(h, p, n, dict(sources, **more)))
        if not found:
            failures.append("%s was not reported" % name)
        failures += ["%s: unexpected: %s" % (name, line) for line in found if not re.search(wanted, line)]
    both = [line for line in check(*cases["a new declaration"][:3], dict(sources, **cases["a new declaration"][3]))]
    if len(both) != 2:
        failures.append("a renamed declaration has two spellings, %d were reported" % len(both))
    for line in failures:
        print(line)
    print("self-test of the coverage check: %d ways to break the lists, %d failures" % (len(cases), len(failures)))
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print("usage: coverage.py CUDA_H | --self-test", file=sys.stderr)
        return 2
    header = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")
    sources = {"the driver's exports": exported(EXPORTS.read_text(encoding="utf-8")), "cuda.h": declared(header)}
    problems = list(check(*read_all(), sources))
    for line in problems:
        print(line)
    print("%d exports and %d declared spellings, %d problems" % (len(sources["the driver's exports"]), len(sources["cuda.h"]),
                                                                len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
