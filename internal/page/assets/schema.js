// Schema: the tables of a dataset, their columns, units and meaning.
import { json } from "./api.js";
import { el, command } from "./text.js";

export function schema({ main, query, remember }) {
  const stop = new AbortController();
  const body = el("div");
  const find = el("input", {
    type: "search",
    "aria-label": "find in names and meanings",
    placeholder: "find in names and meanings",
    value: query.get("find") ?? "",
    oninput: () => draw(),
  });
  let all = { tables: [] };
  main.append(el("h2", {}, "Schema"), el("p", {}, find), body, command("ebpfprof schema"));
  json("/api/schema", { signal: stop.signal })
    .then((s) => {
      all = s;
      draw();
    })
    .catch((error) => error.name !== "AbortError" && body.replaceChildren(el("p", { class: "failed" }, error.message)))
    .finally(() => {
      if (!stop.signal.aborted) main.dataset.drawn = "yes";
    });
  return { close: () => stop.abort() };

  function draw() {
    const word = find.value.toLowerCase();
    remember(word ? { find: find.value } : {});
    const has = (...texts) => texts.some((t) => (t ?? "").toLowerCase().includes(word));
    const parts = [el("p", { class: "note" }, `schema ${all.schema_version}`)];
    for (const t of all.tables) {
      const columns = word && !has(t.name) ? t.columns.filter((c) => has(c.name, c.description, c.unit)) : t.columns;
      if (columns.length === 0) continue;
      const example = `SELECT * FROM ${t.name} LIMIT 100`;
      parts.push(
        el(
          "details",
          { open: Boolean(word) },
          el("summary", {}, el("strong", {}, t.name), `: a row is ${t.row}. `),
          t.description ? el("p", { class: "note" }, t.description) : null,
          el("p", {}, el("a", { href: `#sql?q=${encodeURIComponent(example)}` }, "its first rows")),
          el(
            "table",
            {},
            el("thead", {}, el("tr", {}, ...["column", "type", "unit", "meaning"].map((h) => el("th", { scope: "col" }, h)))),
            el(
              "tbody",
              {},
              ...columns.map((c) =>
                el(
                  "tr",
                  {},
                  el("th", { scope: "row" }, el("code", {}, c.name)),
                  el("td", { class: "short" }, c.nullable ? `${c.type} or NULL` : c.type),
                  el("td", { class: "short" }, c.unit ?? ""),
                  el("td", {}, c.description),
                ),
              ),
            ),
          ),
        ),
      );
    }
    body.replaceChildren(...parts);
  }
}
