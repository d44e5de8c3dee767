"""Runs `gpucap run --wait` on the fake NVML and a forged group, and `gpucap set` on a real client under the real library.
Arguments: see control_world.py."""
import json
import os
import signal
import struct
import subprocess
import sys
import time
import unittest

from control_world import CLIENT, FIRST, GIB, GPUCAP, LIBRARY, MIB, SECOND, World


class LiveTest(World):
    """A client that takes pieces of 512 MiB until it is refused, waits, gives all back and asks for one again."""

    def again_after(self, *change, group=False):
        limits = ["--group", "team", "--group-limit", "4G"] if group else ["--limit", "4G"]
        process = subprocess.Popen([GPUCAP, "run", *limits, "--log", "off", "--", CLIENT, "dlsym", "until-refused", "alloc",
                                    str(512 * MIB), "100"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**self.env, "GPUCAP_LIBRARY": LIBRARY})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while (line := process.stdout.readline()) != "READY\n":
            self.assertNotEqual(line, "", "the client ended")
        (name,) = [name for name in os.listdir(self.segments) if name.endswith(".gpucap") and name[0] != "."]
        pid = name.split(".")[0]
        text = self.run_it("check", "-p", pid).stdout
        self.assertIn("ok    GPU 0: ", text)
        if change:
            result = self.run_it("set", *(["--group", "team"] if group else ["-p", pid]), *change)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
        out, err = process.communicate("\n\n", timeout=60)
        return text, out, err

    def test_without_a_change_there_is_room_again(self):
        text, out, _ = self.again_after()
        self.assertIn("again=0\n", out)
        self.assertIn("cap 4.00 GiB (from environment)", text)

    def test_a_limit_that_is_set_acts_at_the_next_request(self):
        _, out, err = self.again_after("--limit", "600M")
        self.assertIn("again=2\n", out)
        self.assertIn("of 600 MiB on GPU 0, 2 refusals", err)

    def test_a_limit_of_the_group_does_too(self):
        text, out, _ = self.again_after("--limit", "600M", group=True)
        self.assertIn("again=2\n", out)
        self.assertRegex(text, r"no cap of its own, .*, group team 3\.\d+ GiB of 4\.00 GiB, ")


class WaitTest(World):
    def show(self, *words):
        return self.run_it("run", "-q", *words, "--", "sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}")

    def test_where_there_is_room_it_starts_at_once(self):
        self.assertEqual(self.show("--wait", "8G").stdout, "unset\n")
        self.assertEqual(self.show("--wait", "8G", "--gpu", "any").stdout, FIRST + "\n")
        self.assertEqual(self.show("--gpu", "1").stdout, SECOND + "\n")
        self.assertEqual(self.show("--gpu", "GPU-f14e", "--wait", "50%").stdout, SECOND + "\n")
        self.env["CUDA_VISIBLE_DEVICES"] = "1"
        self.assertEqual(self.show("--gpu", "0").stdout, SECOND + "\n")
        self.assertEqual(self.show("--wait", "1G").stdout, "1\n")

    def test_what_can_never_be_is_refused_at_once(self):
        self.refused(125, "run", "--wait", "20G", "--", "true", parts=["20.0 GiB will never be free", "16.0 GiB in all"])
        self.refused(125, "run", "--wait", "8G", "--group", "team", "--group-limit", "4G", "--", "true", parts=["group 'team'"])
        self.refused(125, "run", "--gpu", "5", "--", "true", parts=["--gpu"])
        self.env["CUDA_VISIBLE_DEVICES"] = ""
        self.refused(125, "run", "--wait", "1G", "--", "true", parts=["no GPU is visible"])
        self.env["FAKE_NVML_FAIL_INIT"] = "1"
        self.refused(125, "run", "--wait", "1G", "--", "true", parts=["cannot be known"])

    def test_it_waits_for_the_groups_budget_says_so_once_and_gives_up(self):
        self.forge_group("team", [(FIRST, 8 * GIB)], [[5 * GIB]])
        words = ["run", "--wait", "4G", "--group", "team", "--group-limit", "100G", "--wait-timeout", "700ms", "--", "true"]
        began = time.monotonic()
        result = self.run_it(*words)
        self.assertGreaterEqual(time.monotonic() - began, 0.7)
        self.assertEqual(result.returncode, 125)
        lines = result.stderr.splitlines()
        self.assertEqual(lines[0], "gpucap: waiting for 4.00 GiB free on GPU 0 (now 3.00 GiB, in the budget of group team)")
        self.assertEqual(len(lines), 2)
        self.assertIn("gave up waiting", lines[1])
        self.assertEqual(self.run_it(words[0], "-q", *words[1:]).stderr.count("\n"), 1)
        self.assertEqual(self.show("--wait", "4G", "--group", "team", "--gpu", "any").stdout, SECOND + "\n")

    def waiting(self):
        path = self.forge_group("team", [(FIRST, 8 * GIB)], [[5 * GIB]])
        process = subprocess.Popen([GPUCAP, "run", "--json", "--wait", "4G", "--group", "team", "--", "sh", "-c", "echo started"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
        self.assertIn("waiting for", process.stderr.readline())
        return path, process

    def test_it_starts_when_there_is_room_and_the_summary_says_how_long(self):
        path, process = self.waiting()
        with open(path, "r+b") as file:
            file.seek(192 + 16)
            file.write(struct.pack("<Q", 9 * GIB))
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out), (0, "started\n"))
        summary = json.loads(err)
        self.assertGreater(summary["waited_ns"], 0)
        self.assertEqual(summary["group"], "team")

    def test_ctrl_c_ends_the_waiting(self):
        _, process = self.waiting()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out), (-signal.SIGINT, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
