#!/usr/bin/env python3
"""Several Python threads run operators at once, each a known number of them."""

import threading

import torch

import joblib


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--count", type=int, default=1000,
                        help="calls of the first thread; thread i makes i+1 times as many")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(26)
    inputs = [torch.rand(64) for _ in range(args.workers)]
    results, tids = [None] * args.workers, [None] * args.workers
    gate = threading.Barrier(args.workers)

    def work(index):
        tids[index] = threading.get_native_id()
        x = inputs[index]
        gate.wait()
        for _ in range(args.count * (index + 1)):
            x = torch.lgamma(torch.erfc(x)).sigmoid()
        results[index] = x

    joblib.ready(args)
    begin = joblib.clocks()
    workers = [threading.Thread(target=work, args=(i,)) for i in range(args.workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    end = joblib.clocks()
    each = ("aten::erfc", "aten::lgamma", "aten::sigmoid")
    joblib.tell(
        job="threads.py", begin=begin, end=end,
        threads={str(tid): dict.fromkeys(each, args.count * (i + 1))
                 for i, tid in enumerate(tids)},
        operators=dict.fromkeys(each, args.count * args.workers * (args.workers + 1) // 2),
        sha256=joblib.Digest().add(*results).hex())


if __name__ == "__main__":
    main()
