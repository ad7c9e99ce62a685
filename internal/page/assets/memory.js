// Memory: live bytes over time, who holds them at the peak, and what grows.
import { json } from "./api.js";
import { el, svg, duration, count, percent, command, largest } from "./text.js";
import { quoted } from "./overview.js";
import { sortable, whisker } from "./table.js";
import { value } from "./layers.js";

const bytes = (n) => (n === null || n === undefined ? "unknown" : value({ unit: "bytes" }, n));

export function memory({ main, dataset }) {
  const stop = new AbortController();
  main.append(el("p", { class: "waiting", role: "status" }, "Reading allocations …"));
  json("/api/memory", { signal: stop.signal })
    .then((m) => main.replaceChildren(...view(m)))
    .catch((error) => error.name !== "AbortError" && main.replaceChildren(el("p", { class: "failed", role: "alert" }, error.message)))
    .finally(() => {
      if (!stop.signal.aborted) main.dataset.drawn = "yes";
    });
  return { close: () => stop.abort() };

  function view(m) {
    const nodes = [el("h2", {}, "Memory")];
    for (const o of m.out_of_memory) {
      const times = o.times > 1 ? ` ${o.times} times` : "";
      nodes.push(el("p", { class: "failed" }, `${o.space} memory ran out${times}: pid ${o.pid} asked for ${bytes(o.asked_bytes)}`));
    }
    for (const w of m.warnings) nodes.push(el("p", { class: "note" }, w));
    if (m.arenas.length === 0) nodes.push(el("p", {}, "No allocations were recorded."));
    for (const a of m.arenas) nodes.push(...arena(a).filter(Boolean));
    nodes.push(command(`ebpfprof memory ${quoted(dataset.root)}`));
    return nodes;
  }
}

function arena(a) {
  const name = `${a.space}${a.device_id === null ? "" : ` ${a.device_id}`} memory of pid ${a.pid}, ${a.level}`;
  const lists = [
    ["by_line", "line"],
    ["by_module", "module"],
    ["by_operator", "operator"],
    ["by_phase", "phase"],
  ];
  return [
    el("h2", {}, name),
    el(
      "p",
      {},
      `${a.partial ? "≈ " : ""}${bytes(a.peak_bytes)} live at the peak, ${bytes(a.end_bytes)} at the end; ` +
        `${count(a.allocations)} allocations and ${count(a.frees)} frees` +
        (a.allocator_said_bytes === null ? "." : `; the allocator itself counted ${bytes(a.allocator_said_bytes)}.`),
    ),
    a.partial
      ? el("p", { class: "note" }, "Only slices of the run were recorded: what was allocated or freed between them is not in these bytes.")
      : null,
    curve(a),
    ...lists.map(([key, title]) => {
      const rows = a.holders?.[key] ?? [];
      const most = largest(1, rows, (r) => r.bytes);
      return rows.length
        ? sortable({
            name: `memory-${title}`,
            caption: `Held at the peak, by ${title}`,
            rows,
            sortBy: "bytes",
            columns: [
              { title, value: (r) => r.key },
              { title: "bytes", number: true, value: (r) => r.bytes, show: (r) => bytes(r.bytes) },
              { title: "of the largest", value: (r) => r.bytes / most, show: (r) => whisker(r.bytes, null, null, most, bytes(r.bytes)) },
              { title: "share", number: true, value: (r) => r.share, show: (r) => percent(r.share) },
              { title: "blocks", number: true, value: (r) => r.blocks, show: (r) => count(r.blocks) },
            ],
          })
        : null;
    }),
    a.growth?.length
      ? sortable({
          name: "growth",
          caption: "Lines whose bytes grow from step to step",
          rows: a.growth,
          sortBy: "a step",
          columns: [
            { title: "line", value: (g) => g.line },
            { title: "kind", value: (g) => g.kind },
            { title: "a step", number: true, value: (g) => g.bytes_per_step, show: (g) => bytes(g.bytes_per_step) },
            { title: "at least", number: true, value: (g) => g.bytes_per_step_lo, show: (g) => bytes(g.bytes_per_step_lo) },
            { title: "at most", number: true, value: (g) => g.bytes_per_step_hi, show: (g) => bytes(g.bytes_per_step_hi) },
            { title: "steps", number: true, value: (g) => g.steps, show: (g) => count(g.steps) },
            { title: "confidence", value: (g) => g.confidence },
          ],
        })
      : null,
  ];
}

// curve is live bytes over time: from the least to the most of each stretch.
function curve(a) {
  const c = a.curve ?? [];
  if (c.length < 2) return null;
  const most = largest(Math.max(1, a.peak_bytes), c, (p) => p.max_bytes);
  const x = (p) => (900 * (p.ns - c[0].ns)) / Math.max(c.at(-1).ns - c[0].ns, 1);
  const y = (b) => 160 - (155 * b) / most;
  const point = (p, key) => `${x(p).toFixed(1)},${y(p[key]).toFixed(1)}`;
  return el(
    "div",
    {},
    svg(
      "svg",
      { viewBox: "0 0 900 162", preserveAspectRatio: "none", class: "plot", role: "img", "aria-label": `live bytes over time, up to ${bytes(a.peak_bytes)}` },
      svg("polygon", { points: ["0,160", ...c.map((p) => point(p, "max_bytes")), "900,160"].join(" "), class: "value faint" }),
      svg("polygon", { points: ["0,160", ...c.map((p) => point(p, "min_bytes")), "900,160"].join(" "), class: "value" }),
    ),
    el(
      "p",
      { class: "axis" },
      el("span", {}, "begin"),
      el("span", {}, `highest ${bytes(a.peak_bytes)}; pale: between the least and the most of a stretch`),
      el("span", {}, duration(a.end_ns - a.begin_ns)),
    ),
  );
}
