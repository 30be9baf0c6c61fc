// A table that sorts by its heads and filters by a word. Contents are set as text, never as markup.

export function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  return e;
}

const namedMost = 9;

/**
 * columns: { title, value(row), show(row) -> text, number, share(row) 0..1, pick(row), kind(row),
 * fold, wide }. The rows are shown by the first column that says sort: -1 or 1, in the order given
 * without one. A long text in a column that folds shows its beginning only. On a narrow page, the
 * last column of a table that is named has a line of its own before the others, and wide ones have
 * one after them.
 */
export function table(box, columns, rows, {
  filter = false, most = 300, named = columns.length <= namedMost && !columns.at(-1).number,
} = {}) {
  let by = columns.find(c => c.sort), direction = by?.sort ?? 1, word = "";
  const body = element("tbody"), head = element("thead"), line = element("tr");
  const note = element("p", "", { class: "hint" });

  const sort = c => c.number ? "n" : c.wide ? "wide" : "";
  for (const c of columns) {
    const th = element("th", undefined, { scope: "col", class: sort(c) });
    const button = element("button", c.title, { type: "button" });
    button.addEventListener("click", () => {
      direction = by === c ? -direction : c.number ? -1 : 1;
      by = c;
      fill();
    });
    th.append(button);
    c.th = th;
    line.append(th);
  }
  head.append(line);

  function cell(c, row) {
    const td = element("td", undefined, { class: sort(c) });
    const text = c.show ? c.show(row) : String(c.value(row));
    if (c.share) {
      td.append(element("span", "", { class: "share" }));
      td.firstChild.style.width = (Math.min(Math.max(c.share(row), 0), 1) * 60).toFixed(1) + "px";
    }
    if (c.pick) {
      const button = element("button", text, { type: "button" });
      button.addEventListener("click", () => c.pick(row));
      td.append(button);
    } else if (c.fold && text.length > 80) {
      const details = element("details");
      details.append(element("summary", text.slice(0, 60) + "…"), text);
      td.append(details);
    } else {
      td.append(text);
    }
    if (text.length > 80) td.classList.add("long");
    if (c.kind?.(row)) td.classList.add(c.kind(row));
    return td;
  }

  function fill() {
    const fits = row => word === "" ||
      columns.some(c => !c.number && String(c.value(row)).toLowerCase().includes(word));
    const shown = rows.filter(fits);
    const order = (a, b) => a < b ? -1 : a > b ? 1 : 0;
    if (by) shown.sort((a, b) => direction * order(by.value(a), by.value(b)));
    for (const c of columns) {
      if (c === by) c.th.setAttribute("aria-sort", direction < 0 ? "descending" : "ascending");
      else c.th.removeAttribute("aria-sort");
    }
    body.replaceChildren(...shown.slice(0, most).map(row => {
      const tr = element("tr");
      tr.append(...columns.map(c => cell(c, row)));
      return tr;
    }));
    note.textContent = shown.length > most ? `${most} of ${shown.length} rows are shown`
                       : shown.length === 0 ? "nothing" : "";
  }

  const t = element("table", undefined, {
    class: named ? "named" : "" });
  const scroll = element("div", undefined, { class: "scroll", tabindex: "0" });
  t.append(head, body);
  scroll.append(t);
  const parts = [scroll, note];
  if (filter) {
    // Kept when the range changes and the table is made again.
    const old = box.querySelector("input");
    const input = old ?? element("input", undefined, { type: "search", spellcheck: "false" });
    word = input.value.toLowerCase();
    input.oninput = () => { word = input.value.toLowerCase(); fill(); };
    if (old) {
      box.replaceChildren(old.closest(".bar"), ...parts);
      return fill();
    }
    const bar = element("div", undefined, { class: "bar" }), label = element("label", "filter ");
    label.append(input);
    bar.append(label);
    parts.unshift(bar);
  }
  box.replaceChildren(...parts);
  fill();
}
