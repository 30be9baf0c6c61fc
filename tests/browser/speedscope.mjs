// Opens exports in the real speedscope, in headless Chromium, and reads its Sandwich view: the
// names of all functions and what each weighs. Prints one line a check, "ok" or "not ok".
//
//   node speedscope.mjs CHROMIUM PLAYWRIGHT_CORE_FOLDER SPEEDSCOPE_RELEASE_FOLDER PERIOD_NS
//                       REFERENCE.folded FILE...
//
// REFERENCE is the same incident, folded without suffixes: what the others must say. speedscope's
// files are served from a port of this machine, for it fetches profiles by HTTP only.
import { createServer } from "node:http";
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { check, exitCode, launch } from "./page.mjs";

const [chromium, playwright, release, period, reference, ...files] = process.argv.slice(2);

// ---- what there should be: of each thread and of all, weights of functions, by the folded file --

const threads = new Map(), whole = new Map();
let total = 0;
for (const line of readFileSync(reference, "utf8").trimEnd().split("\n")) {
  const blank = line.lastIndexOf(" "), count = +line.slice(blank + 1),
        frames = line.slice(0, blank).split(";");
  const thread = frames.slice(0, 2).join(" / ");
  if (!threads.has(thread)) threads.set(thread, { weight: 0, names: new Map() });
  threads.get(thread).weight += count;
  total += count;
  for (const [names, list] of [[threads.get(thread).names, frames.slice(2)], [whole, frames]])
    list.forEach(
      (name, i) => names.set(name, (names.get(name) ?? 0) + (i === list.length - 1 ? count : 0)));
}

const colons = name => name.replaceAll(";", ":");
const listed = names => [...names].map(colons).sort().join("\n");
const near = (got, want) => Math.abs(got - want) <= Math.abs(want) * 0.005 + 1e-9;
const seconds = count => count * period / 1e9;

// "1.50s (20%)" in seconds, "500 (50%)" as it is.
function number(text) {
  const [, digits, unit] = /^([\d.,]+) ?([^\d\s(]*)/.exec(text) ?? [];
  const units = { ns: 1e-9, "µs": 1e-6, "μs": 1e-6, ms: 1e-3, min: 60 };
  return +String(digits).replaceAll(",", "") * (units[unit] ?? 1);
}

// ---- speedscope ---------------------------------------------------------------------------------

const types = {
  html: "text/html", js: "text/javascript", css: "text/css", wasm: "application/wasm",
};
const server = createServer((request, response) => {
  const [, folder, name] = /^\/(export\/)?([^/?]*)/.exec(decodeURIComponent(request.url));
  const path = folder ? files.find(f => basename(f) === name) : join(release, name);
  if (!path || !name || !existsSync(path)) { response.writeHead(404).end(); return; }
  const type = types[name.split(".").pop()] ?? "application/octet-stream";
  response.writeHead(200, { "content-type": type });
  response.end(readFileSync(path));
});
await new Promise(listening => server.listen(0, "127.0.0.1", listening));
const home = `http://127.0.0.1:${server.address().port}/index.html`;
const browser = await launch(chromium, playwright, "--enable-unsafe-swiftshader");

// Every profile of a file: its title and the rows of its table.
async function profilesOf(file, complaints) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 1500 } });
  const profiles = [];
  page.setDefaultTimeout(60000);
  page.on("console", m => { if (m.type() === "error") complaints.push(m.text()); });
  page.on("pageerror", e => complaints.push(e.message));
  page.on("request", r => {
    if (!r.url().startsWith(home.replace("index.html", "")) && !/^(blob|data):/.test(r.url()))
      complaints.push("asked for " + r.url());
  });
  await page.goto(`${home}#profileURL=/export/${encodeURIComponent(basename(file))}`);
  await page.getByText("Sandwich").click();      // it is there once the profile is
  await page.waitForSelector("tr td:visible");     // another table is the hidden list of profiles
  for (let i = 1, n = 1; i <= n; i++) {
    if (i > 1) await page.keyboard.press("n");
    await page.waitForFunction(i => i === 1 || document.body.innerText.includes(`(${i}/`), i);
    const title = (await page.evaluate(() => document.body.innerText)).split("\n")[1];
    n = +(/\(\d+\/(\d+)\)$/.exec(title)?.[1] ?? 1);
    const rows = await page.$$eval("tr",
      all => all.filter(tr => tr.offsetParent)
               .map(tr => [...tr.querySelectorAll("td")].map(td => td.innerText.trim()))
               .filter(r => r.length === 3));
    const named =
      rows.map(([, self, name]) => [name.replace(/^\?\?\? \(.*\)$/, "???"), number(self)]);
    profiles.push({ title: title.replace(/ \(\d+\/\d+\)$/, ""), names: new Map(named) });
  }
  await page.close();
  return profiles;
}

const sum = names => [...names.values()].reduce((a, b) => a + b, 0);

// Of one profile for all threads.
function checkWhole(name, profiles, expected, scale) {
  const names = profiles[0].names;
  check(`${name}_is_one_profile`, profiles.length === 1, `${profiles.length} profiles`);
  check(`${name}_has_the_names`, listed(names.keys()) === listed(expected.keys()),
    listed(names.keys()).replaceAll("\n", ", "));
  check(`${name}_weighs_what_the_incident_does`, near(sum(names), scale(total)), `${sum(names)}`);
}

// Of one for each thread, whose weights are `weigh(thread)`; titles as in the file.
function checkThreads(name, profiles, title, frame, weigh) {
  check(`${name}_has_a_profile_for_each_thread`, profiles.length === threads.size,
    profiles.map(p => p.title).join(", "));
  for (const [thread, expected] of threads) {
    const profile = profiles.find(p => p.title === title(thread)),
          names = profile?.names ?? new Map();
    const wanted = new Set([...expected.names.keys()].map(frame));
    check(`${name}_has_the_names_of_${thread.replace(/\W+/g, "_")}`,
      profile && listed(names.keys()) === listed(wanted),
      `${profile?.title}: ${listed(names.keys()).replaceAll("\n", ", ")}`);
    check(`${name}_weighs_what_${thread.replace(/\W+/g, "_")}_does`,
      near(sum(names), weigh(thread, expected)), `${sum(names)}`);
  }
}

// perf script has no weights for speedscope, but times: from a thread's first sample to its last.
function spanOf(file, tid) {
  const lines = readFileSync(file, "utf8").matchAll(/^\S+ +\d+\/(\d+) \[\d+\] ([\d.]+):/gm);
  const times = [...lines].filter(m => m[1] === tid).map(m => +m[2]);
  return Math.max(...times) - Math.min(...times);
}

try {
  for (const file of files) {
    const complaints = [], profiles = await profilesOf(file, complaints);
    const tid = thread => /-(\d+)$/.exec(thread)[1];
    if (file.endsWith(".folded"))
      checkWhole("speedscope_folded", profiles, whole, n => n);
    else if (file.endsWith(".pb.gz"))
      checkWhole("speedscope_pprof", profiles,
        new Map([...threads.values()].flatMap(t => [...t.names])), seconds);
    else if (file.endsWith(".speedscope.json"))
      checkThreads("speedscope_json", profiles, t => t.replace(/-(\d+)$/, " ($1)"), f => f,
        (_, t) => seconds(t.weight));
    else
      checkThreads("speedscope_perf_script", profiles,
        t => t.replace(/^.*\((\d+)\) \/ (.*)-(\d+)$/, "$2 pid: $1 tid: $3"),
        f => f.replace(/^.*?!/, "").replace(/^\?$/, "???"), t => spanOf(file, tid(t)));
    check(`speedscope_has_no_complaint_about_${basename(file).replace(/\W+/g, "_")}`,
      complaints.length === 0, complaints.join("; "));
  }
} catch (e) {
  check("speedscope_can_be_used", false, String(e.message).split("\n")[0]);
} finally {
  await browser.close();
  server.close();
}
process.exit(exitCode());
