#!/usr/bin/env python3
"""Launches named OpenCL kernels of known sizes a known number of times.

Needs pyopencl and an OpenCL platform; PoCL makes one of the processor.
"""

import os
import time

import numpy as np

import joblib

os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
import pyopencl as cl  # noqa: E402  reads the environment when imported

SOURCE = """
kernel void scale(global float *x, float by) {
    x[get_global_id(0)] *= by;
}
kernel void transpose(global const float *in, global float *out) {
    size_t column = get_global_id(0), row = get_global_id(1);
    out[column * get_global_size(1) + row] = in[row * get_global_size(0) + column];
}
kernel void add_volume(global float *x) {
    size_t at = (get_global_id(2) * get_global_size(1) + get_global_id(1))
        * get_global_size(0) + get_global_id(0);
    x[at] += 1.0f;
}
"""


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--count", type=int, default=100,
                        help="launches of scale; transpose has half, add_volume a quarter")
    parser.add_argument("--refused", type=int, default=0,
                        help="launches of scale with a work group that no device can have")
    parser.add_argument("--events", metavar="FILE",
                        help="one line a launch: kernel, queued, submitted, started, ended (ns)")
    parser.add_argument("--settle", type=float, default=0,
                        help="seconds to wait before the first call, for a tracer that has"
                        " just seen the library come")
    args = parser.parse_args()
    time.sleep(args.settle)

    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    queue = cl.CommandQueue(
        context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    program = cl.Program(context, SOURCE).build()
    scale, transpose, volume = program.scale, program.transpose, program.add_volume
    host = np.arange(4096, dtype=np.float32)
    first = cl.Buffer(context, cl.mem_flags.READ_WRITE, host.nbytes)
    second = cl.Buffer(context, cl.mem_flags.READ_WRITE, host.nbytes)
    cl.enqueue_copy(queue, first, host)
    # The first launch of each size compiles: not in the measured region.
    scale(queue, (4096,), (64,), first, np.float32(1))
    transpose(queue, (128, 32), (8, 4), first, second)
    volume(queue, (32, 16, 8), (4, 4, 2), second)
    queue.finish()

    plan = (("scale", args.count, (4096,), (64,)),
            ("transpose", args.count // 2, (128, 32), (8, 4)),
            ("add_volume", args.count // 4, (32, 16, 8), (4, 4, 2)))
    joblib.ready(args)
    begin = joblib.clocks()
    launches = []
    for _ in range(3):
        cl.enqueue_copy(queue, first, host)
    for name, count, size, group in plan:
        for _ in range(count):
            if name == "scale":
                event = scale(queue, size, group, first, np.float32(1.0001))
            elif name == "transpose":
                event = transpose(queue, size, group, first, second)
            else:
                event = volume(queue, size, group, second)
            launches.append((name, event))
        queue.finish()
    codes = joblib.collections.Counter()
    for _ in range(args.refused):
        try:
            scale(queue, (1 << 20,), (1 << 20,), first, np.float32(1))
        except cl.Error as error:
            codes[str(error.code)] += 1
    out = np.empty_like(host)
    for _ in range(2):
        cl.enqueue_copy(queue, out, second)
    end = joblib.clocks()

    if args.events:
        with open(args.events, "w") as report:
            for name, event in launches:
                at = event.profile
                report.write(f"{name} {at.queued} {at.submit} {at.start} {at.end}\n")
    joblib.tell(
        job="opencl.py", begin=begin, end=end, device=device.name,
        kernels={name: {"launches": count, "global": size, "local": group}
                 for name, count, size, group in plan},
        device_ns={name: sum(e.profile.end - e.profile.start for n, e in launches if n == name)
                   for name, *_ in plan},
        writes={"calls": 3, "bytes": 3 * host.nbytes},
        reads={"calls": 2, "bytes": 2 * host.nbytes},
        finishes=len(plan), refused=codes,
        sha256=joblib.hashlib.sha256(out.tobytes()).hexdigest())


if __name__ == "__main__":
    main()
