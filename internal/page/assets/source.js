// Source: a file of the job with the time of each line.
import { json } from "./api.js";
import { el, duration, percent } from "./text.js";

const chunk = 200;

export function source({ main, query, remember }) {
  const stop = new AbortController();
  const files = el("select", {
    "aria-label": "file",
    onchange: (e) => {
      remember({ file: e.target.value });
      show(e.target.value, 0);
    },
  });
  const about = el("p", { class: "about", role: "status" }, "Reading …");
  const body = el("div", { class: "lines" });
  main.append(el("div", { class: "tools" }, files, about), body);
  start();
  return { close: () => stop.abort() };

  async function start() {
    try {
      const all = await json("/api/files", { signal: stop.signal });
      files.append(
        ...all.map((f) =>
          el("option", { value: f.file }, `${f.file} · ${duration(f.cpu_ns)} CPU, ${duration(f.wait_ns)} waiting`),
        ),
      );
      const place = /^(.*):(\d+)$/.exec(query.get("place") ?? "");
      const wanted = place
        ? (all.find((f) => f.file === place[1] || f.file.endsWith(`/${place[1]}`))?.file ?? place[1])
        : (query.get("file") ?? all[0]?.file);
      if (!wanted) {
        about.textContent = "No sample of this recording has a line of Python: record with --level window or deep.";
        main.dataset.drawn = "yes";
        return;
      }
      if (!all.some((f) => f.file === wanted)) files.prepend(el("option", { value: wanted }, wanted));
      files.value = wanted;
      await show(wanted, Number(place?.[2] ?? query.get("line") ?? 0));
    } catch (error) {
      fail(error);
    }
  }

  function fail(error) {
    if (error.name === "AbortError") return;
    about.textContent = error.message;
    body.replaceChildren();
    main.dataset.drawn = "yes";
  }

  async function show(file, line) {
    about.textContent = "Reading …";
    try {
      const s = await json(`/api/source?file=${encodeURIComponent(file)}`, { signal: stop.signal });
      const notes = [`time in each line and what it calls, of ${duration(s.total_ns)} in all samples`];
      if (s.changed) notes.unshift("the file is newer than the recording: lines may have moved");
      if (s.why) notes.unshift(`its text is not shown: ${s.why}`);
      about.textContent = notes.join(" · ");
      about.classList.toggle("failed", Boolean(s.changed));
      draw(s, line);
      main.dataset.drawn = "yes";
    } catch (error) {
      fail(error);
    }
  }

  function draw(s, wanted) {
    const heat = new Map(s.lines.map((l) => [l.line, l]));
    const most = Math.max(1, ...s.lines.map((l) => l.cpu_ns + l.wait_ns));
    const numbers = s.text.length ? s.text.map((_, i) => i + 1) : s.lines.map((l) => l.line);
    for (const l of s.lines) if (s.text.length && l.line > s.text.length) numbers.push(l.line);
    const row = (n) => {
      const h = heat.get(n);
      const title = h
        ? `${h.function}: ${duration(h.cpu_ns)} on a CPU, ${duration(h.wait_ns)} waiting, ` +
          `${percent((h.cpu_ns + h.wait_ns) / Math.max(s.total_ns, 1))} of all samples' time`
        : null;
      return el(
        "div",
        { class: `line${n === wanted ? " wanted" : ""}`, id: `L${n}`, title },
        el("span", { class: "cost" }, h ? duration(h.cpu_ns) : ""),
        el("span", { class: "cost" }, h && h.wait_ns ? duration(h.wait_ns) : ""),
        el(
          "span",
          { class: "heat", "aria-hidden": "true" },
          ...(h
            ? [
                el("i", { class: "cpu", style: { width: `${(100 * h.cpu_ns) / most}%` } }),
                el("i", { class: "wait", style: { width: `${(100 * h.wait_ns) / most}%` } }),
              ]
            : []),
        ),
        el("span", { class: "no" }, String(n)),
        el("code", {}, s.text[n - 1] ?? (h ? `(${h.function})` : "")),
      );
    };
    const parts = [];
    for (let i = 0; i < numbers.length; i += chunk)
      parts.push(
        el(
          "div",
          { class: "chunk", style: { "contain-intrinsic-size": `auto ${chunk * 20}px` } },
          ...numbers.slice(i, i + chunk).map(row),
        ),
      );
    body.replaceChildren(
      el(
        "div",
        { class: "line head" },
        el("span", { class: "cost" }, "CPU"),
        el("span", { class: "cost" }, "waiting"),
        el("span", { class: "heat" }),
        el("span", { class: "no" }, "line"),
        el("code", {}, s.file),
      ),
      ...parts,
    );
    const hottest = [...s.lines].sort((a, b) => b.cpu_ns + b.wait_ns - a.cpu_ns - a.wait_ns);
    const target = body.querySelector(
      `#L${wanted || hottest.find((l) => s.text[l.line - 1] !== undefined)?.line || hottest[0]?.line}`,
    );
    target?.scrollIntoView({ block: "center" });
  }
}
