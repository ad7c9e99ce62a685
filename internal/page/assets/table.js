// Tables that can be sorted, and what can be taken out of the page: CSV, JSON, a picture, the same command.
import { el, svg, announce, count } from "./text.js";

// save offers a file; it is made here and goes nowhere else.
export function save(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  announce(`${name} is saved`);
}

// csv has a field in quotes where it needs them. A text that a spreadsheet would take for a formula begins with a '.
export function csv(rows) {
  const field = (v) => {
    if (v === null || v === undefined) return "";
    let text = String(v);
    if (typeof v === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

const button = (text, title, onclick) => el("button", { type: "button", class: "small", title, onclick }, text);

// picture saves a canvas as PNG.
export const picture = (canvas, name) =>
  button("picture", "save what is drawn as PNG", () => canvas().toBlob((blob) => save(`${name}.png`, blob)));

// exports are the buttons of rows: columns are [title, value of a row].
export function exports(name, columns, rows, document) {
  return el(
    "span",
    { class: "exports" },
    button("CSV", "save all rows as CSV", () =>
      save(`${name}.csv`, csv([columns.map(([t]) => t), ...rows().map((r) => columns.map(([, of]) => of(r)))]), "text/csv"),
    ),
    " ",
    button("JSON", "save as JSON", () => save(`${name}.json`, JSON.stringify(document?.() ?? rows(), null, 2), "application/json")),
  );
}

const drawnAtOnce = 300;

// sortable is a table whose headings sort it. A column is {title, value, show, number}: value sorts and is exported, show
// is what a cell has.
export function sortable({ name, caption, columns, rows, sortBy, down = true, pick }) {
  let by = columns.findIndex((c) => c.title === sortBy);
  let shown = drawnAtOnce;
  const body = el("tbody");
  const more = el("p", { class: "note" });
  const order = (a, b) => {
    const [x, y] = [columns[by].value(a), columns[by].value(b)];
    if (x === y) return 0;
    if (x === null || x === undefined) return 1;
    if (y === null || y === undefined) return -1;
    return (x < y ? -1 : 1) * (down ? -1 : 1);
  };
  const heads = columns.map((c, i) =>
    el(
      "th",
      { scope: "col", class: c.number ? "number" : null },
      el("button", { type: "button", class: "sort", onclick: () => sort(i) }, c.title),
    ),
  );
  const sort = (i) => {
    down = i === by ? !down : Boolean(columns[i].number);
    by = i;
    draw();
  };
  const draw = () => {
    const sorted = by < 0 ? rows : [...rows].sort(order);
    heads.forEach((h, i) =>
      i === by ? h.setAttribute("aria-sort", down ? "descending" : "ascending") : h.removeAttribute("aria-sort"),
    );
    body.replaceChildren(
      ...sorted.slice(0, shown).map((row) =>
        el(
          "tr",
          pick ? { class: "picks", onclick: (e) => !e.target.closest("a, button") && pick(row) } : {},
          ...columns.map((c, i) => {
            const content = c.show ? c.show(row) : (c.value(row) ?? "");
            return el(
              i === 0 ? "th" : "td",
              { class: c.number ? "number" : "name", ...(i === 0 ? { scope: "row" } : {}) },
              i === 0 && pick ? el("button", { type: "button", class: "link", onclick: () => pick(row) }, content) : content,
            );
          }),
        ),
      ),
    );
    more.replaceChildren(
      ...(rows.length > shown
        ? [
            `${count(rows.length - shown)} more `,
            button("show them", null, () => {
              shown = shown === drawnAtOnce ? 3000 : rows.length;
              draw();
            }),
          ]
        : []),
    );
  };
  draw();
  return el(
    "section",
    {},
    caption
      ? el(
          "h2",
          {},
          caption,
          " ",
          exports(
            name,
            columns.filter((c) => c.value).map((c) => [c.title, c.value]),
            () => rows,
          ),
        )
      : null,
    el("div", { class: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body)),
    more,
  );
}

// whisker is a value with its bounds as a small bar, of the most that any row has.
export function whisker(value, lo, hi, most, label) {
  const x = (v) => (100 * Math.max(0, Math.min(v, most))) / Math.max(most, 1e-12);
  const parts = [svg("rect", { x: 0, y: 3, width: x(value), height: 12, class: "value" })];
  if (lo !== null && lo !== undefined && hi !== null && hi !== undefined)
    parts.push(
      svg("line", { x1: x(lo), x2: x(hi), y1: 9, y2: 9, class: "whisker" }),
      svg("line", { x1: x(lo), x2: x(lo), y1: 5, y2: 13, class: "whisker" }),
      svg("line", { x1: x(hi), x2: x(hi), y1: 5, y2: 13, class: "whisker" }),
    );
  return svg(
    "svg",
    { viewBox: "0 0 100 18", preserveAspectRatio: "none", role: "img", "aria-label": label, class: "whiskered" },
    ...parts,
  );
}
