"""Writes bounds.json: what the functions of ReFrame-HPC 4.10 say of references, documented ones and random ones.

   python -m venv venv && venv/bin/pip install 'ReFrame-HPC>=4.10,<4.11' && venv/bin/python make.py > bounds.json

The test reads what was written; it needs neither Python nor ReFrame.
"""
import json
import math
import random

import reframe
import reframe.utility.sanity as sn
from reframe.core.exceptions import SanityError

# Of the documentation of reference and assert_reference: values below, at and above zero, thresholds that are absent.
documented = [
    (0.9, 1, -0.2, 0.1), (0.9, 1, None, 0.1), (1.1, 1, -0.2, 0.1), (1.1, 1, -0.2, None), (1.2, 1, -0.2, 0.1), (0.7, 1, -0.2, 0.1),
    (-0.9, -1, -0.2, 0.1), (-0.9, -1, None, 0.1), (-1.1, -1, -0.2, 0.1), (-1.1, -1, -0.2, None), (-1.2, -1, -0.2, 0.1), (-0.7, -1, -0.2, 0.1),
    (0, 0, None, None), (0.1, 0, -0.1, 0.1), (0.11, 0, -0.1, 0.1), (-0.11, 0, -0.1, 0.1), (5, 0, None, 4), (-5, 0, -4, None),
    (200, 200, -0.05, 0.1), (190, 200, -0.05, 0.1), (189.9, 200, -0.05, 0.1), (220.1, 200, -0.05, 0.1),
    (1, 1, -1.1, 0.1), (1, 1, 0.1, 0.1), (1, 1, -0.1, -0.1), (-1, -1, -0.1, 1.1), (-1, -1, -3, 0.5), (1, 1, -0.5, 7), (0, 0, 0.1, 0.2), (0, 0, -0.1, -0.2),
    (math.inf, 1, -0.1, None), (-math.inf, 1, None, 0.1), (math.nan, 1, -0.1, 0.1), (math.nan, 1, None, None),
]
random.seed(20261127)
cases = list(documented)
while len(cases) < len(documented) + 1000:
    ref = random.choice([0, random.uniform(-100, 100), random.lognormvariate(0, 4), -random.lognormvariate(0, 4), random.randint(-9, 9)])
    lower = random.choice([None, 0, -random.random(), -random.random(), -random.uniform(0, 3), random.uniform(-2, 2)])
    upper = random.choice([None, 0, random.random(), random.random(), random.uniform(0, 3), random.uniform(-2, 2)])
    near = ref + random.uniform(-1.5, 1.5) * (abs(ref) or 1)
    bound = ref * (1 + (lower or 0) * (1 if ref > 0 else -1))
    cases.append((random.choice([near, near, bound, ref]), ref, lower, upper))


def shown(x):
    """JSON has no infinities."""
    return x if x is None or math.isfinite(x) else str(float(x))


rows = []
for value, ref, lower, upper in cases:
    try:
        low, high = sn.reference_bounds(ref, lower, upper)
    except ValueError:
        rows.append([shown(value), ref, lower, upper, None, None, 'invalid'])
        continue
    try:
        sn.evaluate(sn.assert_reference(value, ref, lower, upper))
        result = 'pass'
    except SanityError:
        result = 'fail'
    rows.append([shown(value), ref, lower, upper, shown(low), shown(high), result])
print('{"made_by": "ReFrame-HPC %s", "columns": ["value", "reference", "lower", "upper", "least", "most", "result"], "rows": [' % reframe.VERSION)
print(',\n'.join(json.dumps(row) for row in rows))
print(']}')
