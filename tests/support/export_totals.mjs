// What exports weigh, read from their text by what each format says of itself; one line a file.
//
//	node export_totals.mjs NPM_DIR STREAM SAMPLES WEIGHT FILE...
//
// SAMPLES is how many samples the stream has, WEIGHT what they weigh together, in ns, bytes or
// events. Formats of counts hold SAMPLES of the stream "cpu" and WEIGHT of others.
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { gunzipSync, inflateRawSync, inflateSync } from "node:zlib";

const [npm, stream, samplesText, weightText, ...files] = process.argv.slice(2);
const samples = BigInt(samplesText), weight = BigInt(weightText);
const counted = stream === "cpu" ? samples : weight;
const load = createRequire(import.meta.url);

const sum = values => values.reduce((a, b) => a + BigInt(b), 0n);
const all = (text, pattern) => [...text.matchAll(pattern)].map(m => m[1]);

// PerfView's metric: samples, ms with three decimals, KB where a sample is over 2^24 bytes, or
// events.
function perfview(metrics) {
  const want = {
    cpu: Number(samples), "off-cpu": Number(weight) / 1e6,
    alloc: Number(weight) / 1024, rss: Number(weight) / 1024, "rss-net": Number(weight) / 1024,
    event: Number(weight),
  }[stream];
  const got = metrics.reduce((a, b) => a + Number(b), 0);
  return Math.abs(got - want) <= metrics.length * 0.001 && BigInt(metrics.length) === samples
    ? null
    : `${metrics.length} samples weigh ${got}, not ${want}`;
}

const is = (got, want) => (got === want ? null : `${got}, not ${want}`);
const xml = text => perfview(
  [...text.matchAll(/<Sample ([^>]*)>/g)].map(m => /Metric="([^"]*)"/.exec(m[1])?.[1] ?? 1));

function unzipped(bytes) {
  const name = bytes.readUInt16LE(26), extra = bytes.readUInt16LE(28);
  return inflateRawSync(bytes.subarray(30 + name + extra)).toString("utf8");
}

function speedscope(text) {
  return is(
    sum(JSON.parse(text).profiles.flatMap(p => p.weights.filter((_, i) => p.samples[i].length))),
    weight);
}

function pprof(bytes) {
  const p = load(join(npm, "node_modules/pprof-format")).Profile.decode(gunzipSync(bytes));
  return is(sum(p.sample.map(s => s.value[0])), samples) ??
    is(sum(p.sample.map(s => s.value[1])), weight);
}

// Counts of all buckets: how many pairs, then node and weight of each.
function html(text) {
  const packed = /<script type="text\/plain" id="data">([^<]*)</.exec(text)[1],
        weights = JSON.parse(inflateSync(Buffer.from(packed, "base64"))).weights;
  let total = 0;
  for (let at = 0; at < weights.length;)
    for (let n = weights[at++]; n; n--, at += 2) total += weights[at + 1];
  return is(BigInt(total), counted);
}

const sql = path => execFileSync("sqlite3",
  ["-readonly", path, `SELECT count(*), total(weight) FROM sample WHERE stream = '${stream}'`],
  { encoding: "utf8" });

// By the end of a name; null = as it should be.
const readers = {
  ".folded": text => is(sum(all(text, / (\d+)$/gm)), counted),
  ".livestacks.txt": text => is(sum(all(text, /^ {2} *(\d+) \[/gm)), counted),
  ".stacks": text => is(sum(all(text, /^\s+(\d+)$/gm)), counted),
  ".perf.data.txt":
    text => is(sum(all(text, /^\S* \d+\/\d+ \[\d+\] \d+\.\d{6}: (\d+) [\w-]+:$/gm)), weight),
  ".perfView.xml": xml,
  ".simple.xml": text => perfview(all(text, /<Sample [^>]*Metric="([^"]*)"/g)),
  ".perfView.xml.zip": bytes => xml(unzipped(bytes)),
  ".perfView.json": text => perfview(JSON.parse(text).StackSource.Samples.map(s => s.Metric)),
  ".speedscope.json": speedscope,
  ".pb.gz": pprof,
  ".trace.json":
    text => is(sum(JSON.parse(text).traceEvents.map(e => e.args?.weight ?? 0)), weight),
  ".jsonl": text => is(sum(text.trimEnd().split("\n").map(l => JSON.parse(l))
    .filter(o => o.type === "sample").map(o => o.weight)), weight),
  ".flat.db": (_, path) => is(sql(path).trim(), `${samples}|${Number(weight).toFixed(1)}`),
  ".svg": text => is(/<title>[^<(]*\((\d+) /.exec(text)?.[1] ?? "none", String(counted)),
  ".html": html,
};
const binary = [".zip", ".gz", ".db"];

let failed = 0;
for (const file of files) {
  const name = basename(file), ends = Object.keys(readers).filter(e => name.endsWith(e));
  const end = ends.sort((a, b) => b.length - a.length)[0];
  let problem;
  try {
    const bytes = readFileSync(file);
    problem = end
      ? readers[end](binary.some(b => file.endsWith(b)) ? bytes : bytes.toString("utf8"), file)
      : "no reader";
  } catch (e) {
    problem = String(e.message).split("\n")[0];
  }
  console.log(problem ? `not ok weight_of_${name}: ${problem}` : `ok weight_of_${name}`);
  failed += problem ? 1 : 0;
}
process.exit(failed ? 1 : 0);
