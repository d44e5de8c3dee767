#!/usr/bin/env python3
"""Puts what the guide's examples printed on a card into docs/pytorch.md and docs/pytorch.zh-CN.md.

  fill_guide.py FOLDER... [--keep NAME]... [--check]

FOLDER holds <example>.txt for each example that passed, as scripts/gpu_test.sh --group guide leaves them in DIR/guide; of
two folders the first that has the example is taken. In the documentation a line "<!-- output: watch.py -->" and the fenced
block after it are filled. Changes nothing and fails if a block has no output, unless --keep names it and it is filled
already. --check only says what is empty.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = [ROOT / "docs" / "pytorch.md", ROOT / "docs" / "pytorch.zh-CN.md"]
BLOCK = re.compile(r"^(<!-- output: (\S+) -->\n```text\n)(.*?)^```$", re.MULTILINE | re.DOTALL)


def outputs_of(folders):
    outputs = {}
    for folder in reversed(folders):
        for file in folder.glob("*.txt"):
            if not file.name.endswith(".failed.txt"):
                outputs[file.name[: -len(".txt")]] = file.read_text().strip("\n") + "\n"
    return outputs


def fill(text, outputs, keep):
    """The new text, and what is wrong."""
    wrong = []

    def replace(block):
        head, name, before = block.groups()
        output = before if name in keep else outputs.get(name, "")
        if not output.strip():
            wrong.append("no output of " + name)
        elif "```" in output:
            wrong.append("the output of %s would end its block" % name)
        return head + output + "```"

    filled = BLOCK.sub(replace, text)
    names = [block[1] for block in BLOCK.findall(text)]
    if len(names) != text.count("<!-- output:"):
        wrong.append("a mark without its block")
    wrong += ["no block for " + name for name in sorted(set(outputs) - set(names))]
    wrong += ["--keep %s names no block" % name for name in keep if name not in names]
    return filled, wrong


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folders", nargs="*", type=pathlib.Path, metavar="FOLDER")
    options.add_argument("--keep", action="append", default=[], metavar="NAME")
    options.add_argument("--check", action="store_true")
    options = options.parse_args()
    if options.check:
        empty = ["%s: %s" % (doc.name, name) for doc in DOCS for _, name, output in BLOCK.findall(doc.read_text()) if not output.strip()]
        print("\n".join(empty) or "every block is filled")
        return 1 if empty else 0
    if not options.folders:
        sys.exit("fill_guide.py: name the folder with the outputs")
    outputs = outputs_of(options.folders)
    results = [(doc,) + fill(doc.read_text(), outputs, options.keep) for doc in DOCS]
    wrong = sorted({what for _, _, whats in results for what in whats})
    if wrong:
        sys.exit("fill_guide.py: nothing was changed:\n  " + "\n  ".join(wrong))
    for doc, text, _ in results:
        doc.write_text(text)
    print("filled %d blocks in each of %s" % (len(BLOCK.findall(results[0][1])), ", ".join(doc.name for doc, _, _ in results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
