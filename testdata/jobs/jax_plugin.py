"""Real JAX on a real PJRT plugin: jax_plugin.py PLUGIN [--wait] [--compiled] [--count N]

The plugin is XLA's CPU client behind the C interface. "ready" comes when JAX has
made the client; with --compiled also the executables are there. The truth is how
often each was run and what was sent and fetched.
"""
import argparse
import json
import os
import sys

os.environ["JAX_PLATFORMS"] = "plugin"

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import xla_bridge


@jax.jit
def update(weights, inputs, targets):
    def loss(w):
        return jnp.mean((jnp.tanh(inputs @ w) - targets) ** 2)

    return weights - 0.1 * jax.grad(loss)(weights)


@jax.jit
def scale(array):
    return array * 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plugin")
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--count", type=int, default=50)
    args = parser.parse_args()
    xla_bridge.register_plugin("plugin", library_path=args.plugin)
    jax.devices()

    def put(shape, dtype):
        return jax.device_put(np.ones(shape, dtype))

    def prepare():
        arrays = put((64, 64), np.float32), put((32, 64), np.float32), put((32, 64), np.float32), put((3, 5, 7), np.int16)
        return arrays, update(*arrays[:3]), scale(arrays[3])

    if args.compiled:
        prepare()
    print("ready", os.getpid(), flush=True)
    if args.wait and not sys.stdin.readline():
        sys.exit(2)
    (weights, inputs, targets, whole), _, _ = prepare()
    for _ in range(args.count):
        weights = update(weights, inputs, targets)
        whole = scale(whole)
        whole = scale(whole)
    weights.block_until_ready()
    whole.block_until_ready()
    print(json.dumps({"truth": {"pid": os.getpid(), "jax": {
        "executions": {"jit_update": args.count + 1, "jit_scale": 2 * args.count + 1},
        "arguments": {"jit_update": 3, "jit_scale": 1},
        "sent": {"f32": {"calls": 3, "bytes": 4 * (64 * 64 + 2 * 32 * 64)}, "s16": {"calls": 1, "bytes": 2 * 3 * 5 * 7}},
    }}}), flush=True)


if __name__ == "__main__":
    main()
