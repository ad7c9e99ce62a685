// SQL over the dataset: a table and a chart of it.
import { json, answer } from "./api.js";
import { el, svg, count, digits, command, copy, duration } from "./text.js";
import { quoted } from "./overview.js";
import { sortable, exports } from "./table.js";

const first = "SELECT name, layer, count(*) AS calls, sum(duration_ns) / 1e6 AS total_ms\nFROM span GROUP BY ALL ORDER BY total_ms DESC LIMIT 30";

export function sql({ main, dataset, query, remember }) {
  const stop = new AbortController();
  let running = null;
  const text = el("textarea", { rows: 8, spellcheck: "false", "aria-label": "SQL", class: "editor" });
  text.value = query.get("q") ?? first;
  const about = el("p", { class: "about", role: "status" });
  const result = el("div", { class: "result" });
  const choose = el("select", {
    "aria-label": "an example",
    onchange: (e) => {
      const chosen = known.find((q) => q.name === e.target.value);
      if (chosen) text.value = chosen.sql;
      run();
    },
  });
  let known = [];
  text.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
      run();
      e.preventDefault();
    }
  });
  main.append(
    el("h2", {}, "SQL"),
    el(
      "p",
      { class: "note" },
      "One SELECT in DuckDB's SQL; the dataset is only read. ",
      el("a", { href: "#schema" }, "Tables and columns"),
    ),
    text,
    el(
      "p",
      { class: "tools" },
      el("button", { type: "button", onclick: () => run(), title: "ctrl Enter" }, "Run"),
      choose,
      about,
    ),
    result,
  );
  json("/api/examples", { signal: stop.signal })
    .then((all) => {
      known = all;
      choose.append(
        el("option", { value: "" }, "examples"),
        ...all.map((q) => el("option", { value: q.name }, q.saved ? `${q.name} (kept in the dataset)` : `${q.name}: ${q.title}`)),
      );
    })
    .catch(() => {});
  run();
  return {
    close: () => {
      stop.abort();
      running?.abort();
    },
    keyList: [["ctrl Enter", "run the query"]],
  };

  async function run() {
    running?.abort();
    running = new AbortController();
    const mine = running;
    delete main.dataset.drawn;
    about.textContent = "Running …";
    about.classList.remove("failed");
    try {
      const response = await answer("/api/query", { method: "POST", body: text.value, signal: mine.signal });
      const more = response.headers.get("Has-More") === "true";
      const body = await response.text();
      if (mine !== running) return;
      const rows = JSON.parse(body, exact);
      const rest = more ? "; there are more: add LIMIT, or save all by the command line" : "";
      about.textContent = `${count(rows.length)} row${rows.length === 1 ? "" : "s"}${rest}`;
      remember({ q: text.value });
      show(rows);
    } catch (error) {
      if (error.name === "AbortError") return;
      about.textContent = error.message;
      about.classList.add("failed");
      result.replaceChildren();
    }
    main.dataset.drawn = "yes";
  }

  function show(rows) {
    const line = `ebpfprof query ${quoted(dataset.root)} ${quoted(text.value)} --format json`;
    if (rows.length === 0) return result.replaceChildren(command(line));
    const names = Object.keys(rows[0]);
    const numeric = names.filter((n) => rows.some((r) => typeof r[n] === "number") && rows.every((r) => r[n] === null || typeof r[n] === "number"));
    const columns = names.map((n) => ({ title: n, number: numeric.includes(n), value: (r) => plain(r[n]), show: (r) => cell(r[n]) }));
    result.replaceChildren(
      el(
        "p",
        {},
        exports("query", names.map((n) => [n, (r) => plain(r[n])]), () => rows),
        " ",
        el("button", { type: "button", class: "small", onclick: () => copy(line) }, "copy as a command"),
      ),
      ...(numeric.length && rows.length > 1 ? [chart(rows, names, numeric)] : []),
      sortable({ name: "query", columns, rows, sortBy: "" }),
      command(line),
    );
  }
}

// exact keeps whole numbers that a double does not have as text.
function exact(_, value, context) {
  return typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? context.source : value;
}

const plain = (v) => (v !== null && typeof v === "object" ? JSON.stringify(v) : v);

function cell(v) {
  if (v === null || v === undefined) return el("span", { class: "null" }, "NULL");
  const text = String(plain(v));
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}

const mostBars = 60,
  mostPoints = 2000;

// chart draws a column of numbers: against another as points, or as bars with a name each.
function chart(rows, names, numeric) {
  const labels = names.filter((n) => !numeric.includes(n));
  const byName = labels.length > 0;
  let x = byName ? labels[0] : numeric.length > 1 ? numeric[0] : "row";
  let y = numeric.at(-1);
  const node = el("figure", { class: "chart" });
  const choice = (label, options, now, set) =>
    el(
      "label",
      {},
      `${label} `,
      el(
        "select",
        {
          onchange: (e) => {
            set(e.target.value);
            draw();
          },
        },
        ...options.map((o) => el("option", { value: o, selected: o === now }, o)),
      ),
      " ",
    );
  const tools = el(
    "p",
    {},
    choice("chart", ["bars", "points"], byName ? "bars" : "points", (v) => (kind = v)),
    choice("of", numeric, y, (v) => (y = v)),
    choice("by", ["row", ...names], x, (v) => (x = v)),
  );
  let kind = byName ? "bars" : "points";
  const draw = () => node.replaceChildren(tools, kind === "bars" ? bars(rows, x, y) : points(rows, x, y));
  draw();
  return node;
}

function bars(rows, x, y) {
  const some = rows.slice(0, mostBars);
  const most = Math.max(1e-12, ...some.map((r) => Math.abs(r[y] ?? 0)));
  return el(
    "div",
    { class: "bars", role: "img", "aria-label": `${y} by ${x}, the first ${some.length} rows` },
    ...some.map((r, i) =>
      el(
        "div",
        { title: `${x === "row" ? i : plain(r[x])}: ${r[y]}` },
        el("span", { class: "label" }, x === "row" ? String(i) : String(plain(r[x]) ?? "NULL").slice(0, 200)),
        el("span", { class: "track" }, el("i", { style: { width: `${(100 * Math.abs(r[y] ?? 0)) / most}%` } })),
        el("span", { class: "number" }, r[y] === null ? "" : unit(y, r[y])),
      ),
    ),
    rows.length > some.length ? el("p", { class: "note" }, `${count(rows.length - some.length)} more rows are not drawn`) : null,
  );
}

const unit = (name, v) => (/_ns$/.test(name) && name !== "ts_ns" ? duration(v) : digits(v));

function points(rows, x, y) {
  const all = rows.map((r, i) => [x === "row" ? i : Number(r[x]), r[y]]).filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
  const step = Math.max(1, Math.ceil(all.length / mostPoints));
  const some = all.filter((_, i) => i % step === 0);
  const of = (k) => [Math.min(...some.map((p) => p[k])), Math.max(...some.map((p) => p[k]))];
  if (some.length === 0) return el("p", { class: "note" }, `${x} has no numbers: choose another column.`);
  const [x0, x1] = of(0),
    [y0, y1] = [Math.min(0, of(1)[0]), of(1)[1]];
  const at = ([a, b]) => [(900 * (a - x0)) / (x1 - x0 || 1), 200 - (200 * (b - y0)) / (y1 - y0 || 1)];
  return el(
    "div",
    {},
    svg(
      "svg",
      { viewBox: "-4 -4 908 208", preserveAspectRatio: "none", class: "plot", role: "img", "aria-label": `${y} over ${x}, ${some.length} points` },
      ...some.map((p) => {
        const [a, b] = at(p);
        return svg("circle", { cx: a.toFixed(1), cy: b.toFixed(1), r: 2.5, class: "value" }, svg("title", {}, `${x} ${p[0]}, ${y} ${p[1]}`));
      }),
    ),
    el(
      "p",
      { class: "axis" },
      el("span", {}, `${x} from ${digits(x0)}`),
      el("span", {}, `${y}: ${unit(y, y0)} to ${unit(y, y1)}${step > 1 ? `; every ${step}th of ${count(all.length)} points` : ""}`),
      el("span", {}, `to ${digits(x1)}`),
    ),
  );
}
