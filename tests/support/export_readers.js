// Reads exports with the programs that they are for, as npm packages in build/deps/npm:
//
//	node export_readers.js NPM_DIR SAMPLES PERIOD_NS FILE...
//
// Every file must hold SAMPLES samples; those with times PERIOD_NS for each.
'use strict';
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');
const {speedscopeImporter} = require('./speedscope.js');

const [npm, samplesText, periodText, ...files] = process.argv.slice(2);
const samples = Number(samplesText);
const periodNs = Number(periodText);
const release = path.join(npm, 'node_modules/speedscope/dist/release');
let failed = false;

function say(name, problem) {
	failed = failed || Boolean(problem);
	console.log(problem ? `not ok ${name}: ${problem}` : `ok ${name}`);
}

function schemaCheck() {
	const Ajv = require(path.join(npm, 'node_modules/ajv')).default;
	const schema =
		JSON.parse(fs.readFileSync(path.join(release, 'file-format-schema.json'), 'utf8'));
	return new Ajv({strict: false}).compile(schema);
}

// What speedscope shows of all threads: weights of stacks that are not empty.
function weightOf(group) {
	let total = 0;
	for (const profile of group.profiles)
		total += profile.getTotalNonIdleWeight();
	return total;
}

function checkPprof(name, bytes) {
	const {Profile} = require(path.join(npm, 'node_modules/pprof-format'));
	const p = Profile.decode(zlib.gunzipSync(bytes));
	const text = (i) => p.stringTable.strings[Number(i)];
	const sums = [0, 0];
	for (const s of p.sample)
		s.value.forEach((v, i) => { sums[i] += Number(v); });
	const types = p.sampleType.map((t) => `${text(t.type)}/${text(t.unit)}`).join(' ');
	const ids = new Set(p.location.map((l) => Number(l.id)));
	const functions = new Set(p.function.map((f) => Number(f.id)));
	let problem = '';
	if (types !== 'samples/count cpu/nanoseconds')
		problem = `sample types ${types}`;
	else if (sums[0] !== samples || sums[1] !== samples * periodNs)
		problem = `sums ${sums}`;
	else if (!p.sample.every((s) => s.locationId.every((l) => ids.has(Number(l)))))
		problem = 'a location that is not there';
	else if (!p.location.every((l) => l.line.every((i) => functions.has(Number(i.functionId)))))
		problem = 'a function that is not there';
	else if (!p.function.every((f) => text(f.name)))
		problem = 'a function without a name';
	say(`pprof_format_reads_${name}`, problem);
}

async function main() {
	const importFile = speedscopeImporter(npm);
	const valid = schemaCheck();
	const log = console.log;

	for (const file of files) {
		const name = path.basename(file).replace(/[^a-z0-9]+/gi, '_');
		const bytes = fs.readFileSync(file);

		if (file.endsWith('.pb.gz'))
			checkPprof(name, bytes);
		if (file.endsWith('.speedscope.json')) {
			const ok = valid(JSON.parse(bytes.toString('utf8')));
			say(`speedscope_schema_of_${name}`,
				ok ? '' : JSON.stringify(valid.errors).slice(0, 300));
		}
		if (!importFile) {
			log(`skip speedscope_loads_${name}: its bundle is not as it was in 1.25`);
			continue;
		}
		console.log = console.warn = () => {};   // what the importer tells people
		let group = null, problem = '';
		try {
			group = await importFile(path.basename(file), new Uint8Array(bytes).buffer);
		} catch (e) {
			problem = String(e);
		}
		console.log = log;
		if (!problem && !group)
			problem = 'the importer knows no such format';
		if (!problem) {
			const want = file.endsWith('.folded') ? samples : samples * periodNs;
			const got = weightOf(group);
			const times = file.endsWith('.perf.data.txt') ||
				file.endsWith('.trace.json');
			// perf script and slices have times, not weights: something must be there.
			if (times ? !(got > 0) : Math.abs(got - want) > want * 1e-9)
				problem = `weight ${got} instead of ${want}`;
		}
		say(`speedscope_loads_${name}`, problem);
	}
	process.exit(failed ? 1 : 0);
}

main();
