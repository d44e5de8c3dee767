#!/usr/bin/env python3
"""Writes the table of costs from what run_pairs.py measured.

    bench/report.py RESULTS.json [...] > table.md        several runs: the pairs of a row that more than one run of the
                                                     same library has measured are pooled; otherwise the last one stands

Reads and prints; measures nothing.
"""
import json
import sys

import rows
import spread

VERDICTS = {rows.AIM: "aim reached", rows.MUST: "kept", "missed": "**missed**", "noisy": "not decided", "": ""}


def time_text(ns):
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            return "%.3g %s" % (ns / size, unit)
    return "%.3g ns" % ns


def signed_time(ns):
    return ("+" if ns >= 0 else "-") + time_text(abs(ns))


def interval_text(interval, shown):
    return "too few pairs" if interval is None else "%s … %s" % (shown(interval[0]), shown(interval[1]))


def bound_text(row, bound):
    if bound is None:
        return ""
    if bound == "noise":
        return "noise"
    if row.kind == "added":
        return signed_time(bound)
    if row.kind == "throughput":
        return "≥ %g ×" % bound
    if row.kind == "torch":
        return "1.00 ± noise < 1 %"
    return "≤ %g%s" % (bound, " ×" if row.kind in ("ratio", "growth") else "")


def comparison(row, summary, everything):
    cells = [row.what, time_text(summary["without_ns"]), time_text(summary["with_ns"]),
             "%s (%s)" % (signed_time(summary["added_ns"]), interval_text(summary["added_ns_interval"], signed_time)),
             "%.4f (%s)" % (summary["ratio"], interval_text(summary["ratio_interval"], "{:.4f}".format)),
             "%d / %d" % (summary["pairs"], summary["process_pairs"])]
    if row.kind == "growth":
        base = everything.get(row.name[:-len("_live")] + "_beside_live")
        if base is not None:
            cells[0] += ": %.2f × that with none (the driver alone: %.2f ×)" % (
                summary["with_ns"] / base["with_ns"], summary["without_ns"] / base["without_ns"])
    must = "nothing" if row.kind == "nothing" else bound_text(row, row.must)
    aim = "" if row.kind in ("torch", "nothing") else bound_text(row, row.aim)
    return cells + [must, aim, VERDICTS[rows.judge(row, summary, everything)]]


def table(head, lines):
    return "\n".join(["| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head)] + lines]) + "\n"


def markdown(runs):
    everything, measured, parts, notes = {}, {}, {}, []
    for run in runs:
        same = [run["about"].get(key) for key in ("library", "fake", "quick")]
        for name, summary in run["rows"].items():
            before = everything.get(name, {})
            pool = "groups" in before and "groups" in summary and measured[name] == same
            everything[name], measured[name] = spread.pooled([before, summary]) if pool else summary, same
        parts.update(run["parts_ns"])
        notes += run["notes"]
    text = ""
    for run in runs:
        about = run["about"]
        if about["fake"]:
            text += "**On the fake driver: this shows that the benchmark works, and no figure of a card.**\n\n"
        text += "%s; %s; `run_pairs.py %s`\n\n" % (about["when"], about["machine"], about["command"])
    known = [row for row in rows.all_rows() if row.name in everything]
    compared = [comparison(row, everything[row.name], everything) for row in known if "ratio" in everything[row.name]]
    if compared:
        text += table(["what", "without", "with", "added (95 %)", "with / without (95 %)", "fours / processes", "must", "aim",
                       "verdict"], compared) + "\n"
    values = [[row.what, "%.4g" % everything[row.name]["value"], bound_text(row, row.must), bound_text(row, row.aim),
               VERDICTS[rows.judge(row, everything[row.name], everything)]]
              for row in known if "value" in everything[row.name]]
    if values:
        text += table(["what", "figure", "must", "aim", "verdict"], values) + "\n"
    if parts:
        text += table(["part, by itself", "ns"], [[name, "%.3g" % ns] for name, ns in parts.items()]) + "\n"
    if notes:
        text += "".join("* %s\n" % note for note in notes)
    return text


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(markdown([json.load(open(path, encoding="utf-8")) for path in sys.argv[1:]]), end="")
