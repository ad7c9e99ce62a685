// Hang: which rank is missing in the collective that the others wait in: ranks by numbers of collectives, and where the
// missing ones are.
import { json } from "./api.js";
import { el, svg, count, digits, command } from "./text.js";
import { quoted } from "./overview.js";

export function hang({ main, dataset }) {
  const stop = new AbortController();
  main.append(el("p", { class: "waiting", role: "status" }, "Looking for ranks that wait …"));
  const load = () =>
    json("/api/hang", { signal: stop.signal })
      .then((d) => main.replaceChildren(...sections(d), command(`ebpfprof fleet hang ${quoted(dataset.root)}`)))
      .catch((e) => e.name !== "AbortError" && main.replaceChildren(el("p", { class: "failed", role: "alert" }, e.message)))
      .finally(() => !stop.signal.aborted && (main.dataset.drawn = "yes"));
  load();
  return { grew: load, close: () => stop.abort() };
}

function sections(d) {
  const groups = d.groups ?? [];
  const nodes = groups.flatMap(group);
  if (d.unseen)
    nodes.push(
      el("h2", {}, "Waits in collectives whose begin was not recorded"),
      processes("waiting", d.unseen.waiting),
      processes("the others", d.unseen.others),
    );
  if (d.standing?.length) nodes.push(el("h2", {}, "Threads that stand still"), processes("process", d.standing));
  if (nodes.length === 0)
    nodes.push(el("h2", {}, "Hang"), el("p", { class: "first" }, "No rank waited in a collective when the recording was last written."));
  return nodes;
}

const mostDrawn = 200; // ranks, the missing ones first

function group(g) {
  const name = g.name || "a group";
  const missing = g.missing.length;
  const who = g.missing.map((r) => r.rank).slice(0, 8).join(", ") + (missing > 8 ? ", …" : "");
  const sentence = g.mismatch
    ? `Ranks of ${name} asked for different collectives under the number ${g.sequence_number}.`
    : missing
      ? `${name}: ${g.waiting.length} of ${g.ranks} ranks have waited in ${g.collective || "a collective"} (number ${g.sequence_number}) ` +
        `for ${digits(g.seconds)} s; rank ${who} ${missing > 1 ? "are" : "is"} missing.`
      : `${name}: all ${g.ranks} ranks are in ${g.collective || "a collective"} (number ${g.sequence_number}) for ${digits(g.seconds)} s.`;
  const rows = [...g.missing.map((r) => ({ ...r, missing: true })), ...g.waiting];
  return [
    el("section", { class: "verdict" }, el("h2", {}, "Hang"), el("p", { class: "first" }, sentence)),
    grid(g, rows.slice(0, mostDrawn)),
    rows.length > mostDrawn ? el("p", { class: "note" }, `The first ${mostDrawn} of ${count(rows.length)} ranks are drawn.`) : null,
    table(rows),
    ...g.missing.filter((r) => r.threads?.length).map((r) => stacks(`Rank ${r.rank}, which is missing`, r.threads)),
  ].filter(Boolean);
}

// grid has a row a rank and a column a number: filled as far as the rank has come, open where it is missing.
function grid(g, rows) {
  const known = rows.map((r) => r.last_number).filter((n) => n !== null);
  const last = g.sequence_number;
  const first = Math.max(0, Math.min(last - 3, ...known) - 1);
  const columns = Math.min(last - first + 1, 60);
  const begin = last - columns + 1; // a rank that is further behind has no column filled
  const size = 18,
    left = 90;
  const cells = rows.flatMap((r, y) => {
    const title = svg("text", { x: 4, y: y * size + 13, class: "label" }, `rank ${r.rank}`);
    const boxes = Array.from({ length: columns }, (_, i) => {
      const number = begin + i;
      const reached = r.last_number !== null && number <= r.last_number;
      const here = number === last;
      const said = `rank ${r.rank}, collective ${number}: ${here && !r.missing ? "waits in it" : reached ? "was in it" : "has not come"}`;
      return svg(
        "rect",
        {
          x: left + i * size + 1,
          y: y * size + 1,
          width: size - 2,
          height: size - 2,
          class: reached && !(here && r.missing) ? (here ? "waits" : "value") : r.last_number === null && !here ? "unknown" : "absent",
        },
        svg("title", {}, said),
      );
    });
    return [title, ...boxes];
  });
  const width = left + columns * size,
    height = rows.length * size + 18;
  const numbers = [svg("text", { x: left, y: height - 4, class: "label" }, String(begin)),
    svg("text", { x: width, y: height - 4, class: "label", "text-anchor": "end" }, String(last))];
  return el(
    "section",
    {},
    svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", class: "ranks", "aria-label": "ranks by numbers of collectives; the table below has the same" },
      ...cells,
      ...numbers,
    ),
    el("p", { class: "note" }, "A row is a rank, a column a collective by its number. Filled: the rank has asked for it; orange with a dashed edge: it waits in it; open: it has not come."),
  );
}

function table(rows) {
  return el(
    "table",
    {},
    el("thead", {}, el("tr", {}, ...["rank", "state", "last number", "collective", "host, pid", "where"].map((h) => el("th", { scope: "col" }, h)))),
    el(
      "tbody",
      {},
      ...rows.map((r) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, String(r.rank)),
          el("td", {}, r.missing ? (r.ended ? "missing: its process has ended" : r.stopped ? `missing: stopped by ${r.stopped}` : "missing") : "waits"),
          el("td", { class: "number" }, r.last_number === null ? "not known" : String(r.last_number)),
          el("td", {}, r.collective ?? ""),
          el("td", {}, `${r.host ?? ""} ${r.pid ?? "not in the recording"}`.trim()),
          el("td", { class: "place" }, place(r)),
        ),
      ),
    ),
  );
}

function place(r) {
  if (!r.place) return "not known";
  const line = /^(.+:\d+)(.*)$/.exec(r.place); // and the function
  const link = line ? el("span", {}, el("a", { href: `#source?place=${encodeURIComponent(line[1])}` }, line[1]), line[2]) : r.place;
  return r.sampled ? el("span", {}, link, " (its last sample)") : link;
}

const processes = (what, all) =>
  el(
    "section",
    {},
    ...(all ?? []).flatMap((p) => [
      el(
        "p",
        {},
        `${what}: ${p.rank === null ? "" : `rank ${p.rank}, `}pid ${p.pid}${p.collective ? `, ${p.collective}` : ""}`,
        p.seconds ? `, for ${digits(p.seconds)} s` : "",
        p.stopped ? `, stopped by ${p.stopped}` : "",
        p.place ? `, at ${p.place}` : "",
      ),
      p.threads?.length ? stacks("", p.threads) : null,
    ].filter(Boolean)),
  );

function stacks(title, threads) {
  return el(
    "section",
    {},
    title ? el("h2", {}, title) : null,
    ...threads.slice(0, 40).map((t) =>
      el(
        "details",
        { open: t.main },
        el(
          "summary",
          {},
          `${t.name || "thread"} ${t.tids.slice(0, 5).join(", ")}${t.tids.length > 5 ? ", …" : ""}`,
          t.syscall ? `, in ${t.syscall}` : "",
          t.still_s === null ? ", ran a moment before" : `, has stood still for ${digits(t.still_s)} s`,
          t.state ? ` (${t.state})` : "",
        ),
        el("pre", { tabindex: 0 }, t.frames.map((f) => `${f.function}${f.file ? `  ${f.file}:${f.line ?? "?"}` : f.module ? `  ${f.module}` : ""}`).join("\n")),
      ),
    ),
  );
}
