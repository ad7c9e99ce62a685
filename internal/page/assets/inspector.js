// The one panel below a view: what is selected, and how to get the same elsewhere.
import { json } from "./api.js";
import { el, duration, count, copy, percent } from "./text.js";
import { quoted } from "./overview.js";
import { titleOf } from "./layout.js";
import { exports } from "./table.js";

export function inspector(t) {
  const node = el("section", { class: "inspector", hidden: true, "aria-label": "what is selected" });
  const show = (title, ...children) => {
    node.hidden = false;
    node.replaceChildren(
      el(
        "div",
        { class: "head" },
        el("h2", {}, title),
        el("button", { type: "button", class: "small", title: "key Esc", onclick: () => t.drop() }, "close"),
      ),
      ...children.filter((c) => c !== null),
    );
  };
  const sql = (text) =>
    el(
      "details",
      {},
      el("summary", {}, "How do I get this?"),
      el("pre", {}, text),
      el(
        "button",
        {
          type: "button",
          class: "small",
          onclick: () => copy(`ebpfprof query ${quoted(t.dataset.root)} ${quoted(text)}`),
        },
        "copy as a command",
      ),
    );

  return {
    node,
    close: () => {
      node.hidden = true;
      node.replaceChildren();
    },
    fail: (text) => show("Selected", el("p", { class: "failed" }, text)),

    // call shows all that is known of one.
    call(call, known) {
      const value = (k, v) => (/_ns$/.test(k) && k !== "ts_ns" ? `${duration(Number(v))} (${v} ns)` : v);
      show(
        known.name,
        known.deviceBounds ?? null,
        el(
          "table",
          {},
          el(
            "tbody",
            {},
            ...call.fields
              .filter(([k]) => k !== "name")
              .map(([k, v]) => el("tr", {}, el("th", { scope: "row" }, k), el("td", {}, value(k, v)))),
          ),
        ),
        call.stack.length
          ? el(
              "div",
              {},
              el("h3", {}, "Called from"),
              el(
                "ol",
                { class: "stack" },
                ...call.stack.map((f) =>
                  el(
                    "li",
                    {},
                    el(
                      "a",
                      { href: `#source?file=${encodeURIComponent(f.file)}&line=${f.line}` },
                      `${f.file.split("/").pop()}:${f.line}`,
                    ),
                    ` ${f.function}`,
                  ),
                ),
              ),
            )
          : null,
        sql(call.sql),
      );
    },

    // flows adds what led to the call, and what it led to.
    flows: (list) => list && node.firstChild.after(list),

    // wait shows a wait of a thread, and who ended it.
    wait(block, w, waker) {
      const row = (k, v) => (v ? el("tr", {}, el("th", { scope: "row" }, k), el("td", {}, v)) : null);
      show(
        `${titleOf(block.lane)} waited ${duration(w.ns)}`,
        el(
          "table",
          {},
          el(
            "tbody",
            {},
            row("begins at", duration(w.at)),
            row("cause", [w.cause, w.syscall].filter(Boolean).join(" ")),
            row("ready to run, without a CPU", w.ready ? duration(w.ready) : ""),
            row(
              "ended by",
              w.waker
                ? waker
                  ? el("button", { type: "button", class: "link", onclick: () => t.show(waker.number, waker.thread) }, titleOf(waker))
                  : `thread ${w.waker}, of which nothing was recorded`
                : "",
            ),
          ),
        ),
      );
    },

    // box shows what ran in a part of the timeline.
    async box({ from, until, keys }, focus) {
      const numbers = keys.map((k) => t.laneOf(k)?.number).filter((n) => n >= 0);
      const title = `${duration(until - from)} from ${duration(from)} on, ${numbers.length} lane${numbers.length === 1 ? "" : "s"}`;
      if (numbers.length === 0) return show(title, el("p", {}, "No calls were recorded in these lanes."));
      show(title, el("p", {}, "Computing …"));
      try {
        const s = await json(`/api/selection?from=${Math.round(from)}&until=${Math.round(until)}&lanes=${numbers}`, {
          signal: t.stop.signal,
        });
        const rows = s.rows.map((r) => {
          const estimated = Math.abs(r.represented - r.calls) > 0.5;
          return el(
            "tr",
            {},
            el("th", { scope: "row" }, r.name),
            el("td", {}, r.layer),
            el("td", { class: "number" }, count(r.calls)),
            el("td", { class: "number" }, estimated ? `≈ ${count(r.represented)}` : ""),
            el("td", { class: "number" }, duration(r.time_ns)),
            el("td", { class: "number" }, percent(r.time_ns / (until - from))),
            el("td", { class: "number" }, r.longest_ns === null ? "" : duration(r.longest_ns)),
            el(
              "td",
              { class: "number" },
              r.device_hi_ns === null ? "" : `${duration(r.device_lo_ns ?? 0)} to ${duration(r.device_hi_ns)}, bounded`,
            ),
          );
        });
        const from_ms = (ns) => Math.max(0, ns / 1e6 + t.laid.first_ms).toFixed(6);
        show(
          title,
          s.cpu_ns === null
            ? null
            : el("p", {}, `By samples: ${duration(s.cpu_ns)} on a CPU, ${duration(s.wait_ns)} waiting.`),
          el(
            "p",
            { class: "note" },
            "Time is what lies inside of the box, calls are those that begin in it; a call inside another counts in both.",
            s.has_more ? " Only the first 200 names are listed." : "",
          ),
          el(
            "table",
            { tabindex: -1 },
            el(
              "thead",
              {},
              el(
                "tr",
                {},
                ...["name", "layer", "recorded", "represent", "time", "of the box", "longest", "on the device"].map(
                  (h) => el("th", { scope: "col" }, h),
                ),
              ),
            ),
            el("tbody", {}, ...rows),
          ),
          rows.length === 0 ? el("p", {}, "Nothing ran here.") : null,
          el(
            "p",
            {},
            el("a", { href: `#flame?from=${from_ms(from)}&to=${from_ms(until)}` }, "Flame graph of this time"),
            " · ",
            el("a", { href: `#overview?from=${from_ms(from)}&to=${from_ms(until)}` }, "report of this time"),
          ),
          el(
            "p",
            {},
            exports(
              "selection",
              ["name", "layer", "calls", "represented", "time_ns", "longest_ns", "device_lo_ns", "device_hi_ns", "unfinished"].map((k) => [k, (r) => r[k]]),
              () => s.rows,
            ),
          ),
          sql(s.sql),
        );
        if (focus) node.querySelector("table")?.focus();
        t.main.dataset.selected = "yes";
      } catch (error) {
        if (error.name !== "AbortError") show(title, el("p", { class: "failed" }, error.message));
      }
    },
  };
}
