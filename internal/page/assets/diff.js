// Comparison of this dataset with an earlier one: what differs beyond the noise first.
import { json } from "./api.js";
import { el, svg, duration, digits, command, largest } from "./text.js";
import { quoted } from "./overview.js";
import { sortable } from "./table.js";

const ms = (v) => duration(v * 1e6);
const change = (p) => (p === null || p === undefined ? "new" : `${p > 0 ? "+" : p < 0 ? "−" : ""}${digits(Math.abs(p))} %`);

export function diff({ main, dataset }) {
  const stop = new AbortController();
  main.append(el("p", { class: "waiting", role: "status" }, "Comparing …"));
  json("/api/diff", { signal: stop.signal })
    .then((d) => main.replaceChildren(...parts(d, dataset).filter(Boolean)))
    .catch(
      (error) =>
        error.name !== "AbortError" && main.replaceChildren(el("p", { class: "failed", role: "alert" }, error.message)),
    )
    .finally(() => {
      if (!stop.signal.aborted) main.dataset.drawn = "yes";
    });
  return { close: () => stop.abort() };
}

function parts(d, dataset) {
  const most = largest(1e-9, d.rows, (r) => Math.abs(r.after_ms - r.before_ms) + (r.noise_ms ?? 0));
  const moved = (r) => r.after_ms - r.before_ms;
  const sure = (rows) => rows.filter((r) => r.significant).length;
  return [
    el(
      "section",
      { class: "verdict" },
      el("h2", {}, "Verdict"),
      el("p", { class: "first" }, d.sentence),
      el(
        "p",
        {},
        `${d.compared}: ${ms(d.step_ms.before)} before, ${ms(d.step_ms.after)} after, ${change(d.step_ms.change_percent)}; ` +
          `noise ${digits(d.noise_percent)} % (${d.noise_from}).`,
      ),
      el("p", { class: "note" }, `before: ${dataset.before} · after: ${dataset.root}`),
    ),
    d.rows.length
      ? sortable({
          name: "comparison",
          caption: "What changed, by time a step",
          rows: d.rows,
          sortBy: "",
          columns: [
            { title: "what", value: (r) => r.key },
            { title: "kind", value: (r) => r.kind.replaceAll("_", " ") },
            { title: "before", number: true, value: (r) => r.before_ms, show: (r) => ms(r.before_ms) },
            { title: "after", number: true, value: (r) => r.after_ms, show: (r) => ms(r.after_ms) },
            { title: "difference", number: true, value: moved, show: (r) => `${moved(r) > 0 ? "+" : moved(r) < 0 ? "−" : ""}${ms(Math.abs(moved(r)))}` },
            { title: "less · more", value: (r) => moved(r) / most, show: (r) => bar(r, moved(r), most) },
            { title: "change", number: true, value: (r) => r.change_percent, show: (r) => change(r.change_percent) },
            { title: "noise", number: true, value: (r) => r.noise_ms, show: (r) => (r.noise_ms === null ? "not known" : `± ${ms(r.noise_ms)}`) },
            { title: "beyond noise", value: (r) => (r.significant ? "yes" : "no"), show: (r) => (r.significant ? el("strong", {}, "yes") : "no") },
          ],
        })
      : el("p", {}, "Nothing that both have can be compared row by row."),
    d.rows.length
      ? el("p", { class: "note" }, `${sure(d.rows)} of ${d.rows.length} rows differ by more than chance. Whiskers are the noise of a row, where it is known.`)
      : null,
    el(
      "section",
      {},
      el("h2", {}, "Are the two comparable?"),
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, ...["", "before", "after", ""].map((h) => (h === "" ? el("td") : el("th", { scope: "col" }, h))))),
        el(
          "tbody",
          {},
          ...d.comparability.map((f) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, f.what),
              el("td", {}, f.before),
              el("td", {}, f.after),
              el("td", { class: "short" }, f.same ? "the same" : el("strong", {}, "differs")),
            ),
          ),
        ),
      ),
      el("p", { class: "note" }, `before ${d.computed_on_before}; after ${d.computed_on_after}`),
    ),
    command(`ebpfprof diff ${quoted(dataset.before)} ${quoted(dataset.root)}`),
  ];
}

// bar goes from the middle to the left for less, to the right for more, with the noise around its end.
function bar(r, moved, most) {
  const x = (v) => 50 + (50 * Math.max(-most, Math.min(most, v))) / most;
  const nodes = [
    svg("line", { x1: 50, x2: 50, y1: 0, y2: 18, class: "whisker thin" }),
    svg("rect", { x: Math.min(50, x(moved)), y: 4, width: Math.abs(x(moved) - 50), height: 10, class: moved > 0 ? "more" : "less" }),
  ];
  if (r.noise_ms !== null)
    nodes.push(svg("line", { x1: x(moved - r.noise_ms), x2: x(moved + r.noise_ms), y1: 9, y2: 9, class: "whisker" }));
  return svg(
    "svg",
    {
      viewBox: "0 0 100 18",
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${moved > 0 ? "more" : "less"} by ${ms(Math.abs(moved))}`,
      class: `whiskered${r.significant ? "" : " unsure"}`,
    },
    ...nodes,
  );
}
