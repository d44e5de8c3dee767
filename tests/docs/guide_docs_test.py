#!/usr/bin/env python3
"""The guide in its two languages, its examples and the programs agree: guide_docs_test.py [BUILD_FOLDER], run by ctest.

Needs no card. BUILD_FOLDER has gpucap and gpucap-top, whose --help is asked for every option that the guide and the
examples use; without it that is not tested, and said.
"""
import ast
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "gpu"), str(ROOT / "scripts")]

import checks_guide
import fill_guide
from guide_run import EXAMPLES, command_of

BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
CHECKED = [name[len("guide: "):] for name, _ in checks_guide.CHECKS]
SCRIPTS = sorted(file for file in EXAMPLES.iterdir() if file.suffix in (".py", ".sh"))
ENGLISH, CHINESE = (doc.read_text() for doc in fill_guide.DOCS)
READMES = [(ROOT / name).read_text() for name in ("README.md", "README.zh-CN.md")]


def fences(text, language):
    return re.findall(r"^```%s\n(.*?)^```$" % language, text, re.MULTILINE | re.DOTALL)


def prose(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def heading_levels(text):
    return [len(marks) for marks in re.findall(r"^(#+) ", prose(text), re.MULTILINE)]


def links(text):
    return re.findall(r"\]\(([^)#]+)[^)]*\)", prose(text))


def without_comments(shell):
    """Each command of a script or block: lines joined, comments and what stands before gpucap left out."""
    for line in shell.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # the middle of a quotation over several lines
            words = line.split()
        yield words


def options_used(shell):
    """[(program and verb, option)] of every gpucap and gpucap-top in the text."""
    used = []
    for words in without_comments(shell):
        for i, word in enumerate(words):
            program = word.rsplit("/", 1)[-1].lstrip("$(")
            if program not in ("gpucap", "gpucap-top"):
                continue
            verb = words[i + 1] if i + 1 < len(words) and words[i + 1] in ("run", "set", "check", "version", "events") else ""
            for option in words[i + (2 if verb else 1):]:
                if option == "--" or option in ("|", ";", "&", ">", "2>&1"):
                    break
                if re.match(r"--?[a-zA-Z]", option):
                    used.append(((program + " " + verb).strip(), option.rstrip(")").split("=")[0]))
    return used


class GuideDocsTest(unittest.TestCase):
    def test_both_languages_have_the_same_parts(self):
        for english, chinese in ((ENGLISH, CHINESE), READMES):
            self.assertEqual(heading_levels(english), heading_levels(chinese))
            for language in ("sh", "python", "json", "text"):
                if language != "text":
                    self.assertEqual(fences(english, language), fences(chinese, language))
                self.assertEqual(len(fences(english, language)), len(fences(chinese, language)))
            self.assertEqual(english.count("\n| "), chinese.count("\n| "))
        self.assertEqual(fences(READMES[0], "text"), fences(READMES[1], "text"))
        for english, chinese in ((ENGLISH, CHINESE), READMES):
            same = [[link.replace(".zh-CN.md", ".md") for link in links(text) if "README" not in link] for text in (english, chinese)]
            self.assertEqual(*same)
        self.assertEqual(fill_guide.BLOCK.findall(ENGLISH), fill_guide.BLOCK.findall(CHINESE))

    def test_every_example_is_in_both(self):
        for text in (ENGLISH, CHINESE):
            for script in SCRIPTS:
                self.assertIn("examples/pytorch/" + script.name, text)
            self.assertIn("examples/jupyter/kernel.json", text)

    def test_every_block_is_of_a_checked_example_and_says_how_to_run_it(self):
        blocks = [name for _, name, _ in fill_guide.BLOCK.findall(ENGLISH)]
        self.assertEqual(sorted(blocks), sorted(CHECKED))
        commands = "".join(fences(ENGLISH, "sh"))
        for name in blocks:
            self.assertIn(command_of(name), commands.splitlines())

    def test_every_script_says_how_to_run_it(self):
        for script in SCRIPTS:
            command = command_of(script.name)
            named = re.search(r"examples/pytorch/\S+", command).group(0)
            self.assertTrue((ROOT / named).is_file(), command)
            self.assertIn(pathlib.Path(named).name, CHECKED)

    def test_the_scripts_parse_and_know_nothing_of_ours(self):
        for script in SCRIPTS:
            if script.suffix == ".sh":
                subprocess.run(["bash", "-n", str(script)], check=True)
                continue
            tree = ast.parse(script.read_text(), script.name)
            for node in ast.walk(tree):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                    self.assertFalse([name for name in names if "gpucap" in name], script.name)
            self.assertLessEqual(len(script.read_text().splitlines()), 80, "%s cannot be read in a minute" % script.name)

    def test_every_shell_block_parses(self):
        for block in fences(ENGLISH, "sh") + fences(READMES[0], "sh"):
            subprocess.run(["bash", "-n"], input=block, text=True, check=True)
        for block in fences(ENGLISH, "python"):
            ast.parse(block)

    def test_every_link_leads_somewhere(self):
        for doc, text in zip(fill_guide.DOCS + [ROOT / "README.md", ROOT / "README.zh-CN.md"], (ENGLISH, CHINESE, *READMES)):
            for link in links(text):
                self.assertTrue((doc.parent / link).exists(), "%s: %s" % (doc.name, link))

    def test_the_programs_have_every_option_that_is_used(self):
        if BUILD is None:
            self.skipTest("no build folder was given")
        shell = "".join(fences(ENGLISH, "sh") + fences(READMES[0], "sh")) + "\n".join(command_of(s.name) for s in SCRIPTS)
        shell += "".join(s.read_text() for s in SCRIPTS if s.suffix == ".sh")
        spec = json.loads((ROOT / "examples" / "jupyter" / "kernel.json").read_text())
        used = set(options_used(shell + "\n" + shlex.join(spec["argv"])))
        self.assertIn(("gpucap run", "--limit"), used)
        self.assertIn(("gpucap-top", "--once"), used)
        for program, option in sorted(used):
            with self.subTest(program=program, option=option):
                name, *verb = program.split()
                done = subprocess.run([str(BUILD / name), *verb, "--help"], stdout=subprocess.PIPE, text=True, check=False, timeout=20)
                self.assertEqual(done.returncode, 0)
                self.assertRegex(done.stdout, r"(?m)(^|[\s,|\[])%s($|[\s,:=|\]])" % re.escape(option))


class FillTest(unittest.TestCase):
    TEXT = "a\n<!-- output: x.py -->\n```text\n```\nb\n<!-- output: y.py -->\n```text\nold\n```\n"

    def test_blocks_are_filled(self):
        filled, wrong = fill_guide.fill(self.TEXT, {"x.py": "1\n", "y.py": "2\n"}, [])
        self.assertEqual(wrong, [])
        self.assertEqual(filled, self.TEXT.replace("```text\n```", "```text\n1\n```").replace("old", "2"))

    def test_a_block_without_output_is_wrong(self):
        self.assertEqual(fill_guide.fill(self.TEXT, {"y.py": "2\n"}, [])[1], ["no output of x.py"])
        self.assertEqual(fill_guide.fill(self.TEXT, {"y.py": "2\n"}, ["x.py"])[1], ["no output of x.py"])
        self.assertEqual(fill_guide.fill(self.TEXT, {"x.py": "1\n"}, ["y.py"])[1], [])

    def test_what_does_not_fit_is_wrong(self):
        outputs = {"x.py": "1\n", "y.py": "2\n"}
        self.assertNotEqual(fill_guide.fill(self.TEXT, dict(outputs, z="3\n"), [])[1], [])
        self.assertNotEqual(fill_guide.fill(self.TEXT, dict(outputs, **{"x.py": "```\n"}), [])[1], [])
        self.assertNotEqual(fill_guide.fill(self.TEXT.replace("```text\nold", "```\nold"), outputs, [])[1], [])
        self.assertNotEqual(fill_guide.fill(self.TEXT, outputs, ["z"])[1], [])

    def test_the_first_folder_counts_and_failed_runs_do_not(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            for folder, name, text in ((one, "x.py.txt", "1"), (two, "x.py.txt", "2"), (two, "y.py.txt", "3"), (two, "z.failed.txt", "4")):
                pathlib.Path(folder, name).write_text(text)
            self.assertEqual(fill_guide.outputs_of([pathlib.Path(one), pathlib.Path(two)]), {"x.py": "1\n", "y.py": "3\n"})


if __name__ == "__main__":
    unittest.main()
