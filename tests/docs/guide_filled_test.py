#!/usr/bin/env python3
"""Every output block of the guide is filled, or none is yet: run by ctest, skipped (77) in the latter case."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))

import fill_guide

blocks = [(doc.name, name, bool(output.strip())) for doc in fill_guide.DOCS for _, name, output in fill_guide.BLOCK.findall(doc.read_text())]
empty = ["%s: %s" % (doc, name) for doc, name, filled in blocks if not filled]
if not blocks:
    sys.exit("the guide has no blocks")
if len(empty) == len(blocks):
    print("no block is filled yet: run scripts/gpu_test.sh --group guide on a card, then scripts/fill_guide.py")
    sys.exit(77)
if empty:
    sys.exit("without output:\n  " + "\n  ".join(empty))
print("%d blocks are filled" % len(blocks))
