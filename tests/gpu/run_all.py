#!/usr/bin/env python3
"""Runs every check that needs a real card and tells what came out. Called by scripts/gpu_test.sh.

Each program runs in a process of its own, under gpucap, while an unpreloaded process reads the truth from NVML. Writes
results.json and results.md into --out. Exit status: 0 if nothing failed and something passed, 1 otherwise.
--fake runs what can be run on the fake driver, to test these tests themselves; it proves nothing about a card.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
import traceback

import checks_bystanders
import checks_group
import checks_guide
import checks_native
import checks_python
import checks_rest
import checks_surfaces
import checks_ways
from harness import MIB, ROOT, Outcome, Place, Skipped, Truth

# Each group is made when it is needed: the ways are those that a program, compiled first, knows.
GROUPS = {
    "issue2": lambda place: checks_bystanders.CHECKS + checks_python.CHECKS + checks_native.CHECKS,
    "ways": checks_ways.checks,
    "rest": lambda place: checks_rest.CHECKS,
    "surfaces": lambda place: checks_surfaces.CHECKS,
    "groups": lambda place: checks_group.CHECKS,
    "guide": lambda place: checks_guide.CHECKS,
}


def run_check(place, truth, name, check):
    outcome = Outcome(name)
    started = time.monotonic()
    status = "passed"
    try:
        check(place, truth, outcome)
    except Skipped as why:
        status, outcome.failures = "SKIPPED", [str(why)]
    except Exception as error:  # a broken check is a failed check, and the others still run
        outcome.failures.append("%s: %s" % (type(error).__name__, error))
        traceback.print_exc()
    if status == "passed" and outcome.open:
        status = "OPEN" if outcome.failures else "FAILED"
        outcome.failures.insert(0, outcome.open if outcome.failures else "no longer open: take it off the list")
    elif status == "passed" and outcome.failures:
        status = "FAILED"
    return {"name": name, "status": status, "seconds": round(time.monotonic() - started, 1), "reasons": outcome.failures,
            "figures": outcome.figures, "rests": outcome.rests}


def run_group(place, truth, checks, jobs):
    """The results, in the order of the checks; with jobs > 1 some run side by side."""
    def run_and_tell(named):
        result = run_check(place, truth, *named)
        print("%-8s %s (%.1f s)" % (result["status"], result["name"], result["seconds"]), flush=True)
        return result

    with concurrent.futures.ThreadPoolExecutor(jobs) as workers:
        return list(workers.map(run_and_tell, checks))


def mib(size):
    return "%.1f" % (size / MIB)


def worst_difference(result):
    differences = [rest["difference_bytes"] for rest in result["rests"] if "difference_bytes" in rest]
    return max(differences, key=abs) if differences else None


def row(result):
    figures = result["figures"]
    difference = worst_difference(result)
    return [result["name"], result["status"], "%.1f" % result["seconds"],
            mib(figures["cap_bytes"]) if "cap_bytes" in figures else "",
            mib(figures["highest_truth_bytes"]) if "highest_truth_bytes" in figures else "",
            "%+d" % difference if difference is not None else ""]


HEADS = ["check", "result", "s", "cap MiB", "highest truth MiB", "gpucap-top - truth at rest, B"]


def as_table(heads, rows):
    return ["", "| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)] + ["| " + " | ".join(r) + " |" for r in rows]


def as_markdown(all_results, about):
    lines = ["%s, driver %s, %s, %s" % (about["card"], about["driver"], about["gpucap"], about["when"])]
    ways = [result for result in all_results if result["group"] == "ways"]
    results = [result for result in all_results if result["group"] != "ways"]
    if results:
        lines += as_table(HEADS, [row(result) for result in results])
    if ways:
        lines += as_table(checks_ways.HEADS, checks_ways.table(ways))
    for result in all_results:
        if result["reasons"]:
            lines += ["", "%s %s:" % (result["name"], result["status"])] + ["* " + str(r).replace("\n", " ") for r in result["reasons"]]
    for result in results:
        if result["rests"]:
            lines += ["", "At rest in %s:" % result["name"], "", "| at | truth B | highest B since the rest before | gpucap-top B | "
                      "managed B | difference B |", "| --- | --- | --- | --- | --- | --- |"]
            lines += ["| %s | %d | %d | %s | %s | %s |" %
                      (r["label"], r["truth_bytes"], r["highest_truth_bytes"], r.get("shown_bytes", ""), r.get("managed_bytes", ""),
                       "%+d" % r["difference_bytes"] if "difference_bytes" in r else "") for r in result["rests"]]
    return "\n".join(lines) + "\n"


def print_table(results):
    rows = [HEADS] + [row(result) for result in results]
    widths = [max(len(r[i]) for r in rows) for i in range(len(HEADS))]
    for r in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(r, widths)).rstrip())
    for result in results:
        for reason in result["reasons"]:
            print("%s %s: %s" % (result["status"], result["name"], reason))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    options.add_argument("--out", type=pathlib.Path, required=True)
    options.add_argument("--only", default="", help="only checks whose name matches this regular expression")
    options.add_argument("--fake", action="store_true")
    options.add_argument("--group", choices=list(GROUPS) + ["all"], default="all")
    options.add_argument("--jobs", type=int, default=0, help="ways tried side by side (default: one for four processors)")
    options = options.parse_args()
    jobs = options.jobs or max(1, min(4, (os.cpu_count() or 1) // 4))

    options.out.mkdir(parents=True, exist_ok=True)
    place = Place(options.build.resolve(), options.out.resolve(), options.fake)
    truth = Truth(place.plain)
    card = truth.ask("card")
    version = subprocess.run([str(place.build / "gpucap"), "--version"], env=place.plain, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True).stdout.strip()
    about = {"card": ", ".join("%s (%d MiB)" % pair for pair in zip(card["names"], (t // MIB for t in card["total"]))),
             "driver": card["driver"], "gpucap": version, "python": platform.python_version(),
             "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "fake_driver": options.fake,
             "used_before_bytes": card["used"]}
    print("%s, driver %s%s" % (about["card"], about["driver"], " (the FAKE driver)" if options.fake else ""), flush=True)
    started = time.monotonic()
    results = []
    for group in [options.group] if options.group != "all" else list(GROUPS):
        checks = [(name, check) for name, check in GROUPS[group](place) if re.search(options.only, name)]
        # Ways are alone in their processes, and none looks at the whole card; other checks have the machine for themselves.
        done = run_group(place, truth, checks, jobs if group == "ways" else 1)
        results += [dict(result, group=group) for result in done]
    about["truth"] = truth.ask("stats")
    truth.close()
    about["seconds"] = round(time.monotonic() - started, 1)
    (options.out / "results.json").write_text(json.dumps({"about": about, "results": results}, indent=1) + "\n")
    (options.out / "results.md").write_text(as_markdown(results, about))

    print()
    print_table(results)
    # Parts of a check that the driver does not offer at all are skipped by name too.
    parts = [(r["name"], name) for r in results for name in r["figures"] if name.startswith("SKIPPED ")]
    for name, part in parts:
        print("%s: %s %s" % (name, part, next(r["figures"][part] for r in results if r["name"] == name)))
    count = {status: sum(1 for r in results if r["status"] == status) for status in ("passed", "FAILED", "SKIPPED", "OPEN")}
    print("truth was read %(passes)d times, every %(mean_gap_us)s us on average, with at most %(longest_gap_us)d us between two" %
          about["truth"])
    print("%d passed, %d failed, %d known to be open, %d skipped" %
          (count["passed"], count["FAILED"], count["OPEN"], count["SKIPPED"] + len(parts)))
    return 0 if count["FAILED"] == 0 and count["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
