"""Reads a directory of traces with traceinsight (HTA's successor): its times, as JSON."""

import json
import sys
import warnings

warnings.filterwarnings("ignore")

from hta.trace_analysis import TraceAnalysis  # noqa: E402

analysis = TraceAnalysis(trace_dir=sys.argv[1])
row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
print("answer", json.dumps({
    "idle_us": float(row["idle_time(us)"]), "busy_us": float(row["kernel_time(us)"] - row["idle_time(us)"]),
    "total_us": float(row["kernel_time(us)"]), "events": len(analysis.t.get_trace(0)),
}))
