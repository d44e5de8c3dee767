"""A folder of figures and the processes that pose in it, for the tests that run gpucap-top against them. Expects the test
program's arguments: gpucap-top, poser."""
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP, POSER = sys.argv[1:3]


class PosingTest(unittest.TestCase):
    folder_prefix = "gpucap-top-test-"

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix=self.folder_prefix)
        self.posers = []

    def tearDown(self):
        for poser in self.posers:
            poser.kill()
            poser.wait()
            poser.stdin.close()
            poser.stdout.close()
        shutil.rmtree(self.dir)

    def pose(self, *words):
        """Started, and visible; with then=... it has also come to its end."""
        poser = subprocess.Popen([POSER, self.dir, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.posers.append(poser)
        self.assertEqual(poser.stdout.readline(), "ready\n")
        if any(word.startswith("then=") for word in words):
            poser.wait()
        return poser
