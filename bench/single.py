"""What is not a pair of rounds: starts of programs, many processes at once, memory, the event log, the parts.

Each function measures one thing and returns {row name: summary}, in the shape that spread.Pairs.summary() gives where it
is a comparison, or {"value": figure, ...}. Called by run_pairs.py. Starts and ends processes of its own only.
"""
import json
import mmap
import os
import shutil
import struct
import subprocess
import sys
import time

import processes
import spread
from processes import Failed, Skipped

LIVE = 1000000
LOOK_COUNT_AT = 216  # gpucap_device.look_count; ring_rate.cpp does not compile if that moves


def _spawn_ns(command, environment):
    null = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    start = time.perf_counter_ns()
    pid = os.posix_spawn(command[0], command, environment, file_actions=null)
    _, status = os.waitpid(pid, 0)
    taken = time.perf_counter_ns() - start
    if status != 0:
        raise Failed("%s ended with status %d" % (" ".join(command), status))
    return taken


def _alternate(take, until, environment_with, environment_without):
    """Groups of four (A B B A) of take(environment) until quiet; each four is a group, for its processes are its own."""
    pairs = spread.Pairs()
    take(environment_without), take(environment_with)  # warm the page cache
    while not pairs.groups or not (until.time_is_up() or until.quiet(pairs)):
        orders = ((0, 1, 1, 0), (1, 0, 0, 1))[len(pairs.groups) % 2]
        taken = [0, 0]
        for with_it in orders:
            taken[with_it] += take(environment_with if with_it else environment_without) / 2
        pairs.new_group()
        pairs.add(*taken)
    return pairs.summary()


def starts(place, seconds):
    """Programs that never use CUDA."""
    found = {}
    python = shutil.which("python3") or sys.executable
    for name, command in (("start_true", ["/bin/true"]), ("start_python", [os.path.realpath(python), "-c", "pass"])):
        until = processes.Until(seconds / 2, most_groups=1000)
        found[name] = _alternate(lambda environment: _spawn_ns(command, environment), until, place.preloaded(), place.plain)
    return found


def mappings(place):
    """Files that a program which does not use CUDA has mapped because of the preload, beside the library itself."""
    def mapped(environment):
        text = subprocess.run(["/bin/cat", "/proc/self/maps"], env=environment, stdout=subprocess.PIPE, check=True, text=True)
        lines = [line.split() for line in text.stdout.splitlines()]
        return {line[5] for line in lines if len(line) > 5}, sum(len(line) < 6 for line in lines)

    files, anonymous = mapped(place.preloaded())
    files_before, anonymous_before = mapped(place.plain)
    more = sorted(files - files_before - {str(place.library.resolve())})
    # What the dynamic linker maps for the library's own zeroed data is one nameless piece.
    extra = len(more) + max(0, anonymous - anonymous_before - 1)
    left = sorted(str(path) for path in place.segments.glob("*.gpucap")) if place.segments.exists() else []
    return {"left_in_true": {"value": extra, "files": more, "nameless": anonymous - anonymous_before, "segments": len(left)}}


def first_allocation(place, seconds):
    """From cuInit to the first allocation, against the bare program, and against one that starts NVML itself."""
    def take(environment):
        words = ["nvml=1"] if environment.get("GPUCAP_BENCH_NVML") else []
        done = subprocess.run([place.program("driver_bench"), "once"] + words, env=environment, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["all_ns"]

    with_nvml = dict(place.plain, GPUCAP_BENCH_NVML="1")
    return {name: _alternate(take, processes.Until(seconds / 2, noise=0.002), place.preloaded(), without)
            for name, without in (("first_allocation", place.plain), ("first_allocation_nvml", with_nvml))}


def _storm(place, environment, count):
    at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 20000000 * max(1, count // 8)
    command = [place.program("driver_bench"), "once", "at_ns=%d" % at_ns, "init_only=1"]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(count)]
    taken = []
    for process in running:
        out, _ = process.communicate(timeout=300)
        if process.returncode != 0:
            raise Failed("driver_bench once ended with %d, one of %d at once" % (process.returncode, count))
        taken.append(json.loads(out)["init_ns"])
    taken.sort()
    return taken[len(taken) // 2], taken[min(len(taken) - 1, int(len(taken) * 0.99))]


def storm(place, seconds, count=64, fewest=spread.FEWEST_GROUPS):
    """Many processes that call cuInit at the same moment, and nothing after it."""
    until = processes.Until(seconds)
    middles, tails = spread.Pairs(), spread.Pairs()
    while len(middles.groups) < fewest or not until.time_is_up():
        with_first = len(middles.groups) % 2 == 1
        both = {}
        for with_it in (with_first, not with_first):
            both[with_it] = _storm(place, place.preloaded() if with_it else place.plain, count)
        for pairs, index in ((middles, 0), (tails, 1)):
            pairs.new_group()
            pairs.add(both[False][index], both[True][index])
    return {"storm_p50": middles.summary(), "storm_p99": tails.summary()}


def memory(place, live=LIVE):
    """Resident memory with many live blocks: bare, of a program that starts NVML itself, and with the preload."""
    resident = {}
    for kind, words, environment in (("bare", [], place.plain), ("nvml", ["nvml=1"], place.plain), ("ours", [], place.preloaded())):
        served = processes.Served([place.program("driver_bench"), "serve"] + words, environment, place.out / "stderr-memory")
        served.answer()
        for blocks in (1, live):
            if kind == "nvml" and blocks != 1:
                continue
            served.ask("open small_pair live=%d" % blocks)
            served.ask("run 100")
            resident[kind, blocks] = served.ask("rss")["rss_bytes"]
        served.close()
    grown = {kind: resident[kind, live] - resident[kind, 1] for kind in ("bare", "ours")}
    return {"memory_per_block": {"value": max(0, grown["ours"] - grown["bare"]) / live, "blocks": live},
            "memory_fixed": {"value": max(0, resident["ours", 1] - resident["nvml", 1])},
            "memory_nvml": {"value": max(0, resident["nvml", 1] - resident["bare", 1])}}


def reader(place, seconds):
    """A reader of the event log beside a process that publishes five million events a second."""
    done = subprocess.run([place.program("ring_rate"), str(place.segments), "rate=5000000", "seconds=%g" % seconds],
                          env=place.plain, stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        raise Failed("ring_rate ended with %d" % done.returncode)
    said = json.loads(done.stdout)
    return {"reader_rate": {"value": 100.0 * said["lost"] / max(1, said["published"]), **said,
                            "read_per_second": said["read"] / (said["reading_ns"] * 1e-9)}}


def parts(place, seconds_each):
    """Google Benchmark's figures of the parts, and the one of them that has a bound."""
    done = subprocess.run([place.program("parts_bench"), "--benchmark_format=json", "--benchmark_min_time=%g" % seconds_each],
                          env=place.plain, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise Skipped("parts_bench does not run here (it ended with %d)" % done.returncode)
    each = {one["name"]: one["real_time"] for one in json.loads(done.stdout)["benchmarks"]}
    alone = [time_ns for name, time_ns in each.items() if name.startswith("publish_an_event") and name.endswith("threads:1")]
    return {"publish_1_thread": {"value": alone[0]}}, each


def look_count(segment_path):
    """The number of looks at NVML that a segment's device 0 tells of: see docs/wire-format.md."""
    with open(segment_path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        region_count = struct.unpack_from("<I", data, 36)[0]
        for index in range(region_count):
            kind, _, offset, _ = struct.unpack_from("<IIQQ", data, 1176 + 24 * index)
            if kind == 1:
                return struct.unpack_from("<Q", data, offset + LOOK_COUNT_AT)[0]
    raise Failed("%s has no devices" % segment_path)


def looks_near_cap(place, seconds):
    """How often NVML is asked while a program near its cap allocates and frees without a pause."""
    served = processes.Served([place.program("driver_bench"), "serve"], place.preloaded("4G"), place.out / "stderr-looks")
    try:
        served.answer()
        served.ask("open small_pair fill_to_share=0.98")
        served.ask("run 1000")
        segment = next(iter(place.segments.glob("%d.*" % served.process.pid)))
        before, start = look_count(segment), time.monotonic()
        while time.monotonic() - start < seconds:
            served.ask("run 1000")
        taken, looks = time.monotonic() - start, look_count(segment) - before
        if looks == 0:
            raise Failed("NVML was not asked once in %.1f s: that cannot be" % taken)
        return {"looks_near_cap": {"value": looks / taken, "seconds": taken}}
    finally:
        served.close()
