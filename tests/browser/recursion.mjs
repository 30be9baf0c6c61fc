// The sums of the report's page over functions that call themselves, without a browser; prints one
// line a check. The rules are told in recorder/model/stack_tree.h.
//
//   node recursion.mjs EXPORT_REPORT_DATA_JS
import { readFileSync } from "node:fs";
import { check as checkNamed, exitCode } from "./page.mjs";

const source = readFileSync(process.argv[2], "utf8");
const { around, functions, prepare, sum } =
  await import("data:text/javascript," + encodeURIComponent(source));
const check = (name, got, wanted) =>
  checkNamed("recursion_" + name, got === wanted, `${got}, not ${wanted}`);

// One process, one thread, one bucket: stacks as "ABCBD", root first, with what they weigh.
function make(stacks) {
  const texts = ["process", "thread"], callers = [0, 1], names = [0, 1];
  const known = new Map(), weights = [];
  for (const [stack, weight] of Object.entries(stacks)) {
    let at = 1;
    for (let i = 0; i < stack.length; i++) {
      const path = stack.slice(0, i + 1);
      if (!texts.includes(stack[i])) texts.push(stack[i]);
      if (!known.has(path)) {
        known.set(path, names.length);
        callers.push(names.length - at);
        names.push(texts.indexOf(stack[i]));
      }
      at = known.get(path);
    }
    weights.push([at, weight]);
  }
  const sorted = weights.sort((a, b) => a[0] - b[0]);
  const pairs = sorted.flatMap(([node, weight], i) => [node - (i ? sorted[i - 1][0] : 0), weight]);
  return prepare({
    texts, callers, names, weights: [sorted.length, ...pairs], buckets: 1, from_ms: 0, to_ms: 1,
  });
}

const list = (data, map) => [...map].map(([text, w]) => data.texts[text] + w).sort().join(" ");
function views(stacks, focus) {
  const data = make(stacks), sums = sum(data, 0, 1),
        { callers, callees, self } = around(data, sums, data.texts.indexOf(focus));
  const inclusive = [...functions(data, sums).values()]
    .map(f => data.texts[f.text] + f.inclusive).sort().join(" ");
  return { inclusive, callers: list(data, callers), callees: list(data, callees), self };
}

// B stands twice in the stack: each call has a half of the 6.
const twice = views({ ABCBD: 6 }, "B");
check("inclusive_counts_a_sample_once", twice.inclusive, "A6 B6 C6 D6");
check("each_of_two_callers_has_a_half", twice.callers, "A3 C3");
check("each_of_two_callees_has_a_half", twice.callees, "C3 D3");
check("leaves_nothing_to_itself", twice.self, 0);

// Three calls of B in a row, which ends in itself: a third of the 9 each; and one plain call with
// 4.
const row = views({ ABBB: 9, AB: 4 }, "B");
check("callers_add_up_to_the_inclusive_weight", row.callers, "A7 B6");
check("a_function_is_its_own_callee", row.callees, "B6");
check("what_it_did_itself_is_whole", row.self, 13);
check("inclusive_of_a_row_counts_once", row.inclusive, "A13 B13");

// Without recursion all is as ever.
const plain = views({ ABC: 2, ABD: 3, EB: 1 }, "B");
check("plain_callers_have_all", plain.callers, "A5 E1");
check("plain_callees_have_all", plain.callees, "C2 D3");
// Of several incidents as one, the threads are the third level: f is below the thread only.
const set = prepare({ texts: ["Incident 1", "process", "thread", "f"], callers: [0, 1, 1, 1],
                      names: [0, 1, 2, 3], weights: [1, 3, 7], buckets: 1, from_ms: 0, to_ms: 1,
                      levels: 3 });
check("of_a_set_threads_are_no_functions",
      [...functions(set, sum(set, 0, 1)).values()].map(f => set.texts[f.text]).join(" "), "f");
process.exit(exitCode());
