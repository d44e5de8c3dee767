"""The rows of the table of costs: what each is called, how it is measured, what it must cost at most and what is aimed at.

Read by run_pairs.py, which measures, and by report.py, which judges. Holds no figure that was measured.
"""

import spread

MUST, AIM = "must", "aim"
NOT_MEASURABLE_NS = 10  # an interval that ends below this, or below 1 % of the call, and holds 0, is "nothing"


class Row:
    """One line of the table. `kind` names the judge; `must` and `aim` are its bounds, None where there is none.

    `steady`: of these calls a look at NVML is a part that can be measured, so it must come as often as in a program that has run for
    a while: the processes rest for two seconds first, and a round is longer than the time between two looks.
    """

    def __init__(self, name, what, kind, must=None, aim=None, case=None, steady=False, **options):
        self.name, self.what, self.kind, self.must, self.aim, self.steady = name, what, kind, must, aim, steady
        self.case, self.options = case or name, options


MILLION = 1000000

CALLS = [
    Row("async_pair", "cuMemAllocAsync + cuMemFreeAsync, 1 MiB", "added", 120, 60),
    Row("small_pair", "cuMemAlloc + cuMemFree, 512 B from a warm block", "added", 200, 80),
    Row("large_pair", "cuMemAlloc + cuMemFree, 4 MiB", "ratio", 1.01, "noise", steady=True),
    Row("memory_info", "cuMemGetInfo", "added", 1000, 200),
    Row("kernel_launch", "launch of an empty kernel", "nothing"),
    Row("copy", "cuMemcpyHtoD, 4 KiB", "nothing"),
    Row("graph_launch", "launch of a graph without memory nodes", "nothing"),
    Row("synchronise", "cuStreamSynchronize of an idle stream", "shown"),
    Row("address_lookup", "cuGetProcAddress of a hooked function", "shown"),
]

# The same pairs beside a million blocks; measured together with the pairs themselves, since growth is what is judged.
LIVE = [
    Row("async_pair", "cuMemAllocAsync + cuMemFreeAsync, 1 MiB", "shown"),
    Row("async_pair_live", "the async pair, 1,000,000 live blocks", "growth", 1.3, 1.05, "async_pair", live=MILLION),
    Row("small_pair", "cuMemAlloc + cuMemFree, 512 B", "shown"),
    Row("small_pair_live", "the 512 B pair, 1,000,000 live blocks", "growth", 1.3, 1.05, "small_pair", live=MILLION),
    Row("large_pair", "cuMemAlloc + cuMemFree, 4 MiB", "shown", steady=True),
    Row("large_pair_live", "the 4 MiB pair, 1,000,000 live blocks", "growth", 1.3, 1.05, "large_pair", steady=True, live=MILLION),
]

THREADS = [
    Row("async_threads_16", "16 threads on the async pair", "throughput", 0.95, 0.99, "async_threads", threads=16),
]

NEAR_CAP = [
    Row("async_pair_near_cap", "the async pair at 98 % of a cap of 4 GiB", "added", 120, 60, "async_pair",
        fill_to_share=0.98),
    Row("small_pair_near_cap", "the 512 B pair at 98 %", "added", 200, 80, "small_pair", fill_to_share=0.98),
    Row("large_pair_near_cap", "the 4 MiB pair at 98 %", "ratio", 1.01, "noise", "large_pair", steady=True, fill_to_share=0.98),
]

MODELS = ("mlp", "resnet50", "transformer")
ALLOCATORS = {
    "default": "",
    "expandable_segments": "expandable_segments:True",
    "cudaMallocAsync": "backend:cudaMallocAsync",
}
TORCH = [
    Row("torch_%s_%s%s" % (model, allocator, "_emptied" if emptied else ""),
        "%s, %s%s" % (model, allocator, ", empty_cache() every step" if emptied else ""), "torch", 1.0, None, model,
        empty_cache=emptied, allocator=allocator)
    for model in MODELS for allocator in ALLOCATORS for emptied in (0, 1)
]

# Rows whose figures do not come from pairs of rounds.
STARTS = [
    Row("first_allocation", "cuInit to the first allocation", "added", 15e6, 3e6),
    Row("first_allocation_nvml", "the same, against a program that starts NVML itself", "shown"),
    Row("start_true", "start and end of /bin/true", "added", 0.2e6, "noise"),
    Row("start_python", "start and end of python3 -c pass", "added", 0.2e6, "noise"),
]
STORM = [
    Row("storm_p50", "64 processes in cuInit at once, median", "added", 1e6, None),
    Row("storm_p99", "64 processes in cuInit at once, 99th percentile", "added", 10e6, None),
]
OTHERS = [
    Row("publish_1_thread", "publish of one event, 1 thread", "value", 25, 12),
    Row("reader_rate", "a reader at 5 million events a second: lost of 100", "value", 0, 0),
    Row("memory_per_block", "memory of ours a live block, bytes", "value", 64, None),
    Row("memory_fixed", "memory of ours beside the blocks and NVML's own, bytes", "value", 2 << 20, None),
    Row("memory_nvml", "memory that NVML takes for itself in any program, bytes", "value"),
    Row("looks_near_cap", "looks at NVML a second at 98 % of the cap", "value", 100, None),
    Row("left_in_true", "mappings in /bin/cat beyond the library's own", "value", 0, 0),
]


def all_rows():
    """Every row, the first of each name."""
    found = {}
    for row in CALLS + LIVE + THREADS + NEAR_CAP + STARTS + STORM + OTHERS + TORCH:
        found.setdefault(row.name, row)
    return list(found.values())


def judge(row, summary, everything):
    """AIM, MUST, "missed", "noisy" (the interval does not decide), or "" where there is nothing to judge."""
    if row.kind == "shown":
        return ""
    if row.kind == "value":
        value = summary["value"]
        return "" if row.must is None else _met(row, value, value)
    if row.kind == "growth":
        base = everything.get(row.name[:-len("_live")] + "_beside_live")
        if base is None:
            return ""
        if min(summary["process_pairs"], base["process_pairs"]) < spread.FEWEST_GROUPS:
            return "noisy"
        value = summary["with_ns"] / base["with_ns"]
        return _met(row, value, value)
    figure = {"added": "added_ns", "ratio": "ratio", "nothing": "added_ns", "torch": "ratio", "throughput": "ratio"}[row.kind]
    interval = summary.get(figure + "_interval")
    if interval is None:
        return "noisy"
    low, high = interval
    if row.kind == "nothing":
        if low > 0:
            return "missed"
        return AIM if high <= max(NOT_MEASURABLE_NS, 0.01 * summary["without_ns"]) else "noisy"
    if row.kind == "torch":
        if (high - low) / 2 >= 0.01:
            return "noisy"
        return MUST if low <= 1.0 else "missed"
    if row.kind == "throughput":
        low, high = -1 / low, -1 / high
        return _met(Row(row.name, row.what, "", -row.must, -row.aim), low, high)
    if row.aim == "noise" and low <= (0 if figure == "added_ns" else 1) and high <= row.must:
        return AIM
    return _met(row, low, high)


def _met(row, low, high):
    if row.aim is not None and row.aim != "noise" and high <= row.aim:
        return AIM
    if row.must is None or high <= row.must:
        return MUST
    return "missed" if low > row.must else "noisy"
