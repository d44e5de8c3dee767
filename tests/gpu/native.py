"""Compiling native programs with what the machine has. Used by the checks_*.py that need one."""
import os
import pathlib
import shutil
import subprocess
import sys

from harness import ROOT, Skipped


def compile_program(command, environment):
    done = subprocess.run([str(part) for part in command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, check=False, text=True)
    if done.returncode != 0:
        raise RuntimeError("%s failed: %s" % (command[0], done.stdout[-600:]))


def find_nvcc():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.access(nvcc, os.X_OK):
        raise Skipped("no nvcc here")
    return nvcc


def find_headers():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    for folder in (pathlib.Path(nvcc).resolve().parent.parent / "include", pathlib.Path("/usr/local/cuda/include"),
                   ROOT / ".deps/cuda13/include", ROOT / ".deps/cuda12/include"):
        if (folder / "cuda.h").is_file():
            return folder
    raise Skipped("no cuda.h here")


def find_driver(environment):
    """The libcuda.so.1 that programs get here, as a path to link against; loading it initialises nothing."""
    code = ("import ctypes; ctypes.CDLL('libcuda.so.1'); "
            "print(next(l.split(None, 5)[5].strip() for l in open('/proc/self/maps') if 'libcuda.so' in l))")
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False, text=True)
    if done.returncode != 0:
        raise Skipped("no libcuda.so.1 here")
    return done.stdout.strip()
