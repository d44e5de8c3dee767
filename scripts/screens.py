#!/usr/bin/env python3
"""Runs programs under gpucap and takes pictures of gpucap-top's screen: the second half of scripts/screens.sh.

    screens.py FOLDER_OF_PROGRAMS 0|1 TARGET      1: on the fake driver

Fails if what a picture is to show did not happen. Writes TARGET/*.txt and TARGET/README.md."""
import datetime
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "tools"))
from terminal import Terminal  # noqa: E402

BIN, FAKE, TARGET = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] == "1", pathlib.Path(sys.argv[3])
COLUMNS, LINES = 110, 32

PICTURES = {
    "table.txt": "Two trainings that share a group's budget, one without a cap, and one that has ended",
    "tree.txt": "The same as a tree by group (`g`)",
    "details.txt": "All about one process (`Enter`)",
    "limit.txt": "The question before a cap is changed (`l`)",
    "ascii.txt": "80 by 24 with `--ascii`, events of refusals and the like only (`e` twice)",
}


class World:
    def __init__(self):
        self.shared = tempfile.mkdtemp(prefix="gpucap-screens.", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.environment = {**os.environ, "GPUCAP_DIR": self.shared + "/segments", "GPUCAP_LOG": "off"}
        if FAKE:
            self.environment["LD_LIBRARY_PATH"] = "%s:%s" % (BIN / "fake_cuda", os.environ.get("LD_LIBRARY_PATH", ""))
            self.environment["FAKE_CUDA_STATE"] = self.shared + "/fake-cuda"
        self.programs = []
        self.terminals = []

    def program(self, seconds):
        if FAKE:
            return ["examples/train_fake", str(seconds)]
        return ["python3", "-u", "examples/train.py", "--seconds", str(seconds)]

    def run(self, seconds, *options):
        program = subprocess.Popen([str(BIN / "gpucap"), "run", "--quiet", *options, "--", *self.program(seconds)],
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   cwd=BIN if FAKE else ROOT)
        self.programs.append(program)
        return program

    def until(self, program, words):
        for line in program.stdout:
            if line.startswith(words):
                return
        raise SystemExit("screens: the program ended without '%s'" % words)

    def screen(self, columns, lines, *options):
        terminal = Terminal(columns, lines, {key: self.environment[key] for key in
                                             ("GPUCAP_DIR", "LD_LIBRARY_PATH", "FAKE_CUDA_STATE") if key in self.environment})
        self.terminals.append(terminal)
        terminal.run("clear; exec %s %s" % (BIN / "gpucap-top", " ".join(options)))
        terminal.wait_for("gpucap-top  ")
        return terminal

    def close(self):
        for terminal in self.terminals:
            terminal.close()
        for program in self.programs:
            program.terminate()
            program.wait()
            program.stdout.close()
        shutil.rmtree(self.shared, ignore_errors=True)


def keep(name, terminal, *wanted):
    for text in wanted:
        terminal.wait_for(text, 60)
    screen = "\n".join(line.rstrip() for line in terminal.screen().splitlines())
    # Where the programs lie on this machine says nothing to a reader.
    for path in (str(BIN) + "/", str(ROOT) + "/"):
        screen = screen.replace(path, "")
    (TARGET / name).write_text(screen.rstrip("\n") + "\n", encoding="utf-8")


def take(world):
    ended = world.run(1, "--limit", "6G")
    ended.stdout.read()
    ended.wait()
    terminal = world.screen(COLUMNS, LINES)
    first = world.run(120, "--limit", "4G", "--group", "team", "--group-limit", "12G")
    world.until(first, "recovered")
    second = world.run(120, "--limit", "7G", "--group", "team", "--group-limit", "12G")
    world.until(second, "recovered")
    third = world.run(120)
    world.until(third, "step    3")
    terminal.wait_for("use of the last 30s", 60)
    keep("table.txt", terminal, "3 processes, 1 ended")
    terminal.keys("g")
    keep("tree.txt", terminal, "group team", "in no group")
    terminal.keys("g", "/")
    terminal.type("%d" % pid_under(world, "4294967296"))
    terminal.keys("Enter", "l")
    terminal.type("5G")
    terminal.keys("Enter")
    keep("limit.txt", terminal, "[y/n] Change the cap of")
    terminal.keys("n", "Enter")
    keep("details.txt", terminal, "Last refusals", "over its cap", "Live blocks by size")
    small = world.screen(80, 24, "--ascii")
    small.keys("e", "e")
    keep("ascii.txt", small, "refuse ", "use of the last 3s")


def pid_under(world, limit):
    rows = subprocess.run([str(BIN / "gpucap-top"), "--query", "pid,limit", "--format", "csv,noheader,nounits"],
                          env=world.environment, capture_output=True, text=True, check=True).stdout
    return next(int(row.split(",")[0]) for row in rows.splitlines() if row.split(",")[1].strip() == limit)


def where():
    if FAKE:
        return "the fake driver of the tests (`tests/fake_cuda`), which behaves like a card and is none"
    card = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True,
                          text=True, check=True).stdout.splitlines()[0]
    return "one %s, driver %s" % tuple(part.strip() for part in card.split(","))


def main():
    TARGET.mkdir(parents=True, exist_ok=True)
    world = World()
    try:
        take(world)
    finally:
        world.close()
    page = ["# Pictures of the screen", "",
            "Made by `scripts/screens.sh` on %s, on %s: text as a terminal showed it, taken while the programs ran." %
            (datetime.date.today().isoformat(), where()), ""]
    for name, what in PICTURES.items():
        page += ["## %s" % what, "", "```text", (TARGET / name).read_text(encoding="utf-8").rstrip("\n"), "```", ""]
    (TARGET / "README.md").write_text("\n".join(page).rstrip("\n") + "\n", encoding="utf-8")
    print("screens: wrote %d pictures to %s" % (len(PICTURES), TARGET))


if __name__ == "__main__":
    main()
