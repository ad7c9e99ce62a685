// Critical path: what kept a step from ending earlier.
import { json } from "./api.js";
import { el, duration, percent, count, command, largest } from "./text.js";
import { quoted } from "./overview.js";
import { sortable, whisker } from "./table.js";

const ms = (v) => duration(v * 1e6);
const kinds = [
  ["cpu_ms", "on the CPU: in calls and between them", "#56b4e9"],
  ["gpu_compute_ms", "kernels", "#2fb48d"],
  ["gpu_communication_ms", "collectives on the device", "#e3875a"],
  ["gpu_copy_ms", "copies and sets", "#f0e442"],
  ["gpu_kernel_kernel_overhead_ms", "between two pieces of work of a stream", "#cc79a7"],
  ["gpu_stream_wait_overhead_ms", "waits for another stream", "#b7c8de"],
  ["gpu_kernel_launch_overhead_ms", "between a launch and its work", "#e69f00"],
];

export function path({ main, dataset, query, go }) {
  const stop = new AbortController();
  const step = /^\d+$/.test(query.get("step") ?? "") ? query.get("step") : "";
  main.append(el("p", { class: "waiting", role: "status" }, "Looking for the critical path …"));
  Promise.all([
    json(`/api/critical-path${step ? `?step=${step}` : ""}`, { signal: stop.signal }),
    json("/api/lanes", { signal: stop.signal }),
  ])
    .then(([p, laid]) => main.replaceChildren(...parts(p, laid).filter(Boolean)))
    .catch((error) => error.name !== "AbortError" && main.replaceChildren(el("p", { class: "failed", role: "alert" }, error.message)))
    .finally(() => {
      if (!stop.signal.aborted) main.dataset.drawn = "yes";
    });
  return { close: () => stop.abort() };

  function parts(p, laid) {
    // Times since 1970 do not fit a double: the difference is taken in whole numbers. begin_ns lost its last digits.
    const from = Number(BigInt(p.begin_ns) - BigInt(laid.base_ns));
    const until = from + p.path_ms * 1e6;
    const some = kinds.map(([key, text, color]) => ({ text, color, ms: p.bound_by[key] ?? 0 })).filter((k) => k.ms > 0);
    const most = largest(1e-9, p.parts, (x) => x.exposed_ms);
    const number = el("input", { type: "number", min: 0, value: step || p.step, "aria-label": "step" });
    return [
      el("h2", {}, `Critical path of ${p.of}`),
      el(
        "p",
        {},
        `${ms(p.path_ms)} from its begin to its last end, ${count(p.segments.length)} pieces; ${ms(p.host_ms)} in calls, ` +
          `${ms(p.between_ms)} between calls, ${ms(p.device_ms)} on devices. ${ms(p.hidden_device_ms)} of work on devices is hidden. `,
        el(
          "a",
          { href: `#timeline?from=${Math.floor(from - (until - from) * 0.05)}ns&until=${Math.ceil(until + (until - from) * 0.05)}ns` },
          "this step on the timeline",
        ),
      ),
      // The path of a recording without steps is that of all of it: there is no other to show.
      p.kind
        ? el(
            "form",
            {
              onsubmit: (e) => {
                e.preventDefault();
                go("path", { step: number.value });
              },
            },
            el("label", {}, "step ", number),
            " ",
            el("button", {}, "show"),
            " ",
            p.step > 0 ? el("a", { href: `#path?step=${p.step - 1}` }, "previous") : null,
            " ",
            el("a", { href: `#path?step=${p.step + 1}` }, "next"),
          )
        : null,
      el("p", { class: "note" }, `made of: ${p.method}${p.dropped_edges ? `; ${p.dropped_edges} edges contradicted the measured times` : ""}`),
      el(
        "div",
        { class: "phases", role: "img", "aria-label": some.map((k) => `${k.text} ${percent(k.ms / p.path_ms)}`).join(", ") },
        ...some.map((k) =>
          el(
            "span",
            { class: "phase", title: `${k.text}: ${ms(k.ms)}`, style: { width: `${(100 * k.ms) / p.path_ms}%`, background: k.color } },
            k.ms > p.path_ms / 5 ? k.text : "",
          ),
        ),
      ),
      el(
        "ul",
        {},
        ...some.map((k) =>
          el("li", {}, el("span", { class: "swatch", style: { background: k.color } }), `${k.text}: ${ms(k.ms)}, ${percent(k.ms / p.path_ms)}`),
        ),
      ),
      sortable({
        name: "critical-path",
        caption: "What is on it",
        rows: p.parts,
        sortBy: "exposed",
        pick: (x) => x.layer && go("timeline", { mark: `name~${x.layer}~${x.name}`, from: `${Math.floor(from)}ns`, until: `${Math.ceil(until)}ns` }),
        columns: [
          { title: "what", value: (x) => x.name },
          { title: "where", value: (x) => x.where },
          { title: "exposed", number: true, value: (x) => x.exposed_ms, show: (x) => ms(x.exposed_ms) },
          { title: "of the largest", value: (x) => x.exposed_ms / most, show: (x) => whisker(x.exposed_ms, null, null, most, ms(x.exposed_ms)) },
          { title: "share", number: true, value: (x) => x.percent, show: (x) => percent(x.percent / 100) },
          { title: "hidden", number: true, value: (x) => x.hidden_ms, show: (x) => ms(x.hidden_ms) },
        ],
      }),
      p.ranks?.length
        ? sortable({
            name: "ranks",
            caption: "Ranks that it goes through",
            rows: p.ranks,
            sortBy: "exposed",
            columns: [
              { title: "rank", number: true, value: (x) => x.rank },
              { title: "exposed", number: true, value: (x) => x.exposed_ms, show: (x) => ms(x.exposed_ms) },
              { title: "waits for later ranks", number: true, value: (x) => x.waits_ms, show: (x) => ms(x.waits_ms) },
              { title: "collectives it came to last", number: true, value: (x) => x.last },
            ],
          })
        : null,
      command(`ebpfprof critical-path ${quoted(dataset.root)}${step ? ` --step ${step}` : ""}`),
    ];
  }
}
