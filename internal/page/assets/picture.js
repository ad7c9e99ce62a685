// A picture of the timeline: rectangles as the server packs them, found by place and drawn.
import { colorOf } from "./text.js";

// Flags of a rectangle, as the server has them.
export const UNFINISHED = 1,
  BOUND = 2,
  ERROR = 4,
  CELL = 8,
  DEEPER = 16;
const noDuration = 0xffffffff;

// unpack reads /api/timeline.
export function unpack(buffer, numbers) {
  const head = new DataView(buffer).getUint32(0, true);
  const h = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, head)));
  const n = h.count;
  let at = 4 + head;
  const column = (type) => {
    const values = new type(buffer, at, n);
    at += n * type.BYTES_PER_ELEMENT;
    return values;
  };
  const picture = {
    ...h,
    numbers,
    start: column(Uint32Array),
    duration: column(Uint32Array),
    calls: column(Uint32Array),
    name: column(Uint16Array),
    lane: column(Uint16Array),
    depth: column(Uint8Array),
    flags: column(Uint8Array),
    busy: column(Uint8Array),
    share: column(Uint8Array),
  };
  // rows: by lane and depth, the numbers of their rectangles in order of time.
  picture.rows = new Map();
  for (let i = 0; i < n; i++) {
    const key = numbers[picture.lane[i]] * 256 + picture.depth[i];
    let row = picture.rows.get(key);
    if (!row) picture.rows.set(key, (row = []));
    row.push(i);
  }
  for (const row of picture.rows.values()) row.sort((a, b) => picture.start[a] - picture.start[b]);
  return picture;
}

export const startOf = (p, i) => p.from_ns + p.start[i] * p.unit_ns;
export const unfinished = (p, i) => p.duration[i] === noDuration;
export const durationOf = (p, i) => (unfinished(p, i) ? 0 : p.duration[i] * p.unit_ns);

// find is the rectangle of a row at a time, -1 without one; slack is how far off it may be.
export function find(p, lane, depth, ns, slack) {
  const row = p.rows.get(lane * 256 + depth);
  if (!row) return -1;
  let low = 0,
    high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (startOf(p, row[middle]) <= ns) low = middle + 1;
    else high = middle;
  }
  let best = -1,
    distance = Infinity;
  for (let k = Math.max(0, low - 8); k < Math.min(row.length, low + 2); k++) {
    const i = row[k];
    const from = startOf(p, i),
      until = from + durationOf(p, i);
    const off = ns < from ? from - ns : ns > until ? ns - until : 0;
    // Of a cell and a call at one place, the call is meant.
    if (off <= slack && (off < distance || (off === distance && !(p.flags[i] & CELL)))) {
      best = i;
      distance = off;
    }
  }
  return best;
}

// hatch makes a pattern of lines: one direction is a bound, both are "not recorded".
export function hatch(context, color, crossed, scale) {
  const size = 8 * scale;
  const tile = new OffscreenCanvas(size, size);
  const c = tile.getContext("2d");
  c.strokeStyle = color;
  c.lineWidth = scale;
  c.beginPath();
  for (const [x, y, u, v] of [
    [0, size, size, 0],
    [-size / 2, size / 2, size / 2, -size / 2],
    [size / 2, size * 1.5, size * 1.5, size / 2],
  ]) {
    c.moveTo(x, y);
    c.lineTo(u, v);
    if (crossed) {
      c.moveTo(x, size - y);
      c.lineTo(u, size - v);
    }
  }
  c.stroke();
  return context.createPattern(tile, "repeat");
}

// drawRow draws the rectangles of a row into a bitmap whose x is (ns - from) * scale.
export function drawRow(c, p, lane, depth, box, colors) {
  const row = p.rows.get(lane * 256 + depth);
  if (!row) return;
  const { y, height, from, scale } = box;
  for (const i of row) {
    const flags = p.flags[i];
    const x = (startOf(p, i) - from) * scale;
    if (flags & CELL) {
      // The height is the busy share of the bin: 3 % busy does not look like 100 %.
      const width = Math.max(p.bin_ns * scale, 1);
      const tall = Math.max((height * p.busy[i]) / 255, p.calls[i] > 0 ? 1 : 0);
      c.fillStyle = colors(p.name[i]);
      c.fillRect(x, y + height - tall, width, tall);
    } else if (flags & UNFINISHED) {
      c.fillStyle = colors(p.name[i]);
      c.beginPath();
      c.moveTo(x, y);
      c.lineTo(x + 7 * box.dpr, y + height / 2);
      c.lineTo(x, y + height);
      c.fill();
    } else {
      const width = Math.max(durationOf(p, i) * scale, 1);
      c.fillStyle = colors(p.name[i]);
      c.fillRect(x, y, width, height);
      if (width > 3 * box.dpr) {
        c.fillStyle = box.paper;
        c.fillRect(x + width - box.dpr, y, box.dpr, height);
      }
      if (flags & BOUND) {
        c.fillStyle = box.hatched;
        c.fillRect(x, y, width, height);
      }
    }
    if (flags & ERROR) {
      c.fillStyle = box.bad;
      c.fillRect(x, y, Math.max(2 * box.dpr, 1), height);
      c.fillRect(x, y, 6 * box.dpr, 2 * box.dpr);
    }
  }
}

export const colorsOf = (p) => {
  const known = p.names.map(([name]) => colorOf(name));
  return (number) => known[number];
};
