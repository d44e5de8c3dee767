"""The processes that are measured: started with or without the preload, spoken to in lines, timed in turn.

A pair is two processes of the same program that both live while they are measured; each round one works and the other
waits for its next line. Rounds go without, with, with, without (and the other way round in the next pair of processes),
so that what drifts meets both alike. Owns the processes that it starts; changes nothing on the machine.
"""
import atexit
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import spread

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
MIB = 1 << 20
GIB = 1 << 30
FAKE_CARD_BYTES = 256 * GIB


class Failed(Exception):
    """A measured program ended or spoke nonsense; the text says which, and the end of its stderr."""


class Skipped(Exception):
    """This cannot be measured here; the text says what is missing."""


class Place:
    """Where the build and the output are, and the environments of programs with and without the preload."""

    def __init__(self, build, out, fake):
        self.build, self.out, self.fake = build, out, fake
        # In memory, where they are by default, and none from before: a start sweeps what dead processes left.
        self.segments = pathlib.Path(tempfile.mkdtemp(prefix="gpucap-bench-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        atexit.register(shutil.rmtree, self.segments, True)
        self.plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("GPUCAP_")}
        self.plain["PYTHONDONTWRITEBYTECODE"] = "1"
        if fake:
            self.plain["LD_LIBRARY_PATH"] = str(build / "fake_cuda")
            self.plain["FAKE_CUDA_STATE"] = str(out / "fake-cuda-state")
            self.plain["FAKE_CUDA_MEMORY"] = str(FAKE_CARD_BYTES)

    @property
    def library(self):
        return self.build / "libgpucap.so"

    def program(self, name):
        return str(self.build / "bench" / name)

    def preloaded(self, limit="16G", **more):
        return dict(self.plain, LD_PRELOAD=str(self.library), GPUCAP_LIMIT=limit, GPUCAP_DIR=str(self.segments), **more)


class Served:
    """One process of a program that serves: a line in, a line of JSON out; its first line says that it is ready."""

    def __init__(self, command, environment, stderr_path):
        self.command, self.stderr_path = command, stderr_path
        with open(stderr_path, "ab") as stderr:
            self.process = subprocess.Popen([str(word) for word in command], env=environment, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=stderr, text=True)

    def answer(self):
        line = self.process.stdout.readline()
        try:
            return json.loads(line)
        except ValueError:
            end = self.stderr_path.read_text(errors="replace")[-600:]
            raise Failed("%s said %r; its stderr ends: %s" % (self.command[0], line, end)) from None

    def tell(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer will say so

    def ask(self, line):
        self.tell(line)
        return self.answer()

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class ProcessPair:
    """Two processes of one program, without and with the preload."""

    def __init__(self, place, command, environment_with, number=0, environment_without=None):
        self.number = number
        first_with = number % 2 == 1  # who starts first takes turns too
        made = {}
        for with_it in (first_with, not first_with):
            environment = environment_with if with_it else environment_without or place.plain
            # Two Pythons differ by several per cent by their hash seeds: another seed for each pair, the same on both sides.
            environment = dict(environment, PYTHONHASHSEED=str(number + 1))
            made[with_it] = Served(command, environment, place.out / ("stderr-with" if with_it else "stderr-without"))
        self.without, self.with_it = made[False], made[True]
        for one in made.values():  # both start at once
            one.answer()

    def open(self, case, **options):
        """Opens the case in both at once. What fills the card to a share is counted where there is a cap, and copied."""
        shared = {key: value for key, value in options.items() if value is not None}
        if "fill_to_share" in shared:
            with_cap = self.with_it.ask(open_line(case, shared))
            shared["fill"] = with_cap["filled"]
            del shared["fill_to_share"]
            self.without.ask(open_line(case, shared))
            return
        for one in (self.without, self.with_it):
            one.tell(open_line(case, shared))
        for one in (self.without, self.with_it):
            one.answer()

    def operations_for(self, round_ns, fewest=1):
        """How many operations fill a round; measured on the one without the preload, after a warm-up of both."""
        operations = 1
        while True:
            taken = self.without.ask("run %d" % operations)["ns"]
            self.with_it.ask("run %d" % operations)
            if taken >= round_ns / 4 or operations >= 1 << 24:
                return max(fewest, int(operations * round_ns / max(taken, 1)))
            operations *= 4

    def four_rounds(self, operations):
        """(without, with) in ns an operation, from rounds in the order A B B A."""
        order = (self.without, self.with_it, self.with_it, self.without)
        if self.number % 2 == 1:
            order = (self.with_it, self.without, self.without, self.with_it)
        taken = {id(self.without): 0, id(self.with_it): 0}
        for one in order:
            taken[id(one)] += one.ask("run %d" % operations)["ns_per_operation"] / 2
        return taken[id(self.without)], taken[id(self.with_it)]

    def close(self):
        self.without.close()
        self.with_it.close()


def quietest_core():
    """The processor that runs a short loop fastest at this moment: in a virtual machine others' work may sit on its other half."""
    allowed = os.sched_getaffinity(0)

    def taken_ns(core):
        os.sched_setaffinity(0, {core})
        taken = []
        for _ in range(15):
            start = time.perf_counter_ns()
            for _ in range(5000):
                pass
            taken.append(time.perf_counter_ns() - start)
        return spread.median(taken)

    try:
        return min(allowed, key=taken_ns)
    finally:
        os.sched_setaffinity(0, allowed)


def open_line(case, options):
    return " ".join(["open", case] + ["%s=%s" % item for item in options.items()])


class Until:
    """When to stop: the noise is small enough, or the time is up, or so many pairs of processes have been made."""

    def __init__(self, seconds, noise=0.01, most_groups=200, fewest_groups=spread.ENOUGH_GROUPS):
        self.deadline = time.monotonic() + seconds
        self.noise, self.most_groups, self.fewest_groups = noise, most_groups, fewest_groups

    def time_is_up(self):
        return time.monotonic() >= self.deadline

    def quiet(self, pairs):
        if not self.fewest_groups <= len(pairs.groups) < self.most_groups:
            return len(pairs.groups) >= self.most_groups
        noise = pairs.noise()
        return noise is not None and noise < self.noise


STEADY_AFTER_S, STEADY_ROUND_NS, STEADY_FOURS = 2.2, 3e7, 10


def measure(place, command, rows, until, environment_with, round_ns=3e6, fours=20, environment_without=None, steady=(),
            pin=False, seconds_each=0, fewest_operations=1):
    """Measures rows {name: (case, options)} with one pair of processes after the other until every row is quiet.

    Returns {name: summary}. All rows that are not quiet yet are measured in each pair of processes, in `fours` or more, for
    `seconds_each` at least. Of the names in `steady`: see rows.Row. `pin`: both run their loop on one core, the quietest at that moment.
    """
    measured = {name: spread.Pairs() for name in rows}
    number = 0
    while not until.time_is_up():
        left = [name for name in rows if not until.quiet(measured[name])]
        if not left:
            break
        both = ProcessPair(place, command, environment_with, number, environment_without)
        try:
            for name in left:
                if until.time_is_up() and measured[name].count() > 0:
                    break
                case, options = rows[name]
                both.open(case, **options, **({"core": quietest_core()} if pin else {}))
                if name in steady:
                    time.sleep(STEADY_AFTER_S)
                operations = both.operations_for(STEADY_ROUND_NS if name in steady else round_ns, fewest_operations)
                measured[name].new_group()
                began, done = time.monotonic(), 0
                while done < (STEADY_FOURS if name in steady else fours) or time.monotonic() - began < seconds_each:
                    measured[name].add(*both.four_rounds(operations))
                    done += 1
                    if until.time_is_up():
                        break
        finally:
            both.close()
        number += 1
    return {name: pairs.summary() for name, pairs in measured.items()}
