// Painting a frame of the timeline: the bitmap of the lanes, then everything that has text or follows the pointer.
import { at, duration } from "./text.js";
import * as pic from "./picture.js";
import { rowAt, gutter, ruler } from "./layout.js";
import { value } from "./layers.js";
import { margin } from "./timeline.js";

const font = "12px system-ui, 'DejaVu Sans', sans-serif";

function style(node) {
  const s = getComputedStyle(node);
  const v = (name) => s.getPropertyValue(name).trim();
  return {
    paper: v("--paper"),
    lane: v("--lane"),
    ink: v("--ink"),
    soft: v("--soft"),
    line: v("--line"),
    panel: v("--panel"),
    accent: v("--accent"),
    bad: v("--bad"),
    cpu: v("--cpu"),
    wait: v("--wait"),
    ready: v("--ready"),
  };
}

// makeScene draws the lanes near the screen, three screens wide, once.
function makeScene(t, colors) {
  const size = t.view.until - t.view.from;
  const from = t.view.from - size * margin;
  const wide = Math.min(t.plot * (1 + 2 * margin) * t.dpr, 8192);
  const scale = wide / (size * (1 + 2 * margin));
  const blocks = t.visible();
  const top = blocks.length ? blocks[0].y : 0;
  const bottom = blocks.length ? blocks.at(-1).y + blocks.at(-1).height : 1;
  const bitmap = new OffscreenCanvas(
    Math.ceil(wide),
    Math.max(1, Math.ceil(Math.min(bottom - top, 4 * t.height) * t.dpr)),
  );
  const c = bitmap.getContext("2d");
  const crossed = pic.hatch(c, colors.line, true, t.dpr),
    hatched = pic.hatch(c, "rgba(0,0,0,.55)", false, t.dpr);
  const names = t.picture ? pic.colorsOf(t.picture) : null;
  const x = (ns) => (ns - from) * scale;
  for (const b of blocks) {
    const y = (b.y - top) * t.dpr;
    if (b.rows > 0) unknown(c, t, b, top, x, crossed, bitmap.width);
    if (b.strip) strip(c, t, b, y, x, colors);
    if (!t.picture) continue;
    for (let depth = 0; depth < b.rows; depth++) {
      const row = rowAt(b, depth);
      pic.drawRow(
        c,
        t.picture,
        b.lane.number,
        depth,
        {
          y: (row.y - top) * t.dpr,
          height: row.height * t.dpr,
          from,
          scale,
          dpr: t.dpr,
          paper: colors.lane,
          hatched,
          bad: colors.bad,
        },
        names,
      );
    }
  }
  return { bitmap, from, until: from + size * (1 + 2 * margin), top, blocks };
}

// unknown cross-hatches the time in which the calls of a process were not recorded.
function unknown(c, t, b, top, x, crossed, width) {
  const r = t.strips?.recorded.find((k) => k.pid === b.lane.pid);
  if (!r || b.lane.kind === "stream") return;
  const y = (b.top - top) * t.dpr,
    height = (b.y + b.height - 6 - b.top) * t.dpr;
  const end = x(t.laid.span_ns);
  let at = Math.max(0, x(0));
  c.fillStyle = crossed;
  for (const [from, until] of [...r.within, [Infinity, Infinity]]) {
    const to = Math.min(x(from), end, width);
    if (to > at) c.fillRect(at, y, to - at, height);
    at = Math.max(at, x(until));
  }
}

// strip draws when a thread was on a CPU, waited, and waited for a CPU.
function strip(c, t, b, y, x, colors) {
  const s = t.strips;
  if (!s) return;
  const height = (b.strip - 2) * t.dpr;
  const of = b.lane.thread;
  for (const w of s.waits) {
    if (w.t !== of) continue;
    const from = x(w.at),
      until = x(w.at + w.ns),
      ready = x(w.at + w.ns - w.ready);
    c.fillStyle = colors.wait;
    c.fillRect(from, y + height * 0.35, Math.max(ready - from, 0.5), height * 0.3);
    if (w.ready > 0) {
      c.fillStyle = colors.ready;
      c.fillRect(ready, y + height * 0.2, Math.max(until - ready, 0.5), height * 0.6);
    }
  }
  const wide = Math.max(x(s.bin_ns) - x(0), t.dpr);
  for (const k of s.bins) {
    if (k.t !== of) continue;
    const cpu = Math.min(1, k.cpu / s.bin_ns),
      wait = Math.min(1 - cpu, k.wait / s.bin_ns);
    c.fillStyle = colors.wait;
    if (wait > 0) c.fillRect(x(k.at), y + height * (1 - cpu - wait), wide, Math.max(height * wait, 0.5));
    c.fillStyle = colors.cpu;
    if (cpu > 0) c.fillRect(x(k.at), y + height * (1 - cpu), wide, Math.max(height * cpu, 1));
  }
}

export function paintFrame(t) {
  if (!t.width || !t.laid) return;
  const colors = style(t.main);
  t.scene ??= makeScene(t, colors);
  const c = t.canvas.getContext("2d");
  c.setTransform(t.dpr, 0, 0, t.dpr, 0, 0);
  c.fillStyle = colors.paper;
  c.fillRect(0, 0, t.width, t.height);
  const down = t.scroller.scrollTop;
  const s = t.scene;
  const step = tick(t);
  c.fillStyle = colors.line;
  for (let ns = Math.ceil(t.view.from / step) * step; ns < t.view.until; ns += step)
    c.fillRect(t.x(ns), ruler, 1, t.height);
  c.save();
  c.beginPath();
  c.rect(gutter, ruler, t.plot, t.height - ruler);
  c.clip();
  const x0 = t.x(s.from),
    x1 = t.x(s.until);
  c.imageSmoothingEnabled = false;
  c.drawImage(s.bitmap, x0, s.top - down, x1 - x0, s.bitmap.height / t.dpr);
  texts(c, t, colors, down);
  for (const b of t.layout.blocks)
    if (b.kind === "counter" && b.y + b.height > down + ruler && b.y < down + t.height) t.counters.paint(c, b, down, colors);
  t.marks.paint(c, down, colors);
  marks(c, t, colors, down);
  t.flows.paint(c, down);
  c.restore();
  names(c, t, colors, down);
  scale(c, t, colors);
  if (t.pointer && t.pointer.x > gutter) {
    c.fillStyle = colors.soft;
    c.fillRect(t.pointer.x, 0, 0.5, t.height);
  }
}

// texts are the names of calls that are wide enough.
function texts(c, t, colors, down) {
  const p = t.picture;
  if (!p) return;
  c.font = font;
  c.fillStyle = "#10161d";
  c.textBaseline = "middle";
  for (const b of t.layout.blocks) {
    if (b.kind !== "lane" || b.y + b.height < down + ruler || b.y > down + t.height) continue;
    for (let depth = 0; depth < Math.min(b.rows, 32); depth++) {
      const { y, height } = rowAt(b, depth);
      for (const i of p.rows.get(b.lane.number * 256 + depth) ?? []) {
        if (p.flags[i] & (pic.CELL | pic.UNFINISHED)) continue;
        const from = Math.max(t.x(pic.startOf(p, i)), gutter),
          until = Math.min(t.x(pic.startOf(p, i) + pic.durationOf(p, i)), t.width);
        if (until - from < 26) continue;
        c.fillText(fitted(c, p.names[p.name[i]][0], until - from - 6), from + 3, y - down + height / 2 + 0.5);
      }
    }
  }
}

const widths = new Map();

// fitted cuts a text where there is no room for it.
function fitted(c, text, room) {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > 5000) widths.clear();
    widths.set(text, (width = c.measureText(text).width));
  }
  if (width <= room) return text;
  const letters = Math.floor((text.length * room) / width) - 1;
  return letters < 2 ? "" : `${text.slice(0, letters)}…`;
}

// marks are the selected call, the box, and the one that is being drawn.
function marks(c, t, colors, down) {
  const k = t.chosen;
  const block = k && t.layout.blocks.find((b) => b.key === k.key);
  if (block) {
    if (k.depth < 0 && t.picture) k.depth = t.depthOf(k);
    const { y, height } = rowAt(block, Math.max(0, Math.min(k.depth, block.rows - 1)));
    const from = t.x(k.start),
      until = Math.max(t.x(k.start + k.duration), from + 2);
    c.strokeStyle = colors.ink;
    c.lineWidth = 2;
    c.strokeRect(from - 1, y - down - 1, until - from + 2, height + 2);
  }
  const s = t.selection;
  if (s) {
    c.fillStyle = colors.accent;
    c.globalAlpha = 0.14;
    const from = t.x(s.from),
      until = t.x(s.until);
    for (const b of t.layout.blocks)
      if (s.keys.includes(b.key)) c.fillRect(from, b.y - down, until - from, b.height - 2);
    c.globalAlpha = 1;
    c.fillRect(from, ruler, 1, t.height);
    c.fillRect(until, ruler, 1, t.height);
  }
  const r = t.rubber;
  if (r) {
    c.strokeStyle = colors.accent;
    c.lineWidth = 1;
    c.strokeRect(Math.min(r.x0, r.x1), Math.min(r.y0, r.y1), Math.abs(r.x1 - r.x0), Math.abs(r.y1 - r.y0));
    c.fillStyle = colors.ink;
    c.font = font;
    c.fillText(duration(Math.abs(t.ns(r.x1) - t.ns(r.x0))), Math.max(r.x0, r.x1) + 4, Math.max(r.y0, r.y1));
  }
}

function names(c, t, colors, down) {
  c.fillStyle = colors.panel;
  c.fillRect(0, ruler, gutter, t.height - ruler);
  c.font = font;
  c.textBaseline = "middle";
  c.save();
  c.beginPath();
  c.rect(0, ruler, t.width, t.height);
  c.clip();
  for (const b of t.layout.blocks) {
    const y = b.y - down;
    if (y + b.height < ruler || y > t.height) continue;
    if (b.kind === "process" || b.kind === "source") {
      c.fillStyle = colors.panel;
      c.fillRect(0, y, t.width, b.height);
      c.fillStyle = colors.ink;
      c.fillText(`${(b.kind === "source" ? !b.expanded : t.open.closed.has(b.of)) ? "▸" : "▾"} ${fitted(c, b.text, t.width - 40)}`, 6, y + b.height / 2);
      continue;
    }
    c.fillStyle = colors.ink;
    if (b.kind === "counter") {
      c.fillText(fitted(c, b.text, gutter - 24), 14, y + 9);
      c.fillStyle = colors.soft;
      c.fillText(fitted(c, `up to ${value(b.counter, b.counter.most ?? 0)}`, gutter - 24), 14, y + 23);
      c.fillStyle = colors.line;
      c.fillRect(0, y + b.height - 3, t.width, 0.5);
      continue;
    }
    const sign = b.lane.depth > 1 ? (b.expanded ? "▾" : "▸") : " ";
    c.fillText(`${sign} ${fitted(c, b.text, gutter - 40)}`, 14, y + 10);
    c.fillStyle = colors.line;
    c.fillRect(0, y + b.height - 3, t.width, 0.5);
  }
  c.restore();
}

// tick is the distance of the scale's times.
function tick(t) {
  const rough = t.perPixel * 110;
  const power = 10 ** Math.floor(Math.log10(rough));
  return Math.max(1, [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough) ?? 10 * power);
}

// scale draws the times and the steps.
function scale(c, t, colors) {
  c.fillStyle = colors.paper;
  c.fillRect(0, 0, t.width, ruler);
  c.font = font;
  c.textBaseline = "middle";
  const step = tick(t);
  c.fillStyle = colors.soft;
  for (let ns = Math.ceil(t.view.from / step) * step; ns < t.view.until; ns += step) {
    const x = t.x(ns);
    c.fillStyle = colors.line;
    c.fillRect(x, 2, 1, 16);
    c.fillStyle = colors.soft;
    c.fillText(at(ns, step), x + 3, 10);
  }
  steps(c, t, colors);
  c.fillStyle = colors.soft;
  c.fillText(`${duration(t.view.until - t.view.from)} shown`, 8, 10);
  minimap(c, t, colors);
}

function steps(c, t, colors) {
  const s = t.steps;
  if (!s) return;
  c.save();
  c.beginPath();
  c.rect(gutter, 0, t.plot, ruler);
  c.clip();
  if (s.has_more) {
    c.fillStyle = colors.soft;
    c.fillText(`${s.total} steps: zoom in to see them`, gutter + 4, 29);
  }
  s.begin_ns.forEach((ns, i) => {
    const from = t.x(ns),
      until = t.x(s.end_ns[i]);
    if (until < gutter || from > t.width) return;
    c.fillStyle = s.kind[i] === "warmup" ? colors.line : s.ids[i] % 2 ? colors.cpu : colors.accent;
    c.globalAlpha = 0.45;
    c.fillRect(from, 22, Math.max(until - from - 1, 0.5), 14);
    c.globalAlpha = 1;
    if (s.kind[i] !== "warmup") t.marks.saved(c, from, until - 1, t.perPixel);
    if (until - from > 40) {
      c.fillStyle = colors.ink;
      c.fillText(
        fitted(c, `step ${s.ids[i]}: ${duration(s.end_ns[i] - ns)}`, until - Math.max(from, gutter) - 6),
        Math.max(from, gutter) + 3,
        29,
      );
    }
  });
  c.restore();
}

// minimap shows where in the recording the view is.
function minimap(c, t, colors) {
  const all = Math.max(t.laid.span_ns, 1),
    room = gutter - 16;
  c.fillStyle = colors.line;
  c.fillRect(8, 24, room, 8);
  c.fillStyle = colors.accent;
  const from = Math.max(0, t.view.from / all),
    until = Math.min(1, t.view.until / all);
  c.fillRect(8 + room * from, 24, Math.max(2, room * (until - from)), 8);
}
