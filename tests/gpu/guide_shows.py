"""What each example of the guide has to show, read off what it printed and compared with NVML: used by checks_guide.py.

Each function takes the run and the outcome, and requires. None starts anything, so they are tested without a card
(tests/docs/guide_shows_test.py).
"""
import re

from harness import AGREEMENT_BYTES, GIB, MIB

AGREEMENT_MIB = AGREEMENT_BYTES // MIB
OWN_MIB = 192  # what a library may take by cudaMalloc beside PyTorch's segments


def numbers(line):
    return [float(text) for text in re.findall(r"-?\d+(?:\.\d+)?", line)]


def find(run, outcome, pattern, count=None):
    """The groups of each match; fails the outcome if there are not so many (None: at least one)."""
    found = re.findall(pattern, run.text, re.MULTILINE)
    outcome.require(found and count in (None, len(found)), "%r was printed %d times" % (pattern, len(found)))
    return found if found and count in (None, len(found)) else None


def sections(run):
    """{headline: text} of what follows each "== headline"."""
    parts = re.split(r"^== (.+)$", run.text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def cap_holds(run, outcome):
    outcome.require(run.status == 0, "exit status %s: %s" % (run.status, run.text[-400:]))
    for process in run.processes:
        if process.limit_bytes is not None:
            outcome.require(process.truth_bytes <= process.limit_bytes, "%s, card %d: truth reached %d B, %d above the cap" %
                            (process.command, process.card, process.truth_bytes, process.truth_bytes - process.limit_bytes))
    limits = [process.limit_bytes for process in run.processes if process.limit_bytes is not None]
    if limits:
        outcome.figures.update(cap_bytes=max(limits), highest_truth_bytes=max(process.truth_bytes for process in run.processes))


def only(run, outcome, count, word):
    """So many processes that used CUDA and have the word in their command, all seen by NVML, or None."""
    found = run.of(word)
    ok = outcome.require(len(found) == count, "%d processes with '%s' used CUDA, not %d" % (len(found), word, count))
    ok = outcome.require(all(process.truth_bytes > 0 for process in found), "NVML did not list each process") and ok
    return found if ok else None


def versions(run, outcome):
    find(run, outcome, r"^Python \S+, PyTorch \S+, CUDA \S+$", 1)
    find(run, outcome, r"^torch\.cuda\.memory_(?:profiler|utils) +not there$", 2)
    for line in re.findall(r"^torch\.cuda\.\S+ +not there$", run.text, re.MULTILINE):
        outcome.require("_profiler" in line or "_utils" in line, "the guide names as there: " + line)


def watch(run, outcome):
    rows = find(run, outcome, r"^(?:one number|a model|one step|grads and cache gone) +(\d+) +(\d+) +(\d+) +(\d+) \| +(\d+) +(-?\d+)$", 4)
    processes = only(run, outcome, 1, "examples/pytorch/watch.py")
    samples = find(run, outcome, r"^nvidia-smi, sampled every second: (.*) MiB$", 1)
    peak = find(run, outcome, r"^gpucap-top: peak (\d+) MiB$", 1)
    lasted = find(run, outcome, r"that lasted (\d+) ms$", 1)
    if not (rows and processes and samples and peak and lasted):
        return
    rows = [[int(cell) for cell in row] for row in rows]
    for allocated, reserved, most, smi, used, driver in rows:
        outcome.require(allocated <= reserved and allocated <= most, "reserved and peak hold what is allocated: %s" % rows)
        outcome.require(abs(smi - used) <= AGREEMENT_MIB, "nvidia-smi shows %d MiB, gpucap %d" % (smi, used))
        outcome.require(-2 <= used - driver - reserved <= OWN_MIB, "used less driver's share is not what PyTorch reserved: %s" % rows)
    outcome.require(rows[2][5] > rows[0][5], "the libraries took nothing by the first step")
    outcome.require(rows[3][1] < rows[2][1], "emptying the cache gave nothing back")
    outcome.require(int(lasted[0]) < 500, "the peak was not short")
    highest = max(numbers(samples[0]))
    outcome.require(int(peak[0]) > highest + 4 * GIB / MIB, "nvidia-smi saw the peak: %s" % samples)
    difference = processes[0].peak_bytes - processes[0].truth_bytes
    outcome.figures["peak_less_truth_bytes"] = difference
    outcome.require(abs(difference) <= AGREEMENT_BYTES, "gpucap's peak is %+d B from the truth" % difference)
    outcome.require(abs(int(peak[0]) - processes[0].truth_bytes / MIB) <= AGREEMENT_MIB, "the peak printed is not the truth")


def limit(run, outcome):
    processes = only(run, outcome, 2, "limit.py")
    held = find(run, outcome, r"^NVML says that the process holds (\d+) MiB$", 2)
    reserved = find(run, outcome, r"^PyTorch got (\d+) B$", 2)
    find(run, outcome, r"by another library: result 0$", 2)
    if not (processes and held and reserved):
        return
    fraction, capped = processes
    half = fraction.physical_bytes // 2
    outcome.figures.update(half_bytes=half, truth_with_fraction_bytes=fraction.truth_bytes, truth_with_cap_bytes=capped.truth_bytes)
    outcome.require(int(reserved[0]) <= half, "the fraction did not hold for PyTorch's own blocks")
    outcome.require(fraction.truth_bytes > half + 4 * GIB, "with the fraction the truth stayed at %d B" % fraction.truth_bytes)
    outcome.require(abs(capped.limit_bytes - half) <= 1, "50%% is %d B" % capped.limit_bytes)
    outcome.require(half - 64 * MIB <= capped.truth_bytes <= half, "with the cap the truth reached %d of %d B" % (capped.truth_bytes, half))
    for printed, process in zip(held, processes):
        outcome.require(abs(int(printed) - process.truth_bytes / MIB) <= AGREEMENT_MIB, "nvidia-smi printed %s MiB" % printed)


def live_limit(run, outcome):
    processes = only(run, outcome, 1, "live_limit.py")
    steps = find(run, outcome, r"^(\S+ GiB \w+); the card has (\S+) GiB, (\S+) GiB are held$", 3)
    if not (processes and steps):
        return
    outcome.require([step[0] for step in steps] == ["5 GiB refused", "5 GiB granted", "0.25 GiB refused"], "the steps: %s" % (steps,))
    outcome.require([float(step[1]) for step in steps] == [4, 6, 2], "the card's sizes: %s" % (steps,))
    outcome.require(float(steps[2][2]) >= 5, "something was taken away: %s" % (steps,))
    outcome.require(5 * GIB < processes[0].truth_bytes <= 6 * GIB, "the truth reached %d B" % processes[0].truth_bytes)
    outcome.require(processes[0].limit_bytes == 2 * GIB, "the last limit shown is %s" % processes[0].limit_bytes)
    outcome.require(processes[0].refused >= 2, "%d refusals are shown" % processes[0].refused)
    outcome.figures.update(cap_bytes=6 * GIB, highest_truth_bytes=processes[0].truth_bytes)


def allocators(run, outcome):
    settings = find(run, outcome, r"^(\S+) \(backend (\w+)\)\n  peak in tensors (\d+) MiB, peak reserved (\d+) MiB, "
                                  r"retries (\d+), out of memory (\d+)$", 5)
    only(run, outcome, 5, "allocators.py")
    if not settings:
        return
    outcome.require(len({setting[0] for setting in settings}) == 5, "a setting came twice")
    outcome.require([s[1] for s in settings].count("cudaMallocAsync") == 1 and settings[2][1] == "cudaMallocAsync", "the backends: %s" % settings)
    outcome.require(int(settings[0][4]) + int(settings[0][5]) > 0, "by default the cap was never met")
    complete = {int(s[2]) for s in settings if int(s[5]) == 0}
    # Each allocator rounds a little differently.
    outcome.require(not complete or max(complete) - min(complete) <= 16, "the same tensors have different peaks: %s" % complete)
    for name, _, tensors, reserved, _, _ in settings:
        outcome.require(0 < int(tensors) <= int(reserved) <= 4096, "%s: %s MiB in tensors, %s reserved" % (name, tensors, reserved))


def savings(run, outcome):
    found = find(run, outcome, r"^(\S.*): peak (\d+) MiB without a cap; runs under (\d+) MiB, not under (\d+) MiB$", 4)
    if not found:
        return
    peak = {name: int(p) for name, p, _, _ in found}
    runs = {name: int(r) for name, _, r, _ in found}
    if not outcome.require(set(peak) == {"neither", "--amp", "--checkpoint", "--checkpoint --amp"}, "the variants: %s" % peak):
        return
    for figures, what in ((peak, "peak"), (runs, "smallest cap")):
        outcome.require(figures["--amp"] < figures["neither"], "mixed precision did not lower the %s" % what)
        outcome.require(figures["--checkpoint"] < figures["neither"], "checkpointing did not lower the %s" % what)
        outcome.require(figures["--checkpoint --amp"] < figures["neither"], "both did not lower the %s" % what)
    for name, _, smallest, fails in found:
        outcome.require(int(smallest) - int(fails) == 64, "%s: not found to 64 MiB" % name)
        outcome.require(int(smallest) <= peak[name] + 128, "%s: the smallest cap is above the peak" % name)
    outcome.figures.update({"smallest cap, %s" % name: "%d MiB of a peak of %d" % (runs[name], peak[name]) for name in runs})


def full_training(run, outcome):
    # DataLoader's workers have the same command, but do not use CUDA.
    processes = only(run, outcome, 1, "examples/pytorch/full_training.py")
    epochs = find(run, outcome, r"^epoch \d: loss (\S+), right (\S+) %; peak in tensors (\d+) MiB, reserved (\d+) MiB, used of the card (\d+) MiB$", 3)
    card = find(run, outcome, r"^NVIDIA .*, (\S+) GiB$", 1)
    again = find(run, outcome, r"^saved, loaded again, right (\S+) %$", 1)
    if not (processes and epochs and card and again):
        return
    limit_bytes = processes[0].limit_bytes or 0
    outcome.require(abs(limit_bytes - processes[0].physical_bytes * 0.7) <= AGREEMENT_BYTES, "70%% is %d B" % limit_bytes)
    outcome.require(abs(float(card[0]) - limit_bytes / GIB) <= 0.06, "the script saw %s GiB" % card[0])
    outcome.require(float(epochs[2][1]) >= 90 and again[0] == epochs[2][1], "it learnt %s %%" % epochs[2][1])
    for _, _, tensors, reserved, used in epochs:
        outcome.require(int(tensors) <= int(reserved) <= int(used), "tensors, reserved, used: %s %s %s" % (tensors, reserved, used))
    difference = int(epochs[2][4]) - processes[0].truth_bytes / MIB
    outcome.require(-OWN_MIB * 4 <= difference <= AGREEMENT_MIB, "used is %+d MiB from the highest truth" % difference)


def two_cards(run, outcome, word, processes_count):
    """One process with both cards, or one for each."""
    rows = find(run, outcome, r"^card (\d) of (\S+) GiB: (?:loss \S+, )?peak in tensors (\d+) MiB, reserved (\d+) MiB, used (\d+) MiB$", 2)
    processes = only(run, outcome, 2, word)
    if not (rows and processes):
        return
    outcome.require(len({process.pid for process in processes}) == processes_count, "%d processes" % len({p.pid for p in processes}))
    outcome.require([(row[0], float(row[1])) for row in sorted(rows)] == [("0", 6.0), ("1", 4.0)], "the cards: %s" % rows)
    limits = {process.card: process.limit_bytes for process in processes}
    outcome.require(limits == {0: 6 * GIB, 1: 4 * GIB}, "the limits shown: %s" % limits)
    truths = {process.card: process.truth_bytes for process in processes}
    for card, _, tensors, reserved, used in rows:
        outcome.require(int(tensors) <= int(reserved) < int(used), "card %s: tensors, reserved, used: %s %s %s" % (card, tensors, reserved, used))
        outcome.require(int(used) <= truths[int(card)] / MIB + AGREEMENT_MIB, "card %s: used %s MiB, highest truth %d B" % (card, used, truths[int(card)]))


def data_parallel(run, outcome):
    two_cards(run, outcome, "examples/pytorch/data_parallel.py", 1)


def distributed(run, outcome):
    two_cards(run, outcome, "examples/pytorch/distributed.py", 2)


def freeing(run, outcome):
    rows = find(run, outcome, r"^\S.* allocated +(\d+)  reserved +(\d+)  used +(\d+) MiB$", 7)
    cost = find(run, outcome, r"taken and freed: (\S+) us from the cache, (\S+) us with empty_cache", 1)
    events = find(run, outcome, r"^.* (?:charge|release) .*$")
    only(run, outcome, 1, "freeing.py")
    if not (rows and cost and events):
        return
    rows = [[int(cell) for cell in row] for row in rows]
    outcome.require([row[0] for row in rows] == [2048, 2048, 1024, 0, 0, 64, 0], "allocated: %s" % rows)
    outcome.require([row[1] for row in rows] == [2048, 2048, 2048, 2048, 0, 1024, 0], "reserved: %s" % rows)
    outcome.require(rows[0][2] == rows[3][2], "del or None changed what the driver holds: %s" % rows)
    for before, after, moved in ((3, 4, -2048), (4, 5, 1024), (5, 6, -1024)):
        outcome.require(abs(rows[after][2] - rows[before][2] - moved) <= AGREEMENT_MIB, "used: %s" % rows)
    outcome.require(float(cost[0][1]) > 3 * float(cost[0][0]), "empty_cache cost nothing: %s" % cost)
    kinds = [re.search(r" (charge|release) ", line).group(1) for line in events]
    outcome.require(kinds == ["charge", "charge", "release", "release", "charge", "release"], "the events: %s" % kinds)
    outcome.require(all("1.00 GiB" in line for line in events), "not all are of 1 GiB: %s" % events)


def out_of_memory(run, outcome):
    parts = sections(run)
    processes = only(run, outcome, 3, "out_of_memory.py")
    if not outcome.require(list(parts) == ["default", "expandable_segments:True", "backend:cudaMallocAsync"], "the allocators: %s" % list(parts)):
        return
    for name, text in parts.items():
        failed = re.findall(r"^batch +(\d+): (\w+); 'CUDA out of memory' in its text: (\w+)$", text, re.MULTILINE)
        done = re.findall(r"^batch +(\d+): 10 steps, loss ", text, re.MULTILINE)
        if not outcome.require(failed and len(done) == 1, "%s: %d refused, %d done" % (name, len(failed), len(done))):
            continue
        outcome.require(all(f[1] == "OutOfMemoryError" for f in failed), "%s: %s" % (name, failed))
        outcome.require(all((f[2] == "yes") == ("Async" not in name) for f in failed), "%s: its text: %s" % (name, failed))
        outcome.require(int(failed[-1][0]) == 2 * int(done[0]), "%s: the batch was not halved: %s %s" % (name, failed, done))
        outcome.require("gpucap: refused" in text, "%s: no line says that gpucap refused" % name)
    outcome.require(processes and all(process.refused > 0 for process in processes), "not each allocator was refused by gpucap")


def fragmentation(run, outcome):
    parts = sections(run)
    only(run, outcome, 2, "fragmentation.py")
    if not outcome.require(list(parts) == ["default", "expandable segments"], "the parts: %s" % list(parts)):
        return
    free = re.search(r"free in the cache (\d+) MiB, free on the card (\d+) MiB", parts["default"])
    if outcome.require(free, "nothing says what is free"):
        outcome.require(int(free.group(1)) > 1536 > int(free.group(2)), "free in the cache and on the card: %s" % (free.groups(),))
    outcome.require("1536 MiB: out of memory" in parts["default"], "by default it was granted")
    outcome.require("1536 MiB: granted" in parts["expandable segments"], "with expandable segments it was refused")
    refused = re.findall(r"^.* refuse .*$", parts["default"], re.MULTILINE)
    outcome.require(refused and all("1.50 GiB" in line for line in refused), "the event log has the refusals %s" % refused)
    outcome.require(re.search(r"^gpucap: refused .*1\.50 GiB", parts["default"], re.MULTILINE), "no line says that gpucap refused")


def seconds_of(clock):
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return (hours * 60 + minutes) * 60 + seconds


def sharing(run, outcome):
    parts = list(sections(run).items())
    if not outcome.require(len(parts) == 5, "%d parts" % len(parts)):
        return
    ends = [re.findall(r"^exit status: first (\d+), second (\d+)$", text, re.MULTILINE) for _, text in parts]
    done = [re.findall(r"^(\S+) (first|second): done with (\S+) GiB$", text, re.MULTILINE) for _, text in parts]
    short = [len(re.findall(r": OUT OF MEMORY", text)) for _, text in parts]
    outcome.require(len(ends[0]) == 1 and ends[0][0] != ("0", "0") and short[0] > 0, "without a cap both lived: %s" % ends[0])
    for part, what in ((1, "with a cap each"), (2, "in a group"), (3, "with wait")):
        outcome.require(ends[part] == [("0", "0")] and len(done[part]) == 2, "%s not both ended well: %s" % (what, ends[part]))
    outcome.require(short[1] == 0 and short[3] == 0, "out of memory with a cap each or with wait")
    outcome.require(short[2] > 0, "the group's limit was never met")
    outcome.require(sum(float(d[2]) for d in done[2]) < 12, "the group held %s GiB" % (done[2],))
    if len(done[3]) == 2:
        apart = abs(seconds_of(done[3][1][0]) - seconds_of(done[3][0][0]))
        outcome.require(apart >= 2 and all(float(d[2]) >= 7 for d in done[3]), "they did not take turns: %s" % (done[3],))
    outcome.require([d[1] for d in done[4]] == ["first", "second"], "the last part: %s" % (done[4],))
    begun = re.search(r"second: starts", parts[4][1])
    ended = re.search(r"first: done", parts[4][1])
    outcome.require(begun and ended and ended.start() < begun.start(), "the second did not wait for the first")
    capped = [process for process in run.of("job.py") if process.limit_bytes is not None]
    outcome.require(len(capped) == 7, "%d jobs ran under a cap" % len(capped))


def leak(run, outcome):
    looks = re.split(r"^\$ gpucap-top --once.*$", run.text, flags=re.MULTILINE)[1:]
    only(run, outcome, 2, "leak.py")
    if not outcome.require(len(looks) == 3, "%d looks" % len(looks)):
        return
    live, used = {"healthy": [], "leaking": []}, {"healthy": [], "leaking": []}
    for look in looks:
        lines = [re.split(r"\s{2,}", line.strip()) for line in look.strip().splitlines()]
        head = lines[0]
        if not outcome.require("LIVE" in head and "USED" in head, "the table's head is %s" % head):
            return
        for cells in lines[1:]:
            if len(cells) == len(head) and "leak.py" in cells[-1]:
                name = "leaking" if cells[-1].endswith("--leak") else "healthy"
                live[name].append(int(cells[head.index("LIVE")]))
                size, unit = cells[head.index("USED")].split()
                used[name].append(float(size) * {"MiB": 1, "GiB": 1024}[unit])
    if not outcome.require(all(len(values) == 3 for values in live.values()), "not both are in each look: %s" % live):
        return
    outcome.figures.update({"live, " + name: str(values) for name, values in live.items()})
    outcome.require(live["leaking"][0] < live["leaking"][1] < live["leaking"][2], "the leak does not show: %s" % live)
    outcome.require(used["leaking"][2] > used["leaking"][1], "the leak's memory does not show: %s" % used)
    outcome.require(live["healthy"][1] == live["healthy"][2] and used["healthy"][1] == used["healthy"][2], "the healthy loop grew: %s %s" % (live, used))


def jupyter_kernel(run, outcome):
    find(run, outcome, r"^the card has 4\.0 GiB$", 1)
    find(run, outcome, r"^OutOfMemoryError: ", 1)
    find(run, outcome, r"^and on: 499500$", 1)
    find(run, outcome, r"^ +ok$", 3)
    processes = only(run, outcome, 1, "ipykernel_launcher")
    if processes:
        outcome.require(processes[0].limit_bytes == 4 * GIB and processes[0].refused > 0, "the kernel: %s" % processes[0])


def other_jax(run, outcome):
    may_use = find(run, outcome, r"^JAX \S+ may use (\d+) MiB$", 1)
    got = find(run, outcome, r"^after (\d+) MiB: .*(?:RESOURCE_EXHAUSTED|[Oo]ut of memory)", 1)
    find(run, outcome, r"^and goes on: 499500$", 1)
    processes = only(run, outcome, 1, "examples/pytorch/other_jax.py")
    if may_use and got and processes:
        outcome.require(2048 < int(may_use[0]) <= 4096 and int(got[0]) <= int(may_use[0]), "may use %s, got %s MiB" % (may_use, got))
        outcome.require(processes[0].truth_bytes >= int(may_use[0]) * MIB, "it did not take three quarters at once")


def other_cupy(run, outcome):
    rows = find(run, outcome, r"^\S.* in arrays +(\d+)  in the pool +(\d+)  used +(\d+) of (\d+) MiB$", 3)
    find(run, outcome, r"^after \d+ MiB: .*[Oo]ut of memory", 1)
    if not (rows and only(run, outcome, 1, "examples/pytorch/other_cupy.py")):
        return
    rows = [[int(cell) for cell in row] for row in rows]
    outcome.require(all(row[3] == 4096 for row in rows), "the card's size: %s" % rows)
    outcome.require(rows[0][0] > 2048 and rows[1][:3] == [0] + rows[0][1:3] and rows[2][1] == 0, "arrays and pool: %s" % rows)
    outcome.require(rows[1][2] - rows[2][2] == rows[1][1], "free_all_blocks gave back %d MiB" % (rows[1][2] - rows[2][2]))
