"""JAX at work under a cap: just-in-time compiled functions of several kinds, at rest at three moments. argv[1]: the cap."""
import sys

import jax
import jax.numpy as jnp

import report

cap = int(sys.argv[1])
report.fact("jax", jax.__version__)
device = jax.devices()[0]
report.check("JAX runs on the GPU", device.platform == "gpu", device.platform)
a = jnp.ones((1024, 1024)).block_until_ready()
report.ready("start")


@jax.jit
def step(x):
    return jnp.tanh(x @ x.T / 1024).sum(axis=0)


report.check("the product is right", abs(float(step(a)[0]) - 1024 * 0.76159) < 1.0, float(step(a)[0]))
report.ready("compiled a product")
image = jnp.ones((8, 64, 64, 16))
kernel = jnp.ones((3, 3, 16, 32))
convolve = jax.jit(jax.grad(lambda k: jax.lax.conv_general_dilated(image, k, (1, 1), "SAME",
                                                                   dimension_numbers=("NHWC", "HWIO", "NHWC")).mean()))
report.check("the gradient is a number", bool(jnp.isfinite(convolve(kernel)).all()))
jnp.linalg.svd(jnp.eye(256) * 2)[1].block_until_ready()
report.ready("convolution and decomposition")
