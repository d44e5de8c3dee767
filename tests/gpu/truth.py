#!/usr/bin/env python3
"""What each process really holds of each card, from NVML, seen from outside: the truth that gpucap is measured against.

Run by the harness as a process of its own, never preloaded. Asks NVML for the compute processes of every card as fast as
it answers, and keeps the highest figure of each process. Answers questions on stdin with one line of JSON on stdout:
  now PID    {"now": {card: bytes}, "max": {card: bytes}}; "now" is read after the question came
  reset PID  the same, and the highest figure starts again at what is held now
  sum        {"max": {card: bytes}}: the highest that all processes held together in one pass
  sum-reset  the same, and it starts again
  card       {"total": [bytes], "used": [bytes], "names": [...], "driver": "..."}
  stats      {"passes": n, "longest_gap_us": n, "mean_gap_us": n}: how closely the figures were followed
It cannot see what comes and goes within one pass. Creates no CUDA context and changes nothing.
"""
import ctypes
import gc
import json
import os
import select
import sys
import time

NOT_AVAILABLE = (1 << 64) - 1
MAX_PROCESSES = 512


class ProcessInfo(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint),
                ("compute_instance", ctypes.c_uint)]


class MemoryInfo(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml:
    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.require(self.library.nvmlInit_v2(), "nvmlInit_v2")
        count = ctypes.c_uint()
        self.require(self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)), "nvmlDeviceGetCount_v2")
        self.cards = []
        for index in range(count.value):
            card = ctypes.c_void_p()
            self.require(self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(card)), "nvmlDeviceGetHandleByIndex_v2")
            self.cards.append(card)
        self.list_processes = self.library.nvmlDeviceGetComputeRunningProcesses_v3
        self.count = ctypes.c_uint()
        self.infos = (ProcessInfo * MAX_PROCESSES)()

    @staticmethod
    def require(result, what):
        if result != 0:
            sys.exit("truth: %s failed with NVML error %d" % (what, result))

    def processes(self, card):
        """{pid: bytes} of one card; a process listed twice (MIG instances) is added up."""
        self.count.value = MAX_PROCESSES
        result = self.list_processes(card, ctypes.byref(self.count), self.infos)
        self.require(result, "nvmlDeviceGetComputeRunningProcesses_v3")
        held = {}
        for i in range(self.count.value):
            info = self.infos[i]
            size = info.bytes
            if size != NOT_AVAILABLE:
                held[info.pid] = held.get(info.pid, 0) + size
        return held

    def describe(self):
        total, used, names = [], [], []
        for card in self.cards:
            memory, name = MemoryInfo(), ctypes.create_string_buffer(96)
            self.require(self.library.nvmlDeviceGetMemoryInfo(card, ctypes.byref(memory)), "nvmlDeviceGetMemoryInfo")
            self.require(self.library.nvmlDeviceGetName(card, name, 96), "nvmlDeviceGetName")
            total.append(memory.total)
            used.append(memory.used)
            names.append(name.value.decode("utf-8", "replace"))
        version = ctypes.create_string_buffer(96)
        self.require(self.library.nvmlSystemGetDriverVersion(version, 96), "nvmlSystemGetDriverVersion")
        return {"total": total, "used": used, "names": names, "driver": version.value.decode()}


class Watcher:
    def __init__(self, nvml):
        self.nvml = nvml
        self.highest = {}  # (card, pid) -> bytes
        self.now = {}
        self.highest_sum = {}  # card -> bytes
        self.passes = 0
        self.longest = 0.0
        self.started = self.last = time.perf_counter()

    def look(self):
        now = {}
        highest = self.highest
        for index, card in enumerate(self.nvml.cards):
            held = self.nvml.processes(card)
            together = sum(held.values())
            if together > self.highest_sum.get(index, -1):
                self.highest_sum[index] = together
            for pid, size in held.items():
                key = (index, pid)
                now[key] = size
                if size > highest.get(key, -1):
                    highest[key] = size
        self.now = now
        self.passes += 1
        moment = time.perf_counter()
        if self.passes > 1 and moment - self.last > self.longest:
            self.longest = moment - self.last
        self.last = moment

    def answer(self, words):
        if words[0] == "card":
            return self.nvml.describe()
        if words[0] in ("sum", "sum-reset"):
            reply = {"max": dict(self.highest_sum)}
            if words[0] == "sum-reset":
                self.highest_sum.clear()
            self.look()
            return reply
        if words[0] == "stats":
            mean = (self.last - self.started) / max(1, self.passes)
            return {"passes": self.passes, "longest_gap_us": round(self.longest * 1e6), "mean_gap_us": round(mean * 1e6, 1)}
        if words[0] in ("now", "reset"):
            pid = int(words[1])
            self.look()
            reply = {"now": {c: b for (c, p), b in self.now.items() if p == pid},
                     "max": {c: b for (c, p), b in self.highest.items() if p == pid}}
            if words[0] == "reset":
                for key in [k for k in self.highest if k[1] == pid]:
                    del self.highest[key]
                self.highest.update({k: b for k, b in self.now.items() if k[1] == pid})
            return reply
        return {"error": "unknown question"}


def main():
    if os.environ.get("LD_PRELOAD"):
        sys.exit("truth: must not be preloaded")
    watcher = Watcher(Nvml())
    waiting = select.poll()
    waiting.register(0, select.POLLIN | select.POLLHUP)
    gc.disable()  # no pause between two looks
    buffered = b""
    while True:
        watcher.look()
        if waiting.poll(0):
            chunk = os.read(0, 4096)
            if not chunk:
                return
            buffered += chunk
            while b"\n" in buffered:
                line, buffered = buffered.split(b"\n", 1)
                sys.stdout.write(json.dumps(watcher.answer(line.decode().split())) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
