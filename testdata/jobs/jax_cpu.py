"""A jitted step of JAX on the CPU, where there is no plugin and so no PJRT boundary.

Ends with {"truth": {"steps": …}} after --seconds S.
"""
import argparse
import json
import os
import sys
import time

import jax
import jax.numpy as jnp


@jax.jit
def update(weights, inputs, targets):
    def loss(w):
        return jnp.mean((jnp.tanh(inputs @ w) - targets) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * gradient, value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    weights, inputs, targets = jnp.zeros((256, 256)), jnp.ones((128, 256)), jnp.ones((128, 256))
    weights, value = update(weights, inputs, targets)
    value.block_until_ready()
    print("ready", os.getpid(), flush=True)
    if args.wait and not sys.stdin.readline():
        sys.exit(2)
    steps, end = 0, time.monotonic() + args.seconds
    while time.monotonic() < end:
        weights, value = update(weights, inputs, targets)
        float(value)
        steps += 1
    print(json.dumps({"truth": {"pid": os.getpid(), "steps": steps}}), flush=True)


if __name__ == "__main__":
    main()
