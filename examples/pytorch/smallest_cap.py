"""What is the smallest card that my program would run on?

Run: bash examples/pytorch/savings.sh
By itself: python3 examples/pytorch/smallest_cap.py COMMAND...
Runs the command once without a cap, to see its peak, and then under caps between nothing and that, until the smallest
that lets it end well is known to 64 MiB.
"""
import json
import subprocess
import sys
import tempfile

MIB, STEP_MIB = 2**20, 64
command = sys.argv[1:]


def run(*options):
    return subprocess.run(["gpucap", "run", "--quiet", *options, "--", *command], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


with tempfile.TemporaryDirectory() as folder:
    if not run("--dir", folder):
        sys.exit("without a cap it does not run either: " + " ".join(command))
    shown = json.loads(subprocess.check_output(["gpucap-top", "--once", "--json", "--all", "--dir", folder]))
peak = max(device["peak_bytes"] for process in shown["processes"] for device in process["devices"])

fails, runs = 0, peak // MIB // STEP_MIB + 2  # in steps
if not run("--limit", "%dM" % (runs * STEP_MIB)):
    sys.exit("does not run under a little more than its peak")
while runs - fails > 1:
    middle = (fails + runs) // 2
    if run("--limit", "%dM" % (middle * STEP_MIB)):
        runs = middle
    else:
        fails = middle
print("peak %d MiB without a cap; runs under %d MiB, not under %d MiB" % (peak / MIB, runs * STEP_MIB, fails * STEP_MIB))
