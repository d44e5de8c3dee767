"""Runs `gpucap set` and `gpucap check` on forged segments and groups. Arguments: see control_world.py."""
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import unittest

from control_world import GIB, GPUCAP, NONE, World, FIRST


class SetTest(World):
    def test_a_process_is_asked_and_told_what_was_and_will_be(self):
        poser = self.pose(f"limit={4 * GIB}", f"used={3 * GIB}")
        result = self.run_it("set", "-p", poser.pid, "--limit", "6G")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, f"process {poser.pid}, GPU 0: 4.00 GiB -> 6.00 GiB (uses 3.00 GiB)\n")
        self.assertEqual(self.control(poser.pid)[1], (6 * GIB, 6 * GIB))
        self.assertGreater(self.control(poser.pid)[0], 0)

    def test_below_what_is_used_it_says_what_that_means(self):
        poser = self.pose(f"limit={4 * GIB}", f"used={3 * GIB}")
        result = self.run_it("set", "-p", poser.pid, "--limit", "2G")
        self.assertIn("nothing is taken away, but new requests are refused", result.stdout)
        self.assertEqual(self.control(poser.pid)[1][0], 2 * GIB)

    def test_one_gpu_by_number_or_uuid_and_shares_of_the_card(self):
        poser = self.pose("device=0", "uuid=17", f"physical={16 * GIB}", "device=1", "uuid=34", f"physical={8 * GIB}", "used=1")
        before = self.control(poser.pid)[1]
        self.assertEqual(self.run_it("set", "-p", poser.pid, "--limit", "5G", "--gpu", "1").returncode, 0)
        self.assertEqual(self.control(poser.pid)[1], (before[0], 5 * GIB))
        self.assertEqual(self.run_it("set", "-p", poser.pid, "--limit", "7G", "--gpu", "GPU-1111").returncode, 0)
        self.assertEqual(self.control(poser.pid)[1], (7 * GIB, 5 * GIB))
        self.assertEqual(self.run_it("set", "-p", poser.pid, "--limit", "50%").returncode, 0)
        self.assertEqual(self.control(poser.pid)[1], (8 * GIB, 4 * GIB))
        self.assertEqual(self.run_it("set", "-p", poser.pid, "--limit", "0=1G,1=2G").returncode, 0)
        self.assertEqual(self.control(poser.pid)[1], (GIB, 2 * GIB))
        self.assertEqual(self.run_it("set", "-p", poser.pid, "--limit", "none", "--gpu", "0").returncode, 0)
        self.assertEqual(self.control(poser.pid)[1], (NONE, 2 * GIB))
        self.refused(1, "set", "-p", poser.pid, "--limit", "1G", "--gpu", "2", parts=["no such GPU"])
        self.refused(1, "set", "-p", poser.pid, "--limit", "1G", "--gpu", "GPU-99", parts=["no such GPU"])

    def test_nobody_goes_above_the_policy_and_then_nothing_changes(self):
        poser = self.pose("device=0", "used=1", "device=1", "used=1", f"policy={8 * GIB}")
        before = self.control(poser.pid)
        for limit in ("9G", "none", "8589934593"):
            self.refused(1, "set", "-p", poser.pid, "--limit", limit, parts=["policy file", "at most 8.00 GiB on GPU 1"])
        self.assertEqual(self.control(poser.pid), before)
        self.assertEqual(self.run_it("set", "-p", poser.pid, "--limit", "8G").returncode, 0)

    def test_who_cannot_be_asked_is_told_apart(self):
        self.refused(1, "set", "-p", "4194305", "--limit", "1G", parts=["there is no process 4194305"])
        self.refused(1, "set", "-p", os.getpid(), "--limit", "1G", parts=["not under gpucap", "gpucap check -p"])
        poser = self.pose("then=end")
        poser.wait()
        self.refused(1, "set", "-p", poser.pid, "--limit", "1G", parts=["has ended"])
        self.refused(1, "set", "-p", poser.pid, "--limit", "1G", "--dir", self.dir + "/missing", parts=["missing"])

    def test_one_of_another_major_version_is_named(self):
        poser = self.pose("used=1")
        (name,) = os.listdir(self.segments)
        # Opened and closed by somebody else than the writer, which keeps its lock.
        with open(os.path.join(self.segments, name), "r+b") as file:
            file.seek(8)
            file.write(struct.pack("<H", 1))
        self.refused(1, "set", "-p", poser.pid, "--limit", "1G", parts=[name, "another major version"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
    def test_only_the_owner_and_root_can(self):
        poser = self.pose(f"limit={4 * GIB}", "used=1")
        path = self.forge_group("team", [(1, 8 * GIB)])
        os.chmod(self.dir, 0o755)
        os.chmod(self.segments, 0o755)
        for name in os.listdir(self.segments):
            os.chmod(os.path.join(self.segments, name), 0o644)
        program = os.path.join(self.dir, "gpucap")
        shutil.copy(GPUCAP, program)
        before = self.control(poser.pid)
        for words, part in ((["-p", str(poser.pid)], "is not yours"),
                            (["--group", "team"], "is not yours")):
            result = subprocess.run([program, "set", *words, "--limit", "1G"], capture_output=True, text=True, env=self.env,
                                    user=65534, group=65534, extra_groups=[])
            self.assertEqual(result.returncode, 1)
            self.assertIn(part, result.stderr)
        self.assertEqual(self.control(poser.pid), before)
        self.assertEqual(self.group_limits(path, 1), [8 * GIB])

    def test_options_that_make_no_sense_are_125(self):
        for words in (["--limit", "1G"], ["-p", "1", "--group", "x", "--limit", "1G"], ["-p", "1"], ["-p", "0", "--limit", "1G"],
                      ["-p", "1", "--limit", ""], ["-p", "1", "--limit", "4"], ["-p", "1", "--limit", "abc"],
                      ["-p", "1", "--limit", "1G", "--gpu", "any"], ["-p", "1", "--limit", "0=1G", "--gpu", "1"],
                      ["--group", "-x", "--limit", "1G"], ["--group", "a/b", "--limit", "1G"]):
            self.refused(125, "set", *words)

    def test_a_group_is_set_by_card_or_whole(self):
        path = self.forge_group("team", [(0x11, 8 * GIB), (0x22, NONE)], [[2 * GIB, 0], [3 * GIB, GIB]])
        result = self.run_it("set", "--group", "team", "--limit", "12G")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        first = "GPU-11111111-1111-1111-1111-111111111111"
        second = "GPU-22222222-2222-2222-2222-222222222222"
        self.assertEqual(result.stdout, f"group team, {first}: 8.00 GiB -> 12.0 GiB (2 processes use 5.00 GiB)\n"
                                        f"group team, {second}: no limit -> 12.0 GiB (2 processes use 1.00 GiB)\n")
        self.assertEqual(self.group_limits(path, 2), [12 * GIB, 12 * GIB])
        result = self.run_it("set", "--group", "team", "--limit", "4G", "--gpu", "GPU-1111")
        self.assertIn("they use more than that", result.stdout)
        self.assertEqual(self.group_limits(path, 2), [4 * GIB, 12 * GIB])
        self.assertEqual(self.run_it("set", "--group", "team", "--limit", "none").returncode, 0)
        self.assertEqual(self.group_limits(path, 2), [NONE, NONE])

    def test_a_groups_gpu_numbers_and_sizes_are_its_members(self):
        path = self.forge_group("team", [(0x11, 8 * GIB), (0x22, 8 * GIB)], [[0, 0]])
        self.refused(1, "set", "--group", "team", "--limit", "1G", "--gpu", "1", parts=["by its UUID"])
        self.refused(1, "set", "--group", "team", "--limit", "50%", parts=["in bytes"])
        self.pose("device=0", "uuid=17", f"physical={16 * GIB}", "device=1", "uuid=34", f"physical={4 * GIB}",
                  env={"GPUCAP_GROUP": "team"})
        self.assertEqual(self.run_it("set", "--group", "team", "--limit", "1G", "--gpu", "1").returncode, 0)
        self.assertEqual(self.group_limits(path, 2), [8 * GIB, GIB])
        self.assertEqual(self.run_it("set", "--group", "team", "--limit", "50%").returncode, 0)
        self.assertEqual(self.group_limits(path, 2), [8 * GIB, 2 * GIB])

    def test_a_group_that_is_not_there_or_damaged_is_told(self):
        self.refused(1, "set", "--group", "team", "--limit", "1G", parts=["no group 'team'"])
        self.forge_group("other", [])
        self.refused(1, "set", "--group", "team", "--limit", "1G", parts=["there are: other"])
        self.refused(1, "set", "--group", "other", "--limit", "1G", parts=["has used a GPU yet"])
        with open(os.path.join(self.segments, "bad.gpucap-group"), "w") as file:
            file.write("x" * 5000)
        self.refused(1, "set", "--group", "bad", "--limit", "1G", parts=["damaged"])


class CheckTest(World):
    def findings(self, *words, code=0):
        result = self.run_it("check", "--json", *words)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual((document["schema"], document["ok"]), (1, code == 0))
        return {entry["what"]: (entry["status"], entry["why"]) for entry in document["checks"]}

    def test_a_sound_machine(self):
        found = self.findings()
        self.assertEqual(found["library"], ("ok", f"{self.library} can be loaded into programs here"))
        self.assertEqual(found["directory"], ("ok", self.segments))
        self.assertIn("driver", found["NVML"][1])
        self.assertIn(FIRST, found["GPU 0"][1])
        self.assertEqual(os.listdir(self.segments), [], "the check leaves nothing behind")
        text = self.run_it("check").stdout
        for line in text.splitlines():
            self.assertRegex(line, r"^(ok    |warn  |FAIL  )[^:]+: .+")

    def test_what_is_wrong_fails_with_its_reason(self):
        for variable, value, what in (("GPUCAP_LIMIT", "4X", "GPUCAP_LIMIT"), ("GPUCAP_GROUP", "-x", "GPUCAP_GROUP"),
                                      ("GPUCAP_GROUP_LIMIT", "4G", "GPUCAP_GROUP"), ("GPUCAP_DIR", "relative", "directory"),
                                      ("GPUCAP_DIR", "/no/such/place", "directory"), ("GPUCAP_LIBRARY", "/missing.so", "library"),
                                      ("LD_PRELOAD", "/missing/libgpucap.so", "preload")):
            keep = dict(self.env)
            self.env[variable] = value
            self.assertEqual(self.findings(code=1)[what][0], "fail", variable)
            self.env = keep
        with open(self.library, "w") as file:
            file.write("text")
        self.assertEqual(self.findings(code=1)["library"][0], "fail")

    def test_what_works_with_less_is_a_warning(self):
        self.env["GPUCAP_ON_LIMIT"] = "panic"
        self.env["GPUCAP_DISABLE"] = "1"
        self.env["FAKE_NVML_FAIL_INIT"] = "1"
        found = self.findings()
        for what in ("GPUCAP_ON_LIMIT", "GPUCAP_DISABLE", "NVML"):
            self.assertEqual(found[what][0], "warn", what)

    def test_a_policy_file_is_judged_with_line_and_column(self):
        path = os.path.join(self.dir, "policy.conf")
        with open(path, "w") as file:
            file.write("[default]\nlimit = 8G\n")
        self.assertEqual(self.findings("--policy", path)["policy"], ("ok", f"{path} asks of you: a limit"))
        with open(path, "w") as file:
            file.write("[default]\nlimt = 8G\n")
        result = self.run_it("check", "--policy", path)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, f"(?m)^FAIL  policy: {path}:2:1: ")
        self.assertEqual(self.findings("--policy", path + ".missing", code=1)["policy"][0], "fail")

    def preloaded(self, *words, env=None):
        """A poser that has the library, as far as /proc can tell."""
        return self.pose(*words, env={"LD_PRELOAD": self.library, **(env or {})})

    def test_a_process_under_gpucap_tells_what_rules_it(self):
        poser = self.preloaded(f"limit={4 * GIB}", f"used={3 * GIB}", "source=1", f"policy={8 * GIB}", f"group_limit={12 * GIB}",
                               f"group_used={5 * GIB}", "refused=2", "on_limit=1", env={"GPUCAP_GROUP": "team"})
        found = self.findings("-p", poser.pid)
        self.assertEqual(found["library"], ("ok", self.library))
        self.assertEqual(found["on limit"][1], "wait without end")
        lines = self.run_it("check", "-p", poser.pid).stdout
        self.assertIn("ok    GPU 0: cap 4.00 GiB (from environment), uses 3.00 GiB, group team 5.00 GiB of 12.0 GiB, "
                      "policy at most 8.00 GiB, 2 refused\n", lines)

    def test_one_that_is_not_under_gpucap_fails_with_the_reason(self):
        self.assertIn("no process", self.findings("-p", "4194305", code=1)["process"][1])
        self.assertIn("start it with gpucap run", self.findings("-p", os.getpid(), code=1)["library"][1])
        sleeper = subprocess.Popen(["sleep", "60"], env={**self.env, "LD_PRELOAD": self.library})
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        for _ in range(200):  # until the exec is done
            found = self.findings_of_any(sleeper.pid)
            if "active" in found:
                break
            time.sleep(0.05)
        self.assertEqual(found["active"][0], "warn")
        self.assertIn("not used CUDA yet", found["active"][1])

    def findings_of_any(self, pid):
        document = json.loads(self.run_it("check", "--json", "-p", pid).stdout)
        return {entry["what"]: (entry["status"], entry["why"]) for entry in document["checks"]}


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
