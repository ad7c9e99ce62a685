#!/usr/bin/env python3
"""Two threads train at once, one with aten::mul, the other with aten::div: as many
nodes each, with the same numbers, made one after the other in lockstep."""

import threading

import torch

import joblib


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(26)
    gate = threading.Barrier(2)
    results = [None, None]

    def train(index, operator):
        x = torch.rand(64, requires_grad=True)
        for _ in range(args.steps):
            gate.wait()
            y = x
            for _ in range(8):
                y = operator(y, 1.01)
            gate.wait()
            y.sum().backward()
        results[index] = x.grad

    joblib.ready(args)
    begin = joblib.clocks()
    trainers = [threading.Thread(target=train, args=(i, operator))
                for i, operator in enumerate((torch.mul, torch.div))]
    for trainer in trainers:
        trainer.start()
    for trainer in trainers:
        trainer.join()
    end = joblib.clocks()
    joblib.tell(
        job="twotrainers.py", begin=begin, end=end,
        nodes={"MulBackward0": 8 * args.steps, "DivBackward0": 8 * args.steps},
        sha256=joblib.Digest().add(*results).hex())


if __name__ == "__main__":
    main()
