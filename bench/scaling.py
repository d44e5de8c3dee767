#!/usr/bin/env python3
"""How the costs grow: with live blocks, threads, devices, processes in a group and readers of the event log.

    bench/scaling.py [--build DIR] [--out DIR] [--only REGEX] [--seconds S] [--fake] [--quick] [--most-processes N]
    bench/scaling.py --draw DIR         the plots anew from the CSV files there

For each way of growing it writes a CSV file and two SVG plots into --out (build/plots; docs/plots/ those that were kept): what is
added in nanoseconds, and with / without, which a machine that changes its speed between two points moves far less. A point is a
paired measurement like those of run_pairs.py: what gpucap adds to a pair of calls. What cannot be measured here is said by name.
Exit status 1 when something failed.
"""
import argparse
import csv
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import plot
import processes
import spread
from processes import Failed, Place, Served, Skipped, Until

PAIRS = ("async_pair", "small_pair", "large_pair")
FIELDS = ("x", "line", "without_ns", "with_ns", "added_ns", "added_low_ns", "added_high_ns", "ratio", "ratio_low", "ratio_high",
          "fours", "processes")
# name: (title, x axis, values, logarithmic)
WAYS = {
    "live": ("What a pair costs more, by live blocks", "live blocks of 512 B", (1, 10, 100, 1000, 10000, 100000, 1000000), True),
    "threads": ("What a pair costs more, by threads", "threads, each with its stream", (1, 2, 4, 8, 16, 32, 64), True),
    "devices": ("What a pair costs more, by devices", "devices that the process sees", (1, 2, 3, 4, 5, 6, 7, 8), False),
    "group": ("What a pair costs more, by processes in its group", "processes in the group", (1, 2, 4, 8, 16, 32, 64, 128, 256), True),
    "readers": ("What a pair costs more, by readers", "readers that follow the event log", (0, 1, 2, 4, 8, 16), False),
}


class Scaling:
    def __init__(self, arguments):
        self.arguments = arguments
        self.place = Place(arguments.build.resolve(), arguments.out.resolve(), arguments.fake)
        self.place.out.mkdir(parents=True, exist_ok=True)

    def point(self, case, options, environment_with=None, environment_without=None, limit="16G"):
        """The summary of one paired measurement."""
        quick = self.arguments.quick
        until = Until(self.arguments.seconds, noise=0.005, most_groups=1 if quick else spread.FEWEST_GROUPS + 3,
                      fewest_groups=spread.FEWEST_GROUPS)
        found = processes.measure(self.place, [self.place.program("driver_bench"), "serve"], {case: (case, options)}, until,
                                  environment_with or self.place.preloaded(limit), round_ns=3e5 if quick else 3e6,
                                  fours=2 if quick else 20, environment_without=environment_without,
                                  pin=case in PAIRS)
        if found[case] is None:
            raise Failed("no time was left for %s" % case)
        return found[case]

    def values(self, way):
        values = WAYS[way][2]
        if self.arguments.quick:
            values = (values[0], values[2])
        return values

    def live(self):
        for count in self.values("live"):
            for case in PAIRS:
                yield count, case, self.point(case, {"live": count})

    def threads(self):
        for count in self.values("threads"):
            yield count, "async_threads", self.point("async_threads", {"threads": count})

    def devices(self):
        if not self.place.fake:
            raise Skipped("devices are counted up on the fake driver alone (--fake): this machine has those it has")
        for count in self.values("devices"):
            seen = {"FAKE_CUDA_DEVICES": str(count)}
            for case in PAIRS:
                yield count, case, self.point(case, {}, dict(self.place.preloaded(), **seen), dict(self.place.plain, **seen))

    def readers(self):
        follow = [str(self.place.build / "gpucap-top"), "events", "-f", "--dir", str(self.place.segments)]
        self.place.segments.mkdir(parents=True, exist_ok=True, mode=0o700)
        for count in self.values("readers"):
            running = [subprocess.Popen(follow, env=self.place.plain, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL) for _ in range(count)]
            try:
                for case in PAIRS[:2]:
                    yield count, case, self.point(case, {})
                gone = [reader.poll() for reader in running if reader.poll() is not None]
                if gone:
                    raise Failed("gpucap-top events -f ended by itself with %r" % gone)
            finally:
                for reader in running:
                    reader.send_signal(signal.SIGTERM)
                for reader in running:
                    reader.wait()

    def group(self):
        if b"GPUCAP_GROUP_LIMIT" not in self.place.library.read_bytes():
            raise Skipped("this build of the library knows no groups")
        member = dict(self.place.preloaded("8G"), GPUCAP_GROUP="bench%d" % os.getpid(), GPUCAP_GROUP_LIMIT="200G")
        del member["GPUCAP_LIMIT"]
        command = [self.place.program("driver_bench"), "serve"]
        others = []
        try:
            for count in self.values("group"):
                if count > self.arguments.most_processes:
                    print("group: %d processes: not tried (--most-processes %d)" % (count, self.arguments.most_processes))
                    continue
                joining = [Served(command, member, self.place.out / "stderr-members") for _ in range(count - 1 - len(others))]
                others += joining
                for one in joining:
                    one.answer()
                    one.ask("open small_pair")
                for case in PAIRS:
                    yield count, case, self.point(case, {}, member)
        finally:
            for other in others:
                other.close()

    def run(self):
        failed = False
        for way in WAYS:
            if not re.search(self.arguments.only, way):
                continue
            start, points = time.monotonic(), []
            try:
                for x, line, summary in getattr(self, way)():
                    none = (None, None)
                    points.append(dict(zip(FIELDS, (x, line, summary["without_ns"], summary["with_ns"], summary["added_ns"],
                                                    *(summary["added_ns_interval"] or none), summary["ratio"],
                                                    *(summary["ratio_interval"] or none), summary["pairs"], summary["process_pairs"]))))
                    write(self.place.out, way, points, self.place.fake)
            except Skipped as reason:
                print("%s: SKIPPED: %s" % (way, reason), flush=True)
            except (Failed, OSError, subprocess.SubprocessError) as reason:
                print("%s: FAILED: %r" % (way, reason), flush=True)
                failed = True
            print("%s: %d points, %.0f s" % (way, len(points), time.monotonic() - start), flush=True)
        return 1 if failed else 0


def write(out, way, points, fake):
    if not points:
        return
    with open(out / (way + ".csv"), "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        table.writerows({key: "%.6g" % value if isinstance(value, float) else value for key, value in point.items()}
                        for point in points)
    draw(out, way, fake)


def draw(out, way, fake):
    with open(out / (way + ".csv"), newline="", encoding="utf-8") as file:
        points = list(csv.DictReader(file))
    title, x_title, _, logarithmic = WAYS[way]
    if fake:
        title += " (FAKE driver: its own calls are slower and are in these figures)"
    for suffix, y_title, base, keys in (("", "added, ns", 0.0, ("added_ns", "added_low_ns", "added_high_ns")),
                                        ("_ratio", "with / without", 1.0, ("ratio", "ratio_low", "ratio_high"))):
        lines = {}
        for point in points:
            values = (float(point[key]) if point.get(key) else None for key in keys)  # an early CSV lacks some
            lines.setdefault(point["line"], []).append((float(point["x"]), *values))
        (out / (way + suffix + ".svg")).write_text(plot.svg(title, x_title, y_title, lines, logarithmic, base), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=processes.ROOT / "build/release")
    parser.add_argument("--out", type=pathlib.Path, default=processes.ROOT / "build/plots")
    parser.add_argument("--only", default="", help="only the ways of growing whose names hold this regular expression")
    parser.add_argument("--seconds", type=float, default=6.0, help="the time for one point")
    parser.add_argument("--most-processes", type=int, default=256, help="in a group; each holds a context of the card")
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--quick", action="store_true", help="two points each, and no figure worth reading")
    parser.add_argument("--draw", type=pathlib.Path, help="draw the CSV files of this folder again, and measure nothing")
    arguments = parser.parse_args()
    if arguments.draw is not None:
        for way in WAYS:
            if (arguments.draw / (way + ".csv")).exists():
                draw(arguments.draw, way, arguments.fake)
        return 0
    return Scaling(arguments).run()


if __name__ == "__main__":
    sys.exit(main())
