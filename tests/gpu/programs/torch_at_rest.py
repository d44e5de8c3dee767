"""PyTorch at work, at rest at three moments, well below its cap. argv[1]: the cap in bytes; argv[2]: "libraries" (matrix
products, convolutions and attention, so cuBLAS and cuDNN), "graphs" (CUDA graphs of a step) or "compile" (torch.compile).
The allocator is whatever PYTORCH_ALLOC_CONF says."""
import gc
import shutil
import sys

import torch

import report

cap, mode = int(sys.argv[1]), sys.argv[2]
report.fact("torch", torch.__version__)
report.fact("backend", torch.cuda.get_allocator_backend())
report.check("mem_get_info shows the cap", torch.cuda.mem_get_info()[1] == cap, torch.cuda.mem_get_info())
torch.manual_seed(1)


def rest(label):
    torch.cuda.synchronize()
    report.ready(label)


def libraries():
    a = torch.randn(4096, 4096, device="cuda")
    b = torch.randn(4096, 4096, device="cuda")
    products = [(a @ b).sum(), (a.half() @ b.half()).float().sum(), torch.linalg.solve(a[:512, :512], b[:512, :512]).sum()]
    rest("after cuBLAS")
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 7), torch.nn.BatchNorm2d(64), torch.nn.ReLU(), torch.nn.Conv2d(64, 64, 3),
                              torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    torch.backends.cudnn.benchmark = True
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss = net(torch.randn(16, 3, 224, 224, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
    report.check("the results are numbers", all(bool(torch.isfinite(x)) for x in products + [loss]))
    rest("after cuDNN")
    del a, b, products, net, optimizer, loss


def graphs():
    net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
    still = torch.randn(256, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            net(still)
    torch.cuda.current_stream().wait_stream(side)
    captured = []
    for _ in range(4):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), torch.no_grad():
            scratch = torch.empty(128 << 20, dtype=torch.uint8, device="cuda").fill_(1)  # memory of the graph's own pool
            result = net(still)
        captured.append((graph, scratch, result))
    rest("captured")
    with torch.no_grad():
        want = net(still)
    for graph, scratch, result in captured:
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        report.check("a replay computes what the module does", torch.allclose(result, want, rtol=1e-2, atol=1e-2))
        report.check("a replay fills its memory", int(scratch[-1]) == 1)
    rest("replayed")
    captured.clear()


def compiled():
    if shutil.which("cc") is None and shutil.which("gcc") is None and shutil.which("clang") is None:
        report.skip("torch.compile needs a C compiler, and there is none here")
    try:
        import triton  # noqa: F401
    except ImportError:
        report.skip("torch.compile needs triton, which is not here")

    def step(x, y):
        return torch.nn.functional.gelu(x * y + x).softmax(dim=-1).sum(dim=0)

    x, y = torch.randn(2048, 2048, device="cuda"), torch.randn(2048, 2048, device="cuda")
    try:
        fast = torch.compile(step)
        got = fast(x, y)
    except Exception as error:  # whatever is wrong with the machine's compilers is not what is being tested
        text = "%s: %s" % (type(error).__name__, str(error).splitlines()[0][:200])
        if "out of memory" in str(error).lower():
            report.check("torch.compile was not refused memory", False, text)
            raise
        report.skip("torch.compile does not work here: " + text)
    rest("compiled")
    report.check("the compiled function computes the same", torch.allclose(got, step(x, y), rtol=1e-2, atol=1e-3))
    reduced = torch.compile(step, mode="reduce-overhead")  # CUDA graphs
    for _ in range(4):
        got = reduced(x, y).clone()
    report.check("with CUDA graphs too", torch.allclose(got, step(x, y), rtol=1e-2, atol=1e-3))
    rest("compiled with graphs")


torch.zeros(1, device="cuda")
rest("start")
{"libraries": libraries, "graphs": graphs, "compile": compiled}[mode]()
gc.collect()
torch.cuda.empty_cache()
rest("emptied")
