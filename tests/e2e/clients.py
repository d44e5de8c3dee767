#!/usr/bin/env python3
"""Real CUDA clients from PyPI on the fake driver, with the library preloaded: cuda-bindings and nvidia-ml-py.

clients.py LIBGPUCAP FAKE_FOLDER, run by ctest with any Python; the clients themselves run in .deps/venv, each in a process of
its own with a fake machine of its own. Fails if the virtual environment is missing: run scripts/setup.sh --clients.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / ".deps/venv/bin/python"
GIB = 1 << 30
MIB = 1 << 20
CONTEXT = 543162368  # of the fake card

# Allocates until it is refused, frees, allocates again; prints what it saw as JSON, and waits for a line when asked to.
BINDINGS = r"""
import json, sys
from cuda.bindings import driver

def checked(answer):
    assert answer[0] == driver.CUresult.CUDA_SUCCESS, answer
    return answer[1] if len(answer) == 2 else answer[1:]

checked(driver.cuInit(0))
device = checked(driver.cuDeviceGet(0))
context = checked(driver.cuDevicePrimaryCtxRetain(device))
checked(driver.cuCtxSetCurrent(context))
seen = {"total_of_device": checked(driver.cuDeviceTotalMem(device)), "info_at_first": checked(driver.cuMemGetInfo())}
for name, take, give in (
        ("plain", lambda: driver.cuMemAlloc(256 << 20), lambda pointer: driver.cuMemFree(pointer)),
        ("async", lambda: driver.cuMemAllocAsync(256 << 20, 0), lambda pointer: driver.cuMemFreeAsync(pointer, 0))):
    pointers = []
    while len(pointers) < 200:
        result, pointer = take()
        if result != driver.CUresult.CUDA_SUCCESS:
            break
        pointers.append(pointer)
    full = checked(driver.cuMemGetInfo())
    frees = [give(pointer)[0] == driver.CUresult.CUDA_SUCCESS for pointer in pointers]
    checked(driver.cuCtxSynchronize())
    result_again, pointer = take()
    seen[name] = {"taken": len(pointers), "result": result.name, "info_when_full": full, "frees": all(frees),
                  "again": result_again.name}
    give(pointer)
    checked(driver.cuCtxSynchronize())
seen["info_at_last"] = checked(driver.cuMemGetInfo())
print(json.dumps(seen))
"""

# Takes 1 GiB and shows what NVML says of the card and of this process.
NVML = r"""
import json, os
import pynvml
from cuda.bindings import driver
driver.cuInit(0)
driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(driver.cuDeviceGet(0)[1])[1])
assert driver.cuMemAlloc(1 << 30)[0] == 0
pynvml.nvmlInit()
seen = {"driver": pynvml.nvmlSystemGetDriverVersion(), "count": pynvml.nvmlDeviceGetCount(), "devices": []}
for i in range(seen["count"]):
    card = pynvml.nvmlDeviceGetHandleByIndex(i)
    memory = pynvml.nvmlDeviceGetMemoryInfo(card)
    processes = [(p.pid == os.getpid(), p.usedGpuMemory) for p in pynvml.nvmlDeviceGetComputeRunningProcesses(card)]
    seen["devices"].append({"name": pynvml.nvmlDeviceGetName(card), "uuid": pynvml.nvmlDeviceGetUUID(card), "total": memory.total,
                            "used": memory.used, "free": memory.free, "processes": processes})
pynvml.nvmlShutdown()
print(json.dumps(seen))
"""

failures = []


def expect(what, got, wanted):
    if got != wanted:
        failures.append("%s: %r, expected %r" % (what, got, wanted))


def run(program, library_path, limit, preload):
    """What the program printed as JSON, and its stderr; None if it failed."""
    with tempfile.TemporaryDirectory(prefix="gpucap-clients-", dir="/dev/shm") as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCAP_", "FAKE_", "CUDA_"))}
        environment.update(LD_LIBRARY_PATH=library_path, FAKE_CUDA_STATE=folder + "/machine", GPUCAP_DIR=folder + "/segments",
                           PYTHONDONTWRITEBYTECODE="1")
        if preload:
            environment.update(LD_PRELOAD=preload)
        if limit:
            environment.update(GPUCAP_LIMIT=limit)
        done = subprocess.run([str(PYTHON), "-c", program], env=environment, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode != 0:
        failures.append("a client ended with %d:\n%s%s" % (done.returncode, done.stdout, done.stderr))
        return None, done.stderr
    return json.loads(done.stdout), done.stderr


def bindings_are_capped(library, fake):
    seen, errors = run(BINDINGS, fake, "4G", library)
    if seen is None:
        return
    expect("cuDeviceTotalMem", seen["total_of_device"], 4 * GIB)
    expect("cuMemGetInfo at first", seen["info_at_first"], [4 * GIB - CONTEXT, 4 * GIB])
    for way, most in (("plain", (4 * GIB - CONTEXT) // (256 * MIB)), ("async", (4 * GIB - CONTEXT) // (256 * MIB))):
        expect(way + ": pieces of 256 MiB", seen[way]["taken"], most)
        expect(way + ": the refusal", seen[way]["result"], "CUDA_ERROR_OUT_OF_MEMORY")
        expect(way + ": cuMemGetInfo when full", seen[way]["info_when_full"], [4 * GIB - CONTEXT - most * 256 * MIB, 4 * GIB])
        expect(way + ": all frees succeed", seen[way]["frees"], True)
        expect(way + ": after the frees", seen[way]["again"], "CUDA_SUCCESS")
    expect("cuMemGetInfo at last", seen["info_at_last"], [4 * GIB - CONTEXT, 4 * GIB])
    refusals = [line for line in errors.splitlines() if line.startswith("gpucap: refused ")]
    expect("other lines on stderr", [line for line in errors.splitlines() if line not in refusals], [])
    expect("a refusal line", bool(refusals) and refusals[0].startswith("gpucap: refused cuMemAlloc_v2 of 256.00 MiB on GPU 0: the cap of"),
           True)


def bindings_see_the_card_without_a_limit(library, fake):
    watched, errors = run(BINDINGS, fake, None, library)
    bare, _ = run(BINDINGS, fake, None, None)
    expect("cuda-bindings under a library without a limit", watched, bare)
    # Out of memory at the card's end is told, but not as ours.
    expect("a cap on stderr", "the cap of" in errors, False)
    if bare:
        expect("the card is used to its end", bare["plain"]["taken"] > 50, True)


def nvml_shows_the_cap_and_all_else_as_it_is(library, fake):
    capped, errors = run(NVML, fake, "4G", library)
    bare, _ = run(NVML, fake, None, None)
    expect("stderr", errors, "")
    if capped is None or bare is None:
        return
    expect("this process in NVML's list", bare["devices"][0]["processes"], [[True, CONTEXT + GIB]])
    for card in bare["devices"]:
        expect("the card's own total", card["total"], 16 * GIB)
        card.update(total=4 * GIB, free=4 * GIB - card["used"])
    expect("nvidia-ml-py under the cap", capped, bare)
    watched, errors = run(NVML, fake, None, library)
    bare, _ = run(NVML, fake, None, None)
    expect("nvidia-ml-py under a library without a limit", watched, bare)
    expect("stderr", errors, "")


def main():
    if len(sys.argv) != 3:
        print("usage: clients.py LIBGPUCAP FAKE_FOLDER", file=sys.stderr)
        return 2
    if not PYTHON.exists():
        print("%s is missing: run scripts/setup.sh --clients" % PYTHON)
        return 1
    for test in (bindings_are_capped, bindings_see_the_card_without_a_limit, nvml_shows_the_cap_and_all_else_as_it_is):
        test(*sys.argv[1:])
    for line in failures:
        print(line)
    print("real clients: %d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
