#!/usr/bin/env python3
"""Packs an installed tree (cmake --install) as a Python wheel, so that `pip install` puts gpucap and gpucap-top on the PATH of
a virtual environment, and libgpucap.so into its lib folder, where bin/gpucap looks. No Python code is in it.

  wheel.py --tree DIR --version V --platform manylinux_2_17_x86_64 --out DIR      the name of the wheel goes to stdout

Called by scripts/package.sh. The same tree gives the same bytes: times are those of SOURCE_DATE_EPOCH, or fixed.
"""
import argparse
import base64
import hashlib
import os
import time
import zipfile
from pathlib import Path

METADATA = """Metadata-Version: 2.1
Name: gpucap
Version: {version}
Summary: Caps the GPU memory of any CUDA program, without changing the program
License: Apache-2.0
Requires-Python: >=3
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """Wheel-Version: 1.0
Generator: gpucap-wheel {version}
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def files_of(tree, version):
    """(path in the wheel, bytes, is a program), in the order in which they are stored."""
    data = f"gpucap-{version}.data"
    library = [path for path in sorted(tree.glob("lib*/**/libgpucap.so")) if path.is_file()]
    if len(library) != 1:
        raise SystemExit(f"wheel.py: {len(library)} files named libgpucap.so in {tree}")
    yield f"{data}/data/lib/libgpucap.so", library[0].read_bytes(), True
    for folder in ("share/man", "share/bash-completion", "share/fish", "share/zsh", "share/doc/gpucap/third-party"):
        for path in sorted((tree / folder).rglob("*")):
            if path.is_file():
                yield f"{data}/data/{path.relative_to(tree).as_posix()}", path.read_bytes(), False
    for program in ("gpucap", "gpucap-top"):
        yield f"{data}/scripts/{program}", (tree / "bin" / program).read_bytes(), True


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main():
    parser = argparse.ArgumentParser()
    for option in ("--tree", "--version", "--platform", "--out", "--readme", "--license"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    info = f"gpucap-{options.version}.dist-info"
    moment = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")), 315532800))[:6]  # zip begins in 1980
    readme = Path(options.readme).read_text(encoding="utf-8")
    entries = list(files_of(Path(options.tree), options.version))
    entries += [(f"{info}/METADATA", METADATA.format(version=options.version, readme=readme).encode(), False),
                (f"{info}/WHEEL", WHEEL.format(version=options.version, platform=options.platform).encode(), False),
                (f"{info}/LICENSE", Path(options.license).read_bytes(), False)]
    record = "".join(f"{name},{digest(content)},{len(content)}\n" for name, content, _ in entries) + f"{info}/RECORD,,\n"
    entries.append((f"{info}/RECORD", record.encode(), False))

    path = Path(options.out) / f"gpucap-{options.version}-py3-none-{options.platform}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, content, program in entries:
            entry = zipfile.ZipInfo(name, moment)
            entry.create_system = 3  # Unix: the next line means something
            entry.external_attr = (0o100755 if program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    print(path)


if __name__ == "__main__":
    main()
