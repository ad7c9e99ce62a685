// Job map: ranks from top to bottom, times or steps from left to right. The server draws the part that is in view, a byte
// a cell; colours are the browser's, so that another scale asks for nothing.
import { json, bytes } from "./api.js";
import { el, duration, percent, count, digits, at, announce, command } from "./text.js";
import { quoted } from "./overview.js";
import { picture } from "./table.js";

const gutter = 110,
  top = 22;
const metrics = [
  ["off", "own time against the median of all ranks"],
  ["period", "length of the step"],
  ["wait", "share of waiting for other ranks"],
  ["load", "share of loading data"],
];

export function map(page) {
  const m = new JobMap(page);
  page.main.map = m; // for tests
  m.start();
  return {
    keyList: [
      ["arrows", "move the cursor; shift: pan"],
      ["W S", "zoom in and out in time; shift: in ranks"],
      ["F", "the whole map"],
      ["Enter", "where the cell under the cursor comes from"],
      ["drag", "pan"],
      ["wheel", "scroll through ranks; ctrl: zoom in time; alt: zoom in ranks"],
    ],
    key: (event) => m.key(event),
    move: (query) => m.restore(query),
    close: () => m.close(),
  };
}

class JobMap {
  constructor({ main, dataset, query, remember, go }) {
    Object.assign(this, { main, dataset, query, remember, go });
    this.stop = new AbortController();
    this.choice = { job: "", metric: "off", axis: "time", sort: "rank" };
    this.view = null; // {from, until, first, last}: what is wanted
    this.drawn = null; // the same, of the bitmap
    this.cursor = null; // {x, y} on the canvas
    this.dirty = true;
  }

  start() {
    this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "map of ranks and steps", "aria-describedby": "map-about" });
    this.box = el("div", { class: "mapbox" }, this.canvas);
    this.about = el("p", { id: "map-about", class: "about", role: "status" });
    this.legend = el("p", { class: "note legend" });
    this.found = el("section", { class: "inspector", hidden: true });
    this.table = el("section", {});
    this.jobs = el("label", {});
    const choose = (label, name, options) =>
      el(
        "label",
        {},
        `${label} `,
        (this[`${name}Choice`] = el(
          "select",
          { onchange: (e) => this.choose(name, e.target.value) },
          ...options.map(([value, text]) => el("option", { value }, text)),
        )),
        " ",
      );
    const tool = (label, title, f) => el("button", { type: "button", class: "small", title, onclick: f }, label);
    this.main.append(
      el(
        "div",
        { class: "tools" },
        this.jobs,
        choose("colour", "metric", metrics),
        choose("across", "axis", [
          ["time", "time"],
          ["step", "numbers of steps"],
        ]),
        choose("sort by", "sort", [
          ["rank", "rank"],
          ["host", "host"],
          ["slow", "slowness"],
        ]),
        tool("whole", "key F: the whole map", () => this.fit()),
        tool("+", "key W: zoom in", () => this.zoom(0.5, 1)),
        tool("−", "key S: zoom out", () => this.zoom(2, 1)),
        picture(() => this.canvas, "map"),
        this.about,
      ),
      this.box,
      this.legend,
      this.found,
      this.table,
    );
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.box);
    this.gestures();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.colour(), { signal: this.stop.signal });
    this.restore(this.query, true);
    const frame = () => {
      if (this.stop.signal.aborted) return;
      if (this.dirty) this.paint();
      this.dirty = false;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  close() {
    this.stop.abort();
    this.observer.disconnect();
    clearTimeout(this.timer);
    clearTimeout(this.noting);
    delete this.main.map;
  }

  restore(query, first = false) {
    for (const name of ["job", "metric", "axis", "sort"]) {
      const value = query.get(name);
      if (value === null || (name !== "job" && ![...this[`${name}Choice`].options].some((o) => o.value === value))) continue;
      this.choice[name] = value;
      if (name !== "job") this[`${name}Choice`].value = value;
    }
    const number = (name) => (query.get(name) === null ? NaN : Number(query.get(name)));
    const [from, until, row, last] = ["from", "until", "first", "last"].map(number);
    this.linked = [from, until, row, last].every(Number.isFinite) ? { from, until, first: row, last } : null;
    if (first) this.load();
    else {
      if (this.linked) this.move(this.linked);
      else this.fit();
    }
  }

  get job() {
    return this.choice.job ? `job=${encodeURIComponent(this.choice.job)}&` : "";
  }

  async load() {
    try {
      this.say("Reading the steps …");
      const before = this.meta;
      const meta = await json(`/api/map?${this.job}`, { signal: this.stop.signal });
      this.meta = meta;
      this.choice.job = meta.job;
      if (meta.jobs.length > 1)
        this.jobs.replaceChildren(
          "job ",
          el(
            "select",
            {
              onchange: (e) => {
                this.choice.job = e.target.value;
                this.meta = this.view = null;
                this.load();
              },
            },
            ...meta.jobs.map((j) => el("option", { value: j, selected: j === meta.job }, j)),
          ),
          " ",
        );
      this.list();
      if (meta.ranks === 0) {
        this.say("No process of this recording has steps: there is nothing to compare.");
        this.box.hidden = true;
        this.table.replaceChildren();
        this.main.dataset.drawn = "yes";
        return;
      }
      this.resize();
      const whole = !this.view || !before || (this.view.from <= 0 && this.view.until >= this.end(before));
      if (this.linked) this.move(this.linked);
      else if (whole) this.fit();
      else this.move(this.view);
      this.linked = null;
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message);
    }
  }

  say(text) {
    this.about.textContent = text;
  }

  // The axis.
  begin(meta = this.meta) {
    return this.choice.axis === "step" ? meta.numbers[0] : 0;
  }
  end(meta = this.meta) {
    return this.choice.axis === "step" ? meta.numbers[1] : Math.max(meta.span_ns, 1);
  }

  choose(name, value) {
    this.choice[name] = value;
    if (!this.meta?.ranks) return;
    if (name === "axis") this.fit();
    else this.move(this.view);
  }

  fit() {
    if (!this.meta?.ranks) return;
    this.move({ from: this.begin(), until: this.end(), first: 0, last: this.meta.ranks });
  }

  // move wants another part; it never leaves the map.
  move({ from, until, first, last }) {
    const all = [this.begin(), this.end()];
    const least = this.choice.axis === "step" ? 1 : 1000;
    const width = Math.min(Math.max(until - from, least), all[1] - all[0]);
    const tall = Math.min(Math.max(last - first, 1), this.meta.ranks);
    const clamp = (v, low, high) => Math.min(Math.max(v, low), Math.max(low, high));
    from = clamp(from, all[0], all[1] - width);
    first = clamp(first, 0, this.meta.ranks - tall);
    this.view = { from, until: from + width, first, last: first + tall };
    this.dirty = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), this.drawn ? 40 : 0);
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.remember({ ...this.choice, ...this.whole(this.view) }), 300);
  }

  zoom(wide, tall, x = gutter + this.plot / 2, y = top + this.tall / 2) {
    const v = this.view;
    if (!v) return;
    const a = v.from + ((x - gutter) / this.plot) * (v.until - v.from),
      b = v.first + ((y - top) / this.tall) * (v.last - v.first);
    this.move({
      from: a - (a - v.from) * wide,
      until: a + (v.until - a) * wide,
      first: b - (b - v.first) * tall,
      last: b + (v.last - b) * tall,
    });
  }

  pan(screens, rows) {
    const v = this.view;
    if (!v) return;
    const x = (v.until - v.from) * screens,
      y = (v.last - v.first) * rows;
    this.move({ from: v.from + x, until: v.until + x, first: v.first + y, last: v.last + y });
  }

  get plot() {
    return Math.max(this.width - gutter, 10);
  }
  get tall() {
    return Math.max(this.height - top, 10);
  }
  // whole is a part in whole numbers, as the server takes it.
  whole(v) {
    const first = Math.floor(v.first);
    const from = Math.floor(v.from);
    return { from, until: Math.max(Math.ceil(v.until), from + 1), first, last: Math.max(Math.ceil(v.last), first + 1) };
  }
  part(v) {
    const p = new URLSearchParams({ metric: this.choice.metric, axis: this.choice.axis, sort: this.choice.sort, ...v });
    return this.job + p;
  }

  async ask() {
    if (!this.meta?.ranks || this.stop.signal.aborted) return;
    const wanted = this.whole(this.view);
    const rows = Math.min(Math.round(this.tall * this.dpr), 2200, wanted.last - wanted.first);
    const columns = Math.min(Math.round(this.plot * this.dpr), 4200);
    this.request?.abort();
    this.request = new AbortController();
    try {
      const packed = await bytes(`/api/map/cells?${this.part({ ...wanted, rows, columns })}`, {
        signal: AbortSignal.any([this.request.signal, this.stop.signal]),
      });
      const size = new DataView(packed).getUint32(0, true);
      this.head = JSON.parse(new TextDecoder().decode(new Uint8Array(packed, 4, size)));
      this.cells = new Uint8Array(packed, 4 + size);
      this.drawn = wanted;
      this.colour();
      this.say(this.facts());
      this.main.dataset.drawn = "yes";
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message);
    }
  }

  facts() {
    const d = this.meta;
    const each = (this.drawn.last - this.drawn.first) / this.head.rows;
    const parts = [`${count(d.ranks)} ranks, ${count(d.steps)} steps`];
    if (each > 1) parts.push(`each line is ${digits(each)} ranks, of which the ${this.choice.metric === "wait" ? "smallest" : "largest"} value is drawn`);
    if (d.left_out) parts.push(`${count(d.left_out)} earlier steps are not read`);
    if (this.choice.metric === "load" && !d.loading) parts.push("the loader is not recorded");
    return parts.join(" · ");
  }

  // colour makes a bitmap of the cells.
  colour() {
    if (!this.cells) return;
    const colors = scale(this.choice.metric, dark());
    const image = new ImageData(this.head.columns, this.head.rows);
    const out = new Uint32Array(image.data.buffer);
    for (let i = 0; i < this.cells.length; i++) out[i] = colors[this.cells[i]];
    this.bitmap = new OffscreenCanvas(this.head.columns, this.head.rows);
    this.bitmap.getContext("2d").putImageData(image, 0, 0);
    this.drawLegend();
    this.dirty = true;
  }

  drawLegend() {
    const m = this.choice.metric;
    const ends = {
      off: ["half the median or less", "the median", "twice the median or more"],
      wait: ["no waiting", "", "waiting only"],
      load: ["no loading", "", "loading only"],
      period: ["0", "", duration(this.meta.longest_ns)],
    }[m];
    const colors = scale(m, dark());
    const css = (i) => `rgb(${colors[i] & 255}, ${(colors[i] >> 8) & 255}, ${(colors[i] >> 16) & 255})`;
    const stops = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((i) => css(Math.round((254 * i) / 8))).join(", ");
    this.legend.replaceChildren(
      ends[0],
      " ",
      el("span", { class: "ramp", style: { background: `linear-gradient(to right, ${stops})` } }),
      ends[1] ? ` ${ends[1]} in the middle, ` : " ",
      ends[2],
      m === "off" ? ". Own time is a step without its waits for other ranks." : "",
      " Empty: no step.",
    );
  }

  paint() {
    const c = this.canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name);
    c.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    c.fillStyle = color("--paper");
    c.fillRect(0, 0, this.width, this.height);
    const v = this.view;
    if (!v) return;
    const d = this.drawn;
    c.save();
    c.beginPath();
    c.rect(gutter, top, this.plot, this.tall);
    c.clip();
    c.fillStyle = color("--panel");
    c.fillRect(gutter, top, this.plot, this.tall);
    if (d && this.bitmap) {
      const x = this.plot / (v.until - v.from),
        y = this.tall / (v.last - v.first);
      c.imageSmoothingEnabled = false;
      c.drawImage(
        this.bitmap,
        gutter + (d.from - v.from) * x,
        top + (d.first - v.first) * y,
        (d.until - d.from) * x,
        (d.last - d.first) * y,
      );
    }
    c.restore();
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    this.titles(c, color);
    this.ruler(c, color);
    if (this.cursor && document.activeElement === this.canvas) {
      c.strokeStyle = color("--ink");
      c.lineWidth = 1.5;
      c.strokeRect(this.cursor.x - 5, this.cursor.y - 5, 10, 10);
    }
  }

  titles(c, color) {
    const d = this.drawn,
      v = this.view;
    if (!d || !this.head) return;
    const each = ((d.last - d.first) / this.head.rows) * (this.tall / (v.last - v.first));
    const step = Math.max(1, Math.ceil(15 / each));
    c.fillStyle = color("--ink");
    for (let row = 0; row < this.head.rows; row += step) {
      const y = top + (d.first - v.first) * (this.tall / (v.last - v.first)) + (row + 0.5) * each;
      if (y < top + 4 || y > this.height - 4) continue;
      c.save();
      c.beginPath();
      c.rect(0, top, gutter - 6, this.tall);
      c.clip();
      c.fillText(this.head.titles[row] ?? "", 6, y);
      c.restore();
    }
  }

  ruler(c, color) {
    const v = this.view;
    const rough = ((v.until - v.from) / this.plot) * 100;
    const power = 10 ** Math.floor(Math.log10(rough));
    let tick = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough) ?? 10 * power;
    if (this.choice.axis === "step") tick = Math.max(1, tick);
    for (let t = Math.ceil(v.from / tick) * tick; t < v.until; t += tick) {
      const x = gutter + ((t - v.from) / (v.until - v.from)) * this.plot;
      c.fillStyle = color("--line");
      c.fillRect(x, 4, 1, top - 6);
      c.fillStyle = color("--soft");
      c.fillText(this.choice.axis === "step" ? `step ${t}` : at(t, tick), x + 3, 11);
    }
  }

  resize() {
    this.dpr = devicePixelRatio || 1;
    this.width = Math.max(this.box.clientWidth, gutter + 50);
    this.height = Math.max(Math.min(this.box.clientHeight, top + (this.meta?.ranks ?? 1e9) * 24), 60);
    this.canvas.width = Math.round(this.width * this.dpr);
    this.canvas.height = Math.round(this.height * this.dpr);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.dirty = true;
    if (this.view && this.meta?.ranks) this.move(this.view);
  }

  gestures() {
    let from = null;
    const place = (e) => {
      const r = this.canvas.getBoundingClientRect();
      return { x: e.clientX - r.left, y: e.clientY - r.top };
    };
    this.canvas.addEventListener("pointerdown", (e) => {
      from = { ...place(e), view: this.view, moved: false };
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener("pointermove", (e) => {
      if (!from?.view) return;
      const p = place(e);
      if (Math.abs(p.x - from.x) + Math.abs(p.y - from.y) < 4 && !from.moved) return;
      from.moved = true;
      const v = from.view;
      const x = ((from.x - p.x) / this.plot) * (v.until - v.from),
        y = ((from.y - p.y) / this.tall) * (v.last - v.first);
      this.move({ from: v.from + x, until: v.until + x, first: v.first + y, last: v.last + y });
    });
    this.canvas.addEventListener("pointerup", (e) => {
      if (from && !from.moved) this.inspect(place(e));
      from = null;
    });
    this.canvas.addEventListener("pointercancel", () => (from = null));
    this.canvas.addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        const p = place(e);
        const by = Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300)));
        if (e.ctrlKey || e.metaKey) this.zoom(by, 1, p.x, p.y);
        else if (e.altKey) this.zoom(1, by, p.x, p.y);
        else this.pan(e.deltaX / this.plot, e.deltaY / this.tall);
      },
      { passive: false },
    );
    for (const event of ["focus", "blur"]) this.canvas.addEventListener(event, () => (this.dirty = true));
  }

  key(event) {
    if (!this.view) return false;
    const tall = event.shiftKey ? [1, 0.5] : [0.5, 1];
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (arrows && event.target !== this.canvas) return false; // they scroll the page
    if (arrows && event.shiftKey) this.pan(arrows[0] / 4, arrows[1] / 4);
    else if (arrows) this.step(...arrows);
    else if (event.code === "KeyW") this.zoom(...tall);
    else if (event.code === "KeyS") this.zoom(1 / tall[0], 1 / tall[1]);
    else if (event.code === "KeyF") this.fit();
    else if (event.key === "Enter" && event.target === this.canvas && this.cursor) this.inspect(this.cursor);
    else return false;
    return true;
  }

  // step moves the cursor a row or a fiftieth of the width.
  step(x, y) {
    const c = this.cursor ?? { x: gutter + this.plot / 2, y: top + this.tall / 2 };
    const row = Math.max(this.tall / (this.view.last - this.view.first), 4);
    this.cursor = {
      x: Math.min(Math.max(c.x + (x * this.plot) / 50, gutter), this.width - 1),
      y: Math.min(Math.max(c.y + y * row, top), this.height - 1),
    };
    this.inspect(this.cursor);
  }

  // inspect says where the cell at a place comes from: the rank and step whose value it shows.
  async inspect({ x, y }) {
    const v = this.view;
    if (!v || x < gutter || y < top) return;
    this.cursor = { x, y };
    this.dirty = true;
    const rows = this.head.rows,
      perRow = (this.drawn.last - this.drawn.first) / rows;
    const rank = v.first + ((y - top) / this.tall) * (v.last - v.first);
    const first = Math.max(0, Math.floor(this.drawn.first + Math.floor((rank - this.drawn.first) / perRow) * perRow));
    const pixel = (v.until - v.from) / this.plot;
    const from = Math.floor(v.from + (x - gutter - 0.5) * pixel);
    const part = { from, until: Math.max(from + 1, Math.ceil(from + pixel)), first, last: Math.max(first + 1, Math.ceil(first + perRow)), rows: 1, columns: 1 };
    try {
      const s = await json(`/api/map/step?${this.part(part)}`, { signal: this.stop.signal });
      this.show(s);
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message);
    }
  }

  show(s) {
    this.found.hidden = false;
    if (!s) {
      this.found.replaceChildren(el("p", {}, "No step here."));
      announce("no step here");
      return;
    }
    announce(`${s.title}, step ${s.number}: ${duration(s.period_ns)}`);
    const rows = [
      ["host, pid", `${s.host} ${s.pid}`],
      ["begins", at(s.begin_ns, 1e6)],
      ["step", duration(s.period_ns)],
      ["of it waiting for other ranks", `${duration(s.wait_ns)}, ${percent(s.wait_ns / s.period_ns)}`],
      ["of it loading data", s.load_ns < 0 ? "its loader is not recorded" : duration(s.load_ns)],
      ["own time against the median of all", s.off <= 0.5 || s.off >= 2 ? `${s.off >= 2 ? "≥ 2" : "≤ 0.5"} times` : `${digits(s.off)} times`],
    ];
    const until = s.begin_ns + s.period_ns;
    this.found.replaceChildren(
      el("h2", {}, `${s.title}, step ${s.number}`),
      el("table", {}, el("tbody", {}, ...rows.map(([k, t]) => el("tr", {}, el("th", { scope: "row" }, k), el("td", {}, t))))),
      this.dataset.store
        ? command(`ebpfprof fleet capture ${quoted(this.dataset.store)} --job ${quoted(this.choice.job)}`)
        : el(
            "p",
            {},
            el(
              "a",
              { href: `#timeline?from=${Math.round(s.begin_ns - s.period_ns * 0.1)}ns&until=${Math.round(until + s.period_ns * 0.1)}ns` },
              "this step on the timeline",
            ),
          ),
      this.dataset.store
        ? el("p", { class: "note" }, `The events of ${s.title} stay on ${s.host}: a capture asks its agent for a window of them.`)
        : null,
    );
  }

  // list is the table beside the picture: the slowest ranks.
  list() {
    const d = this.meta;
    const whole = this.dataset.store
      ? `ebpfprof fleet report ${quoted(this.dataset.store)} --job ${quoted(d.job)}`
      : `ebpfprof steps ${quoted(this.dataset.root)}`;
    this.table.replaceChildren(
      el("h2", {}, d.ranks > d.slowest.length ? `The ${d.slowest.length} slowest ranks of ${count(d.ranks)}` : "Ranks, slowest first"),
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ...["rank", "host, pid", "steps", "own time of a step", "waiting for others", "loading"].map((h, i) =>
              el("th", { scope: "col", class: i > 1 ? "number" : null }, h),
            ),
          ),
        ),
        el(
          "tbody",
          {},
          ...d.slowest.map((r) =>
            el(
              "tr",
              {},
              el(
                "th",
                { scope: "row" },
                el("button", { type: "button", class: "link", onclick: () => this.reveal(r) }, r.title),
              ),
              el("td", {}, `${r.host} ${r.pid}`),
              el("td", { class: "number" }, count(r.steps)),
              el("td", { class: "number" }, duration(r.own_ns)),
              el("td", { class: "number" }, percent(r.waiting)),
              el("td", { class: "number" }, r.loading === null ? "not recorded" : percent(r.loading)),
            ),
          ),
        ),
      ),
      command(whole),
    );
  }

  // reveal shows a rank with its neighbours in slowness.
  reveal(r) {
    this.choice.sort = this.sortChoice.value = "slow";
    this.move({ from: this.begin(), until: this.end(), first: Math.max(0, r.row - 8), last: r.row + 9 });
    this.canvas.focus();
  }
}

const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;

// scale are the colours of the values, as pixels: of a difference from blue (shorter) by grey to red (longer), of a share
// from light to dark. Lightness alone tells them apart, too.
function scale(metric, night) {
  const colors = new Uint32Array(256);
  const mix = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));
  const low = night ? [27, 35, 44] : [240, 244, 248];
  const middle = night ? [70, 78, 86] : [226, 229, 233];
  for (let i = 0; i < 255; i++) {
    const t = i / 254;
    const [r, g, b] =
      metric !== "off"
        ? mix(low, night ? [247, 200, 90] : [130, 40, 10], t)
        : t < 0.5
          ? mix([0, 114, 178], middle, Math.min(1, t * 2))
          : mix(middle, night ? [255, 120, 60] : [178, 40, 0], (t - 0.5) * 2);
    colors[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return colors; // 255: transparent
}
