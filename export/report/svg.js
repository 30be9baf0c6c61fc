// Zoom, search and reset of an SVG flame graph. Without it the graph still reads, by its titles.
"use strict";
(() => {
  const root = document.documentElement;
  const left = 10, width = 1180, charWidth = 7;
  const boxes = [...root.querySelectorAll("g.f")].map(g => {
    const rect = g.querySelector("rect"), text = g.querySelector("text");
    const title = g.querySelector("title").textContent;
    return { g, rect, text, title, name: title.replace(/ \([^()]*\)$/, ""),
             x: +rect.getAttribute("x"), w: +rect.getAttribute("width"),
             y: +rect.getAttribute("y") };
  });
  const say = document.getElementById("said"), matched = document.getElementById("matched");
  const reset = document.getElementById("reset");

  function place(box, x, w) {
    box.rect.setAttribute("x", x);
    box.rect.setAttribute("width", Math.max(w, 0.1));
    const room = Math.floor((w - 6) / charWidth);
    if (room < 3) {
      if (box.text) box.text.textContent = "";
      return;
    }
    if (!box.text) {
      box.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      box.text.setAttribute("y", box.y + 12);
      box.g.appendChild(box.text);
    }
    const chars = [...box.name.slice(0, 2 * room + 2)];
    box.text.setAttribute("x", x + 3);
    box.text.textContent = chars.length <= room ? box.name
                                                : chars.slice(0, room - 2).join("") + "..";
  }

  function zoom(to) {
    const scale = width / to.w, close = 1e-3;
    for (const box of boxes) {
      const below = box.y > to.y;
      const around = box.x <= to.x + close && box.x + box.w >= to.x + to.w - close;
      const within = box.x >= to.x - close && box.x + box.w <= to.x + to.w + close;
      const shown = below ? around : within;
      box.g.style.display = shown ? "" : "none";
      box.g.classList.toggle("below", shown && below);
      if (shown && below) place(box, left, width);
      else if (shown) place(box, left + (box.x - to.x) * scale, box.w * scale);
    }
    reset.style.display = to.w < width - close ? "" : "none";
  }

  function search(term) {
    const want = term.toLowerCase(), spans = [];
    for (const box of boxes) {
      const hit = want !== "" && box.name.toLowerCase().includes(want);
      box.g.classList.toggle("hit", hit);
      if (hit) spans.push([box.x, box.x + box.w]);
    }
    // A box within a matched one counts once.
    let sum = 0, end = 0;
    for (const [from, to] of spans.sort((a, b) => a[0] - b[0])) {
      if (to > end) sum += to - Math.max(from, end);
      end = Math.max(end, to);
    }
    matched.textContent = want === "" ? "" : "matched: " + (100 * sum / width).toFixed(1) + " %";
  }

  function ask() {
    const term = prompt("Search for (part of a name; empty: none)", "");
    if (term !== null) search(term);
  }

  function button(id, run) {
    const b = document.getElementById(id);
    b.addEventListener("click", run);
    b.addEventListener("keydown", e => {
      if (e.key === "Enter" || e.key === " ") { e.preventDefault(); run(); }
    });
  }

  for (const box of boxes) {
    box.g.addEventListener("click", () => zoom(box));
    box.g.addEventListener("mouseover", () => { say.textContent = box.title; });
    box.g.addEventListener("mouseout", () => { say.textContent = ""; });
  }
  button("search", ask);
  button("reset", () => zoom({ x: left, w: width, y: Infinity }));
  addEventListener("keydown", e => {
    if (e.key === "f" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); ask(); }
    if (e.key === "Escape") { zoom({ x: left, w: width, y: Infinity }); search(""); }
  });
})();
