// Text, numbers and elements. All text reaches the page as text nodes: names come from the traced job.

// el makes an element: el("p", {class: "note"}, "text", child).
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

// largest is the largest value of rows, at least least. Rows may be more than a call has arguments.
export function largest(least, rows, value) {
  return rows.reduce((most, row) => Math.max(most, value(row)), least);
}

const svgSpace = "http://www.w3.org/2000/svg";

// svg makes an element of a picture.
export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(svgSpace, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "fill" || key === "stroke") node.style.setProperty(key, value);
    else node.setAttribute(key, String(value));
  }
  node.append(...children);
  return node;
}

const units = [
  ["h", 3600e9],
  ["min", 60e9],
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
];

// duration is a time with three digits and its unit.
export function duration(ns) {
  if (ns === null || ns === undefined || Number.isNaN(ns)) return "unknown";
  if (ns === 0) return "0 ns";
  const size = Math.abs(ns);
  if (size >= 120e9 && size < 3600e9) return `${Math.floor(ns / 60e9)} min ${Math.round((ns % 60e9) / 1e9)} s`;
  const [unit, of] = size < 120e9 && size >= 60e9 ? ["s", 1e9] : (units.find(([, n]) => size >= n) ?? ["ns", 1]);
  return `${digits(ns / of)} ${unit}`;
}

// digits are the three leading ones, all of them before the point.
export function digits(value) {
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toString();
  return String(Number(value.toPrecision(3)));
}

export function percent(share) {
  return `${digits(100 * share)} %`;
}

export function count(n) {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// at is a moment of the recording, as exact as a step of the ruler needs.
export function at(ns, step) {
  const [unit, of] = units.find(([u, n]) => u !== "h" && u !== "min" && Math.max(Math.abs(ns), step) >= n) ?? ["ns", 1];
  const decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / of) - 1e-9)));
  return `${(ns / of).toFixed(decimals)} ${unit}`;
}

// hash is the same for a name wherever it stands.
export function hash(name) {
  let h = 2166136261;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 16777619) >>> 0;
  return h;
}

// Okabe and Ito's colours, which people with colour-blindness tell apart, in two strengths.
const palette = [
  "#56b4e9",
  "#e69f00",
  "#2fb48d",
  "#f0e442",
  "#5b9bd5",
  "#e3875a",
  "#d79cbf",
  "#9fd0ef",
  "#f3c766",
  "#8ed1ba",
  "#b7c8de",
  "#efb999",
];

// colorOf is a name's fill, on which black text has a contrast of 4.5 at least.
export function colorOf(name) {
  return palette[hash(name) % palette.length];
}

// copy puts text on the clipboard and says so.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce("copied");
  } catch {
    announce("the browser refused to copy");
  }
}

export function announce(text) {
  document.getElementById("live").textContent = text;
}

// command is how the command line gives the same answer.
export function command(text) {
  return el(
    "p",
    { class: "same" },
    "The same on the command line: ",
    el("code", {}, text),
    " ",
    el("button", { type: "button", class: "small", onclick: () => copy(text) }, "copy"),
  );
}
