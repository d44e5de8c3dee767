"""Runs gpucap-top against posing processes and looks at what a user would see. Arguments: gpucap-top, poser."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from posing import POSER, TOP, PosingTest

GIB = 1 << 30


class TopTest(PosingTest):
    def top(self, *words, env=None, directory=True):
        words = [*words, "--dir", self.dir] if directory else list(words)
        return subprocess.run([TOP, *words], capture_output=True, text=True, timeout=30,
                              env={**os.environ, "TZ": "UTC", **(env or {})})

    def json(self, *words):
        result = self.top("--json", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    # The table

    def test_once_prints_processes_by_use_and_the_dead_last(self):
        small = self.pose(f"limit={4 * GIB}", f"used={GIB}", f"peak={2 * GIB}", "refused=3")
        large = self.pose(f"used={3 * GIB}", "device=1", f"used={GIB // 2}")
        dead = self.pose(f"used={9 * GIB}", "then=kill")
        result = self.top("--once")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0].split()[:4], ["PID", "USER", "GPU", "USED"])
        self.assertEqual([int(line.split()[0]) for line in lines[1:]], [large.pid, small.pid, large.pid, dead.pid])
        self.assertIn("1.00 GiB  4.00 GiB  25  2.00 GiB", lines[2])
        self.assertTrue(lines[2].endswith(" ".join(small.args)), "a pipe gets the whole command")

    def test_what_is_not_a_terminal_gets_the_table_once(self):
        self.pose(f"used={GIB}")
        self.assertEqual(len(self.top().stdout.splitlines()), 2)

    def test_empty_table_is_one_line_that_helps(self):
        result = self.top("--once")
        self.assertEqual(result.returncode, 0)
        self.assertIn(self.dir, result.stdout)
        self.assertIn("gpucap run", result.stdout)
        self.assertEqual(result.stdout.count("\n"), 1)

    def test_the_environment_names_the_directory(self):
        poser = self.pose(f"used={GIB}")
        result = self.top("--json", directory=False, env={"GPUCAP_DIR": self.dir})
        self.assertEqual([p["pid"] for p in json.loads(result.stdout)["processes"]], [poser.pid])

    # JSON

    def test_json_has_figures_as_integers_and_null_for_no_cap(self):
        poser = self.pose(f"used={GIB}", "driver=-5", "device=1", f"limit={GIB}")
        data = self.json()
        self.assertEqual(data["schema"], 2)
        self.assertEqual(data["directories"], [self.dir])
        (process,) = data["processes"]
        self.assertEqual((process["pid"], process["state"]), (poser.pid, "live"))
        self.assertEqual(process["command"], poser.args)
        first, second = process["devices"]
        self.assertEqual((first["used_bytes"], first["driver_bytes"], first["limit_bytes"]), (GIB - 5, -5, None))
        self.assertEqual((second["active"], second["limit_bytes"]), (False, GIB))

    def test_json_with_all_shows_the_dead_and_how_they_died(self):
        self.pose(f"used={GIB}", "then=kill")
        self.pose(f"used={GIB}", "then=end")
        self.assertEqual(self.json()["processes"], [])
        self.assertEqual(sorted(p["state"] for p in self.json("--all")["processes"]), ["ended", "killed"])

    def test_json_repeats_as_lines(self):
        self.pose(f"used={GIB}")
        process = subprocess.Popen([TOP, "--json", "-l", "0.1", "--dir", self.dir], stdout=subprocess.PIPE, text=True)
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.terminate()
        process.wait()
        process.stdout.close()
        self.assertLess(lines[0]["time_ns"], lines[2]["time_ns"])

    # Which processes

    def test_pid_filters_and_can_be_repeated(self):
        first, second, third = (self.pose(f"used={GIB}") for _ in range(3))
        pids = [p["pid"] for p in self.json("-p", str(first.pid), "-p", str(third.pid))["processes"]]
        self.assertEqual(sorted(pids), sorted([first.pid, third.pid]))
        self.assertNotIn(second.pid, pids)

    def test_no_such_pid_is_1(self):
        dead = self.pose(f"used={GIB}", "then=kill")
        self.assertEqual(self.top("--once", "-p", str(dead.pid)).returncode, 0, "still listed")
        for pid in ("999999999", str(dead.pid)):
            self.assertEqual(self.top("--once", "--keep", "0", "-p", pid).returncode, 1)
            self.assertEqual(self.top("--json", "-p", pid).returncode, 1)
        self.assertEqual(self.top("events", "-p", "999999999").returncode, 1)

    def test_usage_is_2(self):
        for words in (["--nonsense"], ["-l", "x"], ["-l", "0"], ["-p", "abc"], ["-p", "-4"], ["--once", "-l", "1"], ["--all"],
                      ["frobnicate"]):
            result = subprocess.run([TOP, *words], capture_output=True, text=True)
            self.assertEqual(result.returncode, 2, words)
            self.assertEqual(result.stdout, "")

    def test_a_directory_that_cannot_be_read_is_3(self):
        for words in (["--once"], ["--json"], ["events"], ["events", "-f"], ["--json", "-l", "1"]):
            result = self.top(*words, "--dir", self.dir + "/missing", directory=False)
            self.assertEqual(result.returncode, 3, words)
            self.assertIn(self.dir + "/missing", result.stderr)

    def test_a_directory_of_the_environment_may_come_later(self):
        result = self.top("--once", directory=False, env={"GPUCAP_DIR": self.dir + "/later"})
        self.assertEqual(result.returncode, 0)
        self.assertIn(self.dir + "/later", result.stdout)

    def test_output_that_cannot_be_written_is_4(self):
        self.pose(f"used={GIB}", "events=3")
        for words in (["--once"], ["--json"], ["events"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([TOP, *words, "--dir", self.dir], stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(result.returncode, 4, words)

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        self.pose(f"used={GIB}", "events=60")
        process = subprocess.Popen([TOP, "events", "-f", "--dir", self.dir], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        self.posers[0].stdin.write("\n")
        self.posers[0].stdin.flush()
        self.assertEqual(process.wait(timeout=10), -signal.SIGPIPE)
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()

    def test_help_fits_a_screen_with_three_examples(self):
        result = subprocess.run([TOP, "--help"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0)
        self.assertLessEqual(len(result.stdout.splitlines()), 30)
        self.assertEqual(len(re.findall(r"^  gpucap-top", result.stdout, re.M)), 3)

    # Strangers' files

    def test_hostile_files_are_named_and_skipped(self):
        poser = self.pose(f"used={GIB}")
        with open(os.path.join(self.dir, "1.0000000000000001.gpucap"), "wb") as file:
            file.write(b"\x00" * 5000)
        with open(os.path.join(self.dir, "short.gpucap"), "wb") as file:
            file.write(b"GPUCAP")
        os.symlink("/etc/passwd", os.path.join(self.dir, "link.gpucap"))
        os.mkfifo(os.path.join(self.dir, "pipe.gpucap"))
        os.mkdir(os.path.join(self.dir, "folder.gpucap"))
        with open(os.path.join(self.dir, "notes.txt"), "w") as file:
            file.write("not ours")
        for words in (["--once"], ["events"]):
            result = self.top(*words)
            self.assertEqual(result.returncode, 0)
            self.assertEqual(len(result.stderr.splitlines()), 5, result.stderr)
            self.assertIn("1.0000000000000001.gpucap: not a gpucap segment", result.stderr)
            self.assertIn("link.gpucap: not a regular file", result.stderr)
        self.assertEqual([p["pid"] for p in self.json()["processes"]], [poser.pid])
        self.assertEqual(len(self.json()["unreadable"]), 5)

    def test_a_hostile_command_does_not_reach_the_terminal(self):
        poser = subprocess.Popen(["evil\x1b[2J\n", self.dir, f"used={GIB}"], executable=POSER, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.posers.append(poser)
        poser.stdout.readline()
        result = self.top("--once")
        self.assertNotIn("\x1b", result.stdout)
        self.assertEqual(len(result.stdout.splitlines()), 2)
        self.assertIn("evil?[2J?", result.stdout)

    # Events

    def test_events_of_the_ended_and_the_living_are_merged_by_time(self):
        dead = self.pose("events=3", "then=kill")
        alive = self.pose("events=2")
        result = self.top("events")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        *lines, end = result.stdout.splitlines()
        self.assertEqual(end, "-- 5 events, 0 lost")
        self.assertEqual([int(line.split()[2]) for line in lines], [dead.pid] * 3 + [alive.pid] * 2)
        times = [line[:26] for line in lines]
        self.assertEqual(times, sorted(times))
        self.assertRegex(lines[0], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} +\d+  GPU 0  charge   cudaMalloc > cuMemAlloc_v2 +"
                                   r"1\.00 MiB  CUDA_SUCCESS  0x7f0000000000  used 0 B$")
        self.assertRegex(lines[1], r"charge   cuMemAlloc_v2 +2\.00 MiB")

    def test_events_name_results_and_time(self):
        before = time.time()
        self.pose("events=4")
        result = self.top("events", "--json")
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([line["type"] for line in lines], ["event"] * 4 + ["end"])
        refused = lines[3]
        self.assertEqual((refused["operation"], refused["result"], refused["result_name"], refused["bytes"], refused["api"],
                          refused["origin"]), ("refuse", 2, "CUDA_ERROR_OUT_OF_MEMORY", 4 << 20, "cuMemAlloc_v2", None))
        self.assertAlmostEqual(refused["time_ns"] / 1e9, before, delta=5)

    def test_lost_events_are_counted_exactly(self):
        poser = self.pose("events=100", "dropped=7")  # the ring holds 64
        lines = self.top("events").stdout.splitlines()
        self.assertEqual(lines[-1], "-- 64 events, 43 lost")
        self.assertIn(f"-- 43 events lost of pid {poser.pid} (", lines[-2])
        data = [json.loads(line) for line in self.top("events", "--json").stdout.splitlines()]
        self.assertEqual(data[-2:], [{"type": "lost", "pid": poser.pid, "events": 43}, {"type": "end", "events": 64, "lost": 43}])

    def test_events_filter_by_pid(self):
        self.pose("events=3")
        wanted = self.pose("events=2", "then=end")
        lines = self.top("events", "-p", str(wanted.pid)).stdout.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertTrue(all(str(wanted.pid) in line for line in lines[:-1]))

    def test_follow_shows_what_comes_later_also_from_later_processes(self):
        first = self.pose("events=1")
        process = subprocess.Popen([TOP, "events", "-f", "--json", "--dir", self.dir], stdout=subprocess.PIPE, text=True)
        read = lambda: json.loads(process.stdout.readline())
        self.assertEqual(read()["pid"], first.pid)
        first.stdin.write("\n")
        first.stdin.flush()
        self.assertEqual(read()["pid"], first.pid)
        second = self.pose("events=1", "then=kill")
        self.assertEqual(read()["pid"], second.pid)
        process.send_signal(signal.SIGINT)
        self.assertEqual(read(), {"type": "end", "events": 3, "lost": 0})
        self.assertEqual(process.wait(timeout=10), 0)
        process.stdout.close()

    # Cleaning up

    def test_the_table_sweeps_what_is_long_dead_and_nothing_else(self):
        self.pose(f"used={GIB}")
        self.pose(f"used={GIB}", "then=kill")
        self.top("--once")
        self.assertEqual(len(os.listdir(self.dir)), 2)
        self.top("events")
        for name in os.listdir(self.dir):
            os.utime(os.path.join(self.dir, name), (1, 1))
        self.top("events")
        self.assertEqual(len(os.listdir(self.dir)), 2, "the log only reads")
        self.top("--once")
        self.assertEqual(len(os.listdir(self.dir)), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
