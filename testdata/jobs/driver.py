#!/usr/bin/env python3
"""Calls of a driver library from inside PyTorch's operators: driver.py LIBCUDA

LIBCUDA is the stub. Operators of a tensor of a class of our own come to its
__torch_dispatch__, which launches: so a launch is made inside the operator, as
PyTorch's own CUDA kernels are. Others are made inside a node of the backward
pass, inside a record_function scope, and inside nothing.
"""

import ctypes
import os

import torch

import joblib


def driver(path):
    """A function that launches a kernel of libcuda by its name."""
    os.environ["STUB_INSTANT"] = "1"
    cuda = ctypes.CDLL(path)
    module, handles = ctypes.c_void_p(), {}
    cuda.cuModuleLoadData(ctypes.byref(module), b"image")
    launch = cuda.cuLaunchKernel
    launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3

    def make(name):
        if name not in handles:
            handles[name] = ctypes.c_void_p()
            cuda.cuModuleGetFunction(ctypes.byref(handles[name]), module, name.encode())
        launch(handles[name], 1, 1, 1, 1, 1, 1, 0, None, None, None)

    return make


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("libcuda")
    args = parser.parse_args()
    launch = driver(args.libcuda)
    result = torch.ones(3)

    class Launches(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            launch(str(func).split(".")[1])
            return result

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            launch("forward")
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            launch("backward")
            return 2 * ctx.saved_tensors[0] * gradient

    ours = torch.Tensor._make_subclass(Launches, torch.ones(3))

    def work(count):
        for _ in range(count):
            torch.mul(ours, ours)
            torch.add(ours, ours)
            torch.add(ours, ours)
            x = torch.ones(3, requires_grad=True)
            Square.apply(x).sum().backward()
            with torch.autograd.profiler.record_function("ours"):
                launch("scoped")
            launch("alone")

    work(1)
    joblib.ready(args)
    begin = joblib.clocks()
    work(10)
    joblib.tell(job="driver.py", begin=begin, end=joblib.clocks())


if __name__ == "__main__":
    main()
