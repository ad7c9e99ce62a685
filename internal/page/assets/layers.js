// What lies over and below the lanes of the timeline: marked findings and names, the flows of the selection, counters.
import { json } from "./api.js";
import { el, duration, count, digits, announce } from "./text.js";
import { rowAt, gutter, ruler } from "./layout.js";

export const markColor = "#d55e00";

// Marks are the places of a finding, or of a name: a layer of its own, which no level of detail hides.
export class Marks {
  constructor(t) {
    this.t = t;
    this.wanted = null; // {text, query, finding?}
    this.places = null;
    this.findings = [];
    this.choice = el("select", { "aria-label": "mark", onchange: () => this.choose(this.choice.value), onfocus: () => this.load() }, el("option", { value: "" }, "no marks"));
    const tool = (label, title, f) => el("button", { type: "button", class: "small", title, onclick: f }, label);
    this.node = el(
      "span",
      { class: "marks" },
      "mark ",
      this.choice,
      " ",
      tool("‹", "key P: the place before", () => this.step(-1)),
      tool("›", "key N: the next place", () => this.step(1)),
    );
  }

  // load offers the findings of the report; that may take as long as a report takes.
  async load() {
    if (this.loading) return;
    this.loading = true;
    try {
      const report = await json("/api/report", { signal: this.t.stop.signal });
      this.findings = report.findings;
      this.choice.append(
        ...this.findings.map((f, i) =>
          el("option", { value: `finding~${i}` }, `${f.rule.replaceAll("_", " ")}${f.name ? `: ${f.name.slice(0, 60)}` : ""}`),
        ),
      );
      if (this.link) this.choice.value = this.link;
      if (this.wanted) this.wanted.finding = this.findings[this.wanted.number];
      this.t.changed();
    } catch {
      this.loading = false; // the overview says what is wrong with the report
    }
  }

  // choose marks finding~N or name~LAYER~NAME; "" marks nothing.
  choose(link, again = true) {
    this.link = link;
    const finding = /^finding~(\d+)$/.exec(link);
    const name = /^name~([^~]*)~([^]*)$/.exec(link);
    this.places = null;
    this.wanted = null;
    if (finding) this.wanted = { number: Number(finding[1]), finding: this.findings[finding[1]], query: `finding=${finding[1]}` };
    if (name) {
      this.wanted = { text: name[2], query: new URLSearchParams({ name: name[2], layer: name[1] }).toString() };
      if (![...this.choice.options].some((o) => o.value === link)) this.choice.append(el("option", { value: link }, name[2].slice(0, 60)));
    }
    this.choice.value = link;
    this.t.changed();
    if (again) this.t.note();
    if (this.wanted) this.ask(this.t.view.from, this.t.view.until);
  }

  async ask(from, until) {
    if (!this.wanted) return;
    const mine = this.wanted;
    try {
      const range = `from=${Math.floor(from)}&until=${Math.ceil(until)}&pixels=${Math.round(this.t.plot)}`;
      const places = await json(`/api/marked?${mine.query}&${range}`, { signal: this.t.stop.signal });
      if (mine !== this.wanted) return;
      this.places = places;
      announce(places.why || `${count(places.rows)} places in view`);
      if (places.why) this.t.say(places.why);
      this.t.changed();
    } catch (error) {
      if (error.name !== "AbortError") this.t.say(error.message);
    }
  }

  // step shows the place after or before the middle of the view.
  async step(by) {
    const within = this.places?.within;
    if (!within) return announce("nothing is marked");
    const t = this.t;
    const size = t.view.until - t.view.from,
      middle = t.view.from + size / 2;
    const range = by > 0 ? [middle, within.to + 1] : [within.from, middle];
    if (range[1] <= range[0]) return announce("no further place");
    const pixels = Math.max(1, Math.min(100000, Math.round((range[1] - range[0]) / (size / 500))));
    const found = await json(
      `/api/marked?${this.wanted.query}&from=${Math.floor(range[0])}&until=${Math.ceil(range[1])}&pixels=${pixels}`,
      { signal: t.stop.signal },
    );
    const centre = (p) => (p.from + p.to) / 2;
    const rest = found.places.filter((p) => (by > 0 ? centre(p) > middle + size * 0.002 : centre(p) < middle - size * 0.002));
    const next = rest.sort((a, b) => by * (centre(a) - centre(b)))[0];
    if (!next) return announce("no further place");
    t.move(centre(next) - size / 2, centre(next) + size / 2);
    t.show(next.lane, next.thread);
  }

  paint(c, down, colors) {
    const t = this.t;
    if (!this.places) return;
    for (const b of t.layout.blocks) {
      if (b.kind !== "lane" || b.y + b.height < down + ruler || b.y > down + t.height) continue;
      for (const p of this.places.places) {
        const mine = p.lane >= 0 ? p.lane === b.lane.number : p.thread === b.lane.thread;
        if (!mine) continue;
        const from = t.x(p.from),
          until = Math.max(t.x(p.to), from + 2);
        if (until < gutter || from > t.width) continue;
        const y = b.y - down;
        c.fillStyle = markColor;
        c.globalAlpha = 0.1;
        c.fillRect(from, y, until - from, b.height - 6);
        c.globalAlpha = 1;
        c.fillRect(from, y, until - from, 2);
        c.fillRect(from, y, 1.5, 6);
        c.fillRect(until - 1.5, y, 1.5, 6);
      }
    }
    c.fillStyle = colors.ink;
  }

  // saved draws on a step what the finding would save of it, shaded by its interval.
  saved(c, from, until, nsPerPixel) {
    const f = this.wanted?.finding;
    if (!f || f.headroom_ms === null) return;
    const width = (ms) => Math.min((ms * 1e6) / nsPerPixel, until - from);
    const value = width(f.headroom_ms),
      most = width(f.hi_ms ?? f.headroom_hi_ms ?? f.headroom_ms),
      least = width(f.lo_ms ?? f.headroom_lo_ms ?? f.headroom_ms);
    c.fillStyle = markColor;
    for (const [w, alpha] of [
      [most, 0.25],
      [value, 0.35],
      [least, 0.4],
    ]) {
      c.globalAlpha = alpha;
      c.fillRect(until - w, 30, w, 6);
    }
    c.globalAlpha = 1;
  }
}

// Flows are what led to the selected call, and what it led to.
export class Flows {
  constructor(t) {
    this.t = t;
    this.edges = [];
    this.of = null;
  }

  drop() {
    this.edges = [];
    this.of = null;
    this.t.changed();
  }

  async load(known) {
    this.drop();
    try {
      const d = await json(`/api/flows?lane=${known.lane}&id=${known.id}`, { signal: this.t.stop.signal });
      if (this.t.chosen !== known) return null;
      this.of = known;
      this.edges = d.edges.filter((e) => e.lane >= 0);
      this.t.changed();
      return d;
    } catch (error) {
      if (error.name === "AbortError") return null;
      return { edges: [], error: error.message };
    }
  }

  // list are the edges as a table.
  list(d) {
    if (!d || (d.edges.length === 0 && !d.error)) return null;
    if (d.error) return el("p", { class: "failed" }, d.error);
    return el(
      "div",
      {},
      el("h3", {}, `Flows${d.has_more ? " (the first 200)" : ""}`),
      el(
        "table",
        { class: "flows" },
        el(
          "tbody",
          {},
          ...d.edges.map((e) =>
            el(
              "tr",
              {},
              el("td", {}, e.out ? "leads to" : "comes from"),
              el(
                "th",
                { scope: "row" },
                e.lane >= 0
                  ? el("button", { type: "button", class: "link", onclick: () => this.t.jump(e) }, e.name)
                  : e.name,
              ),
              el("td", {}, e.kind.replaceAll("_", " ")),
              el("td", { class: "number" }, e.duration === null ? "its end was not seen" : duration(e.duration)),
              el("td", { class: "number" }, `${e.start >= this.of.start ? "+" : "−"}${duration(Math.abs(e.start - this.of.start))}`),
            ),
          ),
        ),
      ),
    );
  }

  paint(c, down) {
    const t = this.t;
    const from = this.of && this.place(this.of, down);
    if (!from) return;
    c.lineWidth = 1.5;
    c.strokeStyle = c.fillStyle = markColor;
    for (const e of this.edges) {
      const to = this.place({ ...e, duration: e.duration ?? 0 }, down);
      if (!to) continue;
      const [a, b] = e.out ? [from, to] : [to, from];
      // From where the cause begins, or ends if that is before the effect, to where the effect begins.
      const x0 = a.until <= b.from ? a.until : a.from;
      arrow(c, x0, a.y, b.from, b.y);
    }
    c.fillStyle = "#000";
  }

  place(call, down) {
    const t = this.t;
    const b = t.layout.blocks.find((k) => k.kind === "lane" && (call.lane >= 0 ? k.lane.number === call.lane : k.lane.thread === call.thread));
    if (!b) return null;
    const strip = call.strip === true;
    let depth = 0;
    if (!strip && t.picture && call.name) depth = Math.max(0, Math.min(t.depthOf(call), b.rows - 1));
    const row = strip ? { y: b.y, height: b.strip } : rowAt(b, depth);
    return { from: t.x(call.start), until: t.x(call.start + (call.duration ?? 0)), y: row.y - down + row.height / 2 };
  }
}

function arrow(c, x0, y0, x1, y1) {
  const bend = Math.max(12, Math.min(80, Math.abs(x1 - x0) / 2));
  c.beginPath();
  c.moveTo(x0, y0);
  c.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  c.stroke();
  c.beginPath();
  c.moveTo(x1, y1);
  c.lineTo(x1 - 7, y1 - 4);
  c.lineTo(x1 - 7, y1 + 4);
  c.fill();
}

// Counters are lanes of the machine's and the devices' readings, by source, closed at first.
export class Counters {
  constructor(t) {
    this.t = t;
    this.all = [];
    this.open = new Set();
    this.bins = new Map();
  }

  async load() {
    try {
      this.all = await json("/api/counters", { signal: this.t.stop.signal });
      this.t.layOut();
      this.t.wanted(true);
    } catch {
      /* the timeline goes without counters */
    }
  }

  async ask(range, numbers, signal) {
    this.numbers = numbers;
    if (numbers.length === 0) return;
    const d = await json(`/api/readings?${range}&lanes=${numbers}`, { signal });
    const bins = new Map();
    for (const b of d.bins) {
      if (!bins.has(b.c)) bins.set(b.c, []);
      bins.get(b.c).push(b);
    }
    this.bins = bins;
    this.t.changed();
  }

  paint(c, b, down, colors) {
    const t = this.t;
    const bins = this.bins.get(b.counter.number);
    const y = b.y - down,
      height = b.height - 6;
    c.fillStyle = colors.lane;
    c.fillRect(gutter, y, t.plot, height);
    if (!bins) return;
    const [least, most] = limits(b.counter);
    const at = (v) => y + height - 1 - ((height - 3) * (v - least)) / (most - least || 1);
    c.strokeStyle = colors.accent;
    c.fillStyle = colors.accent;
    c.lineWidth = 1.2;
    c.beginPath();
    let last = null;
    for (const r of bins) {
      const x = t.x(r.at);
      if (last === null) c.moveTo(x, at(r.hi));
      else {
        // A gauge is what it was until it is read again; the others are of the time before the reading.
        const flat = b.counter.kind === "gauge" ? at(last.hi) : at(r.hi);
        c.lineTo(b.counter.kind === "gauge" ? x : t.x(last.at), flat);
        c.lineTo(x, at(r.hi));
      }
      if (r.hi > r.lo) c.fillRect(x - 0.5, at(r.hi), 1, Math.max(at(r.lo) - at(r.hi), 1));
      last = r;
    }
    c.stroke();
  }

  describe(b, ns) {
    const bins = this.bins.get(b.counter.number) ?? [];
    const r = b.counter.kind === "gauge" ? bins.findLast((x) => x.at <= ns) : bins.find((x) => x.at >= ns);
    const name = `${b.counter.name} ${b.counter.device}`.trim();
    if (!r) return [name, "no reading here"];
    const text = r.lo === r.hi ? value(b.counter, r.hi) : `${value(b.counter, r.lo)} to ${value(b.counter, r.hi)}`;
    return [name, `${text} (${b.counter.kind})`, b.counter.scope].filter(Boolean);
  }
}

// limits are those of a lane: from nothing on where that is near.
function limits(k) {
  const most = k.most ?? 1,
    least = k.least ?? 0;
  return least >= 0 && least < most * 0.9 ? [0, most] : [least, most === least ? least + 1 : most];
}

export function value(k, v) {
  if (k.unit === "ns") return duration(v);
  if (k.unit === "bytes" || k.unit === "bytes_per_second") {
    const [unit, of] = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]].find(([, n]) => Math.abs(v) >= n) ?? ["B", 1];
    return `${digits(v / of)} ${unit}${k.unit === "bytes" ? "" : "/s"}`;
  }
  return `${digits(v)} ${{ percent: "%", count: "", flag: "" }[k.unit] ?? k.unit}`.trim();
}

// waitAt is the wait of a thread's strip at a time.
export const waitAt = (t, block, ns) =>
  t.strips?.waits.find((w) => w.t === block.lane.thread && ns >= w.at - 2 * t.perPixel && ns <= w.at + w.ns + 2 * t.perPixel);

