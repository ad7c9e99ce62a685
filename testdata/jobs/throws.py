#!/usr/bin/env python3
"""Throws and catches C++ exceptions through every class of probed function.

Each case fails the same number of times, is caught, and is followed by a call
that succeeds. The truth says which functions each exception unwound: a case's
UNWINDS are exactly the frames between the throw and the catch, innermost first
(verified with a debugger and by counting entries and returns).
"""

import collections

import torch
import torch.distributed as dist

import joblib

CASES = collections.OrderedDict()


def case(*unwinds):
    """Registers a failing call; `unwinds` are the functions it leaves by exception."""
    def register(function):
        CASES[function.__name__] = (function, unwinds)
        return function
    return register


EVALUATE, EXECUTE = "Engine::evaluate_function", "Engine::execute"
BROADCAST, REDUCE = "ProcessGroupGloo::broadcast", "ProcessGroupGloo::reduce"

a34 = torch.ones(3, 4)
a56 = torch.ones(5, 6)
bias = torch.ones(3)
far = torch.tensor([99])


@case("aten::mm")
def operator():
    torch.mm(a34, a56)


@case("aten::view")
def view():
    a34.view(5)


@case("aten::index_select")
def index():
    torch.index_select(a34, 0, far)


@case("aten::mm", "aten::matmul")
def operator_in_operator():
    torch.matmul(a34, a56)


@case("aten::addmm", "aten::linear")
def linear():
    torch.nn.functional.linear(a34, a56, bias)


@case("aten::neg")
def python_in_operator():
    torch.neg(Refusing(a34))


@case("aten::mm")
def scope():
    with torch.autograd.profiler.record_function("failing scope"):
        torch.mm(a34, a56)


@case("aten::empty")
def memory():
    torch.empty(1 << 58, dtype=torch.uint8)


@case("aten::mm", EVALUATE, EXECUTE)
def operator_in_backward():
    weight = torch.ones(4, 2)
    result = torch.mm(a34.clone().requires_grad_(), weight.requires_grad_()).sum()
    weight.data = torch.ones(5, 7)
    result.backward()


@case(EVALUATE, EXECUTE)
def python_in_backward():
    Failing.apply(a34.clone().requires_grad_()).sum().backward()


@case(EVALUATE, EXECUTE)
def saved_tensor_in_backward():
    leaf = a34.clone().requires_grad_()
    middle = leaf.exp()
    result = middle.sum()
    middle.detach().zero_()
    result.backward()


@case("aten::add_")
def optimizer():
    parameter = torch.nn.Parameter(torch.ones(3, 4))
    parameter.grad = torch.ones(3, 4)
    parameter.grad.data = torch.ones(5, 6)
    torch.optim.SGD([parameter], lr=0.1, foreach=False).step()


@case(BROADCAST)
def broadcast():
    options = dist.BroadcastOptions()
    options.rootRank = 7
    dist.distributed_c10d._get_default_group().broadcast([a34], options)


@case(REDUCE)
def reduce():
    options = dist.ReduceOptions()
    options.rootRank = 7
    dist.distributed_c10d._get_default_group().reduce([a34], options)


class Refusing(torch.Tensor):
    """A tensor whose operators raise, in Python, below the C++ dispatcher."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise ValueError("refused")


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("failed backward")


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--count", type=int, default=800, help="exceptions of each case")
    parser.add_argument("--cases", help="comma-separated; default all: " + ",".join(CASES))
    args = parser.parse_args()
    chosen = args.cases.split(",") if args.cases else list(CASES)
    torch.set_num_threads(1)
    torch.manual_seed(23)
    if {"broadcast", "reduce"} & set(chosen):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

    joblib.ready(args)
    begin = joblib.clocks()
    good = torch.randn(8, 8)
    digest = joblib.Digest()
    for name in chosen:
        function = CASES[name][0]
        messages = collections.Counter()
        for _ in range(args.count):
            try:
                function()
            except (RuntimeError, ValueError, IndexError) as error:
                messages[str(error).splitlines()[0].split("0x")[0]] += 1
            good = torch.tanh(good @ good)
        digest.add(name, sorted(messages.items()), good)
        if sum(messages.values()) != args.count:
            raise SystemExit(f"{name}: {sum(messages.values())} of {args.count} threw")
    end = joblib.clocks()

    threw = collections.Counter()
    for name in chosen:
        threw.update({function: args.count for function in CASES[name][1]})
    joblib.tell(
        job="throws.py", begin=begin, end=end, count=args.count, cases=chosen,
        exceptions=args.count * len(chosen),
        threw={name: n for name, n in threw.items() if name.startswith("aten::")},
        threw_other={name: n for name, n in threw.items() if not name.startswith("aten::")},
        succeeded={"aten::tanh": args.count * len(chosen)},
        scopes={"failing scope": args.count * ("scope" in chosen),
                "Optimizer.step#SGD.step": args.count * ("optimizer" in chosen)},
        sha256=digest.hex())


if __name__ == "__main__":
    main()
