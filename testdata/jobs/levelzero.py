#!/usr/bin/env python3
"""Calls functions of the real Level Zero loader, which has no driver here: each
returns an error, and this job tells which."""

import ctypes

import joblib


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--library", default="libze_loader.so.1")
    parser.add_argument("functions", nargs="+")
    args = parser.parse_args()
    loader = ctypes.CDLL(args.library)
    joblib.ready(args)
    calls = []
    for name in args.functions:
        try:
            function = getattr(loader, name)
        except AttributeError:
            continue
        status = function(*[ctypes.c_void_p(0)] * 12)
        calls.append({"name": name, "status": status, "bytes": -1, "direction": ""})
    joblib.tell(job="levelzero.py", calls=calls)


if __name__ == "__main__":
    main()
