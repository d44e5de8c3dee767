"""gpucap-top's screen in a real terminal: keys, sizes, colours, and the terminal put back on every end. Through tmux,
and through a bare pseudo-terminal where the terminal itself is to go away. Arguments: gpucap-top, poser.
Skipped by name where tmux is missing (exit status 77)."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from posing import TOP, PosingTest
from terminal import Terminal

GIB = 1 << 30
MAGIC = struct.pack("<Q", 0x0100504143555047)
CONTROL_REGION = 6


def control_words(path):
    """The control region's sequence and the first two limits, found as wire/layout.h says."""
    with open(path, "rb") as file:
        data = file.read()
    for i in range(16):
        kind, _, offset, _ = struct.unpack_from("<IIQQ", data, 0x498 + 24 * i)
        if kind == CONTROL_REGION:
            return struct.unpack_from("<Q", data, offset) + struct.unpack_from("<QQ", data, offset + 64)
    raise AssertionError("no control region in " + path)


class ScreenTest(PosingTest):
    folder_prefix = "gpucap-screen-test-"

    def setUp(self):
        super().setUp()
        self.terminals = []

    def tearDown(self):
        for terminal in self.terminals:
            terminal.close()
        super().tearDown()

    def terminal(self, columns=80, lines=24, **environment):
        terminal = Terminal(columns, lines, environment)
        self.terminals.append(terminal)
        return terminal

    def start(self, terminal, *words, wait="gpucap-top  "):
        command = " ".join([TOP, "--dir", self.dir, "-l", "0.2", *words])
        terminal.run("clear; stty -a > %s/before; %s; echo ended:$?" % (self.dir, command))
        terminal.wait_for(wait)
        return terminal

    def shown(self, columns=80, lines=24, *words, **environment):
        return self.start(self.terminal(columns, lines, **environment), *words)

    def pid_of_top(self):
        out = subprocess.run(["pgrep", "-f", "^%s --dir %s" % (re.escape(TOP), re.escape(self.dir))], capture_output=True,
                             text=True).stdout.split()
        self.assertEqual(len(out), 1)
        return int(out[0])

    def assert_put_back(self, terminal):
        """Main screen, cursor shown, line editing as before, and the shell reads on."""
        terminal.wait_until(lambda: terminal.ask("#{alternate_on}") == "0", "the main screen is back")
        self.assertEqual(terminal.ask("#{cursor_flag}"), "1")
        terminal.run("stty -a > %s/after; echo all''clear" % self.dir)
        terminal.wait_for("allclear")
        with open(self.dir + "/before") as before, open(self.dir + "/after") as after:
            self.assertEqual(before.read(), after.read())

    # What is shown

    def test_the_table_is_shown_until_q(self):
        poser = self.pose("limit=%d" % (4 * GIB), "used=%d" % GIB, "peak=%d" % (2 * GIB), "physical=%d" % (141 * GIB))
        terminal = self.shown()
        line = terminal.line(str(poser.pid))
        self.assertRegex(line, r"%d .* 1\.00 GiB  4\.00 GiB    25  2\.00 GiB" % poser.pid)
        self.assertEqual(terminal.ask("#{alternate_on}"), "1")
        terminal.keys("q")
        terminal.wait_for("ended:0")
        self.assert_put_back(terminal)
        self.assertIsNone(terminal.line("COMMAND"))

    def test_figures_move(self):
        self.pose("used=%d" % GIB)
        terminal = self.shown()
        later = self.pose("used=%d" % (2 * GIB))
        terminal.wait_for("2 processes")
        self.assertIsNotNone(terminal.line("%d " % later.pid))

    def test_who_ended_stays_listed_with_the_peak(self):
        poser = self.pose("limit=%d" % (4 * GIB), "used=%d" % GIB, "peak=%d" % (3 * GIB))
        terminal = self.shown(120)
        poser.kill()
        terminal.wait_for("[killed ")
        self.assertRegex(terminal.line("[killed "), r"%d .*- +4\.00 GiB +- +3\.00 GiB.*\[killed \d+s ago\]" % poser.pid)
        self.assertIn("0 processes, 1 ended", terminal.screen())
        terminal.keys("x")
        terminal.wait_gone("[killed ")

    def test_keep_0_lists_nobody_who_ended(self):
        poser = self.pose("used=%d" % GIB, "then=end")
        terminal = self.shown(100, 24, "--keep", "0")
        self.assertIsNone(terminal.line("%d " % poser.pid))

    def test_a_file_that_cannot_be_read_is_named_and_skipped(self):
        poser = self.pose("used=%d" % GIB)
        with open(os.path.join(self.dir, "1.0123456789abcdef.gpucap"), "wb") as file:
            file.write(b"\x1b[2Jnonsense" * 400)
        with open(os.path.join(self.dir, "2.0123456789abcdef.gpucap"), "wb") as file:
            file.write(MAGIC)
        terminal = self.shown(140)
        self.assertIn("2 unreadable: %s/1.0123456789abcdef.gpucap" % self.dir, terminal.screen())
        self.assertIsNotNone(terminal.line("%d " % poser.pid))

    def test_events_are_shown_as_they_come(self):
        poser = self.pose("used=%d" % GIB, "events=4")
        terminal = self.shown(100, 30)
        self.assertIn("refuse", terminal.screen())
        terminal.keys("e", "e")
        terminal.wait_for("refusals, waits and changes of limits")
        self.assertNotIn(" charge ", terminal.screen())
        terminal.keys("e")
        terminal.wait_gone("refuse ")
        terminal.keys("e")
        terminal.wait_for("events of all")
        poser.stdin.write("\n")
        poser.stdin.flush()
        terminal.wait_until(lambda: terminal.screen().count(" charge ") >= 4, "one more charge")

    # Keys

    def test_search_filter_tree_and_help(self):
        first = self.pose("used=%d" % (2 * GIB))
        second = self.pose("used=%d" % GIB)
        terminal = self.shown(100, 30)
        terminal.wait_for("%d on GPU 0" % first.pid)
        terminal.keys("/")
        terminal.type(str(second.pid))
        terminal.wait_for("%d on GPU 0" % second.pid)
        terminal.keys("Enter", "Up")
        terminal.wait_for("%d on GPU 0" % first.pid)
        terminal.keys("F4")
        terminal.type(str(second.pid))
        terminal.wait_for("filter: %d" % second.pid)
        self.assertIsNone(terminal.line("%d  " % first.pid))
        terminal.keys("Escape")
        terminal.wait_gone("filter:")
        terminal.keys("t")
        terminal.wait_for("parent %d " % os.getpid())
        terminal.keys("?")
        terminal.wait_for("choose a process")
        terminal.keys("Escape")
        terminal.wait_for("COMMAND")

    def test_details_of_one_process(self):
        poser = self.pose("limit=%d" % (4 * GIB), "used=%d" % GIB, "refused=1", "events=8")
        terminal = self.shown(100, 45)
        terminal.keys("Enter")
        terminal.wait_for("Live blocks by size")
        screen = terminal.screen()
        self.assertIn("pid       %d" % poser.pid, screen)
        self.assertIn("1.00 GiB of 4.00 GiB, 25 %", screen)
        # Of the eight events the fourth and the eighth are refusals, of as many MiB as their number.
        self.assertRegex(screen, r"refuse +8\.00 MiB")
        self.assertRegex(screen, r"up to +4\.00 MiB +2 blocks +5\.00 MiB", "2 and 3 MiB")
        poser.kill()
        terminal.wait_for("state     killed")

    def test_a_signal_is_sent_only_when_confirmed(self):
        poser = self.pose("used=%d" % GIB)
        terminal = self.shown(100)
        terminal.keys("k", "Enter")
        terminal.wait_for("[y/n] Send SIGTERM to %d" % poser.pid)
        terminal.keys("n")
        terminal.wait_for("Nothing was done")
        self.assertIsNone(poser.poll())
        terminal.keys("k")
        terminal.type("USR1")
        terminal.keys("Enter", "y")
        terminal.wait_for("Sent SIGUSR1 to %d" % poser.pid)
        self.assertEqual(poser.wait(timeout=10), -signal.SIGUSR1)
        terminal.wait_for("[killed ")
        terminal.keys("k")
        terminal.wait_for("It has ended")

    def test_a_limit_is_changed_only_when_confirmed(self):
        poser = self.pose("limit=%d" % (4 * GIB), "used=%d" % GIB, "physical=%d" % (100 * GIB))
        (path,) = [os.path.join(self.dir, name) for name in os.listdir(self.dir)]
        sequence, limit, other = control_words(path)
        terminal = self.shown(120)
        terminal.keys("l")
        terminal.type("6G")
        terminal.keys("Enter")
        terminal.wait_for("[y/n] Change the cap of %d" % poser.pid)
        self.assertIn("from 4.00 GiB to 6.00 GiB?", terminal.screen())
        terminal.keys("n")
        terminal.wait_for("Nothing was done")
        self.assertEqual(control_words(path), (sequence, limit, other))
        terminal.keys("l")
        terminal.type("50%")
        terminal.keys("Enter", "y")
        terminal.wait_for("Asked %d for a cap of 50.0 GiB" % poser.pid)
        self.assertEqual(control_words(path), (sequence + 1, 50 * GIB, other))

    # Sizes and colours

    def test_every_size_is_followed_without_harm(self):
        for i in range(30):
            self.pose("used=%d" % (GIB + i))
        terminal = self.shown(50, 24)
        self.assertNotIn("REFUSED", terminal.screen())
        terminal.resize(200, 50)
        terminal.wait_for("DRIVER")
        pid = self.pid_of_top()
        for columns, lines in ((10, 3), (1, 1), (3, 2), (300, 5), (20, 60), (2, 24), (80, 24)):
            terminal.resize(columns, lines)
            time.sleep(0.3)
            for key in ("Enter", "Down", "Escape", "?", "PageDown", "Escape", "/", "a", "Escape"):
                terminal.keys(key)
            os.kill(pid, 0)
        terminal.wait_for("REFUSED")
        terminal.keys("q")
        terminal.wait_for("ended:0")

    def test_colours_unless_no_color(self):
        self.pose("limit=%d" % GIB, "used=%d" % GIB, "refused=2", "physical=%d" % (2 * GIB))
        coloured = re.compile(r"\x1b\[([0-9;]*;)?[349][0-7]m")
        self.assertRegex(self.shown().screen(colours=True), coloured)
        terminal = self.shown(NO_COLOR="1")
        self.assertNotRegex(terminal.screen(colours=True), coloured)
        self.assertIn("\x1b[", terminal.screen(colours=True), "the selection still stands out")

    def test_ascii_where_it_is_wanted_and_where_nothing_else_can_be(self):
        self.pose("used=%d" % GIB, "physical=%d" % (2 * GIB))
        self.assertRegex(self.shown().screen(), "[\u2588]")
        for terminal in (self.shown(80, 24, "--ascii"), self.shown(LC_ALL="C", LANG="C")):
            screen = terminal.screen()  # once: it is drawn anew meanwhile
            self.assertTrue(screen.isascii(), screen)
            self.assertIn("#", terminal.line("GPU 0"))

    def test_plain_and_old_terminals(self):
        self.pose("used=%d" % GIB)
        for name in ("xterm", "xterm-256color", "screen", "vt100", "linux"):
            terminal = self.terminal(TERM_FOR_TEST=name)
            terminal.run("TERM=%s" % name)
            self.start(terminal)
            self.assertIn("1.00 GiB", terminal.screen(), name)
            terminal.keys("q")
            terminal.wait_for("ended:0")

    def test_an_unknown_terminal_is_told_so(self):
        terminal = self.terminal()
        terminal.run("TERM=no-such-thing")
        self.start(terminal, wait="ended:4")
        self.assertIn("--once", terminal.screen())

    # Every end

    def test_the_terminal_is_put_back_on_every_end(self):
        self.pose("used=%d" % GIB)
        for number, status in ((signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)):
            terminal = self.shown()
            os.kill(self.pid_of_top(), number)
            terminal.wait_for("ended:%d" % status)
            self.assert_put_back(terminal)
        terminal = self.shown()
        terminal.keys("C-c")
        terminal.wait_for("ended:0")
        self.assert_put_back(terminal)

    def test_it_is_stopped_and_continued_like_any_program(self):
        self.pose("used=%d" % GIB)
        terminal = self.terminal()
        terminal.run("exec bash --norc -i")
        self.start(terminal)
        terminal.keys("C-z")
        terminal.wait_for("Stopped")
        self.assertEqual(terminal.ask("#{alternate_on}"), "0")
        self.assertEqual(terminal.ask("#{cursor_flag}"), "1")
        terminal.run("fg")
        terminal.wait_for("COMMAND")
        terminal.keys("?")
        terminal.wait_for("choose a process")
        terminal.keys("q")
        terminal.wait_until(lambda: terminal.ask("#{alternate_on}") == "0", "the main screen is back")

    def on_pty(self, *words, controlling=False):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

        def adopt():
            os.setsid()
            if controlling:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        process = subprocess.Popen([TOP, "--dir", self.dir, "-l", "0.2", *words], stdin=slave, stdout=slave, stderr=slave,
                                   env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"}, preexec_fn=adopt)
        os.close(slave)
        return master, process

    def read_for(self, master, seconds):
        seen = b""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([master], [], [], left)[0]:
                seen += os.read(master, 65536)
        return seen

    def test_a_terminal_that_is_gone_ends_it(self):
        self.pose("used=%d" % GIB)
        for controlling, codes in ((False, (4,)), (True, (4, -signal.SIGHUP))):
            master, process = self.on_pty(controlling=controlling)
            while b"COMMAND" not in self.read_for(master, 0.5):
                pass
            os.close(master)
            self.assertIn(process.wait(timeout=10), codes)

    def test_only_what_changed_is_sent(self):
        for i in range(15):
            self.pose("used=%d" % (GIB + i), "physical=%d" % (2 * GIB))
        master, process = self.on_pty()
        first = self.read_for(master, 1.5)
        later = self.read_for(master, 4)
        self.assertGreater(len(first), 1000)
        # Twenty looks: the clock, the ages, and a graph that grows by a column.
        self.assertLess(len(later) / 20, 300)
        process.terminate()
        process.wait(timeout=10)
        os.close(master)


if __name__ == "__main__":
    if Terminal.missing():
        print("skipped: tmux is missing (scripts/setup.sh --dev installs it)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
