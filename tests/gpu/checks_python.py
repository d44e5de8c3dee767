"""Points 1, 2 and part of 3: PyTorch with its three allocators and in training, JAX, CuPy and numba, each under a cap."""
import importlib.util
import sys

from harness import AGREEMENT_BYTES, GIB, PROGRAMS, Program, Skipped, run_capped

CAP = 4 * GIB


def need(module):
    if importlib.util.find_spec(module) is None:
        raise Skipped("no Python module '%s' here" % module)


def run_python(place, truth, outcome, module, script, arguments, env=None, **options):
    need(module)
    command = [sys.executable, "-u", PROGRAMS / script, str(CAP)] + arguments
    return run_capped(place, truth, outcome, command, "4G", CAP, extra_env=env, **options)


def torch_until_refused(configuration):
    def check(place, truth, outcome):
        rests = {}

        def at_rest(label, now, _top, _program):
            rests[label] = now
            if label == "emptied":
                kept = now - rests["start"]
                outcome.figures["kept_after_empty_cache_bytes"] = kept
                outcome.require(kept <= AGREEMENT_BYTES, "after empty_cache %d B more than at the start are still held" % kept)

        # The name since torch 2.9 and the one before it.
        env = {"PYTORCH_ALLOC_CONF": configuration, "PYTORCH_CUDA_ALLOC_CONF": configuration} if configuration else {}
        run_python(place, truth, outcome, "torch", "torch_until_refused.py", [], env=env, at_rest=at_rest, timeout=120)

    return check


def torch_training(place, truth, outcome):
    need("torch")
    command = [sys.executable, "-u", PROGRAMS / "torch_train.py"]
    plain = Program(command, place.plain, place.out / (outcome.name + "-plain.stderr"), 90)
    try:
        while plain.next_rest() is not None:
            plain.go_on()
        outcome.require(plain.end() == 0, "without gpucap: " + plain.stderr()[-400:])
    finally:
        plain.kill()
    physical = plain.facts.get("total_bytes", 0)
    capped = run_capped(place, truth, outcome, command, "50%", physical // 2, expect_refusal=False, timeout=90)
    total, losses = capped.facts.get("total_bytes", 0), capped.facts.get("losses")
    outcome.figures.pop("losses", None)
    outcome.figures["physical_bytes"] = physical
    outcome.require(abs(total - physical // 2) <= AGREEMENT_BYTES, "50%% of %d is shown as %d" % (physical, total))
    outcome.require(outcome.figures.get("refusal_lines") == 0, "something was refused")
    if outcome.require(bool(losses) and bool(plain.facts.get("losses")), "no losses were printed"):
        same = losses == plain.facts["losses"]
        outcome.figures["losses_equal"] = same
        outcome.figures["last_loss"] = float.fromhex(losses[-1])
        outcome.require(same, "the losses differ from those without gpucap")


def jax_default(place, truth, outcome):
    # It stops at its own limit, which it made from the cap: gpucap need not refuse anything.
    run_python(place, truth, outcome, "jax", "jax_prog.py", ["default"], expect_refusal=False, timeout=120)


def jax_platform(place, truth, outcome):
    env = {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    run_python(place, truth, outcome, "jax", "jax_prog.py", ["platform"], env=env, timeout=120)


def cupy_pool(mode):
    def check(place, truth, outcome):
        run_python(place, truth, outcome, "cupy", "cupy_prog.py", [mode])

    return check


def numba_arrays(place, truth, outcome):
    need("numba")
    run_python(place, truth, outcome, "numba", "numba_prog.py", [])


CHECKS = [
    ("torch-default", torch_until_refused("")),
    ("torch-expandable-segments", torch_until_refused("expandable_segments:True")),
    ("torch-cudaMallocAsync", torch_until_refused("backend:cudaMallocAsync")),
    ("torch-training-at-half", torch_training),
    ("jax-default", jax_default),
    ("jax-platform-allocator", jax_platform),
    ("cupy-default-pool", cupy_pool("default")),
    ("cupy-async-pool", cupy_pool("async")),
    ("cupy-managed-pool", cupy_pool("managed")),
    ("numba", numba_arrays),
]
