"""What the tests of set, check and waiting share: a folder of forged segments and groups, on the fake driver. The test's
arguments: gpucap, stand-in library, poser, folder of the fake driver, the real library, a real client."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

GPUCAP, STAND_IN, POSER, FAKE, LIBRARY, CLIENT = sys.argv[1:7]
MIB, GIB = 1 << 20, 1 << 30
NONE = (1 << 64) - 1
GROUP_HEADER, GROUP_SLOT, GROUP_DEVICE, SLOTS = 2240, 1088, 64, 256
SLOT_LOCK = (1 << 40) + 1
FIRST, SECOND = "GPU-f04ec0da-0000-4000-8000-000000000001", "GPU-f14ec0da-0000-4000-8000-000000000002"


class World(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="gpucap-control-test-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.library = os.path.join(self.dir, "libgpucap.so")
        shutil.copy(STAND_IN, self.library)
        self.segments = os.path.join(self.dir, "segments")
        os.mkdir(self.segments, 0o700)
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(("GPUCAP_", "LD_", "CUDA_"))}
        self.env.update(GPUCAP_LIBRARY=self.library, GPUCAP_DIR=self.segments, LD_LIBRARY_PATH=FAKE,
                        FAKE_CUDA_STATE=os.path.join(self.dir, "state"), ASAN_OPTIONS="verify_asan_link_order=0")

    def run_it(self, *words, **kwargs):
        kwargs.setdefault("env", self.env)
        return subprocess.run([GPUCAP, *map(str, words)], capture_output=True, text=True, timeout=60, **kwargs)

    def pose(self, *words, env=None):
        process = subprocess.Popen([POSER, self.segments, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**self.env, **(env or {})})
        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def refused(self, code, *words, parts=(), **kwargs):
        result = self.run_it(*words, **kwargs)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def control(self, pid):
        """(sequence, limits of the two devices) as the process would find them."""
        (name,) = [name for name in os.listdir(self.segments) if name.startswith(f"{pid}.")]
        with open(os.path.join(self.segments, name), "rb") as file:
            data = file.read()
        for i in range(struct.unpack_from("<I", data, 36)[0]):
            kind, _, offset, _ = struct.unpack_from("<IIQQ", data, 1176 + 24 * i)
            if kind == 6:
                return struct.unpack_from("<Q", data, offset) + (struct.unpack_from("<2Q", data, offset + 64),)
        self.fail("no control region")

    def forge_group(self, name, devices, members=()):
        """devices: (uuid byte or text, limit); members: held bytes a device, each of a process that holds its slot's lock."""
        header = bytearray(GROUP_HEADER)
        size = GROUP_HEADER + SLOTS * GROUP_SLOT
        struct.pack_into("<QHHIQII", header, 0, 0x0147504143555047, 1, 0, GROUP_HEADER, size, SLOTS, GROUP_SLOT)
        header[40:40 + len(name)] = name.encode()
        struct.pack_into("<II", header, 104, len(devices), len(members))
        for i, (uuid, limit) in enumerate(devices):
            digits = bytes([uuid] * 16) if isinstance(uuid, int) else bytes.fromhex(uuid[4:].replace("-", ""))
            struct.pack_into("<16sQ", header, 192 + i * GROUP_DEVICE, digits, limit)
        path = os.path.join(self.segments, name + ".gpucap-group")
        with open(path, "wb") as file:
            file.write(header)
            file.truncate(size)
            for slot, held in enumerate(members):
                data = bytearray(GROUP_SLOT)
                struct.pack_into("<QII", data, 0, 1, 1, os.geteuid())
                for i, bytes_held in enumerate(held):
                    struct.pack_into("<q", data, 64 + 32 * i, bytes_held)
                file.seek(GROUP_HEADER + slot * GROUP_SLOT)
                file.write(data)
        for slot in range(len(members)):
            self.hold(path, slot)
        return path

    def hold(self, path, slot):
        text = ("import fcntl,sys,struct; f=open(sys.argv[1],'r+b'); "
                "fcntl.lockf(f, fcntl.LOCK_EX, 1, int(sys.argv[2])); print('held', flush=True); sys.stdin.read()")
        process = subprocess.Popen([sys.executable, "-c", text, path, str(SLOT_LOCK + slot)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), "held\n")

    def group_limits(self, path, count):
        with open(path, "rb") as file:
            data = file.read(GROUP_HEADER)
        return [struct.unpack_from("<Q", data, 192 + i * GROUP_DEVICE + 16)[0] for i in range(count)]
