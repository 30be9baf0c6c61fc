import { codeOf, kinds } from "./data.js";
import { element } from "./table.js";

// The flame graph on a canvas: layout by weight, zoom, search, a walk by keyboard.

const rowHeight = 18, charWidth = 7.2;
// The twin of markup_colour() in export/markup.c; by the digit in codes.
const palettes = [
  ["#cfcfcf"],
  ["#b5cbd1", "#c2cbd6"],
  ["#f4a582", "#fdc086", "#f0b0d8", "#f5a9b3", "#e6b58a", "#e8bfae"],
  ["#a6d99c", "#8fd7a8", "#bfdc95", "#a9cfa0"],
  ["#9fc3f0", "#8ecfe0", "#a9cdf5", "#92b9e6"],
  ["#ffe08a", "#f2e394", "#ead77a"],
  ["#b7b5f2", "#c7b3ee", "#d3b0ea", "#aaa8e8"],
  ["#d8c3a5", "#d0c4b0"],
];
const managed = 3;
const utf8 = new TextEncoder();

function shadeOf(name, code) {
  const bang = name.indexOf("!");
  if (bang < 0) return name;
  if (code < managed) return name.slice(0, bang);
  const open = name.indexOf("(", bang), end = open < 0 ? name.length : open;
  return name.slice(0, Math.max(name.slice(0, end).lastIndexOf("."), bang));
}

export function colourOf(name, code) {
  let hash = 2166136261;
  for (const byte of utf8.encode(shadeOf(name, code)))
    hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return palettes[code][((hash ^ (hash >>> 16)) >>> 0) % palettes[code].length];
}

/** What the colours mean, of the kinds of code that there are. */
export function legend(data) {
  const p = element("p", "", { class: "hint" });
  for (const code of [...new Set(data.codes)].filter(c => c !== "0").sort()) {
    const swatch = element("span", "", { class: "swatch" });
    swatch.style.background = palettes[code][0];
    p.append(swatch, kinds[code] + " ");
  }
  return p;
}

/** A canvas of the width it is shown with and a height, sharp on every screen. */
export function sharp(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 1000;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [g, width];
}

export class Flame {
  /** on: { said(text), matched(text), chosen(text number) } */
  constructor(canvas, data, on) {
    Object.assign(this, { canvas, data, on, sums: null, zoomed: -1, at: -1, word: "",
                          icicle: false, boxes: [] });
    this.colours = data.texts.map((name, i) => colourOf(name, codeOf(data, i)));
    canvas.addEventListener("mousemove", e => this.point(this.find(e)));
    canvas.addEventListener("mouseleave", () => this.point(null));
    canvas.addEventListener("click", e => {
      const box = this.find(e);
      if (box) this.zoom(box.node);
    });
    canvas.addEventListener("keydown", e => this.key(e));
    canvas.parentElement.addEventListener("scroll", () => this.fromRoot = this.hidden());
    this.fromRoot = 0;
  }

  /** How much of the graph, in pixels, is below what its scroller shows. */
  hidden() {
    const { scrollHeight, clientHeight, scrollTop } = this.canvas.parentElement;
    return scrollHeight - clientHeight - scrollTop;
  }

  show(sums) {
    this.sums = sums;
    if (this.zoomed >= 0 && sums.total[this.zoomed] === 0) this.zoomed = -1;
    if (this.at >= 0 && sums.total[this.at] === 0) this.at = -1;
    this.draw();
  }

  zoom(node) {
    this.zoomed = node;
    this.at = node;
    this.draw();
    this.say(node);
  }

  search(word) {
    this.word = word.toLowerCase();
    this.draw();
  }

  flip(icicle) {
    this.icicle = icicle;
    this.draw();
  }

  weightOf(node) { return node < 0 ? this.sums.whole : this.sums.total[node]; }
  nameOf(node) { return node < 0 ? "all" : this.data.texts[this.data.name[node]]; }
  colourAt(node) { return node < 0 ? "#cfcfcf" : this.colours[this.data.name[node]]; }
  childrenOf(node) { return node < 0 ? this.data.roots : this.data.children[node] ?? []; }

  hits(node) { return node >= 0 && this.word !== "" && this.hitTexts[this.data.name[node]]; }

  /** Boxes from the zoomed one outwards; below it its callers, in full width. */
  layOut(width) {
    const boxes = [], callers = [];
    for (let n = this.zoomed; n >= 0; n = this.data.caller[n]) callers.push(this.data.caller[n]);
    callers.reverse().forEach(
      (node, row) => boxes.push({ node, x: 0, w: width, row, caller: true }));
    const todo = [{ node: this.zoomed, x: 0, w: width, row: callers.length }];
    const scale = width / (this.weightOf(this.zoomed) || 1);
    while (todo.length) {
      const box = todo.pop();
      boxes.push(box);
      let x = box.x;
      for (const child of this.childrenOf(box.node)) {
        const w = this.sums.total[child] * scale;
        if (w >= 0.3) todo.push({ node: child, x, w, row: box.row + 1 });
        x += w;
      }
    }
    return boxes;
  }

  draw() {
    this.hitTexts = this.data.texts.map(
      t => this.word !== "" && t.toLowerCase().includes(this.word));
    this.boxes = this.layOut(this.canvas.clientWidth || 1000);
    this.rows = this.boxes.reduce((most, b) => Math.max(most, b.row), 0) + 1;
    const height = this.rows * rowHeight + 2, [g, width] = sharp(this.canvas, height);
    const scroller = this.canvas.parentElement;
    const searching = this.word !== "";
    g.clearRect(0, 0, width, height);
    g.font = "12px ui-monospace, Consolas, monospace";
    g.textBaseline = "middle";
    for (const box of this.boxes) {
      const y = this.yOf(box), hit = this.hits(box.node);
      g.globalAlpha = box.caller || (searching && !hit) ? 0.5 : 1;
      g.fillStyle = hit ? "#e600e6" : this.colourAt(box.node);
      g.fillRect(box.x, y, Math.max(box.w - 0.6, 0.4), rowHeight - 1);
      g.globalAlpha = 1;
      if (box.node === this.at && box.node >= 0) {
        g.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
        g.lineWidth = 2;
        g.strokeRect(box.x + 1, y + 1, Math.max(box.w - 2, 1), rowHeight - 3);
      }
      const room = Math.floor((box.w - 6) / charWidth);
      if (room >= 3) this.label(g, box, y, room, hit);
    }
    if (this.icicle !== this.wasIcicle || this.rows !== this.hadRows)
      scroller.scrollTop = this.icicle ? 0 : height;
    else if (!this.icicle && scroller.clientHeight !== this.hadRoom)
      scroller.scrollTop += this.hidden() - this.fromRoot;   // the window became lower or higher
    this.fromRoot = this.hidden();
    this.hadRoom = scroller.clientHeight;
    this.wasIcicle = this.icicle;
    this.hadRows = this.rows;
    this.tellMatched();
  }

  label(g, box, y, room, hit) {
    const chars = [...this.nameOf(box.node).slice(0, 2 * room + 2)];
    const text = chars.length <= room ? chars.join("") : chars.slice(0, room - 1).join("") + "…";
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const faded = box.caller || (this.word !== "" && !hit);
    g.fillStyle = hit ? "#fff" : faded && dark ? "#f0f0f0" : "#111";
    g.fillText(text, box.x + 3, y + rowHeight / 2);
  }

  yOf(box) { return (this.icicle ? box.row : this.rows - 1 - box.row) * rowHeight + 1; }

  /** Weight of the outermost boxes that match. */
  tellMatched() {
    if (this.word === "") return this.on.matched("");
    let weight = 0;
    const within = new Uint8Array(this.data.n);
    for (let i = 0; i < this.data.n; i++) {
      const up = this.data.caller[i];
      if (up >= 0 && within[up]) within[i] = 1;
      else if (this.hits(i)) {
        within[i] = 1;
        weight += this.sums.total[i];
      }
    }
    this.on.matched(`matched: ${percent(weight, this.sums.whole)}`);
  }

  find(event) {
    const at = this.canvas.getBoundingClientRect();
    const x = event.clientX - at.left, y = event.clientY - at.top;
    return this.boxes.find(b => x >= b.x && x < b.x + b.w &&
                                y >= this.yOf(b) && y < this.yOf(b) + rowHeight) ?? null;
  }

  point(box) {
    if (box) this.say(box.node);
    else this.on.said("");
  }

  say(node) {
    const total = this.weightOf(node), self = node < 0 ? 0 : this.sums.self[node];
    this.on.said(`${this.nameOf(node)} — ${count(total)} ${this.data.unit}, ` +
                 `${percent(total, this.sums.whole)}` +
                 `; itself ${percent(self, this.sums.whole)}`);
  }

  key(e) {
    const shown = list => list.filter(c => this.sums.total[c] > 0);
    const up = this.at < 0 ? -1 : this.data.caller[this.at];
    const siblings = this.at < 0 ? [] : shown(this.childrenOf(up));
    const here = siblings.indexOf(this.at);
    const heavier = (a, b) => this.sums.total[b] - this.sums.total[a];
    const heaviest = list => shown(list).sort(heavier)[0] ?? this.at;
    const out = this.icicle ? "ArrowDown" : "ArrowUp", back = this.icicle ? "ArrowUp" : "ArrowDown";
    if (e.key === out) this.at = heaviest(this.childrenOf(this.at));
    else if (e.key === back) this.at = up;
    else if (e.key === "ArrowLeft" && here > 0) this.at = siblings[here - 1];
    else if (e.key === "ArrowRight" && here >= 0 && here + 1 < siblings.length)
      this.at = siblings[here + 1];
    else if (e.key === "Enter") {
      this.zoom(this.at);
      const { depth, levels = 2, name } = this.data;
      if (this.at >= 0 && depth[this.at] >= levels) this.on.chosen(name[this.at]);
    } else if (e.key === "Escape") this.zoom(-1);
    else return;
    e.preventDefault();
    this.draw();
    this.say(this.at);
  }
}

export function percent(part, whole) {
  return (whole > 0 ? 100 * part / whole : 0).toFixed(1) + " %";
}

export function count(v) {
  return Math.round(v).toLocaleString("en-US");
}
