"""What the jobs share: options, the measured region, the truth line.

Nothing here knows about a tracer. A job warms up, prints "ready PID", waits
when asked to, runs its measured region, and prints {"truth": {...}} as the
last line of its standard output.
"""

import argparse
import array
import collections
import hashlib
import json
import os
import signal
import sys
import time


def options(description, steps=100, warmup=5):
    """A parser with the options that every training job has."""
    parser = argparse.ArgumentParser(description=description)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=int, default=steps,
                        help="steps of the measured region (default %(default)s)")
    length.add_argument("--seconds", type=float,
                        help="run for so long instead of --steps; SIGTERM ends it early")
    length.add_argument("--cpu-seconds", type=float,
                        help="run until the process has had so much processor time, however busy the machine is")
    parser.add_argument("--warmup", type=int, default=warmup,
                        help="steps before the measured region (default %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="torch.set_num_threads")
    parser.add_argument("--report-steps", metavar="FILE",
                        help="one line a step: start (CLOCK_MONOTONIC ns), duration (ns)")
    parser.add_argument("--profile", metavar="FILE",
                        help="run the measured region under torch.profiler, write its counts")
    parser.add_argument("--profile-detail", choices=("plain", "shapes", "calls", "memory", "stacks"),
                        default="plain", help="what torch.profiler records besides the operators; calls: the shapes of each")
    waiting(parser)
    return parser


def waiting(parser):
    """Adds the options that let a test start the measured region."""
    parser.add_argument("--wait", action="store_true",
                        help="after 'ready PID', wait for a line on standard input")
    parser.add_argument("--start-file", metavar="PATH",
                        help="after 'ready PID', wait until this file exists")
    return parser


def ready(args):
    """Says that the warm-up is over and waits to be told to go on."""
    say(f"ready {os.getpid()}")
    if args.wait:
        sys.stdin.readline()
    while args.start_file and not os.path.exists(args.start_file):
        time.sleep(0.005)


def say(line):
    print(line, flush=True)


def clocks():
    """Both clocks, read one after the other; the monotonic one is what a span's ts uses."""
    return {
        "monotonic_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC),
        "realtime_ns": time.clock_gettime_ns(time.CLOCK_REALTIME),
    }


def tell(**truth):
    """Prints the truth line."""
    truth.setdefault("pid", os.getpid())
    truth.setdefault("python", ".".join(map(str, sys.version_info[:3])))
    if "torch" in sys.modules:
        truth.setdefault("torch", sys.modules["torch"].__version__)
    say(json.dumps({"truth": truth}, sort_keys=True))


class Digest:
    """sha256 over tensors, floats and text, in the order given."""

    def __init__(self):
        self.sha = hashlib.sha256()

    def add(self, *things):
        for thing in things:
            if hasattr(thing, "detach"):
                self.sha.update(thing.detach().contiguous().numpy().tobytes())
            else:
                self.sha.update(repr(thing).encode())
        return self

    def hex(self):
        return self.sha.hexdigest()


def train(args, model, step, scopes, nodes=None):
    """Warms up, runs the measured region of `step()` calls, prints the truth.

    `step` returns the loss as a tensor. `scopes` is how often each
    record_function scope is entered in one step, `nodes` how often each class
    of autograd node is evaluated; nodes=None leaves them to --profile.
    """
    import torch

    torch.set_flush_denormal(True)  # dead units' moments would slow long runs down
    losses = []
    for _ in range(args.warmup):
        losses.append(step())
    ready(args)

    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    stamps = array.array("q")
    now = time.monotonic_ns
    profiler = profiling(args)
    if profiler:
        profiler.__enter__()
    begin = clocks()
    start = begin["monotonic_ns"]
    until = start + int(args.seconds * 1e9) if args.seconds is not None else None
    worked = time.process_time() + args.cpu_seconds if args.cpu_seconds is not None else None
    done = 0

    def more():
        if until is not None:
            return start < until
        return time.process_time() < worked if worked is not None else done < args.steps

    while not stop and more():
        losses.append(step())
        end = now()
        stamps.append(start)
        stamps.append(end - start)
        start = end
        done += 1
    end = clocks()
    if profiler:
        profiler.__exit__(None, None, None)
        write_profile(args.profile, profiler, args.profile_detail == "calls")

    if args.report_steps:
        with open(args.report_steps, "w") as report:
            for i in range(0, len(stamps), 2):
                report.write(f"{stamps[i]} {stamps[i + 1]}\n")
    durations = sorted(stamps[1::2])
    digest = Digest()
    if losses:
        digest.add(torch.stack(losses))
    for name, tensor in sorted(model.state_dict().items()):
        digest.add(name, tensor)
    tell(
        job=os.path.basename(sys.argv[0]),
        steps=done,
        warmup=args.warmup,
        begin=begin,
        end=end,
        step_ns_median=durations[len(durations) // 2] if durations else None,
        parameters=sum(1 for _ in model.parameters()),
        final_loss=float(losses[-1]) if losses else None,
        sha256=digest.hex(),
        scopes={name: count * done for name, count in scopes.items()},
        nodes={name: count * done for name, count in (nodes or {}).items()},
        backward_passes=done,
    )


def profiling(args):
    """The profiler of the measured region, or None."""
    if not args.profile:
        return None
    from torch.profiler import ProfilerActivity, profile

    detail = args.profile_detail
    return profile(
        activities=[ProfilerActivity.CPU],
        record_shapes=detail in ("shapes", "calls", "memory"),
        with_flops=detail == "calls",
        profile_memory=detail == "memory",
        with_stack=detail == "stacks",
    )


def write_profile(path, profiler, calls=False):
    """Counts and total times per name, as torch.profiler has them, and if asked each call's shapes.

    Read from the raw events: the tables that torch.profiler builds on top
    leave some events out and take minutes for a long run.
    """
    operators, total, scopes, overloads = (collections.Counter() for _ in range(4))
    durations = collections.defaultdict(list)
    for event in profiler.profiler.kineto_results.events():
        name = event.name()
        if name.startswith("aten::"):
            operators[name] += 1
            total[name] += duration_ns(event)
            durations[name].append(duration_ns(event))
            overload = getattr(event, "overload_name", str)()
            overloads[name + ("." + overload if overload else "")] += 1
        elif not name.startswith("["):
            scopes[name] += 1
    with open(path, "w") as out:
        json.dump({
            "operators": operators,
            "operators_total": sum(operators.values()),
            "total_ns": total,
            "median_ns": {name: sorted(each)[len(each) // 2] for name, each in durations.items()},
            "overloads": overloads if overloads.keys() != operators.keys() else {},
            "scopes": scopes,
            "classes": classes(operators),
            "calls": shapes_of_calls(profiler.profiler.kineto_results) if calls else [],
            "flops": flops_of(profiler.profiler.kineto_results) if calls else {},
        }, out, indent=1, sort_keys=True)
        out.write("\n")


TYPES = {"torch.float32": "float", "torch.float64": "double", "torch.int64": "long int", "torch.int32": "int",
         "torch.bool": "bool", "torch.uint8": "unsigned char", "torch.bfloat16": "c10::BFloat16"}


def shapes_of_calls(results):
    """[name, sizes, strides, types] of each operator call, in the order in which they began.

    One entry for each argument: [] and "" of what is no tensor, [how many] and TensorList of a list.
    """
    calls = []

    def visit(event):
        if event.name.startswith("aten::"):
            inputs = event.extra_fields.inputs
            if isinstance(inputs, list):
                arguments = [shape_of(each) for each in inputs]
            else:  # 1.13 knows of a list only that it is one
                arguments = [(sizes, strides, dtype if dtype not in ("Scalar", "ScalarList") else "")
                             for sizes, strides, dtype in zip(inputs.shapes, inputs.strides, inputs.dtypes)]
            calls.append((event.start_time_ns, len(calls), event.name, [list(part) for part in zip(*arguments)]))
        for child in event.children:
            visit(child)

    for event in results.experimental_event_tree():
        visit(event)
    return [[name, *(parts or [[], [], []])] for _, _, name, parts in sorted(calls)]


def shape_of(argument):
    if isinstance(argument, list):
        tensors = bool(argument) and all(hasattr(each, "sizes") for each in argument)
        return ([len(argument)] if tensors else [], [], "TensorList" if tensors else "")
    if hasattr(argument, "sizes"):
        return argument.sizes, argument.strides, TYPES[str(argument.dtype)]
    return [], [], ""


def flops_of(results):
    """The sum of with_flops by operator."""
    sums = collections.Counter()
    for event in results.events():
        if event.name().startswith("aten::"):
            sums[event.name()] += event.flops()
    return {name: count for name, count in sums.items() if count}


def duration_ns(event):
    """2.x gives nanoseconds, 1.13 microseconds."""
    return event.duration_ns() if hasattr(event, "duration_ns") else event.duration_us() * 1000


def classes(names):
    """Operator name -> the C++ classes in at::_ops that its overloads have.

    aten::add with overloads Tensor and Scalar is add_Tensor and add_Scalar:
    the reverse cannot be told from the class name alone.
    """
    import torch

    found = {name: [] for name in names}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name in found:
            base = schema.name.split("::", 1)[1]
            found[schema.name].append(
                f"{base}_{schema.overload_name}" if schema.overload_name else base)
    return {name: sorted(set(made)) for name, made in found.items()}
