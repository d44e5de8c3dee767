"""One answer on every surface: whoever asks how much memory there is, inside a process or of a tool started under the cap,
is told the cap; what is used is what this process uses, as truth has it."""
import shutil
import subprocess
import sys

from harness import AGREEMENT_BYTES, GIB, MIB, PROGRAMS, Skipped, run_capped

CAP = 4 * GIB
FEWEST = 8  # surfaces that are there on any machine: two of the driver's and six of NVML's


def judge(outcome, surface, figures, truth_now):
    total, free, used = (figures.get(name) for name in ("total", "free", "used"))
    if total is not None:
        outcome.require(total == CAP, "%s: total is %d, the cap %d" % (surface, total, CAP))
    if free is not None:
        outcome.require(0 <= free <= CAP, "%s: free is %d" % (surface, free))
        outcome.require(abs(CAP - truth_now - free) <= AGREEMENT_BYTES,
                        "%s: %d B are free, by the truth %d" % (surface, free, CAP - truth_now))
    if used is not None:
        outcome.require(abs(used - truth_now) <= AGREEMENT_BYTES, "%s: %d B are used, by the truth %d" % (surface, used, truth_now))


def inside(place, truth, outcome):
    def at_rest(_label, now, _top, program):
        surfaces = {}
        for name, value in program.facts.items():
            if not name.startswith("SKIPPED "):
                surface, _, what = name.rpartition(": ")
                surfaces.setdefault(surface, {})[what] = value
        for surface, figures in surfaces.items():
            judge(outcome, surface, figures, now)
        outcome.figures["surfaces"] = len(surfaces)
        outcome.require(len(surfaces) >= FEWEST, "only %d surfaces answered" % len(surfaces))

    run_capped(place, truth, outcome, [sys.executable, "-u", PROGRAMS / "surfaces.py", str(CAP)], "4G", CAP, timeout=90,
               expect_refusal=False, at_rest=at_rest)


def nvidia_smi(place, truth, outcome):
    """The tool itself uses no CUDA: it holds nothing of the cap that it was started under."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        raise Skipped("no nvidia-smi here")
    command = [tool, "--query-gpu=memory.total,memory.used,memory.free", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, env=place.capped("4G"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=False, text=True)
    if not outcome.require(done.returncode == 0, "exit status %d: %s" % (done.returncode, done.stderr[-200:])):
        return
    rows = [[int(cell) for cell in line.split(",")] for line in done.stdout.splitlines()]
    outcome.require(len(rows) == len(truth.ask("card")["names"]), "%d cards are listed" % len(rows))
    for card, (total, used, free) in enumerate(rows):
        outcome.figures["card %d: total, used, free MiB" % card] = "%d, %d, %d" % (total, used, free)
        outcome.require(total == CAP // MIB, "card %d: the total is %d MiB" % (card, total))
        outcome.require(0 <= used <= AGREEMENT_BYTES // MIB, "card %d: %d MiB are used by a tool that uses none" % (card, used))
        outcome.require(abs(total - used - free) <= 1, "card %d: %d MiB are free" % (card, free))


CHECKS = [
    ("surfaces: within one process", inside),
    ("surfaces: nvidia-smi", nvidia_smi),
]
