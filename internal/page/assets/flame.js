// Flame: who called whom, by samples. Icicle: threads' starts on top; bottom-up: innermost functions on top.
import { json } from "./api.js";
import { el, duration, percent, colorOf, announce, command, count } from "./text.js";
import { quoted } from "./overview.js";

const rowHeight = 18;

export function flame(page) {
  const f = new Flame(page);
  page.main.flame = f;
  f.start();
  return f.handle();
}

class Flame {
  constructor({ main, dataset, query, remember }) {
    Object.assign(this, { main, dataset, query, remember });
    this.state = query.get("state") === "off_cpu" ? "off_cpu" : "on_cpu";
    this.order = query.get("order") === "up" ? "up" : "down";
    this.path = (query.get("below") ?? "").split("\n").filter(Boolean);
    this.stop = new AbortController();
    this.boxes = [];
    this.at = -1; // the box that has the keyboard
  }

  start() {
    const choice = (label, key, options) =>
      el(
        "label",
        {},
        `${label} `,
        el(
          "select",
          {
            onchange: (e) => {
              this[key] = e.target.value;
              this.path = [];
              this.load();
            },
          },
          ...options.map(([value, text]) => el("option", { value, selected: this[key] === value }, text)),
        ),
      );
    this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "flame graph" });
    this.scroller = el("div", { class: "scroller" }, this.canvas);
    this.about = el("p", { class: "about", role: "status" });
    this.crumbs = el("p", { class: "crumbs" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.table = el("section", { class: "inspector" });
    this.main.append(
      el(
        "div",
        { class: "tools" },
        choice("time", "state", [
          ["on_cpu", "on a CPU"],
          ["off_cpu", "waiting"],
        ]),
        choice("order", "order", [
          ["down", "callers on top (icicle)"],
          ["up", "innermost on top (bottom-up)"],
        ]),
        el("input", {
          type: "search",
          placeholder: "mark functions",
          "aria-label": "mark functions",
          oninput: (e) => {
            this.marked = e.target.value.toLowerCase();
            this.paint();
          },
        }),
        this.about,
      ),
      this.crumbs,
      this.scroller,
      this.table,
      this.tip,
    );
    this.observer = new ResizeObserver(() => this.paint());
    this.observer.observe(this.scroller);
    const place = (e) => {
      const r = this.canvas.getBoundingClientRect();
      return [e.clientX - r.left, e.clientY - r.top];
    };
    this.canvas.addEventListener("click", (e) => this.enter(this.hit(...place(e))));
    this.canvas.addEventListener("pointermove", (e) => this.hover(e, this.hit(...place(e))));
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    this.load();
  }

  part() {
    const q = new URLSearchParams({ state: this.state, order: this.order });
    for (const name of ["from", "to", "rank"]) if (this.query.get(name)) q.set(name, this.query.get(name));
    if (this.path.length) q.set("below", this.path.join("\n"));
    return q;
  }

  async load() {
    this.about.textContent = "Adding up samples …";
    try {
      this.data = await json(`/api/flame?${this.part()}`, { signal: this.stop.signal });
      const d = this.data;
      const range = this.query.get("from")
        ? `, ${Number(this.query.get("from")).toFixed(3)} to ${Number(this.query.get("to")).toFixed(3)} ms`
        : "";
      const hidden =
        d.hidden_ns > 0 ? `; ${duration(d.hidden_ns)} in frames too narrow to draw: click the one around them` : "";
      this.about.textContent = `${duration(d.total_ns)} in ${count(d.samples)} samples${range}${hidden}`;
      this.list();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.data = null;
      this.about.textContent = error.message;
      this.table.replaceChildren();
    }
    this.at = -1;
    this.remember(Object.fromEntries(this.part()));
    this.crumb();
    this.paint();
    this.main.dataset.drawn = "yes";
  }

  crumb() {
    const step = (label, depth) =>
      el(
        "button",
        {
          type: "button",
          class: "small",
          onclick: () => {
            this.path = this.path.slice(0, depth);
            this.load();
          },
        },
        label,
      );
    this.crumbs.replaceChildren(
      ...(this.path.length
        ? [
            step("all", 0),
            ...this.path.slice(-6).map((p, i, shown) => step(p, this.path.length - shown.length + i + 1)),
          ]
        : []),
    );
  }

  list() {
    const d = this.data;
    const row = (f) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, f.name),
        el("td", {}, f.kind),
        el("td", { class: "number" }, duration(f.self_ns)),
        el("td", { class: "number" }, percent(f.self_ns / Math.max(d.total_ns, 1))),
        el("td", { class: "number" }, duration(f.total_ns)),
        el("td", { class: "number" }, percent(f.total_ns / Math.max(d.total_ns, 1))),
      );
    this.table.replaceChildren(
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ...["function", "kind", "self", "share", "with what it calls", "share of it"].map((h) => el("th", { scope: "col" }, h)),
          ),
        ),
        el("tbody", {}, ...d.functions.slice(0, 30).map(row)),
      ),
      command(`${d.command} ${quoted(this.dataset.root)}`),
    );
  }

  paint() {
    const width = this.scroller.clientWidth,
      dpr = devicePixelRatio || 1;
    const s = getComputedStyle(this.main);
    const c = this.canvas.getContext("2d");
    this.boxes = [];
    if (this.data) this.place(this.data.root, 0, width, 0, width / Math.max(this.data.root.t, 1), []);
    const depth = this.boxes.reduce((d, b) => Math.max(d, b.depth), 0);
    const height = Math.max((depth + 1) * rowHeight + 4, 40);
    this.canvas.width = Math.round(width * dpr);
    this.canvas.height = Math.min(Math.round(height * dpr), 30000);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.canvas.height / dpr}px`;
    c.setTransform(dpr, 0, 0, dpr, 0, 0);
    c.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    c.textBaseline = "middle";
    this.boxes.forEach((b, i) => {
      const marked = this.marked && b.node.n.toLowerCase().includes(this.marked);
      c.fillStyle = b.node.n
        ? marked
          ? "#d55e00"
          : b.node.k === "kernel"
            ? "#c3ccd6"
            : colorOf(b.node.n)
        : s.getPropertyValue("--line");
      c.fillRect(b.x, b.depth * rowHeight, Math.max(b.width - 0.5, 0.5), rowHeight - 1);
      if (i === this.at) {
        c.strokeStyle = s.getPropertyValue("--ink");
        c.lineWidth = 2;
        c.strokeRect(b.x + 1, b.depth * rowHeight + 1, b.width - 2, rowHeight - 3);
      }
      if (b.width < 30) return;
      c.fillStyle = b.node.n ? (marked ? "#fff" : "#10161d") : s.getPropertyValue("--ink");
      const letters = Math.floor((b.width - 6) / 6.6);
      const text = b.node.n || "all";
      c.save();
      c.beginPath();
      c.rect(b.x, b.depth * rowHeight, b.width - 2, rowHeight);
      c.clip();
      c.fillText(
        text.length > letters + 2 ? `${text.slice(0, letters)}…` : text,
        b.x + 3,
        b.depth * rowHeight + rowHeight / 2,
      );
      c.restore();
    });
  }

  place(node, x, width, depth, scale, path) {
    if (width < 0.5) return;
    this.boxes.push({ node, x, width, depth, path });
    let at = x;
    for (const child of node.c ?? []) {
      this.place(child, at, child.t * scale, depth + 1, scale, [...path, child.n]);
      at += child.t * scale;
    }
  }

  hit(x, y) {
    const depth = Math.floor(y / rowHeight);
    return this.boxes.find((b) => b.depth === depth && x >= b.x && x < b.x + b.width);
  }

  hover(e, box) {
    this.tip.hidden = !box;
    if (!box) return;
    const room = this.main.getBoundingClientRect();
    this.tip.replaceChildren(...this.say(box).map((l) => el("div", {}, l)));
    this.tip.style.left = `${Math.min(e.clientX - room.left + 14, room.width - 340)}px`;
    this.tip.style.top = `${Math.min(e.clientY - room.top + 16, room.height - 70)}px`;
  }

  say({ node }) {
    const all = Math.max(this.data.total_ns, 1);
    return [node.n || "all", `${duration(node.t)}, ${percent(node.t / all)} of all`, `self ${duration(node.s)}`];
  }

  // enter zooms into a function: the server draws what was too narrow before.
  enter(box) {
    if (!box || box.depth === 0) return;
    this.path = [...this.path, ...box.path];
    this.load();
  }

  walk(by, down) {
    const now = this.boxes[this.at] ?? this.boxes[0];
    if (!now) return;
    let next;
    if (down > 0)
      next = this.boxes.find((b) => b.depth === now.depth + 1 && b.x >= now.x - 0.01 && b.x < now.x + now.width);
    else if (down < 0)
      next = this.boxes.find((b) => b.depth === now.depth - 1 && b.x <= now.x + 0.01 && b.x + b.width > now.x);
    else {
      const row = this.boxes.filter((b) => b.depth === now.depth);
      next = row[row.indexOf(now) + by];
    }
    if (!next) return;
    this.at = this.boxes.indexOf(next);
    announce(this.say(next).join(", "));
    this.scroller.scrollTop = Math.max(0, next.depth * rowHeight - this.scroller.clientHeight / 2);
    this.paint();
  }

  handle() {
    const keys = {
      ArrowDown: () => this.walk(0, 1),
      ArrowUp: () => this.walk(0, -1),
      ArrowLeft: () => this.walk(-1, 0),
      ArrowRight: () => this.walk(1, 0),
      Enter: () => this.enter(this.boxes[this.at]),
      Escape: () => {
        if (this.path.length) {
          this.path = this.path.slice(0, -1);
          this.load();
        }
      },
    };
    return {
      keyList: [
        ["arrows", "a function, the one above, below, beside"],
        ["Enter", "only what is below it"],
        ["Esc", "back by one"],
      ],
      key: (event) => {
        const f = keys[event.code];
        if (f) f();
        return Boolean(f);
      },
      close: () => {
        this.stop.abort();
        this.observer.disconnect();
        delete this.main.flame;
      },
    };
  }
}
