"""One process that holds some memory asks how much there is, in every way that programs ask. argv[1]: the cap in bytes.

Facts "surface: total", "surface: free", "surface: used" as each surface gives them; the harness compares them with the cap
and with the truth. Loads the driver and NVML as numba and pynvml do; pynvml and torch join in where they are."""
import ctypes
import importlib.util
import sys

import report

HELD = 256 << 20
cap = int(sys.argv[1])


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong),
                ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def must(result, what):
    if result != 0:
        report.check(what, False, "error %d" % result)
        sys.exit(1)


def tell(surface, **figures):
    for name, value in figures.items():
        report.fact("%s: %s" % (surface, name), int(value))


def driver():
    cuda = ctypes.CDLL("libcuda.so.1")
    must(cuda.cuInit(0), "cuInit")
    context, memory = ctypes.c_void_p(), ctypes.c_ulonglong()
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(HELD)), "cuMemAlloc")
    must(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
    return cuda


def ask_driver(cuda):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    must(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
    tell("cuMemGetInfo", total=total.value, free=free.value)
    must(cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0), "cuDeviceTotalMem")
    tell("cuDeviceTotalMem", total=total.value)


def handles(nvml):
    """(how it was asked for, handle) of the first card, by each kind of name that NVML knows."""
    by_index = ctypes.c_void_p()
    must(nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(by_index)), "nvmlDeviceGetHandleByIndex")
    yield "by index", by_index
    uuid = ctypes.create_string_buffer(96)
    must(nvml.nvmlDeviceGetUUID(by_index, uuid, 96), "nvmlDeviceGetUUID")
    by_uuid = ctypes.c_void_p()
    must(nvml.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(by_uuid)), "nvmlDeviceGetHandleByUUID")
    yield "by UUID", by_uuid
    bus = ctypes.create_string_buffer(256)  # nvmlPciInfo_t: the id's text of 32 B is the last of what we look at
    must(nvml.nvmlDeviceGetPciInfo_v3(by_index, bus), "nvmlDeviceGetPciInfo")
    text = bus.raw[36:68].split(b"\0")[0]
    by_bus = ctypes.c_void_p()
    must(nvml.nvmlDeviceGetHandleByPciBusId_v2(text, ctypes.byref(by_bus)), "nvmlDeviceGetHandleByPciBusId")
    yield "by PCI id", by_bus


def ask_nvml():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    must(nvml.nvmlInit_v2(), "nvmlInit")
    for how, handle in handles(nvml):
        first, second = Memory(), MemoryV2(version=ctypes.sizeof(MemoryV2) | 2 << 24)
        must(nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(first)), "nvmlDeviceGetMemoryInfo")
        tell("NVML memory info, " + how, total=first.total, free=first.free, used=first.used)
        must(nvml.nvmlDeviceGetMemoryInfo_v2(handle, ctypes.byref(second)), "nvmlDeviceGetMemoryInfo_v2")
        tell("NVML memory info v2, " + how, total=second.total, free=second.free, used=second.used)


def ask_pynvml():
    import pynvml
    pynvml.nvmlInit()
    memory = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0))
    tell("pynvml", total=memory.total, free=memory.free, used=memory.used)


def ask_torch():
    import torch
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info(0)
    tell("torch.cuda.mem_get_info", total=total, free=free)
    tell("torch properties", total=torch.cuda.get_device_properties(0).total_memory)
    if not hasattr(torch.cuda, "device_memory_used"):
        report.fact("SKIPPED torch.cuda.device_memory_used", "not in torch " + torch.__version__)
        return
    try:
        tell("torch.cuda.device_memory_used", used=torch.cuda.device_memory_used(0))
    except ModuleNotFoundError as error:  # it asks pynvml
        report.fact("SKIPPED torch.cuda.device_memory_used", str(error)[:200])


library = driver()
if importlib.util.find_spec("torch") is not None:
    ask_torch()  # first: it makes the driver take more for its own code
else:
    report.fact("SKIPPED torch", "no Python module 'torch' here")
if importlib.util.find_spec("pynvml") is not None:
    ask_pynvml()
else:
    report.fact("SKIPPED pynvml", "no Python module 'pynvml' here")
ask_driver(library)
ask_nvml()
report.ready("asked")
