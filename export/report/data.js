// The incident's data and every sum over it. export/report_data.h tells the shape of the JSON,
// model/stack_tree.h the rules for functions that call themselves.

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);       // many times as fast
  const packed = atob(base64), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = packed.charCodeAt(i);
  return bytes;
}

/** Both readers of base64 skip line ends. */
export async function unpackBytes(base64) {
  const bytes = bytesOf(base64);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

export async function unpack(base64) {
  return JSON.parse(new TextDecoder().decode(await unpackBytes(base64)));
}

/** What code a text is: a digit, of enum code_kind in model/incident.h; 0 = none. */
export function codeOf(data, text) {
  return Number(data.codes[text] ?? 0);
}

export const kinds = ["", "kernel", "native", "Java", "Python", "JavaScript", ".NET", "generated"];
export function kindOf(data, text) { return kinds[codeOf(data, text)]; }

/** The twin of stack_tree_has_managed(): elsewhere kinds of code say nothing. */
export function hasManaged(data) { return /[3-6]/.test(data.codes); }

export function moduleOf(name) {
  const bang = name.indexOf("!");
  return bang < 0 ? "" : name.slice(0, bang);
}

/** The raw JSON as typed arrays, and what every sum needs. */
export function prepare(raw) {
  const n = raw.callers.length;
  const caller = new Int32Array(n), depth = new Int32Array(n), outermost = new Uint8Array(n);
  const processOf = new Int32Array(n), threadOf = new Int32Array(n);
  const name = Int32Array.from(raw.names);
  // Above the functions: the incident, of several as one; process; thread.
  const levels = raw.levels ?? 2;
  for (let i = 0; i < n; i++) {
    caller[i] = raw.callers[i] === 0 ? -1 : i - raw.callers[i];
    const up = caller[i];
    depth[i] = up < 0 ? 0 : depth[up] + 1;
    processOf[i] = up < 0 ? i : processOf[up];
    threadOf[i] = depth[i] < 1 ? -1 : depth[i] === 1 ? i : threadOf[up];
    // Inclusive weight counts a sample once, at the outermost call.
    let at = up;
    while (at >= 0 && (depth[at] < levels || name[at] !== name[i])) at = caller[at];
    outermost[i] = at < 0 ? 1 : 0;
  }

  const first = new Int32Array(raw.buckets + 1), nodes = [], weights = [];
  for (let at = 0, b = 0; b < raw.buckets; b++) {
    let pairs = raw.weights[at++], node = 0;
    for (; pairs > 0; pairs--) {
      node += raw.weights[at++];
      nodes.push(node);
      weights.push(raw.weights[at++]);
    }
    first[b + 1] = nodes.length;
  }

  // Children by name, as the flame graph shows them.
  const children = Array.from({ length: n }, () => null), roots = [];
  for (let i = 0; i < n; i++) {
    if (caller[i] < 0) roots.push(i);
    else (children[caller[i]] ??= []).push(i);
  }
  const byName = (a, b) => {
    const one = raw.texts[name[a]], other = raw.texts[name[b]];
    return one < other ? -1 : one > other ? 1 : a - b;
  };
  roots.sort(byName);
  for (const list of children) list?.sort(byName);

  return { ...raw, n, caller, depth, outermost, processOf, threadOf, name, first, children, roots,
           levels, nodes: Int32Array.from(nodes), weight: Float64Array.from(weights),
           bucketMs: (raw.to_ms - raw.from_ms) / raw.buckets };
}

/** The bucket of a time in seconds; the end of a range is the bucket after it. */
export function bucketAt(data, seconds) {
  const b = Math.round((seconds * 1000 - data.from_ms) / (data.bucketMs || 1));
  return Math.min(Math.max(b, 0), data.buckets);
}

export function secondsAt(data, bucket) {
  return (data.from_ms + bucket * data.bucketMs) / 1000;
}

/** Sums of buckets [from, to), of one process or thread (its node) or of all (-1). */
export function sum(data, from, to, who = -1) {
  const self = new Float64Array(data.n), total = new Float64Array(data.n);
  const of = who >= 0 && data.depth[who] === 0 ? data.processOf : data.threadOf;
  let whole = 0;
  for (let i = data.first[from]; i < data.first[to]; i++) {
    const node = data.nodes[i];
    if (who >= 0 && of[node] !== who) continue;
    self[node] += data.weight[i];
    whole += data.weight[i];
  }
  total.set(self);
  for (let i = data.n - 1; i >= 0; i--) {
    if (data.caller[i] >= 0) total[data.caller[i]] += total[i];
  }
  return { self, total, whole };
}

/** By function: Map from text number to { text, self, inclusive }. */
export function functions(data, sums) {
  const found = new Map();
  for (let i = 0; i < data.n; i++) {
    if (data.depth[i] < data.levels || sums.total[i] === 0) continue;
    let f = found.get(data.name[i]);
    if (!f) found.set(data.name[i], f = { text: data.name[i], self: 0, inclusive: 0 });
    f.self += sums.self[i];
    if (data.outermost[i]) f.inclusive += sums.total[i];
  }
  return found;
}

/**
 * When functions were on the stack: (text number) => { first, last, parts }. first and last are
 * buckets; parts has the inclusive weight in equal parts of buckets [from, to).
 */
export function whens(data, from, to, who, parts) {
  const { n, caller, depth, levels, name, outermost } = data, texts = data.texts.length;
  const first = new Int32Array(n).fill(data.buckets), last = new Int32Array(n).fill(-1);
  const firsts = new Int32Array(texts).fill(data.buckets), lasts = new Int32Array(texts).fill(-1);
  const of = who >= 0 && depth[who] === 0 ? data.processOf : data.threadOf;
  for (let b = from; b < to; b++) {
    for (let i = data.first[b]; i < data.first[b + 1]; i++) {
      const node = data.nodes[i];
      if (who >= 0 && of[node] !== who) continue;
      if (first[node] > b) first[node] = b;
      last[node] = b;
    }
  }
  for (let i = n - 1; i >= 0; i--) {
    const up = caller[i], text = name[i];
    if (last[i] < 0) continue;
    if (up >= 0) {
      if (first[i] < first[up]) first[up] = first[i];
      if (last[i] > last[up]) last[up] = last[i];
    }
    if (depth[i] < levels) continue;
    if (first[i] < firsts[text]) firsts[text] = first[i];
    if (last[i] > lasts[text]) lasts[text] = last[i];
  }
  const weights = new Float64Array(texts * parts), total = new Float64Array(n);
  for (let part = 0; part < parts; part++) {
    const start = from + Math.floor((to - from) * part / parts);
    const end = from + Math.floor((to - from) * (part + 1) / parts);
    total.fill(0);
    for (let i = data.first[start]; i < data.first[end]; i++) {
      if (who < 0 || of[data.nodes[i]] === who) total[data.nodes[i]] += data.weight[i];
    }
    for (let i = n - 1; i >= 0; i--) {
      if (total[i] === 0) continue;
      if (caller[i] >= 0) total[caller[i]] += total[i];
      if (outermost[i] && depth[i] >= levels) weights[name[i] * parts + part] += total[i];
    }
  }
  return text => ({ first: firsts[text], last: lasts[text],
                    parts: weights.subarray(text * parts, (text + 1) * parts) });
}

/**
 * One character for each part, as in the terminal: _ nothing, . under 0.1 %, o under 1 %, 0 to 9
 * tenths of one CPU, or of the largest part where weights are not times; A to Y and * above that.
 * partNs: a part's time.
 */
export function whenText(parts, unitNs, partNs) {
  const most = unitNs ? partNs / unitNs : Math.max(...parts);
  return [...parts].map(v => {
    const share = most > 0 ? v / most : 0;
    if (v === 0) return "_";
    if (share < 0.01) return share < 0.001 ? "." : "o";
    return share >= 3.5 ? "*" : "0123456789ABCDEFGHIJKLMNOPQRSTUVWXY"[Math.floor(share * 10)];
  }).join("");
}

/**
 * The callers and callees of a function, and its own weight. A sample with N calls of the function
 * counts as 1/N at each: recursion shows, and the callers add up to the inclusive weight. In
 * A>B>C>B>D, A and C call B with a half each, and B calls C and D with a half each.
 */
export function around(data, sums, text) {
  const { n, caller, depth, levels, name } = data, callers = new Map(), callees = new Map();
  const calls = new Int32Array(n), part = new Float64Array(n);
  const is = node => node >= 0 && depth[node] >= levels && name[node] === text;
  const add = (map, key, w) => { if (w > 0) map.set(key, (map.get(key) ?? 0) + w); };
  let self = 0;
  for (let i = 0; i < n; i++) {
    calls[i] = (caller[i] >= 0 ? calls[caller[i]] : 0) + (is(i) ? 1 : 0);
    if (calls[i] > 0) part[i] = sums.self[i] / calls[i];
    if (is(i)) self += sums.self[i];
  }
  for (let i = n - 1; i >= 0; i--) {
    const up = caller[i];
    if (up < 0) continue;
    part[up] += part[i];
    if (is(i)) add(callers, name[up], part[i]);
    if (is(up)) add(callees, name[i], part[i]);
  }
  return { callers, callees, self };
}

/** Functions whose inclusive share grew most in buckets [from, to) against all others. */
export function changed(data, from, to, who) {
  const now = sum(data, from, to, who), all = sum(data, 0, data.buckets, who);
  const rest = all.whole - now.whole, inNow = functions(data, now), rows = [];
  if (now.whole === 0 || rest <= 0) return rows;
  for (const f of functions(data, all).values()) {
    const late = inNow.get(f.text)?.inclusive ?? 0;
    const then = (f.inclusive - late) / rest, share = late / now.whole;
    rows.push({ text: f.text, then, share, grew: share - then });
  }
  return rows.sort((a, b) => b.grew - a.grew || a.text - b.text);
}

/** Garbage collections and their pauses, as { from, to, kind, who } in seconds. */
export function collections(data) {
  const open = new Map(), found = [];
  for (const [ms, kind, name, , who, fields] of data.events) {
    if (kind !== "event") continue;
    const what = name.slice(name.indexOf("/") + 1);
    const count = /(?:^|, )Count=(\d+)/.exec(fields)?.[1] ?? "";
    if (what === "GC/Start") {
      const key = "gc" + who + "#" + count;
      if (!open.has(key)) open.set(key, ms);
    } else if (what === "GC/Stop") {
      close("gc" + who + "#" + count, ms, "collection", who);
    } else if (what === "GC/SuspendEEStart") {
      open.set("pause" + who, ms);
    } else if (what === "GC/RestartEEStop") {
      close("pause" + who, ms, "pause", who);
    }
  }
  return found;

  function close(key, ms, kind, who) {
    if (!open.has(key)) return;
    found.push({ from: open.get(key) / 1000, to: ms / 1000, kind, who });
    open.delete(key);
  }
}

/** Counters: { name, points: [[seconds, value or null], ...], min, max, sum, n, last }. */
export function counters(data) {
  const found = new Map();
  for (let i = 0; i < data.counters.length; i += 3) {
    const [ms, name, value] = data.counters.slice(i, i + 3);
    if (!found.has(name))
      found.set(name, { name, points: [], min: Infinity, max: -Infinity, sum: 0, n: 0,
                        last: null });
    const c = found.get(name);
    c.points.push([ms / 1000, value]);
    if (value === null) continue;
    c.min = Math.min(c.min, value);
    c.max = Math.max(c.max, value);
    c.sum += value;
    c.n++;
    if (ms <= 0) c.last = value;
  }
  return [...found.values()].filter(c => c.n > 0);
}
