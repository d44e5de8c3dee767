"""The rest of point 3: a program with the runtime linked in, and one that speaks to the driver in every way it offers.
Both are compiled on the spot, into the output folder, with what the machine has."""
import shutil
import subprocess

from harness import AGREEMENT_BYTES, GIB, PROGRAMS, Skipped, run_capped
from native import compile_program, find_driver, find_headers, find_nvcc

CAP = 4 * GIB


def static_runtime(place, truth, outcome):
    if place.fake:
        raise Skipped("NVIDIA's own runtime needs more of a driver than the fake one has")
    nvcc = find_nvcc()
    program = place.out / "static_runtime"
    compile_program([nvcc, "-std=c++17", "-cudart", "static", "-o", program, PROGRAMS / "static_runtime.cu"], place.plain)
    run_capped(place, truth, outcome, [program, str(CAP)], "4G", CAP, timeout=90, at_rest=back_to_start(outcome))


def driver_api(place, truth, outcome):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise Skipped("no C++ compiler here")
    headers = find_headers()
    program = place.out / "driver_api"
    compile_program([compiler, "-std=c++17", "-O1", "-I", headers, "-o", program, PROGRAMS / "driver_api.cpp",
                     PROGRAMS / "driver_ways.cpp", find_driver(place.plain), "-Wl,--allow-shlib-undefined", "-ldl"], place.plain)
    without = subprocess.run([program, "--first-spelling"], env=place.plain, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             timeout=60, check=True, text=True).stdout.strip()
    run_capped(place, truth, outcome, [program, str(CAP), without], "4G", CAP, timeout=120, at_rest=back_to_start(outcome))
    outcome.figures["ways"] = sum(1 for name in outcome.figures if name.endswith(": error"))


def back_to_start(outcome):
    """At each rest whose label ends in "freed", truth must be what it was at "start"."""
    start = {}

    def at_rest(label, now, _top, _program):
        if label == "start":
            start["bytes"] = now
        elif label.endswith(" freed"):
            kept = now - start["bytes"]
            outcome.require(kept <= AGREEMENT_BYTES, "%s: %d B more than at the start are still held" % (label, kept))

    return at_rest


CHECKS = [
    ("static-runtime", static_runtime),
    ("driver-api", driver_api),
]
