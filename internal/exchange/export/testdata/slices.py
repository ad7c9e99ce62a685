"""Reads a trace with Perfetto's own messages and says what is in it, as JSON."""

import collections
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2

trace = perfetto_trace_pb2.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

tracks, names, stages = set(), {}, {}
open_slices = collections.defaultdict(list)
flows, ends = collections.Counter(), collections.Counter()
found = collections.Counter()
total_ns = 0
last = {}
for packet in trace.packet:
    for entry in packet.interned_data.event_names:
        names[entry.iid] = entry.name
    for entry in packet.interned_data.gpu_specifications:
        stages[entry.iid] = entry.name
    if packet.HasField("track_descriptor"):
        tracks.add(packet.track_descriptor.uuid)
    if packet.HasField("gpu_render_stage_event"):
        stage = packet.gpu_render_stage_event
        found["device"] += 1
        found["nameless"] += not (stage.name and stages.get(stage.hw_queue_iid) and stages.get(stage.stage_iid))
        total_ns += stage.duration
    if packet.HasField("track_event"):
        event = packet.track_event
        found["without_track"] += event.track_uuid not in tracks
        found["disordered"] += packet.timestamp < last.get(event.track_uuid, 0)
        last[event.track_uuid] = packet.timestamp
        if event.type == event.TYPE_SLICE_BEGIN:
            found["slices"] += 1
            found["nameless"] += not names.get(event.name_iid)
            open_slices[event.track_uuid].append(packet.timestamp)
            flows.update(event.flow_ids)
            ends.update(event.terminating_flow_ids)
        elif event.type == event.TYPE_SLICE_END:
            if open_slices[event.track_uuid]:
                total_ns += packet.timestamp - open_slices[event.track_uuid].pop()
            else:
                found["unopened"] += 1
found["open"] = sum(len(stack) for stack in open_slices.values())
found["flows"] = len(flows)
found["loose_flows"] = len(set(flows) ^ set(ends))
print(json.dumps({"total_ns": total_ns, **found}))
