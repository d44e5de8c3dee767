#!/usr/bin/env python3
"""nvidia-ml-py and cuda-bindings from PyPI on the fake machine: one answer on every surface, with the library preloaded.

nvml_clients.py LIBGPUCAP FAKE_FOLDER, run by ctest with any Python; the clients themselves run in .deps/venv, each in a process of
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
CARD = 16 * GIB
CONTEXT = 543162368  # of the fake card

# Looks at every card by index, UUID and PCI id, in both versions, before and after 1 GiB is taken on device 0; then at the
# processes, and at what the driver says of the same device.
CLIENT = r"""
import json, os
import pynvml as n

def look():
    seen = {}
    for i in range(n.nvmlDeviceGetCount()):
        card = n.nvmlDeviceGetHandleByIndex(i)
        others = [n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(card)), n.nvmlDeviceGetHandleByPciBusId(n.nvmlDeviceGetPciInfo(card).busId)]
        answers = []
        for handle in [card] + others:
            one = n.nvmlDeviceGetMemoryInfo(handle)
            two = n.nvmlDeviceGetMemoryInfo(handle, version=n.nvmlMemory_v2)
            answers.append([one.total, one.free, one.used])
            answers.append([two.total, two.free, two.used])
            answers.append([two.version, two.reserved])
        seen[i] = {"memory": answers[0], "same": all(a == answers[0] for a in answers if len(a) == 3),
                   "second": answers[2], "processes": [[p.pid == os.getpid(), p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(card)],
                   "name": n.nvmlDeviceGetName(card), "index": n.nvmlDeviceGetIndex(card)}
    return seen

n.nvmlInit()
before = look()
from cuda.bindings import driver
assert driver.cuInit(0)[0] == 0
device = driver.cuDeviceGet(0)[1]
assert driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(device)[1])[0] == 0
error, pointer = driver.cuMemAlloc(1 << 30)
assert error == 0, error
after = look()
info = [int(x) for x in driver.cuMemGetInfo()[1:]]
assert driver.cuMemFree(pointer)[0] == 0
driver.cuCtxSynchronize()
last = look()
n.nvmlShutdown()
print(json.dumps({"before": before, "after": after, "last": last, "free and total by the driver": info}))
"""

failures = []


def expect(what, got, wanted):
    if got != wanted:
        failures.append("%s: %r, expected %r" % (what, got, wanted))


def run(library, fake, limit, visible=None):
    """What the client printed; a failure is noted, and an empty answer given."""
    with tempfile.TemporaryDirectory(prefix="gpucap-nvml-", dir="/dev/shm") as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCAP_", "FAKE_", "CUDA_"))}
        environment.update(LD_LIBRARY_PATH=fake, FAKE_CUDA_STATE=folder + "/machine", GPUCAP_DIR=folder + "/segments",
                           PYTHONDONTWRITEBYTECODE="1")
        if library:
            environment.update(LD_PRELOAD=library)
        if limit:
            environment.update(GPUCAP_LIMIT=limit)
        if visible is not None:
            environment.update(CUDA_VISIBLE_DEVICES=visible)
        done = subprocess.run([str(PYTHON), "-c", CLIENT], env=environment, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode != 0 or done.stderr:
        failures.append("limit %r: the client ended with %d:\n%s%s" % (limit, done.returncode, done.stdout, done.stderr))
        return None
    return json.loads(done.stdout)


def memory(seen, when, card):
    expect("%s, card %s: every handle and both versions agree" % (when, card), seen[when][card]["same"], True)
    return seen[when][card]["memory"]


def every_surface_shows_the_cap(library, fake):
    seen, bare = run(library, fake, "0=4G,1=2G"), run(None, fake, None)
    if seen is None or bare is None:
        return
    held = CONTEXT + GIB
    expect("before CUDA, card 0", memory(seen, "before", "0"), [4 * GIB, 4 * GIB, 0])
    expect("before CUDA, card 1", memory(seen, "before", "1"), [2 * GIB, 2 * GIB, 0])
    expect("after CUDA, card 0", memory(seen, "after", "0"), [4 * GIB, 4 * GIB - held, held])
    expect("after CUDA, card 1", memory(seen, "after", "1"), [2 * GIB, 2 * GIB, 0])
    expect("the driver agrees", seen["free and total by the driver"], [4 * GIB - held, 4 * GIB])
    expect("after the free", memory(seen, "last", "0"), [4 * GIB, 4 * GIB - CONTEXT, CONTEXT])
    for when in ("before", "after", "last"):
        for card in ("0", "1"):
            for what in ("processes", "name", "index", "second"):
                expect("%s, card %s: %s is NVML's own" % (when, card, what), seen[when][card][what], bare[when][card][what])
    expect("this process in the list", seen["after"]["0"]["processes"], [[True, held]])


def numbers_are_those_of_cuda(library, fake):
    seen = run(library, fake, "0=4G", visible="1")
    bare = run(None, fake, None, visible="1")
    if seen is None or bare is None:
        return
    expect("the second card is device 0", memory(seen, "after", "1"), [4 * GIB, 4 * GIB - CONTEXT - GIB, CONTEXT + GIB])
    expect("and so before CUDA", memory(seen, "before", "1"), [4 * GIB, 4 * GIB, 0])
    expect("the first card is not seen by CUDA", [seen[w]["0"] for w in ("before", "after")], [bare[w]["0"] for w in ("before", "after")])
    expect("and whole", memory(seen, "after", "0"), [CARD, CARD, 0])


def without_a_limit_nothing_is_changed(library, fake):
    expect("without a limit", run(library, fake, None), run(None, fake, None))


def main():
    if len(sys.argv) != 3:
        print("usage: nvml_clients.py LIBGPUCAP FAKE_FOLDER", file=sys.stderr)
        return 2
    if not PYTHON.exists():
        print("%s is missing: run scripts/setup.sh --clients" % PYTHON)
        return 1
    for test in (every_surface_shows_the_cap, numbers_are_those_of_cuda, without_a_limit_nothing_is_changed):
        test(*sys.argv[1:])
    for line in failures:
        print(line)
    print("nvidia-ml-py: %d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
