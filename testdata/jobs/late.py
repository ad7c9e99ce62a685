#!/usr/bin/env python3
"""Starts without torch and imports it when told to: a library loaded after the attach."""

import joblib


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--pause", type=float, default=2.0,
                        help="seconds between the import and the operators that count")
    args = parser.parse_args()
    joblib.ready(args)

    before = joblib.clocks()
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(27)
    x = torch.rand(64)
    joblib.say("imported")
    joblib.time.sleep(args.pause)
    begin = joblib.clocks()
    for _ in range(args.count):
        x = torch.lgamma(torch.erfc(x)).sigmoid()
    end = joblib.clocks()
    each = ("aten::erfc", "aten::lgamma", "aten::sigmoid")
    joblib.tell(job="late.py", before_import=before, begin=begin, end=end,
                operators=dict.fromkeys(each, args.count), sha256=joblib.Digest().add(x).hex())


if __name__ == "__main__":
    main()
