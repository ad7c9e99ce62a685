"""Writes tables.json: what the comparison of ReFrame-HPC 4.10 makes of made-up results.

   python -m venv venv && venv/bin/pip install 'ReFrame-HPC>=4.10,<4.11' && venv/bin/python make.py > tables.json

The test reads what was written; it needs neither Python nor ReFrame.
"""
import json
import math
import random

import reframe
import reframe.core.runtime as rt
from reframe.core.config import load_config
from reframe.frontend.reporting import compare_testcase_data
from reframe.frontend.reporting.utility import parse_cmp_spec

site_config = load_config('<builtin>')
site_config.select_subconfig('generic')
rt.init_runtime(site_config)
random.seed(20261127)


def case(name, system, environ, numbers):
    return {'name': name, 'system': system, 'partition': 'cpu', 'environ': environ, 'job_nodelist': 'n1', 'size': name[-1:],
            'perfvalues': {f'{system}:cpu:{v}': [x, 100, -0.1, 0.1, unit, 'pass'] for v, (x, unit) in numbers.items()}}


def repeats(n):
    out = []
    for _ in range(n):
        for name in ('resnet 1', 'resnet 2', 'unet 1'):
            for system in ('a', 'b'):
                out.append(case(name, system, random.choice(['x', 'y']), {
                    'throughput': (random.lognormvariate(5, 0.3), 'samples/s'), 'epoch': (random.uniform(1, 9), 's')}))
    return out


# A thousand pairs for the difference: of any size, of either sign, and zero.
def value():
    return random.choice([random.uniform(-10, 10), random.lognormvariate(0, 5), random.randint(-3, 3), random.uniform(99, 101)])


pairs = [(value(), value()) for _ in range(1000)]
left = [case(f't{i:04}', 'a', 'x', {'v': (l, 's')}) for i, (l, _) in enumerate(pairs)]
right = [case(f't{i:04}', 'a', 'x', {'v': (r, 's')}) for i, (_, r) in enumerate(pairs)]


def plain(x):
    return str(x) if isinstance(x, float) and not math.isfinite(x) else x


def table(spec, a, b):
    data = compare_testcase_data(a, b, parse_cmp_spec(spec, None, None, True))
    return {'spec': spec, 'columns': list(data[0]), 'rows': [[plain(x) for x in row] for row in data[1:]]}


some, others = repeats(7), repeats(12)
specs = ['now-1d:now/now-1d:now/mean:/', 'now-1d:now/now-1d:now/stats:/', 'now-1d:now/now-1d:now/p05,p50,p95:/', 'now-1d:now/now-1d:now/first:/',
         'now-1d:now/now-1d:now/last:/', 'now-1d:now/now-1d:now/min,max,sum,std,median:/', 'now-1d:now/now-1d:now/mean:basename,pvar/',
         'now-1d:now/now-1d:now/mean:+system/', 'now-1d:now/now-1d:now/mean:/+psamples', 'now-1d:now/now-1d:now/mean:/name,pvar,pval_L,psamples_R',
         'now-1d:now/now-1d:now/mean,mean(pref):/name,pvar,pref', 'now-1d:now/now-1d:now/median:name,pvar,size/name,size,pvar,pval']
print(json.dumps({'made_by': f'ReFrame-HPC {reframe.VERSION}', 'left': some, 'right': others,
                  'tables': [table(spec, some, others) for spec in specs],
                  'pairs': pairs, 'differences': [row[-1] for row in table(specs[0], left, right)['rows']]}, default=plain))
