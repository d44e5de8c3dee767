"""The manual pages and the completions know exactly the options that --help knows. Arguments: gpucap-top, gpucap, root."""
import os
import re
import shutil
import subprocess
import sys
import unittest

PROGRAMS = {"gpucap-top": sys.argv[1], "gpucap": sys.argv[2]}
ROOT = sys.argv[3]
# Program and subcommand -> the headings of the manual page that speak of its options.
PAGES = {
    ("gpucap-top", ""): "OPTIONS",
    ("gpucap-top", "events"): "EVENTS",
    ("gpucap", ""): "OPTIONS",
    ("gpucap", "run"): "OPTIONS OF RUN",
    ("gpucap", "set"): "OPTIONS OF SET",
    ("gpucap", "check"): "OPTIONS OF CHECK",
}
OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][A-Za-z-]*")


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def help_of(program, subcommand):
    words = [PROGRAMS[program], *([subcommand] if subcommand else []), "--help"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def options_in_help(program, subcommand):
    options = set()
    for line in help_of(program, subcommand).split("Examples:")[0].splitlines():
        if line.startswith("  -"):
            options.update(OPTION.findall(line.strip().split("  ")[0]))
    return options


def options_in_page(program, heading):
    section = re.search(r"^# %s\n(.*?)(?=^# |\Z)" % heading, text_of("man", program + ".1.scd"), re.M | re.S).group(1)
    options = set()
    for line in section.splitlines():
        if line.startswith("*-"):
            options.update(OPTION.findall(line))
    return options


class ManualTest(unittest.TestCase):
    def test_help_fits_a_screen_and_shows_three_examples(self):
        for program, subcommand in PAGES:
            text = help_of(program, subcommand)
            self.assertLessEqual(len(text.splitlines()), 23, text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
            examples = text.split("Examples:")[1].split("\n\n")[0]
            self.assertEqual(len(re.findall(r"^  gpucap", examples, re.M)), 3, text)

    def test_the_manual_page_has_every_option_and_no_other(self):
        for (program, subcommand), heading in PAGES.items():
            with self.subTest(program=program, subcommand=subcommand):
                self.assertGreaterEqual(len(options_in_help(program, subcommand)), 4)
                self.assertEqual(options_in_page(program, heading), options_in_help(program, subcommand))

    def test_every_page_can_be_rendered(self):
        if not shutil.which("scdoc"):
            self.skipTest("scdoc is not installed")
        for name in sorted(os.listdir(os.path.join(ROOT, "man"))):
            result = subprocess.run(["scdoc"], input=text_of("man", name), capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr), (0, ""), name)
            self.assertIn(".TH", result.stdout)

    def complete(self, program, *words):
        """What bash would offer for the last word."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        script += '_%s; printf "%%s\\n" "${COMPREPLY[@]}"' % program.replace("-", "_")
        path = os.path.join(ROOT, "completions", "bash", program)
        # compopt complains outside of a completion.
        result = subprocess.run(["bash", "-c", "compopt() { :; }; " + script, "bash", path, program, *words],
                                capture_output=True, text=True, env={**os.environ, "PATH": self.path()})
        self.assertEqual(result.stderr, "")
        return set(result.stdout.split())

    def path(self):
        return os.path.dirname(PROGRAMS["gpucap-top"]) + ":" + os.environ["PATH"]

    def test_bash_completes_every_option_and_no_other(self):
        for program, subcommand in PAGES:
            with self.subTest(program=program, subcommand=subcommand):
                offered = self.complete(program, *([subcommand] if subcommand else []), "-") - {"--"}
                self.assertEqual(offered, options_in_help(program, subcommand))

    def test_bash_completes_values(self):
        self.assertEqual(self.complete("gpucap-top", "--by", ""), {"user", "group", "command"})
        self.assertEqual(self.complete("gpucap-top", "--query", "pid,last_refused_b"), {"pid,last_refused_bytes", "pid,last_refused_by"})
        self.assertEqual(self.complete("gpucap-top", "events", "--operation", "=", "refuse,wa"), {"refuse,wait"})
        self.assertEqual(self.complete("gpucap", "c"), {"check"})
        self.assertEqual(self.complete("gpucap", "run", "--log", "d"), {"debug"})
        self.assertIn("bash", self.complete("gpucap", "run", "--limit", "4G", "--", "bas"))

    def test_zsh_and_fish_name_every_option(self):
        for program, subcommand in PAGES:
            zsh = text_of("completions", "zsh", "_" + program)
            fish = text_of("completions", "fish", program + ".fish")
            for option in options_in_help(program, subcommand):
                self.assertRegex(zsh, r"(?<![\w-])%s(?![\w-])" % re.escape(option), program)
                written = " -l " + option[2:] if option.startswith("--") else " -s " + option[1:]
                self.assertIn(written + " ", fish, (program, option))

    def test_zsh_and_fish_offer_only_what_there_is(self):
        for program in PROGRAMS:
            known = set().union(*(options_in_help(*page) for page in PAGES if page[0] == program))
            fish = text_of("completions", "fish", program + ".fish")
            offered = {"--" + name for name in re.findall(r"^complete .* -l ([\w-]+)", fish, re.M)}
            self.assertEqual(offered, {option for option in known if option.startswith("--")})
            zsh = text_of("completions", "zsh", "_" + program)
            self.assertEqual(set(re.findall(r"(?<![\w-])--[a-z-]+(?=[\[,}])", zsh)), offered)

    def test_the_shells_can_read_them(self):
        for shell in ("bash", "zsh", "fish"):
            if not shutil.which(shell):
                print("not checked: %s is not installed" % shell)
                continue
            folder = os.path.join(ROOT, "completions", shell)
            for name in sorted(os.listdir(folder)):
                result = subprocess.run([shell, "-n", os.path.join(folder, name)], capture_output=True, text=True)
                self.assertEqual((result.returncode, result.stderr), (0, ""), name)

    def test_fish_completes(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")

        def offered(line):
            files = "; ".join("source %s/completions/fish/%s.fish" % (ROOT, program) for program in PROGRAMS)
            result = subprocess.run(["fish", "--no-config", "-c", files + "; complete -C '%s'" % line], capture_output=True,
                                    text=True, env={**os.environ, "PATH": self.path()})
            self.assertEqual(result.stderr, "")
            return {word.split("\t")[0] for word in result.stdout.splitlines()}

        self.assertEqual(offered("gpucap-top --by "), {"user", "group", "command"})
        self.assertEqual(offered("gpucap-top --query pid,last_refused_b"), {"pid,last_refused_bytes", "pid,last_refused_by"})
        self.assertEqual(offered("gpucap-top events --fol"), {"--follow"})
        self.assertEqual(offered("gpucap-top --fol"), set())
        self.assertEqual(offered("gpucap set --gr"), {"--group"})
        self.assertIn("bash", offered("gpucap run --limit 4G -- bas"))

    def test_every_field_is_in_the_documentation(self):
        fields = subprocess.run([PROGRAMS["gpucap-top"], "--query-fields"], capture_output=True, text=True, check=True).stdout
        manual = text_of("docs", "gpucap-top.md")
        names = [line.split()[0] for line in fields.splitlines()]
        self.assertGreater(len(names), 40)
        for name in names:
            self.assertIn("`%s`" % name, manual)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
