"""Does the cap hold for JAX, which takes most of the card when it starts?

Run: gpucap run --limit 4G -- python3 examples/pytorch/other_jax.py
Look at: JAX takes three quarters of the card that it sees, which is the cap, and fails inside that, as on a small card.
"""
import jax
import jax.numpy as jnp

MIB = 2**20
device = jax.devices()[0]
jnp.zeros(1).block_until_ready()
print("JAX %s may use %d MiB" % (jax.__version__, device.memory_stats()["bytes_limit"] / MIB))
arrays = []
try:
    while True:
        arrays.append(jnp.zeros((64 * MIB,), dtype=jnp.uint8).block_until_ready())
except Exception as error:  # its class has had several names
    print("after %d MiB: %s" % (len(arrays) * 64, str(error).splitlines()[0][:60]))
del arrays
print("and goes on: %d" % int(jnp.arange(1000).sum()))
