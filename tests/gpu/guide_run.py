"""Runs one example of the guide as its reader would, and keeps what its terminal would show: used by checks_guide.py.

The command is the one that the example's first lines give ("Run:"), so that file, documentation and check have the same.
What a passed run printed goes to OUT/guide/<example>.txt, from where scripts/fill_guide.py puts it into the documentation;
what a failed one printed goes to <example>.failed.txt, which never gets there.
"""
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

from harness import ROOT, Skipped

EXAMPLES = ROOT / "examples" / "pytorch"
# Where the machine has no Jupyter this folder may hold it, as scripts/setup.sh --clients makes it; for another version:
#   python3 -m pip install --target .deps/jupyter-3.12 --only-binary=:all: --python-version 3.12 jupyter-client ipykernel
JUPYTER = ROOT / ".deps" / ("jupyter-%d.%d" % sys.version_info[:2])


@dataclasses.dataclass
class Process:
    """One process that used CUDA, on one card: gpucap's figures, and the highest that NVML showed."""
    pid: int
    command: str
    card: int
    physical_bytes: int
    limit_bytes: int  # or None
    peak_bytes: int
    refused: int
    truth_bytes: int


@dataclasses.dataclass
class Run:
    status: int
    text: str
    processes: list

    def of(self, word):
        """The processes whose command has the word, in the order in which they started."""
        return [process for process in self.processes if word in process.command.split()]


def command_of(example):
    """The command in the example's first lines."""
    for line in (EXAMPLES / example).read_text().splitlines()[:12]:
        found = re.match(r"(?:# )?Run: (.+)", line)
        if found:
            return found.group(1)
    raise ValueError("%s does not say how to run it" % example)


def environment_of(place, folder, extra):
    # "python3" in an example is the one that runs the checks; gpucap and gpucap-top are those of the build.
    path = [str(place.build), str(pathlib.Path(sys.executable).parent), place.plain.get("PATH", os.defpath)]
    environment = dict(place.plain, PATH=":".join(path), GPUCAP_DIR=str(folder), **extra)
    if JUPYTER.is_dir():
        environment["PYTHONPATH"] = ":".join([str(JUPYTER)] + [p for p in [place.plain.get("PYTHONPATH")] if p])
    return environment


def processes_of(place, truth, folder):
    shown = subprocess.run([str(place.build / "gpucap-top"), "--json", "--once", "--all", "--dir", str(folder)], env=place.plain,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20, check=False,
                           text=True)
    if shown.returncode != 0:
        raise RuntimeError("gpucap-top --json --all: %s" % shown.stderr[-200:])
    processes = []
    for process in sorted(json.loads(shown.stdout)["processes"], key=lambda p: p["started_ns"]):
        highest = truth.ask("now %d" % process["pid"])["max"]
        for device in process["devices"]:
            if device["active"]:
                processes.append(Process(process["pid"], " ".join(process["command"]), device["ordinal"], device["physical_bytes"],
                                         device["limit_bytes"], device["peak_bytes"], device["refused_count"],
                                         highest.get(str(device["ordinal"]), 0)))
    return processes


def end_all(folder):
    """Ends every process that was started with this folder for its figures: some make sessions of their own."""
    mark = b"GPUCAP_DIR=%s\0" % os.fsencode(folder)
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes() + b"\0":
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue  # ended meanwhile, or not ours


def run_example(place, truth, example, timeout, extra=None, command=None, on_line=None):
    """Runs it to its end; it and all that it started is ended if it takes too long. on_line is told each line as it comes."""
    folder = place.out / "guide-segments" / example
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = command or command_of(example)
    started = subprocess.Popen(["bash", "-c", command], cwd=ROOT, env=environment_of(place, folder, extra or {}),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    late = threading.Event()

    def end_it():
        late.set()
        end_all(folder)

    watchdog = threading.Timer(timeout, end_it)
    watchdog.start()
    lines = []
    for line in started.stdout:
        lines.append(line.replace(str(ROOT) + "/", "").rstrip() + "\n")
        if on_line:
            on_line(lines[-1])
    status = started.wait()
    watchdog.cancel()
    return Run("none after %d s" % timeout if late.is_set() else status, "".join(lines), processes_of(place, truth, folder))


def keep(place, example, run, passed):
    folder = place.out / "guide"
    folder.mkdir(parents=True, exist_ok=True)
    for name in (example + ".txt", example + ".failed.txt"):
        (folder / name).unlink(missing_ok=True)
    (folder / (example + (".txt" if passed else ".failed.txt"))).write_text(run.text)


def need_tools(place, *names):
    path = environment_of(place, place.out, {})["PATH"]
    for name in names:
        if not any(os.access(os.path.join(folder, name), os.X_OK) for folder in path.split(":")):
            raise Skipped("no %s here" % name)
