// Operators and kernels: what costs most, with its bounds, and where on the timeline it is.
import { json } from "./api.js";
import { el, duration, count, percent, digits, command, largest } from "./text.js";
import { quoted } from "./overview.js";
import { sortable, whisker } from "./table.js";

const ms = (v) => (v === null || v === undefined ? "" : duration(v * 1e6));
const about = (row, text) => (row.estimated && text ? `≈ ${text}` : text);

export function operators({ main, dataset, query, go }) {
  const stop = new AbortController();
  main.append(el("p", { class: "waiting", role: "status" }, "Computing the report …"));
  const part = new URLSearchParams([...query].filter(([n]) => ["rank", "step", "from", "to"].includes(n))).toString();
  json(`/api/report?${part}`, { signal: stop.signal })
    .then((r) => {
      main.replaceChildren(...tables(r).filter(Boolean), command(`ebpfprof report ${quoted(dataset.root)} --top 0`));
      main.dataset.drawn = "yes";
    })
    .catch((error) => {
      if (error.name === "AbortError") return;
      main.replaceChildren(el("p", { class: "failed", role: "alert" }, error.message));
      main.dataset.drawn = "yes";
    });

  function tables(r) {
    const most = largest(1e-9, r.operators, (o) => o.total_hi_ms ?? o.total_ms);
    const ran = largest(1e-9, r.kernels, (k) => k.device_ms);
    return [
      r.operators.length
        ? sortable({
            name: "operators",
            caption: "Operators",
            rows: r.operators,
            sortBy: "self",
            pick: (o) => go("timeline", { mark: `name~${o.layer ?? ""}~${o.name}` }),
            columns: [
              { title: "operator", value: (o) => o.name },
              { title: "layer", value: (o) => o.layer },
              { title: "calls", number: true, value: (o) => o.calls, show: (o) => about(o, count(o.calls)) },
              { title: "total", number: true, value: (o) => o.total_ms, show: (o) => about(o, ms(o.total_ms)) },
              {
                title: "of the largest",
                value: (o) => o.total_ms / most,
                show: (o) => whisker(o.total_ms, o.total_lo_ms, o.total_hi_ms, most, said(o)),
              },
              { title: "at least", number: true, value: (o) => o.total_lo_ms, show: (o) => ms(o.total_lo_ms) },
              { title: "at most", number: true, value: (o) => o.total_hi_ms, show: (o) => ms(o.total_hi_ms) },
              { title: "self", number: true, value: (o) => o.self_ms, show: (o) => about(o, ms(o.self_ms)) },
              {
                title: "a call",
                number: true,
                value: (o) => o.total_ms / Math.max(o.calls, 1e-9),
                show: (o) => ms(o.total_ms / Math.max(o.calls, 1e-9)),
              },
              { title: "device", number: true, value: (o) => o.device_ms, show: (o) => ms(o.device_ms) },
              { title: "FLOP", number: true, value: (o) => o.flops, show: (o) => large(o.flops) },
              { title: "bytes", number: true, value: (o) => o.bytes_moved, show: (o) => large(o.bytes_moved) },
            ],
          })
        : el("p", {}, "No operators were recorded: record with --level window or deep."),
      r.kernels.length
        ? sortable({
            name: "kernels",
            caption: "Kernels",
            rows: r.kernels,
            sortBy: "device time",
            pick: (k) => go("timeline", { mark: `name~device~${k.name}` }),
            columns: [
              { title: "kernel", value: (k) => k.name },
              { title: "category", value: (k) => k.category },
              { title: "calls", number: true, value: (k) => k.calls, show: (k) => count(k.calls) },
              { title: "device time", number: true, value: (k) => k.device_ms, show: (k) => ms(k.device_ms) },
              { title: "of the largest", value: (k) => k.device_ms / ran, show: (k) => whisker(k.device_ms, null, null, ran, ms(k.device_ms)) },
              { title: "share", number: true, value: (k) => k.percent, show: (k) => percent(k.percent / 100) },
              { title: "launched by", value: (k) => k.operator ?? "" },
            ],
          })
        : null,
      r.launches.length
        ? sortable({
            name: "launches",
            caption: "Launches, with bounds of their device time",
            rows: r.launches,
            sortBy: "host",
            columns: [
              { title: "call", value: (l) => l.name },
              { title: "calls", number: true, value: (l) => l.calls, show: (l) => count(l.calls) },
              { title: "host", number: true, value: (l) => l.host_ms, show: (l) => ms(l.host_ms) },
              { title: "device at least", number: true, value: (l) => l.device_lo_ms, show: (l) => ms(l.device_lo_ms) },
              { title: "device at most", number: true, value: (l) => l.device_hi_ms, show: (l) => ms(l.device_hi_ms) },
            ],
          })
        : null,
    ];
  }
  return { close: () => stop.abort() };
}

const said = (o) =>
  `${about(o, ms(o.total_ms))}${o.total_lo_ms === null || o.total_lo_ms === undefined ? "" : `, ${ms(o.total_lo_ms)} to ${ms(o.total_hi_ms)}`}`;

function large(n) {
  if (n === null || n === undefined) return "";
  const [unit, of] = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]].find(([, k]) => n >= k) ?? ["", 1];
  return `${digits(n / of)} ${unit}`.trim();
}
