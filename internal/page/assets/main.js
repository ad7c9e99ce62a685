// The frame of the page: views, address, keys, what the server reports about itself.
import { json, takeToken, setOnReach } from "./api.js";
import { el, announce } from "./text.js";
import { overview } from "./overview.js";
import { timeline } from "./timeline.js";
import { flame } from "./flame.js";
import { source } from "./source.js";

// A fleet's store has no events: these are the views that it has.
const ofStores = ["map", "sql", "schema"];

const views = [
  { name: "live", title: "Live", key: "l", load: () => import("./live.js"), when: (d) => d.recording },
  { name: "overview", title: "Overview", key: "1", open: overview },
  { name: "timeline", title: "Timeline", key: "2", open: timeline },
  { name: "flame", title: "Flame graph", key: "3", open: flame },
  { name: "source", title: "Source", key: "4", open: source },
  { name: "operators", title: "Operators", key: "5", load: () => import("./operators.js") },
  { name: "path", title: "Critical path", key: "6", load: () => import("./path.js") },
  { name: "map", title: "Job map", key: "j", load: () => import("./map.js"), when: (d) => d.store || d.ranks > 1 },
  { name: "hang", title: "Hang", key: "h", load: () => import("./hang.js"), when: (d) => d.ranks > 1 },
  { name: "memory", title: "Memory", key: "7", load: () => import("./memory.js") },
  { name: "sql", title: "SQL", key: "8", load: () => import("./sql.js") },
  { name: "schema", title: "Schema", key: "9", load: () => import("./schema.js") },
  { name: "diff", title: "Comparison", key: "0", load: () => import("./diff.js"), when: (d) => d.before },
].map((v) => ({ ...v, when: (d) => (!d.store || ofStores.includes(v.name)) && (!v.when || v.when(d)) }));

const main = document.getElementById("main");
const notice = document.getElementById("notice");
let dataset = null;
let shown = null; // the view on the page: {name, close?, link?, keys?}

// The address says what is shown: #timeline?from=1ms&to=2ms
function place() {
  const [name, query] = location.hash.slice(1).split("?");
  return { name: views.some((v) => v.name === name) ? name : dataset?.store ? "map" : "overview", query: new URLSearchParams(query ?? "") };
}

// go opens a view; the browser's Back returns from it.
export function go(name, query = {}) {
  const text = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== undefined && v !== null)).toString();
  location.hash = text ? `${name}?${text}` : name;
}

// remember writes what is shown into the address without a step of history.
function remember(name, query) {
  if (place().name !== name) return; // another view is about to be shown
  const text = new URLSearchParams(query)
    .toString()
    .replaceAll("%2F", "/")
    .replaceAll("%3A", ":")
    .replaceAll("%2C", ",")
    .replaceAll("%7E", "~");
  history.replaceState(null, "", text ? `#${name}?${text}` : `#${name}`);
}

function show(again = false) {
  const { name, query } = place();
  if (again !== true && shown?.name === name && shown.move) {
    shown.move(query);
    return;
  }
  shown?.close?.();
  main.replaceChildren();
  main.className = name;
  delete main.dataset.drawn;
  const view = views.find((v) => v.name === name);
  document.title = `${view.title} · ${dataset.name} · ebpfprof`;
  if (outdated) say("");
  outdated = false;
  const wanted = query.get("dataset");
  if (wanted && wanted !== dataset.fingerprint && !dataset.recording && again !== true)
    say("This link was made on another dataset, or on an earlier state of this one.");
  const page = { main, dataset, query, go, remember: (q) => remember(name, { ...q, dataset: dataset.fingerprint }) };
  const opening = (shown = { name });
  current();
  if (view.open) Object.assign(opening, view.open(page));
  else
    view
      .load()
      .then((module) => opening === shown && Object.assign(opening, module[view.name](page)))
      .catch((error) => opening === shown && main.replaceChildren(el("p", { class: "failed", role: "alert" }, error.message)));
}

// say shows a sentence above the view, with what can be done about it; "" removes it.
export function say(sentence, ...more) {
  notice.hidden = !sentence;
  notice.replaceChildren(sentence, ...more);
}

const commonKeys = [
  ["1 … 9, 0", "a view; L is the live one of a recording that is being made, J the map of a job of several ranks, H its hang"],
  ["?", "this list"],
  ["Esc", "close, or drop the selection"],
];

function help() {
  const dialog = document.getElementById("help");
  const rows = [...commonKeys, ...(shown?.keyList ?? [])];
  dialog.replaceChildren(
    el("h2", { id: "help-title" }, "Keys"),
    el(
      "table",
      {},
      el(
        "tbody",
        {},
        ...rows.map(([key, meaning]) => el("tr", {}, el("th", { scope: "row" }, key), el("td", {}, meaning))),
      ),
    ),
    el("h2", {}, "How to read the pictures"),
    el(
      "ul",
      {},
      el("li", {}, "Empty is idle: the lane was recorded and nothing ran."),
      el("li", {}, "Cross-hatched is not recorded: between two slices of the recording nothing is known."),
      el(
        "li",
        {},
        "The height of a fill is the busy share of its column; its colour is the name with the most time in it.",
      ),
      el("li", {}, "Hatched continues a bar from the least to the most that it can be; ≈ marks estimates."),
    ),
    el(
      "label",
      {},
      el("input", {
        type: "checkbox",
        id: "letters",
        checked: lettersOn(),
        onchange: (e) => localStorage.setItem("letters", e.target.checked ? "on" : "off"),
      }),
      " letter keys",
    ),
    el("p", {}, el("button", { type: "button", onclick: () => dialog.close() }, "Close")),
  );
  dialog.showModal();
}

const lettersOn = () => localStorage.getItem("letters") !== "off";

// types reports whether a key is for a field or a dialog. One that is closed may have the focus for a moment more.
function types(target) {
  const field = target.closest?.("input, textarea, select, dialog");
  const dialog = field?.closest("dialog");
  return Boolean(field) && (!dialog || dialog.open);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || types(event.target)) return;
  if (event.key === "?") {
    help();
    event.preventDefault();
    return;
  }
  if (!lettersOn() && /^Key/.test(event.code)) return;
  const view = views.find((v) => v.key === event.key && dataset && v.when(dataset));
  if (view) {
    go(view.name);
    event.preventDefault();
  } else if (shown?.key?.(event)) {
    event.preventDefault();
  }
});

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// visible waits until the tab is looked at: the server leaves a dataset alone that nobody watches.
const visible = () =>
  document.hidden
    ? new Promise((resolve) => document.addEventListener("visibilitychange", () => resolve(visible()), { once: true }))
    : null;

// follow waits for what the server notices: a dataset that grows, changes or goes.
async function follow() {
  let version = 0;
  for (;;) {
    await visible();
    try {
      const state = await json(`/api/status?after=${version}`);
      version = state.version;
      if (state.gone)
        say("The dataset was removed while the page was open. What is on the page stays; nothing new can be read.");
      else if (state.problem) say(`The dataset cannot be read as it is now: ${state.problem}. What is shown is as it was.`);
      else if (state.edition !== dataset.edition) await another();
      else if (!outdated) say("");
    } catch (error) {
      if (error.status === 401) say("The server was started again with another token: open the address that it printed.");
      version = 0;
      await pause(1000);
    }
  }
}

let outdated = false; // the view shows an edition before the current one

// another takes over a new state of the dataset: a view that can moves on, for the others there is a button.
async function another() {
  const was = dataset;
  dataset = await json("/api/dataset");
  facts();
  if (was.recording && !dataset.recording) announce("the recording has ended");
  if (shown?.grew) {
    shown.grew(dataset);
    say("");
    return;
  }
  outdated = true;
  const again = el("button", { type: "button", class: "small", onclick: () => show(true) }, "read it again");
  say(dataset.recording ? "The recording has gone on since this was read: " : "The dataset has changed since this was read: ", again);
}

function facts() {
  const parts = [dataset.recording ? "being recorded" : "", dataset.source, dataset.host, dataset.started].filter(Boolean);
  const node = document.getElementById("facts");
  node.textContent = parts.join(" · ");
  node.title = dataset.root;
  const links = views.filter((v) => v.when(dataset));
  const nav = document.getElementById("views");
  if (nav.childElementCount === links.length) return;
  nav.replaceChildren(
    ...links.map((v) => el("a", { href: `#${v.name}`, "data-view": v.name, title: `key ${v.key}` }, v.title)),
  );
  current();
}

// current marks the link of the view that is shown.
function current() {
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === shown?.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

async function start() {
  setOnReach((reached) => {
    say(reached ? "" : "The server does not answer. Start ebpfprof serve again; this page goes on when it does.");
    announce(reached ? "the server answers again" : "the server does not answer");
  });
  document.getElementById("help-button").addEventListener("click", help);
  document.getElementById("help").addEventListener("close", () => main.focus()); // else the keys would go to a box in it
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  if (!(await takeToken())) {
    say("This page needs the address that ebpfprof serve printed, with its token.");
    return;
  }
  try {
    dataset = await json("/api/dataset");
  } catch (error) {
    say(error.message);
    return;
  }
  document.getElementById("dataset").textContent = dataset.name;
  facts();
  addEventListener("hashchange", () => show());
  show();
  follow();
}

start();
