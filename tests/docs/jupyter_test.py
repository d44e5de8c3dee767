#!/usr/bin/env python3
"""A real Jupyter kernel under a cap, on the fake driver: jupyter_test.py BUILD_FOLDER, run by ctest.

Both ways that the documentation gives: examples/jupyter/kernel.json, and the kernel specification with environment
variables, read out of docs/pytorch.md. The cells speak to libcuda.so.1 by ctypes. Fails if Jupyter is missing:
scripts/setup.sh --clients puts it into .deps.
"""
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
JUPYTER = ROOT / ".deps" / ("jupyter-%d.%d" % sys.version_info[:2])
sys.path.insert(0, str(JUPYTER))
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build" / "release"

START = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, context, free, total, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
started = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
           cuda.cuCtxSetCurrent(context), cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))]
print(started, total.value)
"""
ALLOCATE = "print(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(%d << 30)))"


def spec_of_docs():
    """The specification that docs/pytorch.md gives, with this build's library in the place of an installed one."""
    block = re.search(r"^```json\n(.*?)^```$", (ROOT / "docs" / "pytorch.md").read_text(), re.MULTILINE | re.DOTALL)
    spec = json.loads(block.group(1))
    spec["env"]["LD_PRELOAD"] = str(BUILD / "libgpucap.so")
    return spec


class Kernel:
    def __init__(self, folder, spec):
        from jupyter_client.kernelspec import KernelSpecManager
        from jupyter_client.manager import KernelManager
        place = pathlib.Path(folder, "capped")
        place.mkdir()
        (place / "kernel.json").write_text(json.dumps(spec))
        self.manager = KernelManager(kernel_name="capped", kernel_spec_manager=KernelSpecManager(kernel_dirs=[folder]))
        self.manager.start_kernel()
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)

    def run(self, cell, when_running=None):
        """The reply's status, or the error's name; and what was printed."""
        printed = []

        def hear(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                printed.append(content["text"])
                if when_running and "running" in content["text"]:
                    when_running()

        content = self.client.execute_interactive(cell, timeout=120, output_hook=hear)["content"]
        return content.get("ename") or content["status"], "".join(printed)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=False)


class JupyterTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpucap-jupyter-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        path = [str(BUILD), str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        os.environ.update(PATH=":".join(path), PYTHONPATH=str(JUPYTER), LD_LIBRARY_PATH=str(BUILD / "fake_cuda"), HOME=self.folder,
                          IPYTHONDIR=self.folder, FAKE_CUDA_STATE=self.folder + "/fake", FAKE_CUDA_MEMORY=str(16 << 30),
                          GPUCAP_DIR=self.folder + "/segments")
        for name in [name for name in os.environ if name.startswith("GPUCAP_") and name != "GPUCAP_DIR" or name == "LD_PRELOAD"]:
            del os.environ[name]

    def tried(self, spec):
        kernel = Kernel(self.folder, spec)
        try:
            self.assertEqual(kernel.run(START), ("ok", "[0, 0, 0, 0, 0] %d\n" % (4 << 30)))
            status, printed = kernel.run(ALLOCATE % 5)
            self.assertEqual(status, "ok")
            self.assertIn("2\n", printed)  # CUDA_ERROR_OUT_OF_MEMORY
            self.assertEqual(kernel.run(ALLOCATE % 2), ("ok", "0\n"))
            # The stop button reaches the program itself.
            stopped = kernel.run("import time; print('running', flush=True); time.sleep(50)", kernel.manager.interrupt_kernel)
            self.assertEqual(stopped[0], "KeyboardInterrupt")
            self.assertEqual(kernel.run("print('and on')"), ("ok", "and on\n"))
        finally:
            kernel.close()
        self.assertFalse(kernel.manager.is_alive())

    def test_the_example(self):
        spec = json.loads((ROOT / "examples" / "jupyter" / "kernel.json").read_text())
        self.tried(spec)

    def test_the_specification_in_the_docs(self):
        self.tried(spec_of_docs())

    def test_without_a_cap_the_same_cells_see_the_whole_card(self):
        spec = spec_of_docs()
        del spec["env"]
        kernel = Kernel(self.folder, spec)
        try:
            status, printed = kernel.run(START)
            self.assertEqual((status, int(printed.split()[-1]) > 8 << 30), ("ok", True))
            self.assertEqual(kernel.run(ALLOCATE % 5), ("ok", "0\n"))
        finally:
            kernel.close()


if __name__ == "__main__":
    if not JUPYTER.is_dir():
        sys.exit("%s is missing: run scripts/setup.sh --clients" % JUPYTER)
    unittest.main()
