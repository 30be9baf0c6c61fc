import { unpackBytes, whenText } from "./data.js";
import { element, table } from "./table.js";
import { count } from "./flame.js";
import { brief } from "./timeline.js";

// The list of events: filtered by name, process, text and fields, as `recorder events` does, with
// a histogram of each name. A page with many events has them as columns (export/event_list.h).

const mostRows = 1000, letters = 32, pauseMs = 200, blockLines = 1024;

/** Lines of text, decoded by the block. */
class Lines {
  constructor(bytes) {
    this.bytes = new Uint8Array(bytes);
    this.starts = [];
    for (let line = 0, at = 0; at < this.bytes.length; at = this.bytes.indexOf(10, at) + 1)
      if (line++ % blockLines === 0) this.starts.push(at);
    this.block = -1;
  }

  at(i) {
    const b = Math.floor(i / blockLines);
    if (b !== this.block) {
      const part = this.bytes.subarray(this.starts[b], this.starts[b + 1]);
      this.lines = new TextDecoder().decode(part).split("\n");
      this.block = b;
    }
    return this.lines[i - b * blockLines];
  }
}

/** The events of the page's JSON, or the columns, with the same questions. */
export class Events {
  static ofRows(rows) {
    const e = new Events(), names = new Map(), whos = new Map();
    const number = (map, key) => map.get(key) ?? map.set(key, map.size).get(key);
    e.n = rows.length;
    e.times = Float64Array.from(rows, r => r[0]);
    e.values = Float64Array.from(rows, r => r[3] ?? NaN);
    e.name = Uint32Array.from(rows, r => number(names, `${r[1]} ${r[2]}`));
    e.who = Uint32Array.from(rows, r => number(whos, r[4]));
    e.names = [...names.keys()];
    e.whos = [...whos.keys()];
    e.line = i => rows[i][5];
    e.load = async () => {};             // line(i) of these numbers, or of all, can be asked for
    return e;
  }

  /** pageText(p) -> the text of the element that has page p of the lines. */
  static ofColumns(bytes, pageText) {
    const all = new Uint8Array(bytes), head = all.indexOf(10) + 1, e = new Events();
    const text = (from, to) => new TextDecoder().decode(all.subarray(from, to));
    const { n, tick_us, page, from_ms, names, whos } = JSON.parse(text(0, head));
    const column = (Type, at) => new Type(bytes, at, n);
    const delta = column(Uint32Array, head + 8 * n);
    Object.assign(e, { n, names, whos, values: column(Float64Array, head),
                       name: column(Uint32Array, head + 12 * n),
                       who: column(Uint32Array, head + 16 * n), times: new Float64Array(n) });
    for (let i = 0, ticks = 0; i < n; i++) {
      ticks += delta[i];
      e.times[i] = from_ms + ticks * tick_us / 1000;
    }
    // A million texts at once would take longer than all the rest: they are made as they are read.
    const pages = [];
    e.load = async numbers => {
      const wanted = numbers ? new Set(Array.from(numbers, i => Math.floor(i / page)))
                             : Array(Math.ceil(n / page)).keys();
      for (const p of wanted) pages[p] ??= new Lines(await unpackBytes(pageText(p)));
    };
    e.line = i => pages[Math.floor(i / page)].at(i % page);
    return e;
  }

  /** The first event at this time or later. */
  at(ms) {
    let from = 0, to = this.n;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.times[middle] < ms) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

/** "GC/*" or "!fork" as a test of a text; a pattern that is none is a plain word. */
function tester(pattern) {
  const not = pattern.startsWith("!"), rest = not ? pattern.slice(1) : pattern;
  if (rest === "") return () => true;
  let test = text => text.toLowerCase().includes(rest.toLowerCase());
  try {
    const regex = new RegExp(rest, "i");
    test = text => regex.test(text);
  } catch { /* as typed so far it is no regular expression */ }
  return text => test(text) !== not;
}

/** "Size>=1024 File=x" as a test of the text of an event's fields. */
function conditions(text) {
  const all = [...text.matchAll(/([A-Za-z_][\w.]*)\s*(>=|<=|!=|=|>|<)\s*("[^"]*"|\S+)/g)];
  const tests = all.map(([, field, sign, raw]) => {
    const name = field.replaceAll(".", "\\.");
    const find = new RegExp(`(?:^|, )${name}=(.*?)(?=, [A-Za-z_]\\w*=|$)`, "i");
    const wanted = raw.replaceAll('"', ""), number = Number(wanted);
    return line => {
      const got = find.exec(line)?.[1];
      if (got === undefined) return false;
      const isNumber = wanted !== "" && !Number.isNaN(number) && !Number.isNaN(Number(got));
      const a = isNumber ? Number(got) : got, b = isNumber ? number : wanted;
      return { ">=": a >= b, "<=": a <= b, ">": a > b, "<": a < b, "=": a === b,
               "!=": a !== b }[sign];
    };
  });
  return tests.length ? line => tests.every(t => t(line)) : null;
}

/** The part of the page; range() -> [from, to) in ms, follows what is chosen above. */
export class EventList {
  constructor(box, events, range) {
    Object.assign(this, { box, events, range });
    this.inputs = {};
    const bar = element("div", undefined, { class: "bar" });
    for (const [key, hint] of [["name", "GC/|DiskIO"], ["process", "shop"], ["text", "!\\.dll"],
                               ["fields", "Size>=1024"]]) {
      const label = element("label", key + " ");
      this.inputs[key] = element("input", undefined,
        { type: "search", spellcheck: "false", autocomplete: "off", placeholder: hint });
      this.inputs[key].addEventListener("input", () => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.show(), pauseMs);
      });
      label.append(this.inputs[key]);
      bar.append(label);
    }
    const save = element("button", "save as CSV", { type: "button" });
    save.addEventListener("click", () => this.save());
    bar.append(save);
    this.said = element("p", "", { class: "said", role: "status" });
    this.counts = element("div");
    this.rows = element("div");
    box.replaceChildren(bar, this.said, this.counts, this.rows);
  }

  /** The numbers of the events that fit; null when others were asked for meanwhile. */
  async fitting() {
    const { events: e, inputs } = this, value = key => inputs[key].value.trim();
    const names = e.names.map(tester(value("name"))), whos = e.whos.map(tester(value("process")));
    const text = value("text") ? tester(value("text")) : null, fields = conditions(value("fields"));
    const turn = this.turn = (this.turn ?? 0) + 1;
    if (text || fields) await e.load();
    if (turn !== this.turn) return null;
    const [from, to] = this.range(), last = e.at(to), found = new Uint32Array(e.n);
    let n = 0;
    for (let i = e.at(from); i < last; i++) {
      if (!names[e.name[i]] || !whos[e.who[i]]) continue;
      if (text && !text(`${e.names[e.name[i]]} ${e.whos[e.who[i]]} ${e.line(i)}`)) continue;
      if (fields && !fields(e.line(i))) continue;
      found[n++] = i;
    }
    await e.load(found.subarray(0, Math.min(n, mostRows)));
    return turn === this.turn ? found.subarray(0, n) : null;
  }

  histogram(found) {
    const { events: e } = this, [from, to] = this.range(), kinds = e.names.length;
    const counts = new Uint32Array(kinds), parts = new Uint32Array(kinds * letters);
    const scale = letters / ((to - from) || 1);
    for (const i of found) {
      const part = Math.floor((e.times[i] - from) * scale), name = e.name[i];
      counts[name]++;
      parts[name * letters + Math.min(Math.max(part, 0), letters - 1)]++;
    }
    return e.names.map((name, k) => ({ name, n: counts[k],
      parts: parts.subarray(k * letters, (k + 1) * letters) })).filter(row => row.n > 0);
  }

  async show() {
    const { events: e } = this, found = await this.fitting();
    if (!found) return;
    this.found = found;
    this.said.textContent = `${count(found.length)} of ${count(e.n)} events`;
    const quoted = name => name.replace(/^\S+ /, "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";
    const pick = row => { this.inputs.name.value = quoted(row.name); this.show(); };
    table(this.counts, [
      { title: "events", value: r => r.n, number: true, show: r => count(r.n), sort: -1 },
      { title: "when (A is the row's most)", value: r => r.n, kind: () => "when", wide: true,
        show: r => whenText(r.parts, null, 0) },
      { title: "name", value: r => r.name, pick },
    ], this.histogram(found), { most: 100 });
    table(this.rows, [
      { title: "s", value: i => e.times[i], number: true,
        show: i => (e.times[i] / 1000).toFixed(3) },
      { title: "event", value: i => e.names[e.name[i]], wide: true },
      { title: "value", value: i => e.values[i], number: true,
        show: i => Number.isNaN(e.values[i]) ? "" : brief(e.values[i]) },
      { title: "process", value: i => e.whos[e.who[i]] },
      { title: "fields", value: i => e.line(i) },
    ], [...found.subarray(0, mostRows)], { most: mostRows });
    if (found.length > mostRows)
      this.rows.append(element("p",
        `The first ${count(mostRows)} of ${count(found.length)} are shown.`, { class: "hint" }));
  }

  async save() {
    const { events: e, found } = this, cell = v => `"${String(v).replaceAll('"', '""')}"`;
    await e.load(found);
    const lines = ["t_ms,event,value,process,fields"];
    for (const i of found)
      lines.push([e.times[i].toFixed(4), cell(e.names[e.name[i]]),
                  Number.isNaN(e.values[i]) ? "" : e.values[i], cell(e.whos[e.who[i]]),
                  cell(e.line(i))].join(","));
    const url = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
    const link = element("a", "", { href: url, download: "events.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
}

/** The list, once its columns are unpacked. rows: what the page's JSON has. */
export async function makeEvents(box, packed, pageText, rows, range) {
  const events = packed ? Events.ofColumns(await unpackBytes(packed), pageText)
                        : Events.ofRows(rows);
  const list = new EventList(box, events, range);
  await list.show();
  return list;
}
