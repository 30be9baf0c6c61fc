import { around, bucketAt, changed, counters, functions, hasManaged, kindOf } from "./data.js";
import { moduleOf, prepare } from "./data.js";
import { secondsAt, sum, unpack, whens, whenText } from "./data.js";
import { Flame, count, legend, percent } from "./flame.js";
import { Timeline, brief, megabytes } from "./timeline.js";
import { makeEvents } from "./events.js";
import { element, table } from "./table.js";

// The page: joins the parts. One range of time and one process or thread hold for all of it.

const $ = id => document.getElementById(id);
const stacksMost = 20, whenParts = 32, unsaid = new Set(["row", "in", "depth", "ended"]);

function start(data) {
  const state = { from: 0, to: data.buckets, who: -1, focus: -1, sums: null };
  const textOf = number => data.texts[number];
  const whole = () => state.sums.whole;

  const flame = new Flame($("flame"), data, {
    said: text => { $("said").textContent = text; },
    matched: text => { $("matched").textContent = text; },
    chosen: text => focus(text),
  });
  const timeline = new Timeline($("timeline"), data, {
    said: text => { $("time-said").textContent = text || rangeText(); },
    range: (from, to) => choose(from, to),
  });

  function rangeText() {
    const all = state.from === 0 && state.to === data.buckets;
    const seconds = bucket => `${secondsAt(data, bucket).toFixed(3)} s`;
    const range = all ? "the whole window" : `${seconds(state.from)} to ${seconds(state.to)}`;
    const also = data.unit_ns ? `, ${(whole() * data.unit_ns / 1e9).toFixed(2)} s of CPU time`
                 : data.unit === "bytes" ? `, ${megabytes(whole())}` : "";
    return `${range}: ${count(whole())} ${data.unit}${also}`;
  }

  function choose(from, to) {
    state.from = Math.min(Math.max(from, 0), data.buckets);
    state.to = Math.min(Math.max(to, state.from), data.buckets);
    $("from").value = +secondsAt(data, state.from).toFixed(3);
    $("to").value = +secondsAt(data, state.to).toFixed(3);
    timeline.mark(state.from, state.to);
    refresh();
  }

  const share = value => row => whole() > 0 ? value(row) / whole() : 0;
  const weight = (title, value, sort) => ({ title, value, sort, number: true, share: share(value),
                                            show: row => percent(value(row), whole()) });
  const name = (title, more = {}) => ({ title, value: row => textOf(row.text), ...more });

  function refresh() {
    state.sums = sum(data, state.from, state.to, state.who);
    flame.show(state.sums);
    const pick = row => focus(row.text, true);
    const code = hasManaged(data) ? [{ title: "code", value: r => kindOf(data, r.text) }] : [];
    const times = whens(data, state.from, state.to, state.who, whenParts);
    const partNs = (state.to - state.from) * data.bucketMs * 1e6 / whenParts;
    const at = (title, value) => ({ title, value, number: true,
                                    show: r => secondsAt(data, value(r)).toFixed(3) });
    table($("functions"), [
      weight("itself", r => r.self, -1), weight("inclusive", r => r.inclusive),
      { title: data.unit, value: r => r.self, number: true, show: r => count(r.self) },
      at("first, s", r => times(r.text).first), at("last, s", r => times(r.text).last + 1),
      ...code,
      { title: "when", value: r => times(r.text).first, kind: () => "when", wide: true,
        show: r => whenText(times(r.text).parts, data.unit_ns, partNs) },
      name("function", { pick }),
    ], [...functions(data, state.sums).values()], { filter: true });
    stacks();
    threads();
    modules();
    focus(state.focus);
    $("time-said").textContent = rangeText();
    state.events?.show();
  }

  function focus(text, scroll = false) {
    state.focus = text;
    if (text < 0) return;
    const f = around(data, state.sums, text);
    const rows = map => [...map].map(([t, w]) => ({ text: t, weight: w }));
    const inFunctions = new Set(data.name.filter((_, i) => data.depth[i] >= data.levels));
    const pick = row => { if (inFunctions.has(row.text)) focus(row.text); };
    const columns = title => [weight("share", r => r.weight, -1), name(title, { pick })];
    $("focus").textContent = `${textOf(text)} — itself ${percent(f.self, whole())}`;
    table($("callers"), columns("called by"), rows(f.callers));
    table($("callees"), columns("calls"), rows(f.callees));
    if (scroll) $("h-callers").scrollIntoView({ behavior: "smooth", block: "start" });
  }

  function stacks() {
    const heavy = [...state.sums.self.keys()].filter(i => state.sums.self[i] > 0)
      .sort((a, b) => state.sums.self[b] - state.sums.self[a] || a - b).slice(0, stacksMost);
    $("stacks").replaceChildren(...heavy.map(node => {
      const d = element("details"), list = element("ol");
      const process = textOf(data.name[data.processOf[node]]);
      d.append(element("summary", `${percent(state.sums.self[node], whole())}  ` +
                                  `${textOf(data.name[node])}, in ${process}`));
      for (let at = node; at >= 0; at = data.caller[at])
        list.append(element("li", textOf(data.name[at])));
      d.append(list);
      return d;
    }));
  }

  function threads() {
    const rows = [];
    for (let i = 0; i < data.n; i++) {
      if (data.depth[i] !== data.levels - 1 || state.sums.total[i] === 0) continue;
      let process = "";
      for (let at = data.caller[i]; at >= 0; at = data.caller[at])
        process = textOf(data.name[at]) + (process && ": ") + process;
      rows.push({ text: data.name[i], process, weight: state.sums.total[i] });
    }
    const time = data.unit_ns ? [{ title: "CPU ms", value: r => r.weight, number: true,
                                   show: r => (r.weight * data.unit_ns / 1e6).toFixed(1) }] : [];
    table($("threads"), [weight("share", r => r.weight, -1), ...time,
                         { title: "process", value: r => r.process }, name("thread")],
          rows, { filter: true });
  }

  function modules() {
    const found = new Map();
    for (let i = 0; i < data.n; i++) {
      if (data.depth[i] < data.levels || state.sums.self[i] === 0) continue;
      const text = textOf(data.name[i]), module = moduleOf(text) || text;
      if (!found.has(module)) found.set(module, { module, self: 0, unnamed: 0 });
      found.get(module).self += state.sums.self[i];
      if (/!(\?$|\+0x)|^0x/.test(text)) found.get(module).unnamed += state.sums.self[i];
    }
    table($("modules"), [weight("itself", r => r.self, -1), weight("unnamed", r => r.unnamed),
                         { title: "module", value: r => r.module }],
          [...found.values()], { filter: true });
  }

  function showChanged() {
    const trigger = bucketAt(data, 0), seconds = Math.max(+$("last").value || 0, 0);
    const from = Math.max(Math.min(bucketAt(data, -seconds), trigger - 1), 0);
    const rows = changed(data, from, trigger, state.who);
    const share = key => ({ title: key, value: r => r[key], number: true });
    table($("changed"), [
      { ...share("grew"), title: "change",
        show: r => (r.grew >= 0 ? "+" : "−") + Math.abs(100 * r.grew).toFixed(1) + " points",
        kind: r => r.grew >= 0.005 ? "more" : "less", sort: -1 },
      { ...share("share"), title: "share then", show: r => percent(r.share, 1) },
      { ...share("then"), title: "share in the rest", show: r => percent(r.then, 1) },
      name("function", { pick: r => focus(r.text, true) }),
    ], rows, { most: 20 });
  }

  /** The columns of rows of one kind: with the process as one, and what names a row last. */
  function columnsOf(kind, rows) {
    for (const r of rows) {
      if (r.process && r.pid) {
        r.process += ` (${r.pid})`;
        delete r.pid;
      }
      if (r.runtime) r.runtime = r.runtime.replace("Microsoft-Windows-", "");
    }
    const isNumber = k => rows.every(r => r[k] === null || typeof r[k] === "number");
    const isTold = k => rows.some(r => r[k] !== null && r[k] !== "" &&
                                      (kind !== "request" || r[k] !== 0));
    const last = ["process", "type", "site", "stack", "name", "text"];
    const keys = Object.keys(rows[0]).filter(k => !unsaid.has(k) && isTold(k) &&
      (k !== "reason" || !isTold("why")))
      .sort((a, b) => last.indexOf(a) - last.indexOf(b));
    return keys.map(k => {
      const fraction = r => isNumber(k) ? brief(r[k] ?? 0).split(".")[1]?.length ?? 0 : 0;
      const digits = Math.max(...rows.map(fraction));
      const number = v => v.toLocaleString("en", {
        useGrouping: !["pid", "tid", "line", "number", "count"].includes(k) || kind === "exception",
        minimumFractionDigits: digits, maximumFractionDigits: Math.max(digits, 3) });
      return {
        title: k.replaceAll("_", " ").replace(/ pct$/, " %").replace(" mb s", " MB/s")
                .replace(" mb", " MB").replace(/^(il|cpu) /, w => w.toUpperCase()),
        number: isNumber(k), wide: ["stack", "type", "site", "runtime"].includes(k),
        value: r => r[k] ?? (isNumber(k) ? NaN : ""),
        kind: () => k === "text" ? "code" : "", fold: k === "stack",
        show: r => typeof r[k] === "number" ? number(r[k])
                   : k === "stack" ? r[k].replaceAll(";", " \u2190 ") : String(r[k] ?? ""),
      };
    });
  }

  /**
   * Rows as report has them with --requests, --runtimes, --source and --json: a table for each
   * kind, in order. What is nested in a request follows it, with its name set in.
   */
  function runtimes() {
    const all = data.runtimes ?? [];
    for (const r of all) if (r.row === "activity") r.name = "\u00a0".repeat(2 * r.depth) + r.name;
    const kinds = Map.groupBy(all, r => r.row === "activity" ? "request" : r.row);
    const titles = { request: "Requests, the slowest first",
                     gc_process: "Garbage collection by process", gc_generation: "by generation",
                     collection: "the longest collections", jit_process: "Compiled methods",
                     jit_tier: "by tier", jit_method: "the longest to compile",
                     exception: "Exceptions", contention: "Waits for locks",
                     source_line: "Source, by line" };
    $("runtimes").closest("section").hidden = kinds.size === 0;
    for (const [kind, rows] of kinds) {
      const box = element("div"), title = titles[kind] ?? kind, file = rows[0].file;
      const ofOne = file && rows.every(r => r.file === file);
      $("runtimes").append(element("h3", ofOne ? `Source of ${file}, by line` : title), box);
      if (ofOne) for (const r of rows) delete r.file;
      table(box, columnsOf(kind, rows), rows, { most: 200, named: true });
    }
  }

  function chooseMetric() {
    const select = $("metric");
    for (const m of data.metrics) select.append(element("option", m));
    select.value = data.metric;
    select.closest("label").hidden = data.metrics.length < 2;
    select.addEventListener("change", () => {
      location.hash = "metric=" + select.value;
      location.reload();
    });
  }

  async function listEvents() {
    const packed = $("all-events")?.textContent;
    const range = () => [state.from, state.to].map(b => secondsAt(data, b) * 1000 +
                                                        (b === data.buckets ? 1 : 0));
    state.events = await makeEvents($("events"), packed, p => $("events-" + p).textContent,
                                    data.events, range);
    if (packed) timeline.list(state.events.events);
    if (!packed && data.events_left_out > 0)
      $("events").append(element("p", `${count(data.events_left_out)} others, further from the ` +
        "trigger, are left out.", { class: "hint" }));
  }

  function chooseWho() {
    const select = $("who"), heavy = sum(data, 0, data.buckets).total;
    select.append(element("option", "all", { value: "-1" }));
    for (const p of [...data.roots].sort((a, b) => heavy[b] - heavy[a] || a - b)) {
      select.append(element("option", textOf(data.name[p]), { value: String(p) }));
      const own = [...data.children[p] ?? []].sort((a, b) => heavy[b] - heavy[a] || a - b);
      for (const t of own)
        select.append(element("option", "\u2003" + textOf(data.name[t]), { value: String(t) }));
    }
    select.addEventListener("change", () => {
      state.who = timeline.who = +select.value;
      timeline.draw();
      refresh();
      showChanged();
    });
  }

  function fixedTables() {
    table($("counters"), [
      { title: "counter", value: r => r.name },
      ...["min", "mean", "max", "last"].map(key => ({
        title: key === "last" ? "at the trigger" : key, number: true,
        value: r => key === "mean" ? r.sum / r.n : r[key] ?? NaN,
        show: r => key === "mean" ? brief(r.sum / r.n) : r[key] === null ? "" : brief(r[key]) })),
    ], counters(data), { filter: true });
    $("counters").closest("section").hidden = counters(data).length === 0;
    if (hasManaged(data)) $("flame-box").after(legend(data));
    if (data.small > 0)
      $("flame-box").after(element("p",
        `${count(data.small)} nodes under 0.005 % are summed as (small).`, { class: "hint" }));
  }

  function wire() {
    const typed = () => choose(bucketAt(data, +$("from").value), bucketAt(data, +$("to").value));
    $("from").addEventListener("change", typed);
    $("to").addEventListener("change", typed);
    $("whole").addEventListener("click", () => choose(0, data.buckets));
    $("before").addEventListener("click", () => choose(0, bucketAt(data, 0)));
    $("search").addEventListener("input", () => flame.search($("search").value));
    $("reset").addEventListener("click", () => flame.zoom(-1));
    $("last").addEventListener("change", showChanged);
    $("icicle").addEventListener("click", e => {
      const on = e.currentTarget.getAttribute("aria-pressed") !== "true";
      e.currentTarget.setAttribute("aria-pressed", String(on));
      flame.flip(on);
    });
    const again = () => { timeline.draw(); flame.draw(); };
    addEventListener("resize", again);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  }

  const before = Math.max(-data.from_ms / 1000, 0);
  $("last").value = String(+Math.min(10, before / 4).toFixed(3));
  chooseWho();
  wire();
  choose(0, data.buckets);
  showChanged();
  fixedTables();
  runtimes();
  chooseMetric();
  return listEvents;
}

/** The page's data; the metric that its address names has a part of its own. */
async function load() {
  const main = await unpack($("data").textContent);
  const other = $("data-" + /[#&]metric=([\w-]+)/.exec(location.hash)?.[1]);
  return { ...main, ...other ? await unpack(other.textContent) : {} };
}

try {
  const listEvents = start(prepare(await load()));
  performance.mark("ready");
  document.documentElement.dataset.ready = "yes";
  await listEvents();
  performance.mark("events");
  document.documentElement.dataset.events = "yes";
} catch (e) {
  $("failed").textContent = `The data of this report cannot be shown by this browser: ${e.message}`;
  throw e;
}
