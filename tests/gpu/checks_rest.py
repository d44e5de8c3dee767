"""What gpucap-top says of programs at work, against truth, whenever nothing is in flight: at most AGREEMENT_BYTES apart,
at three moments or more each. Nothing is refused here; what the libraries take beside the program's data has to be seen."""
import sys
import tempfile

from checks_python import need, run_python
from harness import GIB, PROGRAMS, Program, Skipped, TookTooLong, compare, file_name

CAP = 4 * GIB  # checks_python's
MOMENTS = 3
# No multicast objects in any library: what they need of a host is not what is being tested.
WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


def require_moments(outcome):
    outcome.require(len(outcome.rests) >= MOMENTS, "only %d moments were compared" % len(outcome.rests))
    differences = [rest["difference_bytes"] for rest in outcome.rests if "difference_bytes" in rest]
    if differences:
        outcome.figures["worst_difference_bytes"] = max(differences, key=abs)


def at_work(module, script, arguments=(), allocator=""):
    def check(place, truth, outcome):
        env = {"PYTORCH_ALLOC_CONF": allocator, "PYTORCH_CUDA_ALLOC_CONF": allocator} if allocator else {}
        run_python(place, truth, outcome, module, script, list(arguments), env=env, timeout=150, expect_refusal=False)
        outcome.require(outcome.figures.get("refusal_lines", 0) == 0, "something was refused")
        require_moments(outcome)

    return check


def look_at(truth, place, outcome, programs, label):
    highest = 0
    for rank, program in enumerate(programs):
        seen = truth.ask("reset %d" % program.pid)
        top = max(seen["max"].values(), default=0)
        compare(outcome, "rank %d, %s" % (rank, label), place.shown(program.pid), sum(seen["now"].values()), top)
        highest = max(highest, top)
    return highest


def two_processes(place, truth, outcome):
    """An all-reduce of two processes, which rest at the same moments and are looked at together."""
    need("torch")
    cards = len(truth.ask("card")["names"])
    if cards < 2:
        raise Skipped("needs two cards, and there is %d" % cards)
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(place.capped("4G"), **WITHOUT_MULTICAST)
        programs = [Program([sys.executable, "-u", PROGRAMS / "torch_nccl.py", str(CAP), str(rank), folder + "/meeting"], environment,
                            place.out / file_name("%s-%d" % (outcome.name, rank), ".stderr"), 150) for rank in range(2)]
        highest = 0
        try:
            while True:
                labels = [program.next_rest() for program in programs]
                if not outcome.require(labels[0] == labels[1], "the two rest at different moments: %s" % labels) or labels[0] is None:
                    break
                highest = max(highest, look_at(truth, place, outcome, programs, labels[0]))
                for program in programs:
                    program.go_on()
            for rank, program in enumerate(programs):
                status = program.end() if labels[0] == labels[1] else None
                outcome.require(status == 0, "rank %d: exit status %s: %s" % (rank, status, program.stderr()[-400:]))
        except TookTooLong:
            outcome.require(False, "took longer than 150 s: " + programs[0].stderr()[-400:])
        finally:
            for program in programs:
                program.kill()
        for rank, program in enumerate(programs):
            for what, ok, detail in program.checks:
                outcome.require(ok, "rank %d: %s (%s)" % (rank, what, detail))
    outcome.figures.update(cap_bytes=CAP, highest_truth_bytes=highest)
    outcome.require(highest <= CAP, "truth reached %d B, %d above the cap" % (highest, highest - CAP))
    require_moments(outcome)


CHECKS = [
    ("rest: torch with cuBLAS and cuDNN", at_work("torch", "torch_at_rest.py", ["libraries"])),
    ("rest: torch graphs, default allocator", at_work("torch", "torch_at_rest.py", ["graphs"])),
    ("rest: torch graphs, cudaMallocAsync", at_work("torch", "torch_at_rest.py", ["graphs"], "backend:cudaMallocAsync")),
    ("rest: torch.compile", at_work("torch", "torch_at_rest.py", ["compile"])),
    ("rest: JAX", at_work("jax", "jax_at_rest.py")),
    ("rest: CuPy with cuBLAS and cuFFT", at_work("cupy", "cupy_at_rest.py")),
    ("rest: NCCL all-reduce of two processes", two_processes),
]
