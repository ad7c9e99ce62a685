// Live: the recording that is being made: operators a second, the job's CPUs, its last steps, budget and losses.
import { json } from "./api.js";
import { quoted } from "./overview.js";
import { el, svg, duration, count, digits, largest, command } from "./text.js";

export function live({ main, dataset, go }) {
  const stop = new AbortController();
  let of = dataset; // the dataset as it is now
  let shown = null; // the last answer
  let came = performance.now(); // when its rows came
  let recorder = null;
  const state = el("p", { class: "first", role: "status" });
  const facts = el("div", { class: "tiles" });
  const charts = el("div", {});
  const losses = el("section", {});
  main.append(
    el("section", { class: "verdict" }, el("h2", {}, "Live"), state),
    facts,
    charts,
    losses,
    el(
      "p",
      {},
      el("button", { type: "button", onclick: () => go("timeline") }, "timeline"),
      " ",
      el("button", { type: "button", onclick: () => go("overview") }, "report of what is recorded so far"),
    ),
    command(`ebpfprof steps ${quoted(dataset.root)}`),
  );

  async function load() {
    try {
      shown = await json("/api/live", { signal: stop.signal });
      came = performance.now();
      charts.replaceChildren(...drawn(shown));
      losses.replaceChildren(...lost(shown, recorder));
      tell();
      main.dataset.drawn = "yes";
    } catch (error) {
      if (error.name !== "AbortError") state.textContent = error.message;
    }
  }

  function tell() {
    if (!shown) return;
    const ago = performance.now() - came;
    const silent = ago > 10_000 ? `: no new rows for ${duration(Math.round(ago / 1000) * 1e9)}; the recorder may have ended` : "";
    const since = duration(shown.elapsed_ns);
    const text = of.recording ? `Recording for ${since}${silent}` : `The recording has ended after ${since}`;
    if (state.textContent !== text) state.textContent = text;
    facts.replaceChildren(...tiles(shown, recorder));
  }

  async function ask() {
    try {
      recorder = await json("/api/recorder", { signal: stop.signal });
      if (shown) losses.replaceChildren(...lost(shown, recorder));
    } catch {
      /* the notice above the view says what is the matter */
    }
    if (stop.signal.aborted) return;
    tell();
    timer = setTimeout(ask, 1000);
  }
  let timer = setTimeout(ask, 0);
  load();
  return {
    grew: (now) => {
      of = now;
      load();
    },
    close: () => {
      stop.abort();
      clearTimeout(timer);
    },
  };
}

const tile = (name, value, note) =>
  el("div", { class: "tile" }, el("h3", {}, name), el("p", { class: "value-text" }, value), el("p", { class: "note" }, note ?? ""));

function tiles(d, recorder) {
  const known = d.operators_per_second.filter((v) => v !== null);
  const now = known.at(-1);
  const steps = d.steps.filter((s) => s.kind !== "warmup").map((s) => s.duration_ns);
  const middle = [...steps].sort((a, b) => a - b)[Math.floor(steps.length / 2)];
  const all = [
    tile(
      "operators a second",
      now === undefined ? "none yet" : `${d.estimated ? "≈ " : ""}${count(now)}`,
      d.calls_until_end_ns === null
        ? "calls of the first 30 s are written together, once it is known what they stand for"
        : `${count(d.calls)} recorded${d.calls_until_end_ns > 1e9 ? `; the last one is ${duration(d.calls_until_end_ns)} older than the last row` : ""}`,
    ),
    tile(
      "step time",
      steps.length ? duration(steps.at(-1)) : "no steps yet",
      steps.length ? `median of the last ${steps.length}: ${duration(middle)}; ${count(d.steps_seen)} seen` : "",
    ),
    tile("CPUs busy", d.cpus_busy.length ? digits(d.cpus_busy.at(-1)) : "none yet", "of the job, by its samples, in the last second"),
  ];
  const budget = d.budget_percent === null ? "no budget: every call is recorded" : `at most ${digits(d.budget_percent)} % of the job's time`;
  all.push(
    tile("cost of recording", d.overhead_percent === null ? budget : `≈ ${digits(d.overhead_percent)} %`,
      d.overhead_percent === null ? "the budget; what it came to is known when the recording ends" : budget),
  );
  if (recorder)
    all.push(
      tile("events a second", count(recorder.events_per_second), `${count(recorder.events)} so far, ${count(recorder.samples)} samples`),
      tile("probe hits a second", count(recorder.hits_per_second), `${count(recorder.hits)} so far; those between slices cost nothing`),
      tile("written", size(recorder.bytes), "in the dataset"),
    );
  return all;
}

function size(bytes) {
  const [unit, of] = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].find(([, n]) => bytes >= n) ?? ["B", 1];
  return `${digits(bytes / of)} ${unit}`;
}

function drawn(d) {
  const seconds = d.until_end_ns.length;
  const axis = el("p", { class: "axis" }, el("span", {}, `${seconds} s ago`), el("span", {}, "the last row"));
  return [
    chart("Operators a second", d.operators_per_second, d.estimated, (v) => count(v), axis.cloneNode(true)),
    chart("CPUs that the job is on", d.cpus_busy, true, digits, axis),
    stepBars(d),
  ];
}

// chart has a bar a second; a second without a bar is not known, one with a flat bar is nothing.
function chart(title, values, estimated, text, axis) {
  const most = largest(1e-9, values, (v) => v ?? 0);
  const width = 900 / Math.max(values.length, 1);
  const bars = values
    .map((v, i) => [v, i])
    .filter(([v]) => v !== null)
    .map(([v, i]) => {
      const tall = Math.max(1, (95 * v) / most);
      return svg(
        "rect",
        { x: i * width, y: 100 - tall, width: Math.max(width - 1, 0.5), height: tall, class: "value" },
        svg("title", {}, `${values.length - i} s ago: ${estimated ? "≈ " : ""}${text(v)}`),
      );
    });
  const unknown = values.filter((v) => v === null).length;
  const label = `${title}: at most ${text(most)}`;
  return el(
    "section",
    {},
    el("h2", {}, title),
    svg("svg", { viewBox: "0 0 900 100", preserveAspectRatio: "none", class: "steps", role: "img", "aria-label": label }, ...bars),
    axis,
    el(
      "p",
      { class: "note" },
      `The tallest bar is ${estimated ? "≈ " : ""}${text(most === 1e-9 ? 0 : most)}.`,
      unknown ? ` No bar: not recorded then, or not written yet (${unknown} s).` : "",
    ),
  );
}

function stepBars(d) {
  if (d.steps.length === 0) return el("section", {}, el("h2", {}, "Steps"), el("p", { class: "note" }, "No steps have been found so far."));
  const most = largest(1, d.steps, (s) => s.duration_ns);
  const width = 900 / d.steps.length;
  const bars = d.steps.map((s, i) => {
    const tall = Math.max(1, (95 * s.duration_ns) / most);
    return svg(
      "rect",
      { x: i * width, y: 100 - tall, width: Math.max(width - (width > 3 ? 1 : 0), 0.5), height: tall, class: s.kind === "warmup" ? "value faint" : "value" },
      svg("title", {}, `step ${s.id}: ${duration(s.duration_ns)}`),
    );
  });
  return el(
    "section",
    {},
    el("h2", {}, `Step times of process ${d.step_pid}`),
    svg(
      "svg",
      { viewBox: "0 0 900 100", preserveAspectRatio: "none", class: "steps", role: "img", "aria-label": `the last ${d.steps.length} steps, ${duration(most)} at most` },
      ...bars,
    ),
    el("p", { class: "note" }, `The last ${d.steps.length} of ${count(d.steps_seen)} steps; the longest of them took ${duration(most)}.`),
  );
}

// lost lists what the recording lost: what the recorder says while it records, and what the dataset has in the end.
function lost(d, recorder) {
  const rows = recorder
    ? Object.entries(recorder.lost).filter(([, n]) => n > 0)
    : d.losses.map((l) => [l.source, l.count]);
  const title = el("h2", {}, "Losses");
  if (rows.length > 0)
    return [
      title,
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "what"), el("th", { scope: "col", class: "number" }, "rows"))),
        el(
          "tbody",
          {},
          ...rows.map(([what, n]) =>
            el("tr", {}, el("th", { scope: "row" }, what.replaceAll("_", " ")), el("td", { class: "number" }, count(n))),
          ),
        ),
      ),
    ];
  const none = recorder || !d.recording ? "Nothing was lost so far." : "The recorder writes its losses into the dataset when it ends.";
  return [title, el("p", { class: "note" }, none)];
}
