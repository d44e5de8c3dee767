#!/usr/bin/env python3
"""Fails when a source file includes something from a layer above or beside it, or grows past 400 lines.

Owns the table of who may include whom. Run by ctest and by scripts/test.sh, on tracked and untracked files alike.
Reads files only; never changes one. `check_layers.py --self-test` proves that each rule can fail.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

MAX_LINES = 400
SOURCE = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".inc", ".def", ".S"}
COUNTED = SOURCE | {".py", ".sh", ".cmake"}
ANY = ("",)

# Layer -> what it may include besides itself: folders ("shim/core/") or single files. ANY allows everything.
ALLOWED = {
    "wire": (),
    "shim/core": (),
    "shim/loader": (),
    "shim/process": ("shim/core/", "shim/loader/", "wire/"),
    "shim/nvml": ("shim/process/", "shim/core/", "shim/loader/"),
    "shim/driver": ("shim/nvml/", "shim/process/", "shim/core/", "shim/loader/", "wire/layout.h"),
    "shim/runtime": ("shim/process/", "shim/core/", "shim/loader/"),
    "shim": ("shim/",),
    "tools": ("wire/", "shim/core/limits.h", "shim/core/size.h", "shim/core/on_limit.h", "shim/core/group_name.h",
              "shim/core/policy.h", "shim/core/visible_devices.h"),
    "examples": (),
    "bench": ANY,
    "tests": ANY,
}
MAY_SEE_CUDA = ("shim/driver/", "tests/", "bench/")
MAY_SEE_SPDLOG = ("shim/process/log.cpp",)

# shim/core is arithmetic: the language's own headers, less those that reach the clock, the environment or the system.
PURE_HEADERS = set(
    """algorithm array atomic bit bitset cassert cctype cfloat charconv cinttypes climits cmath compare concepts cstdarg
    cstddef cstdint cstdio cstring exception functional initializer_list iterator limits memory mutex new numeric optional ratio
    shared_mutex span string string_view thread tuple type_traits typeinfo utility variant vector version
    assert.h ctype.h float.h inttypes.h limits.h math.h stdarg.h stdbool.h stddef.h stdint.h string.h""".split())

INCLUDE = re.compile(r'^\s*#\s*include(?:_next)?\s*([<"])([^>"]+)[>"]')
GETENV = re.compile(r"\b(?:secure_)?getenv\b")


def layer_of(path):
    """The layer that owns a file, or None for what no rule speaks of."""
    parts = path.split("/")
    if parts[0] == "shim":
        layer = "/".join(parts[:2]) if len(parts) > 2 else "shim"
        return layer if layer in ALLOWED else "unknown"
    return parts[0] if parts[0] in ALLOWED else None


def breach(path, layer, quote, target):
    """Why this include is not allowed, or None."""
    first = target.split("/")[0]
    if target in ("cuda.h", "cudaTypedefs.h", "cuda_runtime.h", "cuda_runtime_api.h") and not path.startswith(MAY_SEE_CUDA):
        return "only " + ", ".join(MAY_SEE_CUDA) + " may see <%s>" % target
    if first == "spdlog" and path not in MAY_SEE_SPDLOG:
        return "only " + ", ".join(MAY_SEE_SPDLOG) + " may include spdlog"
    if ".." in target.split("/"):
        return "includes are written from the repository's root, without '..'"
    ours = first in ("wire", "shim", "tools", "tests", "bench", "examples") and "/" in target
    if ours:
        if layer == "unknown":
            return "this folder is in no layer: add it to the table in scripts/check_layers.py"
        allowed = ALLOWED[layer]
        if target.startswith(layer + "/") and (layer != "shim" or target.count("/") == 1):
            return None
        if allowed == ANY or any(target == a or (a.endswith("/") and target.startswith(a)) for a in allowed):
            return None
        return "%s may not include %s (allowed: %s)" % (layer, target, ", ".join((layer + "/",) + allowed))
    if quote == '"' and path.split("/")[0] in ("wire", "shim", "tools"):
        return 'write it from the repository\'s root: "folder/%s"' % target
    if layer == "shim/core" and target not in PURE_HEADERS:
        return "shim/core is pure: <%s> is not one of the headers that it may use" % target
    return None


def check_file(root, path):
    """Yields (line number, message) for every breach in one file."""
    try:
        lines = (root / path).read_text(encoding="utf-8", errors="replace").splitlines()
    except (FileNotFoundError, IsADirectoryError):
        return  # deleted in the work tree, or a link to a folder
    suffix = pathlib.PurePosixPath(path).suffix
    if suffix in COUNTED and len(lines) > MAX_LINES:
        yield MAX_LINES + 1, "the file has %d lines; split it below %d" % (len(lines), MAX_LINES)
    layer = layer_of(path)
    if suffix not in SOURCE or layer is None:
        return
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if found:
            why = breach(path, layer, found.group(1), found.group(2).strip())
            if why:
                yield number, why
        elif layer == "shim/core" and GETENV.search(line.split("//")[0]):
            yield number, "shim/core reads no environment"


def list_files(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, check=False)
    if listed.returncode == 0 and listed.stdout:
        return sorted(set(listed.stdout.decode("utf-8", "replace").split("\0")) - {""})
    # Not a checkout (a source archive): everything but what is built or fetched.
    every = (p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
    return sorted(p for p in every if not p.startswith(("build/", ".deps/", ".git/")))


def check_tree(root):
    return ["%s:%d: %s" % (path, number, why) for path in list_files(root) for number, why in check_file(root, path)]


GOOD = {
    "wire/writer.cpp": '#include "wire/layout.h"\n#include <unistd.h>\n',
    "shim/core/size.cpp": '#include "shim/core/size.h"\n#include <cstdint>\n// getenv is not for us\n',
    "shim/process/log.cpp": '#include <spdlog/spdlog.h>\n#include "wire/ring_writer.h"\n#include "shim/core/size.h"\n',
    "shim/driver/hook.cpp": '#include <cuda.h>\n#include "wire/layout.h"\n#include "shim/nvml/nvml.h"\n',
    "shim/entry.cpp": '#include "shim/driver/hook.h"\n#include "shim/entry.h"\n',
    "tools/top/main.cpp": '#include <CLI/CLI.hpp>\n#include "tools/top/table.h"\n#include "wire/layout.h"\n',
    "tests/core/size_test.cpp": '#include "shim/core/size.h"\n#include <cuda.h>\n#include "local.h"\n',
    "docs/long.md": "x\n" * 500,
}
BAD = {
    "wire/a.cpp": '#include <stdint.h>\n#include "shim/core/size.h"\n',
    "shim/core/b.cpp": "#include <cstdint>\n#include <chrono>\n",
    "shim/core/c.cpp": "#include <cstdint>\n#include <sys/stat.h>\n",
    "shim/core/d.cpp": "#include <cstdint>\nauto* x = getenv(name);\n",
    "shim/core/e.cpp": '#include <cstdint>\n#include "wire/layout.h"\n',
    "shim/loader/f.cpp": '#include <dlfcn.h>\n#include "shim/core/size.h"\n',
    "shim/process/g.cpp": '#include "wire/layout.h"\n#include "shim/driver/hook.h"\n',
    "shim/process/h.cpp": "#include <time.h>\n#include <spdlog/spdlog.h>\n",
    "shim/nvml/i.cpp": '#include "shim/process/process.h"\n#include "wire/layout.h"\n',
    "shim/driver/j.cpp": '#include "wire/layout.h"\n#include "wire/ring_writer.h"\n',
    "shim/driver/k.cpp": '#include <cuda.h>\n#include "shim/runtime/malloc.h"\n',
    "shim/runtime/l.cpp": '#include "shim/core/size.h"\n#  include <cuda.h>\n',
    "shim/new_room/m.cpp": '#include <stdint.h>\n#include "shim/core/size.h"\n',
    "tools/n.cpp": '#include "shim/core/limits.h"\n#include <shim/core/ledger.h>\n',
    "tools/o.cpp": '#include "wire/layout.h"\n#include "../wire/layout.h"\n',
    "shim/process/p.cpp": '#include "shim/process/q.h"\n#include "q.h"\n',
    "examples/r.cpp": '#include <stdint.h>\n#include "shim/core/size.h"\n',
}


def self_test():
    """Each line of BAD breaks exactly one rule, on its second line; nothing in GOOD breaks any."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in list(GOOD.items()) + list(BAD.items()) + [("tests/long.cpp", "\n" * (MAX_LINES + 1))]:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        reported = sorted(line.split(": ")[0] for line in check_tree(root))
    expected = sorted([path + ":2" for path in BAD] + ["tests/long.cpp:%d" % (MAX_LINES + 1)])
    for line in sorted(set(expected) - set(reported)):
        print("not reported: " + line)
    for line in sorted(set(reported) - set(expected)):
        print("reported without cause: " + line)
    print("self-test of the layer check: %d breaches expected, %d reported" % (len(expected), len(reported)))
    return 0 if reported == expected else 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:]:
        print("usage: check_layers.py [--self-test]", file=sys.stderr)
        return 2
    breaches = check_tree(pathlib.Path(__file__).resolve().parent.parent)
    for line in breaches:
        print(line)
    print("layer check: %d breaches" % len(breaches))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
