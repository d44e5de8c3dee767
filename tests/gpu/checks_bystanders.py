"""Point 4: programs that only look at the card, or never touch CUDA, behave, print and exit as without gpucap."""
import os
import re
import shutil
import subprocess
import sys

from harness import Skipped


def run_once(command, environment):
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def require_same(place, outcome, command, mask=lambda text: text):
    without = run_once(command, place.plain)
    capped = run_once(command, place.capped("4G"))
    name = " ".join(os.path.basename(command[0]) if i == 0 else part for i, part in enumerate(command))
    outcome.figures[name] = "exit %d, %d B on stdout, %d B on stderr" % (capped[0], len(capped[1]), len(capped[2]))
    for what, a, b in zip(("exit status", "stdout", "stderr"), without, capped):
        if what != "exit status":
            a, b = mask(a), mask(b)
        outcome.require(a == b, "%s: %s is %r with gpucap and %r without" % (name, what, b[-200:] if what != "exit status" else b,
                                                                           a[-200:] if what != "exit status" else a))


def mask_date(text):
    return re.sub(rb"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} +\d+ [\d:]+ \d{4}", b"<time>", text)


def mask_numbers(text):
    """The full screen holds the time, temperatures, power and memory; its widths follow them. Words and layout stay."""
    text = mask_date(text)
    text = re.sub(rb"\d+(\.\d+)?(MiB|%|W|C)\b|\d+(\.\d+)?%", b"<n>", text)
    return re.sub(rb"P\d\b", b"<state>", re.sub(rb" +", b" ", text))


def mask_memory(text):
    return re.sub(rb"\d+ MiB", b"<n> MiB", text)


def nvidia_smi(place, _truth, outcome):
    tool = shutil.which("nvidia-smi")
    if tool is None:
        raise Skipped("no nvidia-smi here")
    require_same(place, outcome, [tool], mask_numbers)
    require_same(place, outcome, [tool, "-L"])
    # Everything about memory is masked; all else of the long form is as without gpucap, byte for byte.
    require_same(place, outcome, [tool, "-q", "-d", "MEMORY"], lambda text: mask_memory(mask_date(text)))
    require_same(place, outcome, [tool, "--query-gpu=index,name,uuid,memory.total,memory.used,memory.free", "--format=csv"],
                 mask_memory)
    require_same(place, outcome, [tool, "--no-such-option"])
    require_same(place, outcome, [tool, "-i", "99"])


def python_without_cuda(place, _truth, outcome):
    before = set(os.listdir(place.segments)) if place.segments.exists() else None
    require_same(place, outcome, [sys.executable, "-c", "pass"])
    require_same(place, outcome, [sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"])
    require_same(place, outcome, [sys.executable, "-c", "import os; print(os.getcwd(), os.umask(0), os.environ.get('LANG'))"])
    require_same(place, outcome, [sys.executable, "-c", "import subprocess; subprocess.run(['sh', '-c', 'kill -9 $$'])"])
    require_same(place, outcome, [sys.executable, "-c", "import threading, os; print(len(os.listdir('/proc/self/task')))"])
    require_same(place, outcome, [sys.executable, "-c", "import ctypes; print(hasattr(ctypes.CDLL(None), 'cudaMalloc'))"])
    after = set(os.listdir(place.segments)) if place.segments.exists() else None
    outcome.require(before == after, "a process without CUDA left something in the segments' folder: %s" % (after,))


CHECKS = [
    ("nvidia-smi", nvidia_smi),
    ("python-without-cuda", python_without_cuda),
]
