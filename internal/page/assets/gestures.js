// What the pointer and the keys do on the timeline.
import { el, duration, at, count } from "./text.js";
import * as pic from "./picture.js";
import { gutter } from "./layout.js";
import { waitAt } from "./layers.js";

// listen makes the pointer and the wheel move, select and describe.
export function listen(t) {
  const c = t.canvas;
  const place = (e) => {
    const r = c.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top };
  };
  let held = null;
  c.addEventListener("pointerdown", (e) => {
    const p = place(e);
    c.focus({ preventScroll: true });
    held = { ...p, pan: e.shiftKey || e.button === 1, view: t.view, moved: false };
    c.setPointerCapture(e.pointerId);
  });
  c.addEventListener("pointermove", (e) => {
    t.pointer = place(e);
    if (held && Math.abs(t.pointer.x - held.x) + Math.abs(t.pointer.y - held.y) > 4) held.moved = true;
    if (held?.moved && held.pan) {
      const by = (held.x - t.pointer.x) * ((held.view.until - held.view.from) / t.plot);
      t.move(held.view.from + by, held.view.until + by);
    } else if (held?.moved && held.x >= gutter) {
      t.rubber = { x0: held.x, x1: Math.max(gutter, t.pointer.x), y0: held.y, y1: t.pointer.y };
    }
    hover(t, e);
    t.changed();
  });
  c.addEventListener("pointerup", () => {
    const r = t.rubber;
    t.rubber = null;
    if (held && !held.moved) click(t, held.x, held.y);
    else if (held && r)
      t.box(t.ns(Math.min(r.x0, r.x1)), t.ns(Math.max(r.x0, r.x1)), Math.min(r.y0, r.y1), Math.max(r.y0, r.y1));
    held = null;
    t.changed();
  });
  c.addEventListener("pointerleave", () => {
    t.pointer = null;
    t.tip.hidden = true;
    t.changed();
  });
  t.scroller.addEventListener(
    "wheel",
    (e) => {
      if (e.ctrlKey || e.metaKey) t.zoom(Math.exp(e.deltaY * 0.002), place(e).x);
      else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) t.pan((e.deltaX || e.deltaY) / t.plot);
      else return;
      e.preventDefault();
    },
    { passive: false },
  );
  c.addEventListener("dblclick", () => t.zoom(0.25));
}

function click(t, x, y) {
  const hit = t.hit(x, y);
  if (!hit) return;
  const wait = hit.depth < 0 && hit.block.strip && x >= gutter ? waitAt(t, hit.block, hit.ns) : null;
  if (hit.block.kind === "counter") return;
  if (x < gutter || hit.block.kind !== "lane") t.toggle(hit.block);
  else if (wait) t.chooseWait(hit.block, wait);
  else if (hit.rect >= 0) t.choose(hit.block, hit.depth, hit.rect);
  else t.drop();
}

function hover(t, e) {
  const hit = t.hit(t.pointer.x, t.pointer.y);
  const lines = hit && t.pointer.x >= gutter ? describe(t, hit) : null;
  t.tip.hidden = !lines;
  if (!lines) return;
  t.tip.replaceChildren(...lines.map((l) => el("div", {}, l)));
  const room = t.main.getBoundingClientRect();
  t.tip.style.left = `${Math.min(e.clientX - room.left + 14, room.width - 340)}px`;
  t.tip.style.top = `${e.clientY - room.top + 16}px`;
}

// describe are the lines of a tooltip, null for none.
function describe(t, { block, ns, depth, rect }) {
  if (block.kind === "counter") return t.counters.describe(block, ns);
  if (block.kind !== "lane") return null;
  if (rect >= 0) return describeRect(t.picture, rect);
  if (depth < 0 && block.strip) return describeStrip(t, block, ns);
  if (!t.inside(block.lane.pid, ns))
    return ["not recorded", "between two slices of the recording nothing is known of the calls"];
  return null;
}

// handle is what the page's frame calls: keys, a new address, the end.
export function handle(t) {
  const keys = {
    KeyW: () => t.zoom(0.6),
    KeyS: () => t.zoom(1 / 0.6),
    KeyA: () => t.pan(-0.25),
    KeyD: () => t.pan(0.25),
    KeyF: () => t.fit(),
    KeyT: () => t.table(),
    KeyN: () => t.marks.step(1),
    KeyP: () => t.marks.step(-1),
    ArrowLeft: () => t.step(-1),
    ArrowRight: () => t.step(1),
    ArrowUp: () => t.dive(-1),
    ArrowDown: () => t.dive(1),
    BracketLeft: () => t.step(-1, true),
    BracketRight: () => t.step(1, true),
    Escape: () => t.drop(),
    Home: () => t.move(0, t.view.until - t.view.from),
  };
  return {
    keyList: [
      ["W S", "zoom in and out at the pointer"],
      ["A D", "to the left and right"],
      ["F", "the whole recording, or what is selected"],
      ["← →", "the call before and after, in its row"],
      ["↑ ↓", "the call around, or inside"],
      ["[ ]", "the call of the same name before and after"],
      ["T", "what is shown, as a table"],
      ["N P", "the next place of what is marked, and the one before"],
      ["drag", "select a box: what ran in it"],
      ["shift drag", "pan"],
      ["ctrl wheel", "zoom"],
    ],
    key: (event) => {
      const f = keys[event.code];
      if (f) f();
      return Boolean(f);
    },
    move: (query) => {
      t.query = query;
      if (t.laid) t.restore();
    },
    grew: (dataset) => {
      const ended = t.dataset.recording && !dataset.recording;
      t.dataset = dataset;
      t.grew();
      if (ended) t.marks.load();
    },
    close: () => {
      t.stop.abort();
      t.observer.disconnect();
      clearTimeout(t.timer);
      clearTimeout(t.noting);
      delete t.main.timeline;
    },
  };
}

// lasts is how long a call took, as far as that is known.
function lasts(p, i) {
  if (pic.unfinished(p, i)) return "its end was not seen";
  return `${p.flags[i] & pic.BOUND ? "at most " : ""}${duration(pic.durationOf(p, i))}`;
}

// describeRect is what a call or a cell is.
function describeRect(p, i) {
  const [name, layer] = p.names[p.name[i]];
  const flags = p.flags[i];
  if (flags & pic.CELL) {
    const busy = (p.busy[i] / 255) * p.bin_ns;
    const lines = [
      `${count(p.calls[i])} calls begin here, shorter than ${duration(p.bin_ns)}`,
      `busy ${duration(busy)}, ${Math.round((100 * p.busy[i]) / 255)} % of the bin`,
    ];
    if (p.calls[i] > 0 || p.busy[i] > 0)
      lines.push(`${p.share[i] >= 254 ? "all" : `${Math.floor((100 * p.share[i]) / 255)} % or more`} ${name}`);
    if (flags & pic.DEEPER) lines.push("all depths from 64 on");
    if (flags & pic.ERROR) lines.push("at least one threw or failed");
    return lines;
  }
  const lines = [name, `${layer} · ${lasts(p, i)}`];
  if (flags & pic.ERROR) lines.push("threw or failed");
  lines.push(`begins at ${at(pic.startOf(p, i), Math.max(p.unit_ns, 1))}`);
  return lines;
}

function describeStrip(t, block, ns) {
  const of = block.lane.thread;
  const s = t.strips;
  const wait = s?.waits.find((w) => w.t === of && ns >= w.at && ns <= w.at + w.ns);
  if (wait) {
    const lines = [
      `waited ${duration(wait.ns)}${wait.cause ? `: ${wait.cause}` : ""}${wait.syscall ? ` ${wait.syscall}` : ""}`,
    ];
    if (wait.ready > 0) lines.push(`of it ${duration(wait.ready)} ready to run, without a CPU`);
    if (wait.waker) lines.push(`ended by thread ${wait.waker}`);
    return lines;
  }
  const bin = s?.bins.find((b) => b.t === of && ns >= b.at && ns < b.at + s.bin_ns);
  if (!bin) return null;
  return [
    `samples of ${duration(s.bin_ns)} represent`,
    `${duration(bin.cpu)} on a CPU`,
    `${duration(bin.wait)} in waits shorter than that`,
  ];
}
