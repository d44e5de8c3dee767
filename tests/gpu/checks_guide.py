"""The examples of the guide (docs/pytorch.md), each run as its first lines say, with what it shows asserted."""
import subprocess

import guide_shows as shows
from checks_python import need
from checks_rest import WITHOUT_MULTICAST
from guide_run import JUPYTER, environment_of, keep, need_tools, run_example
from harness import GIB, Skipped

TWO_CARDS = dict(WITHOUT_MULTICAST, OMP_NUM_THREADS="4")  # torch.distributed.run prints a warning where the latter is unset


def example(name, show, modules=("torch",), tools=(), cards=1, timeout=60, extra=None, cap_holds=True, afterwards=None,
            watched=None):
    def check(place, truth, outcome):
        if place.fake:
            raise Skipped("the fake driver runs no kernels")
        for module in modules:
            need(module)
        need_tools(place, *tools)
        found = len(truth.ask("card")["names"])
        if found < cards:
            raise Skipped("needs %d cards, and there is %d" % (cards, found))
        watch = watched(truth) if watched else None
        run = run_example(place, truth, name, timeout, extra, on_line=watch.on_line if watch else None)
        if cap_holds:
            shows.cap_holds(run, outcome)
        else:
            outcome.require(run.status == 0, "exit status %s: %s" % (run.status, run.text[-400:]))
        if run.status == 0:
            show(run, outcome)
            if watch:
                watch.show(outcome)
            if afterwards:
                afterwards(place, truth, outcome, run)
        keep(place, name, run, not outcome.failures)

    return "guide: " + name, check


class GroupTruth:
    """What all processes of the card held together, at most, in each part of sharing.sh. No other program uses the card."""

    def __init__(self, truth):
        self.truth = truth
        self.part, self.together_bytes = "before", {}

    def on_line(self, line):
        if line.startswith(("== ", "exit status")):
            self.together_bytes[self.part] = max(self.truth.ask("sum-reset")["max"].values(), default=0)
            self.part = line.strip() if line.startswith("== ") else "after " + self.part

    def show(self, outcome):
        groups = {part: held for part, held in self.together_bytes.items() if part.startswith("==") and "group" in part}
        outcome.require(len(groups) == 2, "the groups' parts: %s" % groups)
        for part, held in groups.items():
            outcome.require(7 * GIB < held <= 12 * GIB, "%s: together they held %d B" % (part, held))
            outcome.figures["truth, both, " + part[3:].split(":")[0]] = held


def smallest_caps_are_true(place, truth, outcome, run):
    """The caps that the search found, tried again where NVML is watched: the one fits, 64 MiB less does not."""
    found = shows.find(run, outcome, r"^neither: .* runs under (\d+) MiB, not under (\d+) MiB$", 1)
    for cap, fits in zip(found[0] if found else (), (True, False)):
        again = run_example(place, truth, "savings.py", 60, command="gpucap run --limit %sM -- python3 examples/pytorch/savings.py" % cap)
        outcome.require((again.status == 0) == fits, "under %s MiB the exit status is %s" % (cap, again.status))
        for process in again.processes:
            outcome.require(process.truth_bytes <= process.limit_bytes, "under %s MiB the truth reached %d B" % (cap, process.truth_bytes))


def jupyter_kernel(place, truth, outcome):
    """The modules may lie in a folder beside the machine's own."""
    if not place.fake:
        asked = subprocess.run(["python3", "-c", "import jupyter_client, ipykernel"], env=environment_of(place, place.out, {}),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
        if asked.returncode != 0:
            raise Skipped("no Python modules 'jupyter_client' and 'ipykernel' here, nor in %s" % JUPYTER.name)
    example("jupyter_kernel.py", shows.jupyter_kernel, timeout=120)[1](place, truth, outcome)


CHECKS = [
    example("versions.py", shows.versions, tools=["nvidia-smi"]),
    example("watch.py", shows.watch, tools=["nvidia-smi"]),
    example("limit.sh", shows.limit, tools=["nvidia-smi"]),
    example("live_limit.sh", shows.live_limit, cap_holds=False),
    example("allocators.sh", shows.allocators, timeout=120),
    example("savings.sh", shows.savings, timeout=180, afterwards=smallest_caps_are_true),
    example("full_training.py", shows.full_training),
    example("data_parallel.py", shows.data_parallel, cards=2, timeout=90, extra=TWO_CARDS),
    example("distributed.py", shows.distributed, cards=2, timeout=90, extra=TWO_CARDS),
    example("freeing.sh", shows.freeing),
    example("out_of_memory.sh", shows.out_of_memory, timeout=90),
    example("fragmentation.sh", shows.fragmentation, timeout=90),
    example("sharing.sh", shows.sharing, tools=["nvidia-smi"], timeout=180, watched=GroupTruth),
    example("leak.sh", shows.leak, timeout=90),
    ("guide: jupyter_kernel.py", jupyter_kernel),
    example("other_jax.py", shows.other_jax, modules=["jax"], timeout=90),
    example("other_cupy.py", shows.other_cupy, modules=["cupy"]),
]
