// Where the lanes of the timeline are, top to bottom, in CSS pixels.

export const ruler = 40; // the scale and the steps above the lanes
export const gutter = 190; // the lanes' names
const headHeight = 22,
  labelHeight = 18,
  stripHeight = 11,
  rowHeight = 16,
  thinHeight = 3,
  counterHeight = 34,
  gap = 6;
const fullRows = 32;

// layOut returns blocks {kind, y, height, ...}: heads of processes, and lanes with their rows.
export function layOut(lanes, processes, open, counters) {
  const blocks = [];
  let y = ruler;
  let last = null;
  const labels = new Map(processes.map((p) => [`${p.session}/${p.pid}`, p]));
  for (const lane of lanes) {
    const of = `${lane.session}/${lane.pid}`;
    if (of !== last) {
      const p = labels.get(of);
      const rank = p && p.rank !== null ? `rank ${p.rank}, ` : "";
      blocks.push({
        kind: "process",
        of,
        y,
        height: headHeight,
        text: `${rank}pid ${lane.pid}${p?.command ? ` ${p.command}` : ""}`,
      });
      y += headHeight;
      last = of;
    }
    if (open.closed.has(of)) continue;
    const key = keyOf(lane);
    const expanded = open.lanes.has(key);
    const rows = expanded ? lane.depth : Math.min(lane.depth, 1);
    const strip = lane.sampled ? stripHeight : 0;
    const tall = Math.min(rows, fullRows) * rowHeight + Math.max(0, rows - fullRows) * thinHeight;
    const height = Math.max(labelHeight, strip + tall) + gap;
    blocks.push({ kind: "lane", lane, key, expanded, y, height, strip, rows, top: y + strip, text: titleOf(lane) });
    y += height;
  }
  let source = null;
  for (const counter of counters.all) {
    const expanded = counters.open.has(counter.source);
    if (counter.source !== source) {
      source = counter.source;
      const many = counters.all.filter((k) => k.source === source).length;
      blocks.push({ kind: "source", source, y, height: headHeight, expanded, text: `counters of ${source} (${many})` });
      y += headHeight;
    }
    if (!expanded) continue;
    const text = [counter.name, counter.device, counter.scope.split("/").pop()].filter(Boolean).join(" ");
    blocks.push({ kind: "counter", counter, y, height: counterHeight, text });
    y += counterHeight;
  }
  return { blocks, height: y + 20 };
}

export const keyOf = (lane) => `${lane.pid}.${lane.kind === "stream" ? `s${lane.device}.${lane.stream}` : lane.tid}`;

export function titleOf(lane) {
  if (lane.kind === "stream") return `device ${lane.device ?? "?"}, stream ${lane.stream ?? "?"}`;
  const role = lane.role && lane.role !== lane.name ? ` (${lane.role.replaceAll("_", " ")})` : "";
  return `${lane.name || "thread"} ${lane.tid}${role}`;
}

// rowAt is where a row of calls is, from the top of the lanes.
export function rowAt(block, depth) {
  if (depth < fullRows) return { y: block.top + depth * rowHeight, height: rowHeight - 1 };
  return { y: block.top + fullRows * rowHeight + (depth - fullRows) * thinHeight, height: thinHeight - 1 };
}

// depthAt is the row at a place, -1 above the first.
export function depthAt(block, y) {
  const into = y - block.top;
  if (into < 0) return -1;
  const full = Math.floor(into / rowHeight);
  return full < fullRows ? full : fullRows + Math.floor((into - fullRows * rowHeight) / thinHeight);
}
