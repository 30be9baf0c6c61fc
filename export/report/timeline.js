import { bucketAt, collections, counters, secondsAt } from "./data.js";
import { sharp } from "./flame.js";

// Lanes over one axis of time: CPU of processes, or of the threads of one, or how much more memory
// they kept; counters, collections, events.
// Dragging chooses a range of buckets.

const laneHeight = 34, axisHeight = 22, gap = 6, lanesMost = 8, countersMost = 8, narrow = 600;

// mostListed: EVENT_LIST_MAX of export/event_list.h
const isOfCollections = /\/GC\/|\/GC\w/, mostListed = 1000000;

export class Timeline {
  /** on: { range(from bucket, to bucket), said(text) } */
  constructor(canvas, data, on) {
    Object.assign(this, { canvas, data, on, from: 0, to: data.buckets, who: -1 });
    // Each process has its size: the lanes are of those that grew most.
    const rank = c => c.name.endsWith(": RSS MB") ? c.max - c.min : Number.MAX_VALUE;
    this.counters = counters(data).sort((a, b) => rank(b) - rank(a)).slice(0, countersMost);
    this.collections = collections(data);
    this.events = data.events.filter(e => !isOfCollections.test(e[2]));
    let anchor = null;
    canvas.addEventListener("pointerdown", e => {
      if (e.button !== 0) return;
      anchor = this.bucketUnder(e);
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", e => {
      const at = this.bucketUnder(e);
      if (anchor !== null && at !== anchor) this.mark(Math.min(anchor, at), Math.max(anchor, at));
      this.point(e);
    });
    canvas.addEventListener("pointerup", e => {
      const at = this.bucketUnder(e);
      if (anchor !== null && at === anchor) on.range(0, data.buckets);
      else if (anchor !== null) on.range(Math.min(anchor, at), Math.max(anchor, at));
      anchor = null;
    });
    canvas.addEventListener("pointerleave", () => { if (anchor === null) on.said(""); });
    canvas.addEventListener("keydown", e => this.key(e));
  }

  mark(from, to) {
    this.from = from;
    this.to = to;
    this.draw();
  }

  key(e) {
    const most = this.data.buckets;
    const step = Math.max(1, Math.round(most / 50)) * (e.key === "ArrowLeft" ? -1 : 1);
    if (e.key === "Escape") return this.on.range(0, most);
    if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
    e.preventDefault();
    const least = e.shiftKey ? this.from + 1 : this.to - this.from;
    const to = Math.min(Math.max(this.to + step, least), most);
    this.on.range(e.shiftKey ? this.from : to - (this.to - this.from), to);
  }

  x(seconds) {
    const { from_ms, to_ms } = this.data;
    const part = (seconds * 1000 - from_ms) / ((to_ms - from_ms) || 1);
    return this.left + part * (this.width - this.left);
  }

  bucketUnder(e) {
    const x = e.clientX - this.canvas.getBoundingClientRect().left;
    const b = Math.round((x - this.left) / (this.width - this.left) * this.data.buckets);
    return Math.min(Math.max(b, 0), this.data.buckets);
  }

  point(e) {
    const seconds = secondsAt(this.data, this.bucketUnder(e)), parts = [seconds.toFixed(3) + " s"];
    for (const c of this.counters) {
      const p = c.points.filter(q => q[0] <= seconds).at(-1);
      if (p && p[1] !== null) parts.push(`${c.name}: ${brief(p[1])}`);
    }
    const close = 4 / (this.width - this.left) * (this.data.to_ms - this.data.from_ms) / 1000;
    const near = this.collections.find(c => seconds >= c.from - close && seconds <= c.to + close);
    if (near)
      parts.push(`${near.kind} of ${((near.to - near.from) * 1000).toFixed(1)} ms in ${near.who}`);
    const event = this.events.find(v => Math.abs(v[0] / 1000 - seconds) <= close);
    // The name of a start or an end is its process's.
    const named = event && event[2] && !/^(process|thread)-/.test(event[1]);
    if (event) parts.push(`${named ? event[2] : event[1]} ${event[4]}`);
    this.on.said(parts.join("; "));
  }

  /** The heaviest processes, or threads of one, each with its weight per column. */
  lanes(columns) {
    const { data, who } = this, found = new Map();
    const process = who >= 0 ? data.processOf[who] : -1;
    for (let b = 0; b < data.buckets; b++) {
      const column = Math.floor(b / data.buckets * columns);
      for (let i = data.first[b]; i < data.first[b + 1]; i++) {
        const node = data.nodes[i];
        if (process >= 0 && data.processOf[node] !== process) continue;
        const key = process < 0 ? data.processOf[node] : data.threadOf[node];
        let lane = found.get(key);
        if (!lane) found.set(key, lane = { node: key, total: 0, at: new Float64Array(columns) });
        lane.at[column] += data.weight[i];
        lane.total += data.weight[i];
      }
    }
    // Of what was kept, a lane is growth.
    if (data.metric.endsWith("-net")) {
      for (const lane of found.values())
        for (let c = 1; c < columns; c++) lane.at[c] += lane.at[c - 1];
    }
    return [...found.values()].sort((a, b) => b.total - a.total || a.node - b.node);
  }

  draw() {
    const { data } = this, style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name).trim();
    const width = this.canvas.clientWidth || 1000;
    this.width = width - 8;
    this.left = Math.min(190, width / 4);
    const columns = Math.min(data.buckets, Math.max(20, Math.floor((this.width - this.left) / 3)));
    const all = this.lanes(columns), lanes = all.slice(0, lanesMost);
    const marks = (this.collections.length ? 1 : 0) + (this.events.length ? 1 : 0);
    const height = (lanes.length + this.counters.length) * (laneHeight + gap) +
                   marks * (16 + gap) + axisHeight + (width < narrow ? 36 : 20);
    const [g] = sharp(this.canvas, height);
    this.ink = colour("--ink");
    this.dim = colour("--dim");
    g.clearRect(0, 0, width, height);
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    let y = 18;
    const columnNs = (data.to_ms - data.from_ms) * 1e6 / columns;
    const most = lanes.reduce((m, l) => Math.max(m, ...l.at), 0);
    for (const lane of lanes) {
      this.area(g, lane, y, most, columns, colour("--area"), colour("--line"));
      const own = Math.max(...lane.at);
      const peak = data.unit_ns ? (own * data.unit_ns / columnNs).toFixed(1) + " CPUs"
                   : data.unit === "bytes" ? megabytes(own) : brief(own);
      const said = data.metric.endsWith("-net") ? "grew by " : "peak ";
      this.title(g, data.texts[data.name[lane.node]], said + peak, y);
      y += laneHeight + gap;
    }
    for (const c of this.counters) {
      this.course(g, c, y, colour("--accent"), colour("--line"));
      this.title(g, c.name, c.min < c.max ? `${brief(c.min)}–${brief(c.max)}` : brief(c.min), y);
      y += laneHeight + gap;
    }
    if (this.collections.length) {
      this.title(g, "GC", "", y - 9);
      for (const c of this.collections) {
        g.fillStyle = c.kind === "pause" ? colour("--alarm") : colour("--area");
        g.fillRect(this.x(c.from), y + (c.kind === "pause" ? 0 : 7),
                   Math.max(this.x(c.to) - this.x(c.from), 1.5), 7);
      }
      y += 16 + gap;
    }
    if (this.events.length) {
      this.title(g, "events", "", y - 9);
      g.fillStyle = this.ink;
      for (const x of this.marks()) g.fillRect(x, y, 1, 14);
      this.unknown(g, data.from_ms, this.listed ? this.listed.from_ms : data.events_from_ms, y);
      this.unknown(g, this.listed ? this.listed.to_ms : data.events_to_ms, data.to_ms, y);
      y += 16 + gap;
    }
    this.axis(g, y, colour("--line"));
    if (this.from > 0 || this.to < data.buckets) {
      const x = this.x(secondsAt(data, this.from)), w = this.x(secondsAt(data, this.to)) - x;
      g.fillStyle = colour("--brush");
      g.fillRect(x, 16, w, y - 16);
      g.fillStyle = colour("--accent");
      g.fillRect(x, 16, 1, y - 16);
      g.fillRect(x + w, 16, 1, y - 16);
    }
    g.fillStyle = colour("--alarm");
    g.fillRect(this.x(0) - 0.75, 14, 1.5, y - 14);
    g.textAlign = this.x(0) > width - 60 ? "right" : "center";
    g.fillText("trigger", this.x(0), 7);
    g.textAlign = "left";
    if (all.length > lanes.length) {
      g.fillStyle = this.dim;
      g.fillText(`${lanes.length} of ${all.length} ${this.who >= 0 ? "threads" : "processes"}`,
                 0, y + (width < narrow ? 28 : 12));
    }
  }

  /** All events, of which the page's JSON has those around the trigger. */
  list(events) {
    const isCollection = events.names.map(name => isOfCollections.test(name));
    const whole = events.n < mostListed, { from_ms, to_ms } = this.data;
    this.listed = { times: events.times.filter((_, i) => !isCollection[events.name[i]]),
                    from_ms: whole ? from_ms : events.times[0],
                    to_ms: whole ? to_ms : events.times[events.n - 1] };
    this.draw();
  }

  /** Where events stand in the lane: a column of pixels once. */
  marks() {
    const times = this.listed ? this.listed.times : this.events.map(e => e[0]), columns = new Set();
    for (const ms of times) columns.add(Math.round(this.x(ms / 1000)));
    return columns;
  }

  /** A stretch whose events were too many for the file: not the same as none. */
  unknown(g, from, to, y) {
    const x = this.x(from / 1000), w = this.x(to / 1000) - x;
    if (w < 1) return;
    g.fillStyle = this.dim;
    for (let i = 0; i < w; i += 6) g.fillRect(x + i, y + 7, 3, 1);
    if (w > 130) g.fillText("too many for this file", x + 8, y + 2);
  }

  title(g, name, detail, y) {
    g.fillStyle = this.ink;
    g.fillText(fitted(g, name, this.left - 10), 0, y + (detail ? 10 : laneHeight / 2));
    g.fillStyle = this.dim;
    if (detail) g.fillText(fitted(g, detail, this.left - 10), 0, y + 26);
  }

  area(g, lane, y, most, columns, fill, line) {
    const w = (this.width - this.left) / columns;
    g.fillStyle = line;
    g.fillRect(this.left, y + laneHeight, this.width - this.left, 1);
    g.fillStyle = fill;
    lane.at.forEach((v, i) => {
      const h = most > 0 ? v / most * laneHeight : 0;
      if (h > 0) g.fillRect(this.left + i * w, y + laneHeight - h, Math.max(w - 0.4, 0.6), h);
    });
  }

  course(g, counter, y, stroke, line) {
    const span = counter.max - counter.min || 1;
    g.fillStyle = line;
    g.fillRect(this.left, y + laneHeight, this.width - this.left, 1);
    g.strokeStyle = stroke;
    g.lineWidth = 1.5;
    g.fillStyle = stroke;
    g.beginPath();
    let pen = false;
    for (const [i, [seconds, value]] of counter.points.entries()) {
      if (value === null) { pen = false; continue; }
      const x = this.x(seconds);
      const at = y + laneHeight - 2 - (value - counter.min) / span * (laneHeight - 4);
      if (pen) g.lineTo(x, at);
      else g.moveTo(x, at);
      // A value alone makes no line.
      if (!pen && (counter.points[i + 1]?.[1] ?? null) === null) g.fillRect(x - 2, at - 2, 4, 4);
      pen = true;
    }
    g.stroke();
  }

  axis(g, y, line) {
    const span = (this.data.to_ms - this.data.from_ms) / 1000;
    const steps = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600];
    const most = Math.min(Math.max((this.width - this.left) / 60, 2), 12);
    const step = steps.find(s => span / s <= most) ?? span / most;
    g.textAlign = "center";
    const first = Math.ceil(this.data.from_ms / 1000 / step) * step;
    for (let s = first; s <= this.data.to_ms / 1000 + 1e-9; s += step) {
      g.fillStyle = line;
      g.fillRect(this.x(s), 16, 1, y - 12);
      g.fillStyle = this.dim;
      if (this.x(s) < this.width - 10) g.fillText(+s.toFixed(3) + " s", this.x(s), y + 12);
    }
    g.textAlign = "left";
  }
}

function fitted(g, text, room) {
  if (g.measureText(text).width <= room) return text;
  let n = Math.min(text.length, 60);
  while (n > 1 && g.measureText(text.slice(0, n) + "…").width > room) n--;
  return text.slice(0, n) + "…";
}

/** As report --memory has them. */
export const megabytes = bytes => `${(bytes / 1048576).toFixed(1)} MB`;

export function brief(v) {
  const extreme = Math.abs(v) >= 1e6 || (v !== 0 && Math.abs(v) < 1e-3);
  return extreme ? v.toPrecision(4) : String(+v.toFixed(3));
}
