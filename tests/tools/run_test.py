"""Runs `gpucap run` with a stand-in for the library. Arguments: gpucap, stand-in library, static program, poser."""
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

GPUCAP, STAND_IN, STATIC, POSER = sys.argv[1:5]
MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/gpucap.md")
GIB = 1 << 30


def loader_of_this_machine():
    with open(os.path.realpath(shutil.which("sleep")), "rb") as file:
        data = file.read()
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)[:6]
        if kind == 3:
            return data[at:at + length - 1].decode()
    raise RuntimeError("sleep has no loader")


class RunTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="gpucap-run-test-")
        self.addCleanup(shutil.rmtree, self.dir)  # also when the rest of this fails, where there is no tearDown
        self.library = os.path.join(self.dir, "libstandin.so")
        shutil.copy(STAND_IN, self.library)
        self.segments = os.path.join(self.dir, "segments")
        self.trace = os.path.join(self.dir, "trace")
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(("GPUCAP_", "LD_"))}
        # Where the tests are built with a sanitizer, the stand-in comes before its runtime.
        self.env["ASAN_OPTIONS"] = "verify_asan_link_order=0"
        self.env.update(GPUCAP_LIBRARY=self.library, GPUCAP_DIR=self.segments, STAND_IN_TRACE=self.trace)

    def run_it(self, *words, **kwargs):
        kwargs.setdefault("env", self.env)
        return subprocess.run([GPUCAP, *words], capture_output=True, text=True, timeout=60, **kwargs)

    def refused(self, words, code, *parts):
        result = self.run_it("run", "--limit", "4G", "--", *words)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("gpucap: "))
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertFalse(os.path.exists(self.trace), "the program, or its check, ran the program")

    def script(self, name, text, mode=0o755):
        path = os.path.join(self.dir, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def copy_of(self, program, name):
        path = os.path.join(self.dir, name)
        shutil.copy(os.path.realpath(shutil.which(program)), path)
        os.chmod(path, 0o755)
        return path

    # What the command gets

    def test_the_library_is_loaded_and_the_environment_set(self):
        result = self.run_it("run", "--limit", "4G", "--log", "info", "--log-file", "log.%p", "--dir", "segments", "--", "sh", "-c",
                             'echo "$GPUCAP_LIMIT|$GPUCAP_LOG|$GPUCAP_LOG_FILE|$GPUCAP_DIR|$LD_PRELOAD|${#GPUCAP_RUN_ID}"',
                             cwd=self.dir)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, f"4G|info|{self.dir}/log.%p|{self.segments}|{self.library}|16\n")
        with open(self.trace) as file:
            self.assertEqual(file.read(), "loaded\n")

    def test_groups_and_what_happens_at_the_limit_are_set(self):
        show = 'echo "$GPUCAP_GROUP|$GPUCAP_GROUP_LIMIT|$GPUCAP_ON_LIMIT"'
        words = ["run", "-q", "--group", "team-a", "--group-limit", "8G", "--on-limit", "wait:5m", "--", "sh", "-c", show]
        self.assertEqual(self.run_it(*words).stdout, "team-a|8G|wait:5m\n")
        self.env.update(GPUCAP_GROUP="b", GPUCAP_ON_LIMIT="observe")
        self.assertEqual(self.run_it("run", "-q", "--", "sh", "-c", show).stdout, "b||observe\n")

    def test_other_preloads_stay_behind_ours(self):
        other = os.path.join(self.dir, "other.so")
        shutil.copy(STAND_IN, other)
        self.env["LD_PRELOAD"] = other
        del self.env["STAND_IN_TRACE"]
        result = self.run_it("run", "--", "sh", "-c", "echo $LD_PRELOAD")
        self.assertEqual(result.stdout, f"{self.library}:{other}\n")

    def test_without_options_the_environment_stays(self):
        self.env["GPUCAP_LIMIT"] = "2G"
        result = self.run_it("run", "sh", "-c", "echo $GPUCAP_LIMIT ${GPUCAP_LOG-unset}")
        self.assertEqual(result.stdout, "2G unset\n")

    def test_the_commands_words_are_its_own(self):
        for words in (["--", "printf", "%s|", "--limit", "--", "-x", ""], ["printf", "%s|", "--limit", "--", "-x", ""],
                      ["-q", "printf", "%s|", "--limit", "--", "-x", ""]):
            result = self.run_it("run", *words)
            self.assertEqual(result.stdout, "--limit|--|-x||", result.stderr)

    def test_input_output_and_descriptors_are_the_commands(self):
        result = self.run_it("run", "-q", "--", "cat", input="hello")
        self.assertEqual((result.stdout, result.stderr), ("hello", ""))

    def test_signal_settings_are_those_that_we_got(self):
        show = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
        setting = "import signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); " \
                  "signal.signal(signal.SIGUSR2, signal.SIG_IGN); sys.exit(subprocess.call(sys.argv[1:]))"
        plain = subprocess.run([sys.executable, "-c", setting, "sh", "-c", show], capture_output=True, text=True, env=self.env)
        ours = subprocess.run([sys.executable, "-c", setting, GPUCAP, "run", "-q", "--", "sh", "-c", show],
                              capture_output=True, text=True, env=self.env)
        self.assertEqual(ours.stdout, plain.stdout)
        self.assertIn("Sig", plain.stdout)

    # How it ends

    def test_exit_status_is_the_commands(self):
        for code in (0, 1, 7, 125, 255):
            self.assertEqual(self.run_it("run", "--", "sh", "-c", f"exit {code}").returncode, code)

    def test_a_command_that_dies_by_a_signal_takes_us_along(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM):
            result = self.run_it("run", "--", "sh", "-c", f"kill -{int(number)} $$", cwd=self.dir,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
            self.assertEqual(result.returncode, -number)
            self.assertIn("no CUDA use was seen", result.stderr)

    def signalled(self, number, group=False):
        """Sends a signal to gpucap alone; the command says which one reached it."""
        text = f"trap 'echo got; exit 9' {int(number)}; echo ready; while :; do sleep 0.05; done"
        process = subprocess.Popen([GPUCAP, "run", "-q", "--", "sh", "-c", text], stdout=subprocess.PIPE, text=True, env=self.env)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(number)
        rest = process.stdout.read()
        process.stdout.close()
        return rest, process.wait(timeout=20)

    def test_signals_sent_to_us_are_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGQUIT):
            self.assertEqual(self.signalled(number), ("got\n", 9), number)

    def test_a_stopped_command_goes_on_when_we_are_told_to(self):
        process = subprocess.Popen([GPUCAP, "run", "-q", "--", "sh", "-c", "echo $$; kill -STOP $$; exit 3"],
                                   stdout=subprocess.PIPE, text=True, env=self.env)
        pid = int(process.stdout.readline())
        deadline = time.time() + 10
        while time.time() < deadline:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(") ", 1)[1][0] == "T":
                    break
            time.sleep(0.02)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(timeout=10), 3)
        process.stdout.close()

    def test_ctrl_c_at_a_terminal_reaches_the_command_once(self):
        import pty
        text = "n=0; trap 'n=$((n+1))' INT; echo ready; i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done; echo count=$n"
        pid, master = pty.fork()
        if pid == 0:
            os.execve(GPUCAP, [GPUCAP, "run", "-q", "--", "sh", "-c", text], self.env)
        seen = b""
        sent = False
        while True:
            try:
                data = os.read(master, 4096)
            except OSError:
                break
            if not data:
                break
            seen += data
            if b"ready" in seen and not sent:
                os.write(master, b"\x03")
                sent = True
        os.waitpid(pid, 0)
        os.close(master)
        self.assertIn(b"count=1", seen)

    # The line at the end

    def test_the_end_tells_peak_cap_and_refusals(self):
        result = self.run_it("run", "--limit", "4G", "--", POSER, self.segments, f"limit={4 * GIB}", f"used={GIB}",
                             "peak=4198330401", "refused=3", "then=end")
        self.assertEqual(result.returncode, 0)
        self.assertTrue(result.stderr.endswith(": peak 3.91 GiB of 4.00 GiB on GPU 0, 3 refusals\n"), result.stderr)
        self.assertTrue(result.stderr.startswith("gpucap: " + POSER[:40]), result.stderr)

    def test_the_end_counts_several_processes_and_no_earlier_run(self):
        self.run_it("run", "--", POSER, self.segments, f"used={GIB}", f"peak={9 * GIB}", "refused=50", "then=end")
        one = f"'{POSER}' '{self.segments}' used=1 limit={4 * GIB}"
        result = self.run_it("run", "--", "sh", "-c", f"{one} peak={GIB} refused=1 then=kill & wait; {one} peak={2 * GIB} then=end")
        self.assertIn("peak 2.00 GiB of 4.00 GiB on GPU 0, 1 refusal (2 processes", result.stderr)

    def test_the_end_says_when_no_cuda_was_seen_and_can_be_quiet(self):
        self.assertEqual(self.run_it("run", "--", "true").stderr, "gpucap: true: no CUDA use was seen\n")
        self.assertEqual(self.run_it("run", "--quiet", "--", "true").stderr, "")

    def observed(self, *words):
        return self.run_it("run", *words, "--", POSER, self.segments, f"limit={4 * GIB}", f"used={GIB}", f"peak={5 * GIB + 1}",
                           "on_limit=2", "observed=3", f"observed_bytes={2 * GIB}", "waits=2", "waits_ns=1500000000", "failed=1",
                           "then=end")

    def test_the_end_tells_what_was_observed_and_suggests_a_limit(self):
        lines = self.observed("--limit", "4G").stderr.splitlines()
        self.assertTrue(lines[0].endswith(
            ": peak 5.00 GiB of 4.00 GiB on GPU 0, 0 refusals, 3 let through that the limit would have refused (2.00 GiB), "
            "2 waits for room (1s), 1 turned down by the card itself"), lines)
        self.assertEqual(lines[1:], ["gpucap: the smallest limit that would have let everything through: 5121M on GPU 0"])

    def test_the_summary_is_one_json_object(self):
        path = os.path.join(self.dir, "summary.json")
        result = self.observed("--json", "--summary", path)
        self.assertEqual(result.stderr.count("\n"), 1)
        summary = json.loads(result.stderr)
        with open(path) as file:
            self.assertEqual(json.load(file), summary)
        self.assertEqual((summary["schema"], summary["exit_status"], summary["signal"], summary["group"]), (1, 0, None, None))
        self.assertEqual(summary["command"][0], POSER)
        self.assertGreater(summary["duration_ns"], 0)
        (device,) = summary["devices"]
        self.assertEqual({key: device[key] for key in ("limit_bytes", "on_limit", "peak_bytes", "refused", "observed", "waits",
                                                       "waits_ns", "failed", "suggested_limit_bytes")},
                         {"limit_bytes": 4 * GIB, "on_limit": "observe", "peak_bytes": 5 * GIB + 1, "refused": 0, "observed": 3,
                          "waits": 2, "waits_ns": 1500000000, "failed": 1, "suggested_limit_bytes": 5121 << 20})
        with open(MANUAL) as file:
            manual = file.read()
        for name in [*summary, *device]:
            self.assertIn(f"`{name}`", manual)

    def test_the_summary_goes_to_its_file_when_quiet_and_tells_of_a_signal(self):
        path = os.path.join(self.dir, "summary.json")
        result = self.run_it("run", "-q", "--summary", path, "--", "sh", "-c", "kill -9 $$")
        self.assertEqual((result.returncode, result.stderr), (-9, ""))
        with open(path) as file:
            summary = json.load(file)
        self.assertEqual((summary["exit_status"], summary["signal"], summary["devices"]), (None, 9, []))
        result = self.run_it("run", "--summary", self.dir + "/no/such", "--", "touch", "started")
        self.assertEqual(result.returncode, 125)

    # What is not started

    def test_values_that_cannot_be_used_are_refused_before_the_start(self):
        for words in (["--group", "-x"], ["--group", "a/b"], ["--group", "x" * 64], ["--group-limit", "4G"],
                      ["--group", "a", "--group-limit", "4X"], ["--on-limit", "panic"], ["--on-limit", "wait:"],
                      ["--on-limit", "wait:0s"], ["--wait", "4"], ["--wait", "0=4G"], ["--wait-timeout", "5m"],
                      ["--wait", "4G", "--wait-timeout", "soon"], ["--gpu", "first"], ["--gpu", "-1"], ["--group", ""],
                      ["--on-limit", ""], ["--wait", ""]):
            result = self.run_it("run", *words, "--", "touch", os.path.join(self.dir, "started"))
            self.assertEqual(result.returncode, 125, words)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for variable, value in (("GPUCAP_GROUP", ".x"), ("GPUCAP_GROUP_LIMIT", "4G"), ("GPUCAP_ON_LIMIT", "no")):
            result = self.run_it("run", "--", "touch", os.path.join(self.dir, "started"), env={**self.env, variable: value})
            self.assertEqual(result.returncode, 125, variable)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "started")))

    def test_the_help_fits_a_screen_with_three_examples_and_slips_are_told(self):
        for words in (["--help"], ["run", "--help"], ["set", "--help"], ["check", "--help"]):
            lines = self.run_it(*words).stdout.splitlines()
            self.assertLess(len(lines), 24, words)
            self.assertLessEqual(max(map(len, lines)), 80, words)
            self.assertEqual(sum(line.startswith("  gpucap ") for line in lines), 3, words)
        self.assertIn("did you mean --limit?", self.run_it("run", "--limt", "4G", "--", "true").stderr)
        self.assertIn("did you mean --gpu?", self.run_it("set", "-p", "1", "--limit", "1G", "--gpus", "1").stderr)
        self.assertIn("did you mean check?", self.run_it("chekc").stderr)

    def test_a_missing_command_is_127_and_one_that_cannot_run_126(self):
        self.refused(["no-such-command-here"], 127, "no-such-command-here", "PATH")
        self.refused([self.dir + "/missing"], 127, "does not exist")
        self.refused([self.script("plain", "#!/bin/sh\n", 0o644)], 126, "not an executable")
        self.refused([self.dir], 126)
        self.refused([self.script("bad", "#!/no/such/interpreter\n")], 127, "/no/such/interpreter")
        self.refused([self.script("loop", f"#!{self.dir}/loop\n")], 126, "too many interpreters")

    def test_a_static_program_is_refused(self):
        self.refused([STATIC], 125, "statically linked")

    def test_a_script_is_judged_by_its_interpreter(self):
        self.refused([self.script("by-static", f"#!{STATIC}\n")], 125, "statically linked", STATIC)
        self.refused([self.script("by-env", "#!/usr/bin/env -S static-by-name -u\n")], 127, "static-by-name")
        os.symlink(STATIC, os.path.join(self.dir, "static-by-name"))
        self.env["PATH"] = self.dir + ":" + self.env["PATH"]
        self.refused([self.script("by-env", "#!/usr/bin/env static-by-name\n")], 125, "statically linked")
        good = self.script("good", "#!/usr/bin/env python3\nprint('ran')\n")
        self.assertEqual(self.run_it("run", "--", good).stdout, "ran\n")
        self.assertEqual(self.run_it("run", "--", self.script("bare", "echo ran $1\n"), "x").stdout, "ran x\n")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to give files away")
    def test_programs_that_change_who_they_are_are_refused(self):
        for name, mode, word in (("setuid", 0o4755, "set-uid"), ("setgid", 0o2755, "set-gid")):
            path = self.copy_of("true", name)
            os.chown(path, 65534, 65534)
            os.chmod(path, mode)
            self.refused([path], 125, word, "LD_PRELOAD")
        own = self.copy_of("true", "own")
        os.chmod(own, 0o4755)
        self.assertEqual(self.run_it("run", "--", own).returncode, 0, "set-uid to the user that we are changes nothing")

    def patched(self, name, changes, program="true"):
        path = self.copy_of(program, name)
        with open(path, "r+b") as file:
            for offset, data in changes:
                file.seek(offset)
                file.write(data)
        return path

    def test_other_kinds_of_programs_are_refused(self):
        self.refused([self.patched("thirtytwo", [(4, b"\x01")])], 125, "32-bit")
        self.refused([self.patched("machine", [(18, struct.pack("<H", 0x1234))])], 125, "another kind of processor")
        self.refused([self.script("junk", "\0\0\0\0junk")], 126, "neither a program nor a script")
        loader = loader_of_this_machine()
        with open(os.path.realpath(shutil.which("true")), "rb") as file:
            offset = file.read().index(loader.encode() + b"\0")
        for other, code, word in (("/lib/ld-musl-x.so.1", 125, "musl"), ("/lib/another.so.1", 125, "not glibc's"),
                                  ("/no/ld-linux-x.so.2", 127, "its loader")):
            path = self.patched("loader", [(offset, other.encode().ljust(len(loader), b"\0"))])
            self.refused([path], code, word)

    def test_a_library_that_is_missing_or_broken_is_refused(self):
        self.env["GPUCAP_LIBRARY"] = self.dir + "/missing.so"
        self.refused(["true"], 125, "missing.so")
        with open(self.library, "r+b") as file:
            file.truncate(700)  # its header is fine, so only the loader's own word tells
        self.env["GPUCAP_LIBRARY"] = self.library
        self.refused(["true"], 125, "was not loaded")
        with open(self.library, "w") as file:
            file.write("text")
        self.refused(["true"], 125, "not a library")
        spaced = os.path.join(self.dir, "a b.so")
        shutil.copy(STAND_IN, spaced)
        self.env["GPUCAP_LIBRARY"] = spaced
        self.refused(["true"], 125, "space or a colon")

    def test_the_library_is_found_beside_the_program_and_in_its_lib_folder(self):
        del self.env["GPUCAP_LIBRARY"]
        home = os.path.join(self.dir, "usr")
        os.makedirs(os.path.join(home, "bin"))
        program = shutil.copy(GPUCAP, os.path.join(home, "bin"))
        show = [program, "run", "-q", "--", "sh", "-c", "echo $LD_PRELOAD"]
        result = subprocess.run(show, capture_output=True, text=True, env=self.env)
        self.assertEqual(result.returncode, 125)
        self.assertIn("libgpucap.so was not found", result.stderr)
        for place in ("lib/x86-linux", "lib64", "bin"):
            os.makedirs(os.path.join(home, place), exist_ok=True)
            target = shutil.copy(STAND_IN, os.path.join(home, place, "libgpucap.so"))
            self.assertEqual(subprocess.run(show, capture_output=True, text=True, env=self.env).stdout, target + "\n")
            os.unlink(target)

    def test_a_program_started_through_the_loader_by_name_is_checked_too(self):
        loader = loader_of_this_machine()
        result = self.run_it("run", "-q", "--", loader, os.path.realpath(shutil.which("printf")), "x")
        self.assertEqual((result.returncode, result.stdout), (0, "x"), result.stderr)

    def test_a_limit_that_cannot_be_read_is_refused_before_the_program_starts(self):
        for limit in ("abc", "4", "-1", "0=4G,x=5G", "99999999T"):
            result = self.run_it("run", "--limit", limit, "--", "touch", "started")
            self.assertEqual(result.returncode, 125, limit)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn("write for example 4G", result.stderr)

    def test_a_disabled_shim_and_an_empty_limit_are_refused(self):
        result = self.run_it("run", "--limit", "", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("--limit is empty", result.stderr)
        self.env["GPUCAP_DISABLE"] = "1"
        self.refused(["true"], 125, "GPUCAP_DISABLE")

    def test_usage_is_125_and_never_the_commands_status(self):
        for words in (["run"], ["run", "--limit", "4G", "--"], ["run", "--nonsense", "true"], ["frobnicate"], [],
                      ["run", "--log", "loud", "--", "true"]):
            self.assertEqual(self.run_it(*words).returncode, 125, words)
        self.assertEqual(self.run_it("version").returncode, 0)
        self.assertRegex(self.run_it("version").stdout, r"^gpucap \d+\.\d+\.\d+\n$")
        self.assertEqual(self.run_it("run", "--help").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
