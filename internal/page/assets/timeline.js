// Timeline: process, thread, depth. The server decides how much is drawn; a picture of three screens' width is drawn
// once, and panning and zooming move and stretch it until the sharp one is there.
import { json, bytes } from "./api.js";
import { el, duration, count, announce } from "./text.js";
import * as pic from "./picture.js";
import { layOut, depthAt, keyOf, gutter, ruler } from "./layout.js";
import { listen, handle } from "./gestures.js";
import { inspector } from "./inspector.js";
import { paintFrame } from "./paint.js";
import { Marks, Flows, Counters } from "./layers.js";
import { picture } from "./table.js";

// A recording that is being made is shown whole while it is so short; later its end is.
const mostWhole = 60e9;

export const margin = 1; // screens drawn to the left and to the right

export function timeline(page) {
  const t = new Timeline(page);
  page.main.timeline = t; // for tests, and for who looks into it with the browser's tools
  t.start();
  return handle(t);
}

class Timeline {
  constructor({ main, dataset, query, remember, go }) {
    Object.assign(this, { main, dataset, remember, go });
    this.query = query;
    this.view = { from: 0, until: 1 };
    this.open = { lanes: new Set(), closed: new Set() };
    this.lanes = [];
    this.layout = { blocks: [], height: ruler };
    this.picture = null; // as the server sent it
    this.strips = null;
    this.steps = null;
    this.scene = null; // drawn
    this.selection = null; // {from, until, keys}
    this.chosen = null; // {lane, depth, start, duration, id}
    this.stop = new AbortController();
    this.request = null;
    this.pointer = null;
    this.dirty = true;
    this.marks = new Marks(this);
    this.flows = new Flows(this);
    this.counters = new Counters(this);
  }

  start() {
    this.canvas = el("canvas", {
      tabindex: 0,
      role: "img",
      "aria-label": "timeline",
      "aria-describedby": "timeline-about",
    });
    this.space = el("div", { class: "space" });
    this.scroller = el("div", { class: "scroller" }, this.canvas, this.space);
    this.about = el("p", { id: "timeline-about", class: "about" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.inspector = inspector(this);
    const tool = (label, title, f) => el("button", { type: "button", class: "small", title, onclick: f }, label);
    this.main.append(
      el(
        "div",
        { class: "tools" },
        tool("whole", "key F: the whole recording, or what is selected", () => this.fit()),
        tool("+", "key W: zoom in", () => this.zoom(0.5)),
        tool("−", "key S: zoom out", () => this.zoom(2)),
        tool("table", "key T: what is shown, as a table", () => this.table()),
        this.marks.node,
        picture(() => this.canvas, "timeline"),
        this.about,
      ),
      this.scroller,
      this.inspector.node,
      this.tip,
    );
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.scroller);
    this.resize(); // the lanes may come before the observer's first call
    this.scroller.addEventListener("scroll", () => {
      this.changed();
      this.wanted();
    });
    listen(this);
    matchMedia("(prefers-color-scheme: dark)").addEventListener(
      "change",
      () => {
        this.scene = null;
        this.changed();
      },
      { signal: this.stop.signal },
    );
    this.load(true);
    const frame = () => {
      if (this.stop.signal.aborted) return;
      if (this.dirty) paintFrame(this);
      this.dirty = false;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  changed() {
    this.dirty = true;
  }

  // load asks for the lanes, again and again until the recording is read.
  async load(first) {
    try {
      const laid = await json("/api/lanes", { signal: this.stop.signal });
      this.laid = laid;
      this.lanes = laid.lanes;
      if (first) this.restore();
      if (first) this.counters.load();
      if (this.linked) this.chooseLinked();
      if (this.lanes.length === 0 && laid.done)
        this.say("This recording has no calls and no samples: nothing can be drawn.");
      else if (laid.problem) this.say(`Only a part of the calls could be read: ${laid.problem}`);
      else if (!laid.done)
        this.say(
          `partial: ${Math.floor((100 * laid.rows) / Math.max(laid.total, 1))} % of ${count(laid.total)} calls are read`,
        );
      else this.say(this.facts());
      if (!this.chosenOpen && this.lanes.some((l) => l.calls > 0)) this.openSome();
      this.layOut();
      if (!laid.done && !laid.problem) {
        setTimeout(() => !this.stop.signal.aborted && this.load(false), 250);
        this.wanted(true);
      } else {
        this.wanted(true);
        this.loadSteps();
        if (!this.dataset.recording) this.marks.load(); // else when somebody turns to them: a report takes the job's CPU
      }
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message);
    }
  }

  // grew takes the recording as it is now. The view stays where it is; at the end it goes along, as near as it is.
  async grew() {
    if (!this.laid || this.growing) return;
    this.growing = true;
    try {
      const laid = await json("/api/lanes", { signal: this.stop.signal });
      const before = this.laid;
      const shift = Number(BigInt(before.base_ns) - BigInt(laid.base_ns)); // of all times, where rows begin earlier now
      this.laid = laid;
      this.lanes = laid.lanes;
      this.shift(shift);
      const end = before.span_ns + shift,
        size = this.view.until - this.view.from;
      const atEnd = this.view.until >= end - size * 0.02;
      const whole = this.view.from <= 0 && size < mostWhole;
      if (!this.chosenOpen && this.lanes.some((l) => l.calls > 0)) this.openSome();
      this.layOut();
      this.asked = null;
      if (atEnd && whole && before.span_ns > 0) this.move(0, Math.min(laid.span_ns, mostWhole) * 1.002);
      else if (atEnd) this.move(laid.span_ns * 1.002 - Math.max(size, 1e6), laid.span_ns * 1.002);
      this.counters.load();
      this.wanted(true);
      this.loadSteps();
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message);
    } finally {
      this.growing = false;
    }
  }

  // shift moves all that has a time, since the recording's first row is another one.
  shift(by) {
    if (by === 0) return;
    for (const r of [this.view, this.selection].filter(Boolean)) {
      r.from += by;
      r.until += by;
    }
    if (this.picture) this.picture.from_ns += by;
    if (this.chosen) this.chosen.start += by;
    this.strips = this.steps = null;
    this.marks.choose(this.marks.link ?? "", false);
    this.flows.drop();
  }

  facts() {
    const l = this.laid;
    const p = this.picture;
    const parts = [`${count(l.total)} calls in ${duration(l.span_ns)}`];
    if (l.not_drawn) parts.push(`${count(l.not_drawn)} with times far from the others are not drawn`);
    if (p?.coarsened > 0)
      parts.push(
        `drawn in bins of ${duration(p.bin_ns)}, ${p.coarsened} level${p.coarsened > 1 ? "s" : ""} coarser than the screen`,
      );
    else if (p) parts.push(`bins of ${duration(p.bin_ns)}`);
    if (this.strips?.recorded.length) parts.push("cross-hatched: calls were not recorded");
    return parts.join(" · ");
  }

  say(text) {
    this.about.textContent = text;
  }

  // openSome opens the lanes that a reader wants first: the busiest, as many as a screen takes.
  openSome() {
    this.chosenOpen = true;
    if (this.open.lanes.size > 0) return;
    let rows = 0;
    for (const lane of [...this.lanes].filter((l) => l.calls > 0).sort((a, b) => b.calls - a.calls)) {
      rows += Math.min(lane.depth, 32);
      if (rows > 40 && this.open.lanes.size > 0) break;
      this.open.lanes.add(keyOf(lane));
    }
  }

  layOut() {
    this.layout = layOut(this.lanes, this.dataset.processes, this.open, this.counters);
    this.space.style.height = `${Math.max(0, this.layout.height - this.height)}px`;
    this.scene = null;
    this.changed();
  }

  resize() {
    const dpr = devicePixelRatio || 1;
    this.dpr = dpr;
    this.width = Math.max(this.scroller.clientWidth, gutter + 50);
    this.height = Math.max(this.scroller.clientHeight, 50);
    this.canvas.width = Math.round(this.width * dpr);
    this.canvas.height = Math.round(this.height * dpr);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.layOut();
    this.wanted();
  }

  // Places.
  get plot() {
    return this.width - gutter;
  }
  x(ns) {
    return gutter + ((ns - this.view.from) / (this.view.until - this.view.from)) * this.plot;
  }
  ns(x) {
    return this.view.from + ((x - gutter) / this.plot) * (this.view.until - this.view.from);
  }
  get perPixel() {
    return (this.view.until - this.view.from) / this.plot;
  }
  block(y) {
    const down = y + this.scroller.scrollTop;
    if (y < ruler) return null;
    return this.layout.blocks.find((b) => down >= b.y && down < b.y + b.height) ?? null;
  }

  // hit is what is drawn at a place of the canvas.
  hit(x, y) {
    const block = this.block(y);
    if (!block) return null;
    const hit = { block, ns: this.ns(x), depth: -1, rect: -1 };
    if (block.kind !== "lane" || x < gutter) return hit;
    hit.depth = depthAt(block, y + this.scroller.scrollTop);
    if (hit.depth >= 0 && hit.depth < block.rows && this.picture)
      hit.rect = pic.find(this.picture, block.lane.number, hit.depth, hit.ns, 3 * this.perPixel);
    return hit;
  }

  // move shows another range; it never gets lost outside of the recording, nor below a nanosecond a pixel.
  move(from, until) {
    const all = Math.max(this.laid?.span_ns ?? 1, 1);
    if (!Number.isFinite(from + until) || from >= until) [from, until] = [0, all]; // a link can say anything
    const least = Math.max(this.plot / 8, 100);
    let size = Math.min(Math.max(until - from, least), all * 1.5);
    let begin = from + (until - from) / 2 - size / 2;
    begin = Math.min(Math.max(begin, -all * 0.25), all * 1.25 - size);
    this.view = { from: begin, until: begin + size };
    this.changed();
    this.wanted();
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.note(), 300);
  }

  zoom(factor, x = this.pointer?.x ?? gutter + this.plot / 2) {
    const about = this.ns(Math.max(x, gutter));
    this.move(about - (about - this.view.from) * factor, about + (this.view.until - about) * factor);
  }

  pan(screens) {
    const by = (this.view.until - this.view.from) * screens;
    this.move(this.view.from + by, this.view.until + by);
  }

  fit() {
    const s =
      this.selection ??
      (this.chosen && this.chosen.duration > 0
        ? { from: this.chosen.start, until: this.chosen.start + this.chosen.duration }
        : null);
    if (!s) this.move(0, this.laid.span_ns * 1.002);
    else this.move(s.from - (s.until - s.from) * 0.1, s.until + (s.until - s.from) * 0.1);
  }

  // note writes the view into the address.
  note() {
    if (this.stop.signal.aborted) return;
    const q = {
      from: `${Math.round(this.view.from)}ns`,
      until: `${Math.round(this.view.until)}ns`,
      open: [...this.open.lanes].join(","),
    };
    if (this.open.closed.size) q.closed = [...this.open.closed].join(",");
    if (this.selection)
      q.box = `${Math.round(this.selection.from)}-${Math.round(this.selection.until)}~${this.selection.keys.join(",")}`;
    if (this.marks.link) q.mark = this.marks.link;
    if (this.counters.open.size) q.counters = [...this.counters.open].join(",");
    if (this.chosen?.id) q.sel = `${this.chosen.key}~${this.chosen.id}`;
    if (this.scroller.scrollTop) q.top = Math.round(this.scroller.scrollTop);
    this.remember(q);
  }

  restore() {
    const q = this.query;
    const time = (name, otherwise) => {
      const match = /^(-?[\d.]+)(ns|us|µs|ms|s)?$/.exec(q.get(name) ?? "");
      return match ? Number(match[1]) * { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 }[match[2] ?? "ns"] : otherwise;
    };
    const whole = Math.max(this.laid.span_ns * 1.002, 1000);
    if (q.get("open") !== null) this.open.lanes = new Set(q.get("open").split(",").filter(Boolean));
    if (q.get("open") !== null) this.chosenOpen = true;
    this.open.closed = new Set((q.get("closed") ?? "").split(",").filter(Boolean));
    const box = /^(-?\d+)-(-?\d+)~(.*)$/.exec(q.get("box") ?? "");
    this.selection = box
      ? { from: Number(box[1]), until: Number(box[2]), keys: box[3].split(",").filter(Boolean) }
      : null;
    this.counters.open = new Set((q.get("counters") ?? "").split(",").filter(Boolean));
    this.layOut();
    const begin = this.dataset.recording ? Math.max(0, whole - mostWhole) : 0;
    this.move(time("from", begin), time("until", whole));
    this.marks.choose(q.get("mark") ?? "", false);
    this.scroller.scrollTop = Number(q.get("top") ?? 0);
    if (this.selection) this.inspector.box(this.selection);
    const sel = /^(.+)~(\d+)$/.exec(q.get("sel") ?? "");
    this.linked = sel ? [sel[1], sel[2]] : null;
    this.chooseLinked();
  }

  // chooseLinked selects the call of a link once its lane has a number.
  chooseLinked() {
    const lane = this.linked && this.laneOf(this.linked[0]);
    if (!lane || (lane.number < 0 && !this.laid.done)) return;
    this.chooseById(...this.linked);
    if (!this.query.get("top")) this.show(lane.number, lane.thread);
    this.linked = null;
  }

  laneOf(key) {
    return this.lanes.find((l) => keyOf(l) === key);
  }

  // wanted asks for a picture where the one at hand does not do, once gestures have paused for a moment.
  wanted(again = false) {
    if (again) this.asked = null;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), this.picture ? 60 : 0);
  }

  visible() {
    const top = this.scroller.scrollTop - this.height / 2,
      bottom = top + 2 * this.height;
    return this.layout.blocks.filter((b) => b.kind === "lane" && b.y + b.height > top && b.y < bottom).slice(0, 250);
  }

  async ask() {
    if (!this.laid || !this.plot || this.stop.signal.aborted) return;
    const size = this.view.until - this.view.from;
    const blocks = this.visible();
    const numbers = blocks.filter((b) => b.lane.number >= 0).map((b) => b.lane.number);
    const threads = blocks.filter((b) => b.lane.sampled).map((b) => b.lane.thread);
    const counters = this.layout.blocks
      .filter((b) => b.kind === "counter" && b.y < this.scroller.scrollTop + 2 * this.height && b.y + b.height > this.scroller.scrollTop - this.height)
      .slice(0, 250)
      .map((b) => b.counter.number);
    const depth = Math.min(65, Math.max(1, ...blocks.map((b) => b.rows)));
    const a = this.asked;
    const covered =
      a &&
      this.view.from >= a.from + size * 0.1 &&
      this.view.until <= a.until - size * 0.1 &&
      Math.abs(Math.log2(size / a.size)) < 0.4 &&
      depth <= a.depth &&
      numbers.every((n) => a.numbers.has(n)) &&
      counters.every((n) => a.counters.has(n)) &&
      threads.every((n) => a.threads.has(n));
    const edge = a && Math.abs(Math.log2(size / a.size)) < 0.4 && a.from === this.view.from - size * margin;
    if (covered || (edge && depth <= a.depth && numbers.every((n) => a.numbers.has(n)) && counters.every((n) => a.counters.has(n)))) return;
    const from = Math.floor(this.view.from - size * margin),
      until = Math.ceil(this.view.until + size * margin);
    const asked = {
      from: this.view.from - size * margin,
      until,
      size,
      depth,
      numbers: new Set(numbers),
      threads: new Set(threads),
      counters: new Set(counters),
    };
    this.asked = asked;
    this.request?.abort();
    this.request = new AbortController();
    const signal = AbortSignal.any([this.request.signal, this.stop.signal]);
    const range = `from=${from}&until=${until}&pixels=${Math.round(this.plot * (1 + 2 * margin))}`;
    try {
      const [packed, strips] = await Promise.all([
        numbers.length ? bytes(`/api/timeline?${range}&lanes=${numbers}&depth=${depth}`, { signal }) : null,
        json(`/api/strips?${range}&threads=${threads}`, { signal }),
        this.counters.ask(range, counters, signal),
      ]);
      this.picture = packed ? pic.unpack(packed, numbers) : null;
      this.strips = strips;
      if (this.laid.done && !this.laid.problem)
        this.say(
          this.lanes.length ? this.facts() : "This recording has no calls and no samples: nothing can be drawn.",
        );
      this.scene = null;
      this.changed();
      await this.marks.ask(from, until);
      if (signal.aborted) return;
      this.main.dataset.drawn = this.laid.done ? "yes" : "partial";
      if (this.laid.done && this.stepsFor !== range) this.loadSteps();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (this.asked === asked) this.asked = null;
      this.say(error.message);
    }
  }

  async loadSteps() {
    try {
      const size = this.view.until - this.view.from;
      this.steps = await json(
        `/api/steps?from=${Math.floor(this.view.from - size)}&until=${Math.ceil(this.view.until + size)}`,
        { signal: this.stop.signal },
      );
      this.changed();
    } catch {
      /* the ruler goes without steps */
    }
  }

  toggle(block) {
    if (block.kind === "process") flip(this.open.closed, block.of);
    else if (block.kind === "source") flip(this.counters.open, block.source);
    else flip(this.open.lanes, block.key);
    this.layOut();
    this.wanted();
    this.note();
  }

  // choose selects the call of a rectangle; a cell is zoomed into.
  async choose(block, depth, i) {
    const p = this.picture;
    if (p.flags[i] & pic.CELL) {
      const from = pic.startOf(p, i);
      this.move(from - p.bin_ns, from + 2 * p.bin_ns);
      announce(`${count(p.calls[i])} calls: zoomed in`);
      return;
    }
    this.selection = null;
    const known = {
      key: block.key,
      lane: block.lane.number,
      depth,
      start: pic.startOf(p, i),
      duration: pic.durationOf(p, i),
      name: p.names[p.name[i]][0],
    };
    this.chosen = known;
    this.changed();
    announce(`${known.name}, ${duration(known.duration)}`);
    const ask = `/api/call?lane=${known.lane}&at=${Math.round(known.start)}&unit=${p.unit_ns}&duration=${Math.round(known.duration)}`;
    await this.inspect(ask, known);
  }

  async chooseById(key, id) {
    const lane = this.laneOf(key);
    if (!lane || lane.number < 0) return;
    this.chosen = { key, lane: lane.number, depth: -1, start: 0, duration: 0, name: "" };
    await this.inspect(`/api/call?lane=${lane.number}&at=0&unit=1&id=${id}`, this.chosen);
  }

  async inspect(ask, known) {
    try {
      const call = await json(ask, { signal: this.stop.signal });
      if (this.chosen !== known) return;
      known.id = call.span_id;
      known.start = call.start_ns;
      known.duration = Number(call.fields.find(([k]) => k === "duration_ns")?.[1] ?? 0);
      known.name = call.fields.find(([k]) => k === "name")?.[1] ?? known.name;
      this.inspector.call(call, known);
      this.changed();
      this.note();
      this.inspector.flows(this.flows.list(await this.flows.load(known)));
    } catch (error) {
      if (error.name !== "AbortError") this.inspector.fail(error.message);
    }
  }

  // chooseWait selects a wait of a thread's strip, and leads to who ended it.
  chooseWait(block, wait) {
    this.selection = this.chosen = null;
    this.flows.drop();
    const mine = { lane: block.lane.number, thread: block.lane.thread, start: wait.at + wait.ns - wait.ready, duration: wait.ready, strip: true };
    // A thread of the same process comes first: two hosts may have equal tids.
    const threads = this.lanes.filter((l) => l.kind === "thread" && l.tid === wait.waker);
    const waker = threads.find((l) => l.pid === block.lane.pid) ?? threads[0];
    this.flows.of = mine;
    if (waker) {
      const from = { lane: waker.number, thread: waker.thread, start: mine.start, duration: 0, strip: waker.sampled };
      this.flows.edges = [{ ...from, out: false }];
      if (!this.layout.blocks.some((b) => b.kind === "lane" && b.lane === waker)) this.show(waker.number, waker.thread);
    }
    this.inspector.wait(block, wait, waker);
    this.changed();
  }

  // show opens and scrolls to a lane.
  show(number, thread) {
    const lane = this.lanes.find((l) => (number >= 0 ? l.number === number : l.thread === thread));
    if (!lane) return;
    this.open.closed.delete(`${lane.session}/${lane.pid}`);
    if (lane.depth > 1) this.open.lanes.add(keyOf(lane));
    this.layOut();
    const b = this.layout.blocks.find((k) => k.lane === lane);
    const top = this.scroller.scrollTop;
    if (b.y < top + ruler || b.y + Math.min(b.height, this.height / 2) > top + this.height)
      this.scroller.scrollTop = Math.max(0, b.y - this.height / 3);
    this.wanted();
  }

  // jump selects the call at the other end of a flow.
  jump(edge) {
    const lane = this.lanes.find((l) => l.number === edge.lane);
    this.reveal(edge.start, edge.duration ?? 0);
    this.show(edge.lane, -1);
    this.selection = null;
    return this.chooseById(keyOf(lane), edge.span_id);
  }

  // step moves the selection to the call before or after it in its row, or to the next of the same name.
  step(by, sameName) {
    const p = this.picture,
      c = this.chosen;
    if (!p || !c) return this.pan(0.25 * by);
    const block = this.layout.blocks.find((b) => b.key === c.key);
    const depth = c.depth >= 0 ? c.depth : this.depthOf(c);
    const row = (p.rows.get(c.lane * 256 + depth) ?? []).filter(
      (i) => !(p.flags[i] & pic.CELL) && (!sameName || p.names[p.name[i]][0] === c.name),
    );
    const now = row.findIndex((i) => Math.abs(pic.startOf(p, i) - c.start) <= p.unit_ns);
    const next = row[now + by];
    if (now < 0 || next === undefined)
      return announce(sameName ? "no other of this name is drawn here" : "no other call is drawn here");
    this.reveal(pic.startOf(p, next), pic.durationOf(p, next));
    return this.choose(block, depth, next);
  }

  // dive moves the selection to the call around it or the first one inside.
  dive(by) {
    const p = this.picture,
      c = this.chosen;
    if (!p || !c) return;
    const depth = (c.depth >= 0 ? c.depth : this.depthOf(c)) + by;
    const block = this.layout.blocks.find((b) => b.key === c.key);
    const i = (p.rows.get(c.lane * 256 + depth) ?? []).find((k) => {
      const from = pic.startOf(p, k),
        until = from + pic.durationOf(p, k);
      return (
        !(p.flags[k] & pic.CELL) &&
        (by < 0 ? from <= c.start && until >= c.start : from >= c.start && until <= c.start + c.duration + p.unit_ns)
      );
    });
    if (i === undefined) announce(by < 0 ? "nothing is around it" : "no call inside is drawn: zoom in");
    else this.choose(block, depth, i);
  }

  depthOf(c) {
    for (let depth = 0; depth < 65; depth++) {
      const i = pic.find(this.picture, c.lane, depth, c.start, this.picture.unit_ns);
      if (
        i >= 0 &&
        Math.abs(pic.startOf(this.picture, i) - c.start) <= this.picture.unit_ns &&
        this.picture.names[this.picture.name[i]][0] === c.name
      )
        return depth;
    }
    return 0;
  }

  reveal(start, length) {
    const size = this.view.until - this.view.from;
    if (start < this.view.from || start + length > this.view.until)
      this.move(start + length / 2 - size / 2, start + length / 2 + size / 2);
  }

  box(from, until, top, bottom) {
    const down = this.scroller.scrollTop;
    const keys = this.layout.blocks
      .filter((b) => b.kind === "lane" && b.y + b.height > top + down && b.y < bottom + down && b.lane.number >= 0)
      .map((b) => b.key);
    this.chosen = null;
    this.flows.drop();
    this.selection = { from, until, keys };
    this.inspector.box(this.selection);
    this.changed();
    this.note();
  }

  // table shows what is drawn as a table: the calls of the visible lanes and times.
  table() {
    const keys = this.layout.blocks
      .filter((b) => b.kind === "lane" && b.lane.number >= 0)
      .map((b) => b.key)
      .slice(0, 250);
    this.inspector.box({ from: Math.max(0, this.view.from), until: this.view.until, keys }, true);
  }

  drop() {
    this.selection = this.chosen = null;
    this.flows.drop();
    this.inspector.close();
    this.changed();
    this.note();
  }

  // inside says whether calls of a process were recorded at a time.
  inside(pid, ns) {
    const r = this.strips?.recorded.find((x) => x.pid === pid);
    return !r || r.within.some(([from, until]) => ns >= from && ns <= until);
  }
}

function flip(set, key) {
  if (!set.delete(key)) set.add(key);
}
