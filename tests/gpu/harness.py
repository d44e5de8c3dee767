"""What the checks on a real card share: the truth, a program under the cap, gpucap-top's word, and one check's outcome.

Used by run_all.py and the checks_*.py beside it. A program under test speaks on stdout in lines that start with "@"
(programs/report.py, programs/report.h): facts, checks of its own, and READY, after which it rests until a line comes on
stdin; that is when truth and gpucap-top are compared. Owns the processes that it starts and ends them; sets nothing on the card.
"""
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = HERE / "programs"
MIB = 1 << 20
GIB = 1 << 30
AGREEMENT_BYTES = 2 * MIB
FAKE_CARD_BYTES = 64 * GIB  # several checks run side by side, each under a cap of 4 GiB


class Skipped(Exception):
    """This check cannot be made here; the text says what is missing."""


class TookTooLong(Exception):
    pass


class Truth:
    """The process that watches NVML from outside."""

    def __init__(self, environment):
        self.process = subprocess.Popen([sys.executable, str(HERE / "truth.py")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment, text=True)
        self.lock = threading.Lock()

    def ask(self, question):
        with self.lock:  # checks may run side by side
            self.process.stdin.write(question + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the process that watches NVML ended")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


class Place:
    """Where the build is, where the output goes, and the environments of programs with and without gpucap."""

    def __init__(self, build, out, fake):
        self.build, self.out, self.fake = build, out, fake
        self.segments = out / "segments"
        self.plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("GPUCAP_")}
        self.plain["PYTHONDONTWRITEBYTECODE"] = "1"
        if fake:
            self.plain["LD_LIBRARY_PATH"] = str(build / "fake_cuda")
            self.plain["FAKE_CUDA_STATE"] = str(out / "fake-cuda-state")
            self.plain["FAKE_CUDA_MEMORY"] = str(FAKE_CARD_BYTES)

    def capped(self, limit):
        return dict(self.plain, LD_PRELOAD=str(self.build / "libgpucap.so"), GPUCAP_LIMIT=limit, GPUCAP_DIR=str(self.segments))

    def shown(self, pid):
        """gpucap-top's word on a process: {card: its JSON}, or None if it does not show the process."""
        done = subprocess.run([str(self.build / "gpucap-top"), "--json", "--once", "-p", str(pid), "--dir", str(self.segments)],
                              env=self.plain, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=20, check=False, text=True)
        if done.returncode != 0:
            return None
        for process in json.loads(done.stdout)["processes"]:
            if process["pid"] == pid:
                return {device["ordinal"]: device for device in process["devices"]}
        return None


class Program:
    """One program under test, with a deadline for the whole of its life."""

    def __init__(self, command, environment, stderr_path, timeout):
        self.deadline = time.monotonic() + timeout
        self.stderr_path = stderr_path
        self.facts, self.checks = {}, []
        with open(stderr_path, "wb") as stderr:
            self.process = subprocess.Popen([str(part) for part in command], env=environment, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True)
        self.pid = self.process.pid
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def next_rest(self):
        """The label of the next rest, or None once the program has closed its stdout."""
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, self.deadline - time.monotonic()))
            except queue.Empty:
                raise TookTooLong() from None
            if line is None:
                return None
            if not line.startswith("@"):
                continue
            said = json.loads(line[1:])
            if "ready" in said:
                return said["ready"]
            if "fact" in said:
                self.facts[said["fact"]] = said["value"]
            elif "check" in said:
                self.checks.append((said["check"], bool(said["ok"]), str(said.get("detail", ""))))
            elif "skip" in said:
                raise Skipped(said["skip"])

    def go_on(self):
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended; next_rest and end() tell how

    def end(self):
        """Its exit status, once it has ended by itself in time."""
        try:
            return self.process.wait(timeout=max(0.01, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TookTooLong() from None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # something was still to be written to a program that ended

    def stderr(self):
        return pathlib.Path(self.stderr_path).read_text(errors="replace")


class Outcome:
    """What one check found: failures in words, and figures for the tables."""

    def __init__(self, name):
        self.name = name
        self.failures = []
        self.open = None  # why this check is known to fail
        self.figures = {}
        self.rests = []

    def require(self, ok, what):
        if not ok:
            self.failures.append(what)
        return ok


def run_capped(place, truth, outcome, command, limit, cap_bytes, extra_env=None, timeout=90, expect_refusal=True, at_rest=None,
               cap_holds=True, figures_agree=True):
    """Runs a program under the cap. Fails the outcome when its exit status is not 0, a check of its own failed, truth was
    ever above the cap, or at rest gpucap-top and truth differ by more than AGREEMENT_BYTES. Returns the program.
    Where cap_holds or figures_agree is not true, that is a figure and no failure."""
    environment = dict(place.capped(limit), **(extra_env or {}))
    program = Program(command, environment, place.out / file_name(outcome.name, ".stderr"), timeout)
    highest = 0
    try:
        while True:
            label = program.next_rest()
            if label is None:
                break
            seen = truth.ask("reset %d" % program.pid)
            now = sum(seen["now"].values())
            top = max(seen["max"].values(), default=0)
            highest = max(highest, top)
            outcome.require(now > 0, "%s: NVML does not list the process" % label)
            compare(outcome, label, place.shown(program.pid), now, top, figures_agree)
            if at_rest:
                at_rest(label, now, top, program)
            program.go_on()
        status = program.end()
        highest = max([highest] + list(truth.ask("now %d" % program.pid)["max"].values()))
    except TookTooLong:
        outcome.require(False, "took longer than %d s" % timeout)
        return program
    finally:
        program.kill()
    outcome.figures.update(cap_bytes=cap_bytes, highest_truth_bytes=highest, **program.facts)
    outcome.require(bool(outcome.rests), "the program never came to rest")
    outcome.require(status == 0, "exit status %s: %s" % (status, program.stderr()[-400:]))
    outcome.require(highest <= cap_bytes or not cap_holds, "truth reached %d B, %d above the cap" % (highest, highest - cap_bytes))
    for what, ok, detail in program.checks:
        outcome.require(ok, "%s (%s)" % (what, detail) if detail else what)
    lines = [line for line in program.stderr().splitlines() if line.startswith("gpucap: refused")]
    outcome.figures["refusal_lines"] = len(lines)
    if expect_refusal:
        outcome.require(bool(lines), "no line on stderr says that gpucap refused")
    return program


def file_name(text, ending):
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text) + ending


def compare(outcome, label, shown, truth_now, truth_top, must_agree=True):
    """Point 5: gpucap-top's figure against truth. Managed memory is in the one and not in the other, so it is left out."""
    rest = {"label": label, "truth_bytes": truth_now, "highest_truth_bytes": truth_top}
    if outcome.require(shown is not None, "%s: gpucap-top does not show the process" % label):
        rest["managed_bytes"] = sum(device["managed_bytes"] for device in shown.values())
        rest["shown_bytes"] = sum(device["used_bytes"] for device in shown.values()) - rest["managed_bytes"]
        rest["difference_bytes"] = rest["shown_bytes"] - truth_now
        outcome.require(abs(rest["difference_bytes"]) <= AGREEMENT_BYTES or not must_agree,
                        "%s: gpucap-top shows %d B, truth is %d B (%+d)" %
                        (label, rest["shown_bytes"], truth_now, rest["difference_bytes"]))
    outcome.rests.append(rest)
