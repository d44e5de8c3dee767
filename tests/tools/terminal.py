"""A terminal to run a program in: a tmux server of its own with one window. For the tests of the screen and for
scripts/screens.sh; knows nothing of gpucap. Waits by looking until something is there, never by sleeping for luck."""
import os
import shutil
import subprocess
import time
import uuid


class Terminal:
    """One window of `columns` by `lines` with a plain shell in it."""

    def __init__(self, columns, lines, environment=None):
        self.socket = "gpucap-test-" + uuid.uuid4().hex[:12]
        self.environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8",
                            "LC_ALL": "C.UTF-8", "TZ": "UTC", "TMUX_TMPDIR": os.environ.get("TMPDIR", "/tmp"),
                            **(environment or {})}
        self.tmux("-u", "new-session", "-d", "-x", str(columns), "-y", str(lines), "sh")
        self.tmux("set", "-g", "status", "off")
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))
        self.wait_until(lambda: self.screen().strip() != "", "the shell asks for a command")

    @staticmethod
    def missing():
        return shutil.which("tmux") is None

    def tmux(self, *words):
        result = subprocess.run(["tmux", "-L", self.socket, "-f", "/dev/null", *words], capture_output=True, text=True,
                                env=self.environment, timeout=20)
        if result.returncode != 0:
            raise RuntimeError("tmux %s: %s" % (" ".join(words), result.stderr.strip()))
        return result.stdout

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True, env=self.environment)

    def screen(self, colours=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def line(self, text):
        """The first line that has the text, or None."""
        return next((line for line in self.screen().splitlines() if text in line), None)

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def run(self, command):
        self.type(command)
        self.keys("Enter")

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def ask(self, format_):
        return self.tmux("display-message", "-p", format_).strip()

    def wait_until(self, condition, what, seconds=20):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError("did not happen: %s; the screen is\n%s" % (what, self.screen()))
            time.sleep(0.05)

    def wait_for(self, text, seconds=20):
        self.wait_until(lambda: text in self.screen(), "'%s' is shown" % text, seconds)

    def wait_gone(self, text, seconds=20):
        self.wait_until(lambda: text not in self.screen(), "'%s' is no longer shown" % text, seconds)
