"""JAX allocates until it is refused. argv[1]: the cap in bytes; argv[2]: "default" (it preallocates three quarters of what
it believes the card has) or "platform" (every array is an allocation of the driver's; set by the environment)."""
import sys

import jax
import jax.numpy as jnp

import report

BLOCK = 64 << 20
cap, mode = int(sys.argv[1]), sys.argv[2]
report.fact("jax", jax.__version__)
device = jax.devices()[0]
report.check("JAX runs on the GPU", device.platform == "gpu", device.platform)
jnp.zeros(16).block_until_ready()
bytes_limit = (device.memory_stats() or {}).get("bytes_limit", 0)
report.fact("bytes_limit", bytes_limit)
if mode == "default":
    report.check("JAX limits itself to what the cap leaves", cap // 2 < bytes_limit <= cap, bytes_limit)
report.ready("start")

blocks, text = [], ""
try:
    while len(blocks) < 2 * cap // BLOCK:
        blocks.append(jnp.zeros((BLOCK,), dtype=jnp.uint8).block_until_ready())
except Exception as error:  # jaxlib's class has been renamed over the years; its text has not
    text = str(error)
report.fact("obtained_bytes", len(blocks) * BLOCK)
report.fact("error", text[:200])
report.check("RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower(), text)
report.check("at least half of the cap could be used", len(blocks) * BLOCK >= cap // 2, len(blocks) * BLOCK)
report.ready("full")

del blocks
total = float(jnp.ones((1 << 20,)).sum())
report.check("JAX goes on computing", total == float(1 << 20), total)
report.ready("emptied")
