// Overview: the report, verdict first.
import { json } from "./api.js";
import { el, svg, duration, percent, digits, count, command } from "./text.js";

const ms = (value) => duration(value * 1e6);

export function overview({ main, dataset, query }) {
  const waiting = el("p", { class: "waiting", role: "status" }, "Computing the report …");
  main.append(waiting);
  const stop = new AbortController();
  const part = new URLSearchParams(
    [...query].filter(([name]) => ["rank", "step", "from", "to"].includes(name)),
  ).toString();
  const poll = setInterval(async () => {
    try {
      const state = await json("/api/status", { signal: stop.signal });
      if (state.report) waiting.textContent = `Computing ${state.report} …`;
    } catch {
      /* the request for the report itself says what is wrong */
    }
  }, 400);
  json(`/api/report?${part}`, { signal: stop.signal })
    .then((report) => main.replaceChildren(...sections(report, dataset, part)))
    .catch(
      (error) =>
        error.name !== "AbortError" && main.replaceChildren(el("p", { class: "failed", role: "alert" }, error.message)),
    )
    .finally(() => {
      clearInterval(poll);
      if (!stop.signal.aborted) main.dataset.drawn = "yes";
    });
  return {
    close: () => {
      stop.abort();
      clearInterval(poll);
    },
  };
}

function sections(r, dataset, part) {
  return [
    el(
      "section",
      { class: "verdict" },
      el("h2", {}, "Verdict"),
      el("p", { class: "first" }, r.verdict || "Nothing stands out."),
      ...seconds(r),
    ),
    explanations(r),
    phases(r),
    steps(r),
    findings(r, part),
    table(
      "Operators",
      r.operators.slice(0, 15),
      [
        ["name", (o) => o.name],
        ["calls", (o) => `${o.estimated ? "≈ " : ""}${count(o.calls)}`, true],
        ["total", (o) => bounds(o.total_ms, o.total_lo_ms, o.total_hi_ms, o.estimated), true],
        ["self", (o) => `${o.estimated ? "≈ " : ""}${ms(o.self_ms)}`, true],
        ["device", (o) => (o.device_ms === null ? "" : ms(o.device_ms)), true],
      ],
      r.operators.length,
    ),
    table(
      "Kernels",
      r.kernels.slice(0, 15),
      [
        ["name", (k) => k.name],
        ["calls", (k) => count(k.calls), true],
        ["device time", (k) => ms(k.device_ms), true],
        ["share", (k) => percent(k.percent / 100), true],
        ["launched by", (k) => k.operator ?? ""],
      ],
      r.kernels.length,
    ),
    table(
      "Lines",
      r.lines.slice(0, 15),
      [
        [
          "line",
          (l) =>
            el(
              "a",
              { href: `#source?file=${encodeURIComponent(l.file)}&line=${l.line}` },
              `${l.file.split("/").pop()}:${l.line}`,
            ),
        ],
        ["function", (l) => l.function],
        ["CPU", (l) => (l.cpu_ms === null ? "" : ms(l.cpu_ms)), true],
        ["waiting", (l) => (l.wait_ms === null ? "" : ms(l.wait_ms)), true],
        ["device", (l) => (l.device_ms === null ? "" : ms(l.device_ms)), true],
      ],
      r.lines.length,
    ),
    list("What cannot be told", r.cannot_be_told),
    list("Before you trust it", [...dataset.warnings, ...r.warnings]),
    command(`ebpfprof report ${quoted(dataset.root)}`),
  ].filter(Boolean);
}

export const quoted = (path) => (/^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`);

function seconds(r) {
  const first = r.explanations[0];
  return first?.evidence ? [el("p", {}, first.evidence)] : [];
}

const range = (lo, hi, of) =>
  lo === null && hi === null ? "" : ` (${lo === null ? "?" : of(lo)} to ${hi === null ? "?" : of(hi)})`;

function bounds(value, lo, hi, estimated) {
  return `${estimated ? "≈ " : ""}${ms(value)}${range(lo, hi, ms)}`;
}

const words = { hot_line: "hot line", contention: "no CPU free" };

function explanations(r) {
  if (r.explanations.length === 0) return null;
  const rows = r.explanations.map((e) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, words[e.kind] ?? e.kind.replaceAll("_", " ")),
      el(
        "td",
        { class: "bar" },
        bar(e.explained, e.lo, e.hi, 1, `${percent(e.explained)} of the time${range(e.lo, e.hi, percent)}`),
      ),
      el("td", { class: "number" }, percent(e.explained)),
      el("td", { class: "place" }, place(e.place)),
      el("td", {}, e.advice),
    ),
  );
  return el(
    "section",
    {},
    el("h2", {}, "Explanations"),
    el(
      "p",
      { class: "note" },
      "Each bar is the share of the time of the thread that sets the pace; its whisker is the 95 % interval. " +
        "Shares overlap: they do not add up.",
    ),
    el("table", {}, head("what", "share of the time", "", "where", "what to do"), el("tbody", {}, ...rows)),
  );
}

// place links a line of the user's code to the source view.
function place(text) {
  const match = /^(.+):(\d+)$/.exec(text ?? "");
  return match ? el("a", { href: `#source?place=${encodeURIComponent(text)}` }, text) : (text ?? "");
}

// bar is a value with its interval; an end that is not known is an open arrow.
function bar(value, lo, hi, most, label) {
  const x = (v) => 100 * Math.max(0, Math.min(1, v / most));
  const parts = [svg("rect", { x: 0, y: 3, width: x(value), height: 12, class: "value" })];
  if ((lo !== null && lo !== undefined) || (hi !== null && hi !== undefined)) {
    const from = x(lo ?? 0);
    const to = hi === null || hi === undefined ? 100 : x(hi);
    parts.push(
      svg("line", { x1: from, x2: to, y1: 9, y2: 9, class: "whisker" }),
      svg("line", { x1: from, x2: from, y1: 5, y2: 13, class: "whisker" }),
    );
    if (hi === null || hi === undefined) parts.push(svg("path", { d: "M97 5 L100 9 L97 13", class: "whisker open" }));
    else parts.push(svg("line", { x1: to, x2: to, y1: 5, y2: 13, class: "whisker" }));
  }
  return svg(
    "svg",
    { viewBox: "0 0 100 18", preserveAspectRatio: "none", role: "img", "aria-label": label, class: "whiskered" },
    ...parts,
  );
}

function findings(r, part) {
  if (r.findings.length === 0) return null;
  const most = Math.max(1e-9, ...r.findings.map((f) => f.hi_ms ?? f.headroom_hi_ms ?? f.headroom_ms ?? 0));
  const items = r.findings.map((f, i) => {
    const lo = f.lo_ms ?? f.headroom_lo_ms ?? null;
    const hi = f.hi_ms ?? f.headroom_hi_ms ?? null;
    const known = f.headroom_ms !== null;
    const said = known
      ? `${f.low_confidence ? "≈ " : ""}${ms(f.headroom_ms)}` +
        (f.headroom_percent === null ? "" : ` = ${digits(f.headroom_percent)} % of a step`)
      : "headroom not known";
    return el(
      "li",
      { class: `finding ${f.severity}` },
      el(
        "h3",
        {},
        el("span", { class: "severity" }, f.severity),
        " ",
        f.rule.replaceAll("_", " "),
        f.name ? ` · ${f.name}` : "",
      ),
      known ? bar(f.headroom_ms, lo, hi, most, said) : null,
      known || f.severity !== "info" ? el("p", { class: "number" }, said, known ? range(lo, hi, ms) : "") : null,
      el("p", {}, f.advice),
      el(
        "p",
        {},
        f.file && f.line !== null
          ? el(
              "a",
              { href: `#source?file=${encodeURIComponent(f.file)}&line=${f.line}` },
              `${f.file.split("/").pop()}:${f.line}`,
            )
          : null,
        f.function ? ` ${f.function} ` : " ",
        part ? null : el("a", { href: `#timeline?mark=finding~${i}` }, "on the timeline"),
      ),
      el("details", {}, el("summary", {}, "evidence"), el("pre", {}, f.evidence_sql)),
    );
  });
  return el(
    "section",
    {},
    el("h2", {}, "Findings"),
    el(
      "p",
      { class: "note" },
      "Bars are how much shorter a step would be, whiskers how sure that is. Headrooms do not add up: act on one at a time.",
    ),
    el("ol", { class: "findings" }, ...items),
  );
}

const phaseColors = {
  loading: "#e69f00",
  forward: "#56b4e9",
  backward: "#cc79a7",
  optimizer: "#2fb48d",
  communication: "#e3875a",
  io: "#f0e442",
  waiting: "#9aa5b4",
};

function phases(r) {
  if (r.phases.length === 0) return null;
  let x = 0;
  const parts = [];
  for (const p of r.phases) {
    const label = `${p.phase}: ${p.estimated ? "≈ " : ""}${ms(p.ms_per_step)} of a step, ${digits(p.percent)} %`;
    parts.push(
      el(
        "span",
        {
          class: "phase",
          title: label,
          style: { width: `${p.percent}%`, background: phaseColors[p.phase] ?? "#c9d1dc" },
        },
        p.percent > 8 ? p.phase : "",
      ),
    );
    x += p.percent;
  }
  return el(
    "section",
    {},
    el("h2", {}, "Where a step's time goes"),
    el("p", { class: "note" }, r.phases_of),
    el(
      "div",
      {
        class: "phases",
        role: "img",
        "aria-label": r.phases.map((p) => `${p.phase} ${digits(p.percent)} %`).join(", "),
      },
      ...parts,
    ),
    el(
      "table",
      {},
      head("phase", "of a step", "share"),
      el(
        "tbody",
        {},
        ...r.phases.map((p) =>
          el(
            "tr",
            {},
            el(
              "th",
              { scope: "row" },
              el("span", { class: "swatch", style: { background: phaseColors[p.phase] ?? "#c9d1dc" } }),
              p.phase,
            ),
            el("td", { class: "number" }, bounds(p.ms_per_step, p.lo_ms, p.hi_ms, p.estimated)),
            el("td", { class: "number" }, percent(p.percent / 100)),
          ),
        ),
      ),
    ),
  );
}

const mostBars = 600;

function steps(r) {
  const s = r.steps;
  if (!s || s.period_ms.length === 0)
    return el("section", {}, el("h2", {}, "Steps"), el("p", {}, "No steps were found in this recording."));
  const values = thin(s.period_ms, mostBars);
  const most = Math.max(...values);
  const width = 900;
  const each = width / values.length;
  const bars = values.map((v, i) =>
    svg(
      "rect",
      {
        x: (i * each).toFixed(2),
        y: (100 - (100 * v) / most).toFixed(2),
        width: Math.max(each - (each > 3 ? 1 : 0), 0.5).toFixed(2),
        height: ((100 * v) / most).toFixed(2),
        class: "value",
      },
      svg("title", {}, `${ms(v)}`),
    ),
  );
  const mean = 100 - (100 * s.mean_ms) / most;
  const merged =
    values.length < s.period_ms.length ? `, each bar the longest of ${digits(s.period_ms.length / values.length)}` : "";
  return el(
    "section",
    {},
    el("h2", {}, "Step times"),
    el(
      "p",
      { class: "note" },
      `${count(s.count)} steps; ${count(s.period_ms.length)} after warm-up are drawn${merged}. ` +
        `Mean ${ms(s.mean_ms)} ± ${ms(s.stddev_ms)}; the slowest, ${s.slowest.index}, took ${ms(s.slowest.ms)}.`,
    ),
    svg(
      "svg",
      {
        viewBox: `0 0 ${width} 100`,
        preserveAspectRatio: "none",
        role: "img",
        class: "steps",
        "aria-label": `times of ${s.period_ms.length} steps, up to ${ms(most)}`,
      },
      ...bars,
      svg("line", { x1: 0, x2: width, y1: mean, y2: mean, class: "mean" }),
    ),
    el(
      "p",
      { class: "axis" },
      el("span", {}, "first"),
      el("span", {}, `highest ${ms(most)}; line: mean`),
      el("span", {}, "last"),
    ),
  );
}

// thin keeps the largest of each stretch, so that the slowest step stays.
function thin(values, most) {
  if (values.length <= most) return values;
  const out = new Array(most).fill(0);
  values.forEach((v, i) => {
    const k = Math.floor((i * most) / values.length);
    out[k] = Math.max(out[k], v);
  });
  return out;
}

// head is a table's; a column without a title has no header cell.
export const head = (...titles) =>
  el("thead", {}, el("tr", {}, ...titles.map((t) => (t === "" ? el("td") : el("th", { scope: "col" }, t)))));

function table(title, rows, columns, all) {
  if (rows.length === 0) return null;
  return el(
    "section",
    {},
    el("h2", {}, title),
    el(
      "table",
      {},
      head(...columns.map(([name]) => name)),
      el(
        "tbody",
        {},
        ...rows.map((row) =>
          el(
            "tr",
            {},
            ...columns.map(([, of, number], i) =>
              el(
                i === 0 ? "th" : "td",
                { class: number ? "number" : "name", ...(i === 0 ? { scope: "row" } : {}) },
                of(row),
              ),
            ),
          ),
        ),
      ),
    ),
    all > rows.length ? el("p", { class: "note" }, `${all - rows.length} more: ebpfprof report --top 0`) : null,
  );
}

function list(title, sentences) {
  if (sentences.length === 0) return null;
  return el("section", {}, el("h2", {}, title), el("ul", {}, ...sentences.map((s) => el("li", {}, s))));
}
