"""How much processor time gpucap-top's screen takes: 200 processes that each see 8 GPUs and use one, the use of each
changing and two events a second from each. Prints the share of one core at one look a second; fails above the percentage
given. Arguments: gpucap-top, poser, percentage [, all: every process uses all 8 GPUs]. The environment's GPUCAP_SHOW
prints the screen too. Skipped (exit status 77) where tmux is missing."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

from terminal import Terminal

TOP, POSER = sys.argv[1:3]
MOST_PERCENT = float(sys.argv[3])
ALL = "all" in sys.argv[4:]
PROCESSES, GPUS, GIB = 200, 8, 1 << 30
LOOKS_A_SECOND, SECONDS = 5, 10


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start_posers(directory):
    posers = []
    for i in range(PROCESSES):
        words = []
        for gpu in range(GPUS) if ALL else (i % GPUS,):
            words += ["device=%d" % gpu, "uuid=%d" % (gpu + 1), "physical=%d" % (141 * GIB), "limit=%d" % (8 * GIB),
                      "used=%d" % (GIB + (i << 20)), "peak=%d" % (2 * GIB)]
        posers.append(subprocess.Popen([POSER, directory, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       env={**os.environ, "POSER_DEVICES": str(GPUS)}))
    for poser in posers:
        poser.stdout.readline()
    return posers


def measure(directory, posers):
    terminal = Terminal(160, 50)
    try:
        # exec: the shell's pid is then the program's.
        terminal.run("exec %s --dir %s -l %g" % (TOP, directory, 1 / LOOKS_A_SECOND))
        terminal.wait_for("%d processes" % PROCESSES, 60)
        pid = int(terminal.ask("#{pane_pid}"))
        time.sleep(1)
        before, begun = cpu_seconds(pid), time.monotonic()
        # What happens in a second of a program happens here between as many looks.
        for _ in range(SECONDS * LOOKS_A_SECOND * 2):
            for poser in posers[::10]:
                poser.stdin.write("\n" * 10)
                poser.stdin.flush()
            time.sleep(1 / LOOKS_A_SECOND / 2)
        used = cpu_seconds(pid) - before
        # On a machine that is too busy the pace may be missed: then a look costs more than this says.
        looks = (time.monotonic() - begun) * LOOKS_A_SECOND
        if os.environ.get("GPUCAP_SHOW"):
            print(terminal.screen())
        return used / looks
    finally:
        terminal.close()


def main():
    if Terminal.missing():
        print("skipped: tmux is missing (scripts/setup.sh --dev installs it)")
        return 77
    directory = tempfile.mkdtemp(prefix="gpucap-screen-cost-")
    posers = []
    try:
        posers = start_posers(directory)
        a_look = measure(directory, posers)
    finally:
        for poser in posers:
            poser.kill()
            poser.wait()
        shutil.rmtree(directory)
    print("%d processes, %d GPUs, %d rows: %.2f ms of processor time a look, %.2f %% of one core at one look a second" %
          (PROCESSES, GPUS, PROCESSES * (GPUS if ALL else 1), a_look * 1000, a_look * 100))
    return 0 if a_look * 100 <= MOST_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
