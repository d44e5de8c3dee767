"""gpucap-top as scripts use it: fields, sums, counts and filters, the dead, errors. Arguments: gpucap-top, poser."""
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from posing import POSER, TOP, PosingTest

GIB = 1 << 30
UUID = "GPU-11111111-1111-1111-1111-111111111111"  # uuid=17


class ScriptsTest(PosingTest):
    folder_prefix = "gpucap-scripts-test-"

    def top(self, *words, code=0):
        result = subprocess.run([TOP, *words, "--dir", self.dir], capture_output=True, text=True, timeout=30,
                                env={**os.environ, "TZ": "UTC"})
        self.assertEqual(result.returncode, code, (words, result.stderr))
        self.error = result.stderr
        return result.stdout

    # Fields

    def test_the_idiom_of_nvidia_smi(self):
        poser = self.pose(f"used={3 * GIB + 5}", f"limit={4 * GIB}", f"peak={3 * GIB + 7}", "refused=2", "uuid=17")
        fields = "--query=pid,gpu_uuid,used,limit,peak,refused"
        self.assertEqual(self.top(fields, "--format=csv"),
                         "pid, gpu_uuid, used [MiB], limit [MiB], peak [MiB], refused\n"
                         f"{poser.pid}, {UUID}, 3072 MiB, 4096 MiB, 3072 MiB, 2\n")
        self.assertEqual(self.top(fields), self.top(fields, "--format", "csv"))
        self.assertEqual(self.top(fields, "--format=csv,noheader,nounits"),
                         f"{poser.pid}, {UUID}, {3 * GIB + 5}, {4 * GIB}, {3 * GIB + 7}, 2\n")

    def test_a_loop_prints_the_header_once(self):
        self.pose("used=5", "refused=1")
        process = subprocess.Popen([TOP, "--query", "used,refused", "--format", "csv,nounits", "-l", "0.1", "--dir", self.dir],
                                   stdout=subprocess.PIPE, text=True)
        lines = [process.stdout.readline() for _ in range(4)]
        process.terminate()
        process.wait()
        process.stdout.close()
        self.assertEqual(lines, ["used [bytes], refused\n"] + ["5, 1\n"] * 3)

    def test_csv_has_every_field_and_any_reader_reads_it(self):
        poser = self.pose(f"used={GIB}", "group=a,b", "failed=4", "observed=1", "observed_bytes=77", f"policy={2 * GIB}", "source=2")
        rows = list(csv.DictReader(io.StringIO(self.top("--csv"))))
        listed = [line.split()[0] for line in self.top("--query-fields").splitlines()]
        self.assertEqual(list(rows[0]), listed)
        (row,) = rows
        self.assertEqual((row["pid"], row["pid_in_namespace"], row["parent_pid"]), (str(poser.pid), str(poser.pid), str(os.getpid())))
        self.assertEqual((row["used"], row["limit"], row["group"], row["failed"], row["observed"], row["observed_bytes"]),
                         (str(GIB), "", "a,b", "4", "1", "77"))
        self.assertEqual((row["policy_limit"], row["limit_source"], row["last_refused_bytes"]), (str(2 * GIB), "policy", ""))
        self.assertEqual(row["command"], " ".join(poser.args))

    def test_the_last_refusal_and_the_wait_are_told(self):
        before = time.time_ns()
        self.pose("used=1", "group=train", f"group_limit={8 * GIB}", f"waiting={GIB}", "on_limit=1", f"last_refused={2 * GIB}", "by=2")
        (row,) = csv.DictReader(io.StringIO(self.top("--csv")))
        self.assertEqual((row["last_refused_bytes"], row["last_refused_api"], row["last_refused_by"]),
                         (str(2 * GIB), "cuMemAlloc_v2", "group"))
        self.assertEqual((row["waiting"], row["waiting_bytes"], row["on_limit"], row["group_limit"]), ("1", str(GIB), "wait", str(8 * GIB)))
        for name in ("last_refused_ns", "waiting_since_ns"):
            self.assertAlmostEqual(int(row[name]) / 1e9, before / 1e9, delta=5)
        (process,) = json.loads(self.top("--json"))["processes"]
        device = process["devices"][0]
        self.assertEqual((device["last_refusal"]["bytes"], device["last_refusal"]["api"], device["last_refusal"]["origin"]),
                         (2 * GIB, "cuMemAlloc_v2", "cudaMalloc"))
        self.assertEqual((device["waiting"]["count"], device["waiting"]["bytes"]), (1, GIB))
        self.assertEqual((process["group"], process["on_limit"], device["group_limit_bytes"]), ("train", "wait", 8 * GIB))
        table = self.top("--once")
        self.assertIn("1.00 GiB 0s", table)
        self.assertIn("GROUP", table)

    def test_a_process_in_another_pid_namespace_has_both_pids(self):
        unshare = ["unshare", "--pid", "--fork"]
        if not shutil.which("unshare") or subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
            self.skipTest("no PID namespace can be made here")
        outer = subprocess.Popen([*unshare, POSER, self.dir, "used=1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.posers.append(outer)
        self.assertEqual(outer.stdout.readline(), "ready\n")
        (row,) = csv.DictReader(io.StringIO(self.top("--csv")))
        self.assertEqual((row["pid_in_namespace"], row["parent_pid"]), ("1", str(outer.pid)))
        with open(f"/proc/{row['pid']}/cmdline", "rb") as file:
            self.assertEqual(file.read().split(b"\0")[0].decode(), POSER)
        os.kill(int(row["pid"]), signal.SIGKILL)

    # Sums

    def test_sums_by_user_group_and_command(self):
        self.pose(f"used={GIB}", f"limit={2 * GIB}", "group=g", "uuid=17")
        self.pose(f"used={2 * GIB}", f"limit={2 * GIB}", "group=g", "uuid=17")
        self.pose(f"used={GIB}", "uuid=18")
        self.pose(f"used={GIB}", "then=kill")
        (user,) = csv.DictReader(io.StringIO(self.top("--by", "user", "--csv")))
        self.assertEqual((user["processes"], user["gpus"], user["used_bytes"], user["limit_bytes"]), ("3", "2", str(4 * GIB), ""))
        sums = json.loads(self.top("--by", "group", "--json"))
        self.assertEqual([(s["name"], s["used_bytes"], s["limit_bytes"]) for s in sums["totals"]],
                         [("g", 3 * GIB, 4 * GIB), (None, GIB, None)])
        self.assertEqual(sums["totals"][0]["gpus"][0]["uuid"], UUID)
        lines = self.top("--by", "command").splitlines()
        self.assertEqual([line.split()[:2] for line in lines], [["COMMAND", "PROCESSES"], ["poser", "3"]])

    # The dead

    def test_the_dead_stay_listed_until_keep_says_otherwise(self):
        living = self.pose(f"used={GIB}")
        ended = self.pose(f"used={GIB}", f"peak={3 * GIB}", "then=end")
        killed = self.pose(f"used={GIB}", f"peak={2 * GIB}", "then=kill")
        lines = self.top("--once").splitlines()
        self.assertEqual(int(lines[1].split()[0]), living.pid)
        dead = {int(line.split()[0]): line for line in lines[2:]}
        self.assertRegex(dead[ended.pid], r" 3\.00 GiB .*ended \d+s ago ")
        self.assertRegex(dead[killed.pid], r" 2\.00 GiB .*killed \d+s ago ")
        lines = self.top("--once", "--keep", "0").splitlines()
        self.assertEqual([int(line.split()[0]) for line in lines[1:]], [living.pid])

    def test_keep_counts_from_the_death(self):
        self.pose(f"used={GIB}", "then=end")
        self.pose(f"used={GIB}", "then=kill")
        self.assertEqual(len(self.top("--once").splitlines()), 3)  # also marks the killed one as found
        time.sleep(2.1)
        self.assertEqual(len(self.top("--once", "--keep", "60").splitlines()), 3)
        self.assertEqual(len(self.top("--query", "pid", "--format", "csv,noheader", "--keep", "1").splitlines()), 0)

    def test_scripts_get_the_dead_only_when_they_ask(self):
        living = self.pose(f"used={GIB}")
        dead = self.pose(f"used={GIB}", f"peak={3 * GIB}", "then=kill")
        query = ["--query", "pid,state,peak", "--format", "csv,noheader,nounits"]
        self.assertEqual(self.top(*query), f"{living.pid}, live, 0\n")
        self.assertIn(f"{dead.pid}, killed, {3 * GIB}\n", self.top(*query, "--all"))
        (process,) = [p for p in json.loads(self.top("--json", "--keep", "60"))["processes"] if p["pid"] == dead.pid]
        self.assertIsNone(process["ended_ns"], "nobody knows when it was killed")
        self.assertAlmostEqual(process["dead_since_ns"] / 1e9, time.time(), delta=10)

    # The log

    def test_counts_are_a_table_per_function(self):
        self.pose("latency=1000", "events=3", "latency=0", "op=3", "bytes=77", "op=4", "bytes=5", "op=2", f"bytes={GIB}",
                  "op=7", "bytes=9", "op=5", "bytes=9")
        self.assertEqual(self.top("events", "-c"), "API            CALLS  REFUSED  FAILED     BYTES     MEAN      P99\n"
                         "cuMemAlloc_v2      5        1       1  6.00 MiB  1.00 us  1.00 us\n"
                         "cuMemFree_v2       1        0       0  1.00 GiB        -        -\n-- 8 events, 0 lost\n")
        counts = json.loads(self.top("events", "-c", "--json"))
        self.assertEqual(counts["apis"][0], {"name": "cuMemAlloc_v2", "calls": 5, "refused": 1, "failed": 1, "bytes": 6 << 20,
                                             "timed": 3, "mean_ns": 1000, "p99_ns": 1000})
        self.assertEqual((counts["type"], counts["events"], counts["lost"], counts["apis"][1]["mean_ns"]), ("counts", 8, 0, None))
        self.assertEqual(self.top("events", "-c", "--csv").splitlines()[2], f"cuMemFree_v2,1,0,0,{GIB},0,,")
        self.assertEqual(self.error, "-- 8 events, 0 lost\n")

    def test_counts_of_what_is_followed_come_at_ctrl_c(self):
        poser = self.pose("events=1")
        process = subprocess.Popen([TOP, "events", "-f", "-c", "--dir", self.dir], stdout=subprocess.PIPE, text=True)
        time.sleep(0.7)
        poser.stdin.write("\n\n")
        poser.stdin.flush()
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        lines = process.communicate(timeout=10)[0].splitlines()
        self.assertEqual(process.returncode, 0)
        self.assertEqual(lines[1].split()[:2], ["cuMemAlloc_v2", "3"])
        self.assertEqual(lines[-1], "-- 3 events, 0 lost")

    def events(self, *words):
        return [json.loads(line) for line in self.top("events", "--json", *words).splitlines()][:-1]

    def test_filters(self):
        self.pose("uuid=17", "device=1", "uuid=18", "events=4", "op=2", "bytes=100", "op=6", "bytes=-1", "op=7", "bytes=5")
        self.assertEqual([e["bytes"] for e in self.events("--size", ">=2M", "--size", "<=3M")], [2 << 20, 3 << 20])
        self.assertEqual([e["bytes"] for e in self.events("--size", "100")], [100])
        self.assertEqual([e["operation"] for e in self.events("--operation", "refuse,release")], ["refuse", "release"])
        self.assertEqual([e["operation"] for e in self.events("--result", "error")], ["refuse"])
        self.assertEqual([e["operation"] for e in self.events("--result", "OUT_OF_MEMORY")], ["refuse"])
        self.assertEqual({e["origin"] for e in self.events("--api", "cudaMal*")}, {"cudaMalloc"})
        self.assertEqual([e["api"] for e in self.events("--api", "*Free*")], ["cuMemFree_v2"])
        self.assertEqual(len(self.events("--gpu", "0")), 7)
        self.assertEqual(self.events("--gpu", "1"), [])
        self.assertEqual(len(self.events("--gpu", UUID[:8])), 7)
        self.assertEqual(self.events("--gpu", "GPU-12"), [])
        self.assertEqual(self.events("--gpu", "0")[0]["gpu_uuid"], UUID)
        limit, wait = self.events("--operation", "limit,wait")
        self.assertEqual((limit["bytes"], wait["bytes"]), (None, 5))
        self.assertRegex(self.top("events", "--operation", "limit"), r" limit .* none ")

    def test_the_log_as_csv(self):
        self.pose("events=100", "op=3", "bytes=77")  # the ring holds 64
        rows = list(csv.DictReader(io.StringIO(self.top("events", "--csv"))))
        self.assertEqual(len(rows), 64)
        self.assertEqual((rows[-1]["operation"], rows[-1]["bytes"], rows[-1]["refused_by"], rows[-1]["result_name"]),
                         ("refuse", "77", "group", "CUDA_ERROR_OUT_OF_MEMORY"))
        self.assertIn("37 events lost of pid", self.error)
        self.assertIn("-- 64 events, 37 lost", self.error)
        self.assertIn("  by the group\n", self.top("events"))

    # Slips

    def test_slips_are_told_with_what_was_meant(self):
        for words, told in (
                (["--jsno"], "unknown option --jsno; did you mean --json?"),
                (["evnets"], "unexpected word evnets; did you mean events?"),
                (["events", "--folow"], "unknown option --folow; did you mean --follow?"),
                (["--query", "pid,usde"], "unknown field 'usde'; did you mean used?"),
                (["--query", "pid", "--format", "csv,nohead"], "unknown word 'nohead'; did you mean noheader?"),
                (["--query", "pid", "--format", "noheader"], "--format must contain csv"),
                (["--query", ""], "unknown field ''"),
                (["--by", "usr"], "unknown word 'usr'; did you mean user?"),
                (["--keep", "601"], "--keep"),
                (["--format", "csv"], "--query"),
                (["--csv", "--json"], "--json"),
                (["--once", "--all"], "--all goes with"),
                (["--json", "--all", "--keep", "5"], "exclude each other"),
                (["events", "--size", ">1G"], "--size '>1G' cannot be understood"),
                (["events", "--operation", "refse"], "did you mean refuse?"),
                (["events", "--result", "OUT_OF_MEMRY"], "did you mean CUDA_ERROR_OUT_OF_MEMORY?"),
                (["--once", "events"], "events: of the options before it")):
            self.assertEqual(self.top(*words, code=2), "")
            self.assertIn(told, self.error, words)
            self.assertEqual(self.error.count("\n"), 1, self.error)

    def test_an_absent_process_is_1_and_a_full_device_4(self):
        self.top("--query", "pid", "-p", "999999999", code=1)
        self.top("--csv", "-p", "999999999", code=1)
        self.pose("used=1")
        for words in (["--csv"], ["--by", "user"], ["--query", "pid"], ["--query-fields"], ["events", "-c"]):
            with open("/dev/full", "w") as full:
                code = subprocess.run([TOP, *words, "--dir", self.dir], stdout=full, stderr=subprocess.PIPE).returncode
            self.assertEqual(code, 4, words)

    # Strangers' files

    def test_the_files_of_groups_are_no_segments(self):
        for name in ("train.gpucap-group", ".7.gpucap.tmp"):
            with open(os.path.join(self.dir, name), "wb") as file:
                file.write(b"GPUCAPG\x01" + bytes(4096))
        for words in (["--once"], ["--json"], ["--csv"], ["events"]):
            self.top(*words)
            self.assertEqual(self.error, "-- 0 events, 0 lost\n" if "--csv" in words and "events" in words else "")
        self.assertEqual(json.loads(self.top("--json"))["unreadable"], [])

    def test_a_segment_cut_short_is_named_and_the_others_are_shown(self):
        good = self.pose("used=5")
        bad = self.pose("used=6", "then=end")
        (path,) = [os.path.join(self.dir, name) for name in os.listdir(self.dir) if name.startswith(f"{bad.pid}.")]
        os.truncate(path, os.path.getsize(path) // 2)
        for words in (["--csv"], ["--query", "pid"], ["--by", "user"], ["--once"]):
            self.assertIn(str(good.pid) if "--by" not in words else "root" if os.geteuid() == 0 else "", self.top(*words))
            self.assertIn(os.path.basename(path), self.error)
            self.assertEqual(self.error.count("\n"), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
