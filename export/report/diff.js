import { around, functions, prepare, sum, unpack } from "./data.js";
import { Flame, count, percent } from "./flame.js";
import { element, table } from "./table.js";

// The page of a diff: two sums over one call tree. Bucket 0 of the data is the base, bucket 1 the
// test.

const $ = id => document.getElementById(id);

function signed(v, digits = 1) {
  return (v > 0 ? "+" : v < 0 ? "−" : "") + Math.abs(v).toFixed(digits);
}

function change(base, test) {
  if (base === 0) return test === 0 ? "" : "only in the test";
  return test === 0 ? "only in the base" : signed(100 * (test - base) / base) + " %";
}

class DiffFlame extends Flame {
  sidesOf(node) {
    const { base, test } = this.sides;
    return node < 0 ? [base.whole, test.whole] : [base.total[node], test.total[node]];
  }

  // The twin of put_diff_colour() in export/svg.c.
  colourAt(node) {
    const [base, test] = this.sidesOf(node);
    const by = base + test > 0 ? (test - base) / (base + test) : 0;
    const pale = 235 - Math.round(125 * Math.sqrt(Math.abs(by)));
    return by > 0 ? `rgb(255,${pale},${pale})` : by < 0 ? `rgb(${pale},${pale},255)` : "#eee";
  }

  say(node) {
    const [base, test] = this.sidesOf(node), sides = this.sides;
    this.on.said(`${this.nameOf(node)} — base ${count(base)}, test ${count(test)} ` +
                 `${this.data.unit} (${change(base, test)}); ` +
                 `${percent(base, sides.base.whole)} → ${percent(test, sides.test.whole)}`);
  }
}

/** The twin of overweight.c: the part of the change, its relation to the expected, how telling. */
function weigh(rows, base, test) {
  for (const r of rows) {
    r.grew = r.test - r.base;
    r.responsible = test === base ? NaN : 100 * r.grew / (test - base);
    r.overweight = test === base || r.base === 0 ? NaN
                   : 100 * r.grew / (r.base * (test / base - 1));
    const part = Math.abs(r.responsible);
    r.interest = r.base === 0 || r.test === 0 || test === base ? 0 :
      (Math.abs(r.overweight) > 110) + (part > 5) + (part > 20) + (part > 100) +
      (r.test / test < 0.95) + (r.test / test < 0.75);
  }
  const last = v => isNaN(v) ? -Infinity : v;
  return rows.sort((a, b) => b.interest - a.interest || last(b.overweight) - last(a.overweight) ||
                             Math.abs(b.grew) - Math.abs(a.grew) || a.text - b.text);
}

function byChange(a, b) {
  return Math.abs(b.test - b.base) - Math.abs(a.test - a.base) || a.text - b.text;
}

function start(data) {
  const state = { who: -1, focus: -1, base: null, test: null };
  const textOf = number => data.texts[number];
  const flame = new DiffFlame($("flame"), data, {
    said: text => { $("said").textContent = text; },
    matched: text => { $("matched").textContent = text; },
    chosen: text => focus(text),
  });

  const number = (title, value, show) => ({ title, value, show, number: true });
  const sortable = v => isNaN(v) ? -Infinity : v;
  const orNone = v => isNaN(v) ? "n/a" : signed(v, 0) + " %";
  const sides = () => [
    number(`base, ${data.unit}`, r => r.base, r => count(r.base)),
    number(`test, ${data.unit}`, r => r.test, r => count(r.test)),
    { ...number("change", r => r.test - r.base, r => change(r.base, r.test)),
      kind: r => r.test > r.base ? "more" : "less" },
  ];
  const shares = () => [number("of base", r => r.base, r => percent(r.base, state.base.whole)),
                        number("of test", r => r.test, r => percent(r.test, state.test.whole))];
  const name = (title, more = {}) => ({ title, value: r => textOf(r.text), ...more });

  /** Two maps from text to weight as rows. */
  function joined(base, test, weight = v => v) {
    return [...new Set([...base.keys(), ...test.keys()])].map(text =>
      ({ text, base: weight(base.get(text)) ?? 0, test: weight(test.get(text)) ?? 0 }));
  }

  function refresh() {
    state.base = sum(data, 0, 1, state.who);
    state.test = sum(data, 1, 2, state.who);
    flame.sides = state;
    const width = $("width").value;
    flame.show(width === "base" ? state.base : width === "test" ? state.test
                                                                : sum(data, 0, 2, state.who));
    const base = functions(data, state.base), test = functions(data, state.test);
    const rows = weigh(joined(base, test, f => f?.inclusive),
                       state.base.whole, state.test.whole);
    rows.forEach((r, i) => { r.place = i; });
    table($("functions"), [
      number("interest", r => r.interest),
      number("overweight", r => sortable(r.overweight), r => orNone(r.overweight)),
      number("responsible", r => sortable(r.responsible), r => orNone(r.responsible)),
      ...sides(), ...shares(), name("function", { pick: r => focus(r.text, true) }),
    ], rows, { filter: true });
    threads();
    focus(state.focus);
  }

  function focus(text, scroll = false) {
    state.focus = text;
    if (text < 0) return;
    const base = around(data, state.base, text), test = around(data, state.test, text);
    const inFunctions = new Set(data.name.filter((_, i) => data.depth[i] >= 2));
    const pick = r => { if (inFunctions.has(r.text)) focus(r.text); };
    const columns = title => [...sides(), name(title, { pick })];
    $("focus").textContent =
      `${textOf(text)} — itself ${count(base.self)} → ${count(test.self)} ${data.unit}`;
    const heavy = rows => rows.sort(byChange);
    table($("callers"), columns("called by"), heavy(joined(base.callers, test.callers)));
    table($("callees"), columns("calls"), heavy(joined(base.callees, test.callees)));
    if (scroll) $("h-callers").scrollIntoView({ behavior: "smooth", block: "start" });
  }

  function threads() {
    const rows = [];
    for (let i = 0; i < data.n; i++) {
      const row = { text: data.name[i], process: data.name[data.processOf[i]],
                    base: state.base.total[i], test: state.test.total[i] };
      if (data.depth[i] === 1 && row.base + row.test > 0) rows.push(row);
    }
    rows.sort(byChange);
    const process = { title: "process", value: r => textOf(r.process) };
    table($("threads"), [...sides(), ...shares(), process, name("thread")], rows, { filter: true });
  }

  function chooseWho() {
    const select = $("who"), heavy = sum(data, 0, 2).total;
    select.append(element("option", "all", { value: "-1" }));
    for (const p of [...data.roots].sort((a, b) => heavy[b] - heavy[a] || a - b)) {
      select.append(element("option", textOf(data.name[p]), { value: String(p) }));
      for (const t of [...data.children[p] ?? []].sort((a, b) => heavy[b] - heavy[a] || a - b))
        select.append(element("option", "\u2003" + textOf(data.name[t]), { value: String(t) }));
    }
    select.addEventListener("change", () => { state.who = +select.value; refresh(); });
  }

  chooseWho();
  $("width").addEventListener("change", refresh);
  $("search").addEventListener("input", () => flame.search($("search").value));
  $("reset").addEventListener("click", () => flame.zoom(-1));
  $("icicle").addEventListener("click", e => {
    const on = e.currentTarget.getAttribute("aria-pressed") !== "true";
    e.currentTarget.setAttribute("aria-pressed", String(on));
    flame.flip(on);
  });
  addEventListener("resize", () => flame.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => flame.draw());
  refresh();
}

try {
  start(prepare({ counters: [], events: [], ...await unpack($("data").textContent) }));
  document.documentElement.dataset.ready = "yes";
} catch (e) {
  $("failed").textContent = `The data of this page cannot be shown by this browser: ${e.message}`;
  throw e;
}
