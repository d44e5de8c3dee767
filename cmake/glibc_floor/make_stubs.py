#!/usr/bin/env python3
"""Link-time stand-ins for this machine's C library that know only what an older one had.

Called by cmake/GlibcFloor.cmake at configure time; what it writes is linked against and never shipped or loaded. A file linked
with "-L OUT" asks for symbol versions up to FLOOR only, and what has none that old is an undefined symbol: the build proves
its own floor. Reads the C library that the compiler links with, so it works for a cross compiler too.

  make_stubs.py --cc CC --readelf READELF --floor 2.17 --compat ARCHIVE --out DIR
"""
import argparse
import os
import re
import subprocess

# Before glibc 2.34 these lived outside libc.so.6, and a loader of that time looks only in the file named at link time.
OLD_HOMES = (
    ("libpthread.so.0", re.compile(r"(__|_)?pthread_|sem_")),
    ("libdl.so.2", re.compile(r"dl(open|sym|vsym|close|error|addr|addr1|info|mopen)$")),
    ("librt.so.1", re.compile(r"shm_(open|unlink)$|(__)?(timer|mq|aio|lio)_")),
)
# These libc.so.6 had as well, and hands them on to libpthread where that is loaded: asked for there, they need no further file.
IN_LIBC_TOO = re.compile(r"pthread_mutex_(init|destroy|lock|unlock)$")
# And these in libutil, libresolv and libanl, for which there is no stand-in; or they mark the move itself.
NOT_OFFERED = re.compile(r"(openpty|forkpty|login(_tty)?|logout|logwtmp|getaddrinfo_a|gai_\w+|ns_name_\w+|__dn_\w+"
                         r"|__res_n?(mk|send|search|query)\w*|__res_\w+ok|__lib\w+_version_placeholder)$")
SECTIONS = {"FUNC": ".text", "OBJECT": ".data"}


def number(version):
    return tuple(int(part) for part in version.split("_")[1].split("."))


def exports(readelf, path, floor):
    """Name -> (version, kind, address, size, binding) of the newest version that is not newer than the floor."""
    found = {}
    for line in subprocess.check_output([readelf, "-W", "--dyn-syms", path], text=True).splitlines():
        match = re.match(r"\s*\d+: ([0-9a-f]+)\s+(\d+|0x[0-9a-f]+) (FUNC|IFUNC|OBJECT)\s+(GLOBAL|WEAK)\s+DEFAULT\s.*?"
                         r"\d+ ([^@\s]+)@@?(GLIBC_[0-9.]+)$", line)
        if match is None or number(match[6]) > floor:
            continue
        kind = "OBJECT" if match[3] == "OBJECT" else "FUNC"
        entry = (match[6], kind, match[1], int(match[2], 0), match[4])
        if match[5] not in found or number(entry[0]) > number(found[match[5]][0]):
            found[match[5]] = entry
    return found


def assembly(symbols):
    """One label per symbol. Objects that share an address keep sharing it: a program may get its own copy of one, and the
    linker must then export all its names (environ and __environ)."""
    lines, places = [], {}
    for name, (version, kind, address, size, binding) in sorted(symbols.items()):
        places.setdefault((kind, address if kind == "OBJECT" else name), []).append((name, version, size, binding))
    for count, ((kind, _), names) in enumerate(sorted(places.items())):
        lines.append(SECTIONS[kind] + "\n.balign 16" if kind == "OBJECT" else SECTIONS[kind])
        for index, (name, version, size, binding) in enumerate(names):
            label = f"stub_{count}_{index}"
            lines += [f".{'weak' if binding == 'WEAK' else 'globl'} {label}", f".type {label}, %{'object' if kind == 'OBJECT' else 'function'}",
                      f".size {label}, {size}", f"{label}:", f".symver {label}, {name}@@{version}"]
        lines.append(f".zero {max([size for _, _, size, _ in names] + [1]) if kind == 'OBJECT' else 4}")
    return "\n".join(lines + ['.section .note.GNU-stack, "", %progbits', ""])


def make(cc, out, soname, symbols):
    source, versions = os.path.join(out, soname + ".s"), os.path.join(out, soname + ".map")
    with open(source, "w", encoding="ascii") as file:
        file.write(assembly(symbols))
    with open(versions, "w", encoding="ascii") as file:
        for version in sorted({entry[0] for entry in symbols.values()}, key=number):
            file.write(version + " { local: stub_*; };\n")
    subprocess.check_call([cc, "-shared", "-nostdlib", "-o", os.path.join(out, soname), source, f"-Wl,-soname,{soname}",
                           f"-Wl,--version-script={versions}"])
    os.remove(source)
    os.remove(versions)


def script(out, name, text):
    with open(os.path.join(out, name), "w", encoding="ascii") as file:
        file.write(text + "\n")


def main():
    parser = argparse.ArgumentParser()
    for option in ("--cc", "--readelf", "--floor", "--compat", "--out"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    floor = tuple(int(part) for part in options.floor.split("."))
    os.makedirs(options.out, exist_ok=True)

    def path_of(soname):
        path = subprocess.check_output([options.cc, "-print-file-name=" + soname], text=True).strip()
        return path if os.path.isabs(path) else None

    libc = path_of("libc.so.6")
    needed = subprocess.check_output([options.readelf, "-d", libc], text=True)
    loader = re.search(r"\[(ld-linux[^\]]*)\]", needed)[1]
    libraries = {home: {} for home in ["libc.so.6", "libm.so.6", loader] + [home for home, _ in OLD_HOMES]}
    for soname in libraries:
        path = path_of(soname)
        for name, entry in (exports(options.readelf, path, floor) if path else {}).items():
            if NOT_OFFERED.match(name):
                continue
            home = soname
            if soname not in ("libm.so.6", loader):
                home = next((old for old, pattern in OLD_HOMES if pattern.match(name) and not IN_LIBC_TOO.match(name)), "libc.so.6")
            known = libraries[home].get(name)
            if known is None or number(entry[0]) > number(known[0]):
                libraries[home][name] = entry
    for soname, symbols in libraries.items():
        if symbols:
            make(options.cc, options.out, soname, symbols)
    present = [soname for soname in libraries if libraries[soname]]
    others = " ".join(os.path.join(options.out, soname) for soname in present if soname not in ("libc.so.6", "libm.so.6"))
    # What "-lc", "-lm" and so on find. What a C library links in instead of exporting comes first: ours, then this machine's.
    linked_in = " ".join(filter(None, [options.compat, path_of("libc_nonshared.a")]))
    script(options.out, "libc.so", f"GROUP ( {linked_in} {options.out}/libc.so.6 AS_NEEDED ( {others} ) )")
    script(options.out, "libm.so", f"INPUT ( AS_NEEDED ( {options.out}/libm.so.6 ) )")
    for name in ("libpthread.so", "libdl.so", "librt.so"):
        script(options.out, name, "/* in libc.so */")
    print(" ".join(f"{soname}:{len(libraries[soname])}" for soname in present))


if __name__ == "__main__":
    main()
