"""The checks of the guide's examples can fail: each passes on what a run might print, and fails on each spoilt copy of it.

Needs no card: tests/gpu/guide_shows.py only reads text and figures. The texts here are made up, and stand for no card.
"""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "gpu"))

import checks_guide
import guide_shows as shows
from guide_run import Process, Run
from harness import GIB, MIB, Outcome

from guide_samples import SAMPLES

HALF = 64 * GIB


def made(pid, command, limit_gib, truth_mib, refused=0, card=0, peak_mib=None):
    return Process(pid, command, card, 2 * HALF, None if limit_gib is None else int(limit_gib * GIB),
                   (peak_mib or truth_mib) * MIB, refused, truth_mib * MIB)


PROCESSES = {
    "versions": [],
    "watch": [made(1, "python3 examples/pytorch/watch.py", None, 7000)],
    "limit": [made(1, "python3 limit.py --fraction", None, 64 * 1024 + 4700), made(2, "python3 limit.py", 64, 64 * 1024 - 10)],
    "live_limit": [made(1, "python3 live_limit.py", 2, 5700, refused=3)],
    "allocators": [made(i, "python3 allocators.py", 4, 4000) for i in range(5)],
    "savings": [],
    "full_training": [made(1, "python3 examples/pytorch/full_training.py", 128 * 0.7, 1000)],
    "data_parallel": [made(1, "python3 examples/pytorch/data_parallel.py", 6, 2000),
                      made(1, "python3 examples/pytorch/data_parallel.py", 4, 1500, card=1)],
    "distributed": [made(1, "python3 -u examples/pytorch/distributed.py", 6, 2000),
                    made(2, "python3 -u examples/pytorch/distributed.py", 4, 2000, card=1)],
    "freeing": [made(1, "python3 -u freeing.py", 8, 2600)],
    "out_of_memory": [made(i, "python3 out_of_memory.py", 4, 4000, refused=2) for i in range(3)],
    "fragmentation": [made(i, "python3 -u fragmentation.py", 4, 3600, refused=2) for i in range(2)],
    "sharing": [made(i, "python3 job.py first", 8, 7700) for i in range(7)],
    "leak": [made(1, "python3 leak.py", 4, 800), made(2, "python3 leak.py --leak", 4, 1600)],
    "jupyter_kernel": [made(1, "python3 -m ipykernel_launcher -f x.json", 4, 700, refused=1)],
    "other_jax": [made(1, "python3 examples/pytorch/other_jax.py", 4, 3700)],
    "other_cupy": [made(1, "python3 examples/pytorch/other_cupy.py", 4, 4000, refused=1)],
}


def failures(name, text, processes, status=0):
    outcome = Outcome(name)
    run = Run(status, text, processes)
    if name != "live_limit":
        shows.cap_holds(run, outcome)
    getattr(shows, name)(run, outcome)
    return outcome.failures


class GuideShowsTest(unittest.TestCase):
    def test_each_has_a_sample(self):
        # cap_holds is part of every case here; the rest of the module's functions are not checks of an example.
        self.assertEqual(set(SAMPLES), set(PROCESSES))
        names = {name[len("guide: "):].rsplit(".", 1)[0] for name, _ in checks_guide.CHECKS}
        self.assertEqual(names, set(SAMPLES))

    def test_good_runs_pass(self):
        for name, (text, _) in SAMPLES.items():
            with self.subTest(name):
                self.assertEqual(failures(name, text, PROCESSES[name]), [])

    def test_spoilt_text_fails(self):
        for name, (text, spoilers) in SAMPLES.items():
            for old, new in spoilers:
                with self.subTest(name, old=old, new=new):
                    self.assertIn(old, text)
                    self.assertNotEqual(failures(name, text.replace(old, new, 1), PROCESSES[name]), [])

    def test_a_truth_above_the_cap_fails(self):
        for name, processes in PROCESSES.items():
            if not processes or processes[0].limit_bytes is None and name != "limit":
                continue
            with self.subTest(name):
                over = [Process(**dict(p.__dict__, truth_bytes=p.physical_bytes)) for p in processes]
                self.assertNotEqual(failures(name, SAMPLES[name][0], over), [])

    def test_a_process_that_nvml_never_listed_fails(self):
        for name, processes in PROCESSES.items():
            if not processes or name == "sharing":  # whose jobs are counted; their truth is held against their caps
                continue
            with self.subTest(name):
                unseen = [Process(**dict(p.__dict__, truth_bytes=0)) for p in processes]
                self.assertNotEqual(failures(name, SAMPLES[name][0], unseen), [])

    def test_no_process_at_all_fails(self):
        for name, processes in PROCESSES.items():
            if processes:
                with self.subTest(name):
                    self.assertNotEqual(failures(name, SAMPLES[name][0], []), [])

    def test_a_group_that_held_more_than_its_budget_fails(self):
        class Answers:
            """Stands for the process that watches NVML: the highest sum since it was last asked."""

            def __init__(self, *gib):
                self.sums = iter(gib)

            def ask(self, _question):
                return {"max": {"0": int(next(self.sums) * GIB)}}

        text = "== no cap\nx\nexit status: a\n== a group of 12 GiB\nexit status: a\n== the same group\nx\nexit status: a\n== the first\n"
        for held, good in (((11.9, 12.0), True), ((12.1, 11.0), False), ((11.0, 12.1), False), ((11.0, 0.5), False)):
            with self.subTest(held):
                watch = checks_guide.GroupTruth(Answers(0, 100, 0, held[0], 0, held[1], 0))
                for line in text.splitlines(True):
                    watch.on_line(line)
                outcome = Outcome("sharing")
                watch.show(outcome)
                self.assertEqual(outcome.failures == [], good, outcome.failures)

    def test_a_bad_exit_status_fails(self):
        outcome = Outcome("status")
        shows.cap_holds(Run(1, "", []), outcome)
        self.assertNotEqual(outcome.failures, [])


if __name__ == "__main__":
    unittest.main()
