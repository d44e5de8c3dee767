"""Every way of taking device memory, a process each, for twice the cap (programs/every_way.cpp and programs/ways/).

Where the call itself takes the memory and its size is known, truth must never be above the cap by a byte. The other ways
are listed here, each with its reason; the table then shows by how much they were over.
"""
import os
import shutil
import subprocess

from harness import AGREEMENT_BYTES, GIB, PROGRAMS, ROOT, Skipped, run_capped
from native import compile_program, find_driver, find_headers

CAP = 4 * GIB
NEXT_BYTES = 64 << 20  # what every_way.cpp asks for when all has been taken

# No call announces it, or it is taken where no call of the driver's is made: seen at the next look, and counted from then on.
NOT_CAPPED_BEFOREHAND = {
    "kernel with 32 KiB of local memory, first launch":
        "no call announces what a first launch takes, and a launch cannot be undone",
    "kernel that calls malloc, first launch": "the heap is taken at the first launch of a kernel that needs it",
    "kernel that calls printf, first launch": "the fifo is taken at the first launch of a kernel that needs it",
}
# What these take is known only when it has been taken: it is measured within the call, and undone if it does not fit. So
# truth may be over the cap by one piece for the length of one call, and must not be when the call has returned.
MEASURED_AND_UNDONE = {
    "cuModuleLoadData, lazy": "a module is measured, and unloaded if it does not fit",
    "cuModuleLoadData, eager": "a module is measured, and unloaded if it does not fit",
    "cuLibraryLoadData + first use": "a library is measured at its first use, which is refused if it does not fit; unloading is the program's",
}
# Known gaps: each fails, is shown as OPEN by name, and becomes a failure on the day that it passes and is still listed.
OPEN = {}
# What happens is written down; whether it can be better is an open question.
DOCUMENTED = {
    "cuMemAlloc_v2 from a plugin, dlmopen": "nothing is preloaded into a namespace of its own",
}
# Where the driver keeps some of what was given back.
DRIVER_KEEPS = {
    "kernel with 32 KiB of local memory, first launch": "local memory stays with the context",
    "kernel that calls malloc, first launch": "the heap stays with the context",
    "kernel that calls printf, first launch": "the fifo stays with the context",
    "cuStreamCreate": "the driver keeps some for later streams",
    "cuGreenCtxCreate": "the driver keeps some for later contexts",
}
# Their memory lies unused in pools: gpucap trims these, so that the next request is rightly served.
MAKES_ROOM = ("memory parked in many pools", "many graphs that free what they allocate", "cuGraphAddMemAllocNode, uploaded")
UNSEEN_BY_NVML = {"cuMemCreate on a second card without a context there"}
UNSEEN_BY_GPUCAP = set(DOCUMENTED)  # its figure need not agree with truth there


def build(place):
    """The program and its plugin: on the fake driver as built with everything else, on a card compiled here and now."""
    if place.fake:
        return place.build / "gpu" / "every_way", place.build / "gpu" / "libevery_way_plugin.so"
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise Skipped("no C++ compiler here")
    include = ["-I", ROOT, "-isystem", find_headers()]
    common = [compiler, "-std=c++20", "-O1", "-Wall", "-Wextra"] + include
    driver = find_driver(place.plain)
    program, plugin = place.out / "every_way", place.out / "libevery_way_plugin.so"
    sources = [PROGRAMS / "every_way.cpp"] + sorted(p for p in (PROGRAMS / "ways").glob("*.cpp") if p.name != "plugin.cpp")
    objects = [place.out / (source.stem + ".o") for source in sources]
    running = [subprocess.Popen([str(part) for part in common + ["-c", source, "-o", made]], env=place.plain)
               for source, made in zip(sources, objects)]
    if any([process.wait() != 0 for process in running]):
        raise RuntimeError("every_way does not compile")
    compile_program(common + objects + ["-o", program, driver, "-Wl,--allow-shlib-undefined", "-ldl", "-pthread"], place.plain)
    compile_program(common + ["-fPIC", "-shared", PROGRAMS / "ways" / "plugin.cpp", "-o", plugin, driver, "-Wl,--allow-shlib-undefined"], place.plain)
    return program, plugin


def try_way(program, plugin, name):
    def check(place, truth, outcome):
        command = [program, name, str(CAP), "--plugin", plugin] + (["--fake"] if place.fake else [])
        outcome.open = OPEN.get(name)
        lists = (NOT_CAPPED_BEFOREHAND, MEASURED_AND_UNDONE, DOCUMENTED)
        capped = not any(name in known for known in lists)
        held, first_card, others = {}, {}, {}

        def at_rest(label, now, _top, started):
            held[label] = now
            if label == "full":
                first_card["full"] = truth.ask("now %d" % started.pid)["now"].get("0", 0)
            other = started.facts.get("other_pid")
            if other is not None:
                see_importer(place, truth, outcome, label, other, others)

        run_capped(place, truth, outcome, command, "4G", CAP, timeout=60, expect_refusal=False, at_rest=at_rest,
                   cap_holds=capped, figures_agree=name not in UNSEEN_BY_GPUCAP | UNSEEN_BY_NVML)
        figures = outcome.figures
        if "highest_truth_bytes" not in figures:
            return
        figures["over_bytes"] = figures["highest_truth_bytes"] - CAP
        figures["note"] = next((known[name] for known in lists if name in known), "")
        if {"start", "full", "freed"} <= set(held):
            figures["start_truth_bytes"] = held["start"]
            figures["full_truth_bytes"] = held["full"]
            figures["kept_bytes"] = kept = held["freed"] - held["start"]
            if name in DRIVER_KEEPS or name in DOCUMENTED:
                figures["note"] += (" " if figures["note"] else "") + "(kept: %s)" % DRIVER_KEEPS.get(name, "see above")
            else:
                outcome.require(kept == 0, "when all was given back, truth is %+d B from where it was" % kept)
            if name in MEASURED_AND_UNDONE:
                outcome.require(held["full"] <= CAP, "%d B above the cap are still held at rest" % (held["full"] - CAP))
            # Whatever was taken, in whichever way, counts at the next request.
            if name not in UNSEEN_BY_GPUCAP and first_card["full"] + NEXT_BYTES > CAP and name not in MAKES_ROOM:
                outcome.require(figures.get("next_error") == 2,
                                "with %d B held, another 64 MiB were answered with error %s" %
                                (first_card["full"], figures.get("next_error")))
        figures.update(others)

    def check_or_document(place, truth, outcome):
        check(place, truth, outcome)
        if name in DOCUMENTED and outcome.failures:
            outcome.figures["note"] = "; ".join([DOCUMENTED[name]] + outcome.failures)
            outcome.failures = []

    return check_or_document


def see_importer(place, truth, outcome, label, pid, figures):
    """The process that imported a GiB: its figure is NVML's, and the GiB is not in it."""
    now = sum(truth.ask("now %d" % pid)["now"].values())
    shown = place.shown(pid)
    if not outcome.require(shown is not None, "%s: gpucap-top does not show the importer" % label):
        return
    used = sum(device["used_bytes"] for device in shown.values())
    figures["importer_truth_bytes"], figures["importer_shown_bytes"] = now, used
    outcome.require(abs(used - now) <= AGREEMENT_BYTES, "%s: the importer is shown with %d B, truth is %d B" % (label, used, now))
    outcome.require(used < GIB, "%s: the importer is charged with %d B" % (label, used))


def checks(place):
    """[(name, check)]: one for each way that the program knows."""
    try:
        program, plugin = build(place)
        if not os.access(program, os.X_OK):
            raise RuntimeError("%s is missing" % program)
        listed = subprocess.run([str(program), "--list"] + (["--fake"] if place.fake else []), env=place.plain, check=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=60).stdout.splitlines()
    except (Skipped, RuntimeError, OSError, subprocess.SubprocessError) as error:
        def fail(_place, _truth, _outcome, why=error):
            raise why
        return [("way: none", fail)]
    unknown = set().union(NOT_CAPPED_BEFOREHAND, MEASURED_AND_UNDONE, OPEN, DOCUMENTED, DRIVER_KEEPS, MAKES_ROOM) - set(listed)
    if unknown and not place.fake:
        raise RuntimeError("listed here, but no way of every_way.cpp: %s" % sorted(unknown))
    return [("way: " + name, try_way(program, plugin, name)) for name in listed]


HEADS = ["way", "result", "pieces", "obtained MiB", "highest truth MiB", "over (+) or under (-) the cap, B", "error", "kept after giving back, B",
         "gpucap-top - truth, worst, B", "note"]


def table(results):
    """The table of ways, as rows of text; results are those of run_all.py."""
    rows = []
    for result in results:
        figures = result["figures"]
        differences = [rest["difference_bytes"] for rest in result["rests"] if "difference_bytes" in rest]
        status = result["status"]
        if status == "passed" and result["name"][5:] in DOCUMENTED:
            status = "documented"
        elif status == "passed" and result["name"][5:] in MEASURED_AND_UNDONE:
            status = "passed, undone"
        elif status == "passed" and result["name"][5:] in NOT_CAPPED_BEFOREHAND:
            status = "after the fact"
        rows.append([result["name"][5:], status, str(figures.get("pieces", "")),
                     "%.1f" % (figures["obtained_bytes"] / (1 << 20)) if "obtained_bytes" in figures else "",
                     "%.1f" % (figures["highest_truth_bytes"] / (1 << 20)) if "highest_truth_bytes" in figures else "",
                     "%+d" % figures["over_bytes"] if "over_bytes" in figures else "", str(figures.get("error", "")),
                     "%+d" % figures["kept_bytes"] if "kept_bytes" in figures else "",
                     "%+d" % max(differences, key=abs) if differences else "", figures.get("note", "")])
    return rows
