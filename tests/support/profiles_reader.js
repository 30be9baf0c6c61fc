// Reads profiles that were sent to a server, with the libraries that servers use:
//
//	node profiles_reader.js NPM_DIR SAMPLE FILE...     SAMPLE: Sample, or Sample19 for OTLP 1.9
//
// A FILE is a pprof, OTLP (packed or not), or Parca's JSON. For each it prints a line of JSON: the
// service, the sum of all values, the names of all stacks' roots. An index of nothing is an error.
'use strict';
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');

const [npm, sampleType, ...files] = process.argv.slice(2);
const protobuf = require(path.join(npm, 'node_modules/protobufjs'));
const {Profile} = require(path.join(npm, 'node_modules/pprof-format'));
const proto = fs.readFileSync(path.join(__dirname, 'otlp.proto'), 'utf8');
const profilesData = protobuf.parse(proto.replace('repeated Sample ', `repeated ${sampleType} `))
	.root.lookupType('ProfilesData');

function at(table, index) {
	if (!(index in table))
		throw new Error(`no element ${index} of ${table.length}`);
	return table[index];
}

function readPprof(bytes) {
	const p = Profile.decode(zlib.gunzipSync(bytes));
	const text = (i) => at(p.stringTable.strings, Number(i));
	const locations = new Map(p.location.map((l) => [Number(l.id), l]));
	const functions = new Map(p.function.map((f) => [Number(f.id), text(f.name)]));
	const roots = new Set();
	let sum = 0;
	for (const s of p.sample) {
		const last = locations.get(Number(s.locationId[s.locationId.length - 1]));
		roots.add(functions.get(Number(last.line[last.line.length - 1].functionId)));
		sum += Number(s.value[0]);
	}
	const types = p.sampleType.map((t) => `${text(t.type)}/${text(t.unit)}`).join(' ');
	return {type: types, sum, stacks: p.sample.length, roots: [...roots].sort()};
}

function readOtlp(bytes) {
	const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
	const message = profilesData.decode(packed ? zlib.gunzipSync(bytes) : bytes);
	const data = profilesData.toObject(message,
		{longs: Number, arrays: true, objects: true, defaults: true, bytes: String});
	const d = data.dictionary;
	const text = (i) => at(d.stringTable, i);
	const kindOf = (attribute) => attribute.value.stringValue;
	const first = [d.stringTable[0], d.stackTable[0].locationIndices.length,
		d.locationTable[0].lines.length, d.mappingTable[0].filenameStrindex,
		d.functionTable[0].nameStrindex, d.linkTable[0].traceId];
	if (first.some((v) => v))
		throw new Error('the first element of a table is not empty: ' + first);
	for (const m of d.mappingTable)
		m.attributeIndices.forEach((i) => text(at(d.attributeTable, i).keyStrindex));
	const all = [];
	for (const r of data.resourceProfiles) {
		const of = Object.fromEntries(r.resource.attributes.map((a) =>
			[a.key, a.value.stringValue ?? a.value.intValue]));
		for (const p of r.scopeProfiles.flatMap((s) => s.profiles)) {
			const roots = new Set(), kinds = new Set();
			let sum = 0;
			for (const s of p.samples) {
				const stack = at(d.stackTable, s.stackIndex).locationIndices;
				let last;
				for (const l of stack.map((i) => at(d.locationTable, i))) {
					at(d.mappingTable, l.mappingIndex);
					for (const i of l.attributeIndices)
						kinds.add(kindOf(at(d.attributeTable, i)));
					last = l.lines[l.lines.length - 1];
				}
				const root = at(d.functionTable, last.functionIndex);
				roots.add(text(root.nameStrindex));
				if (s.values.length !== 1)
					throw new Error(`${s.values.length} values`);
				sum += s.values[0];
			}
			const {typeStrindex, unitStrindex} = p.sampleType;
			all.push({service: of['service.name'], host: of['host.name'],
				pid: of['process.pid'], sum, stacks: p.samples.length,
				type: `${text(typeStrindex)}/${text(unitStrindex)}`,
				time: p.timeUnixNano > 0, id: p.profileId, roots: [...roots].sort(),
				kinds: [...kinds].sort()});
		}
	}
	return all;
}

for (const file of files) {
	const bytes = fs.readFileSync(file);
	let rows;
	if (bytes[0] === 0x7b) {
		const series = JSON.parse(bytes).series[0];
		const of = Object.fromEntries(series.labels.labels.map((l) => [l.name, l.value]));
		rows = [{service: of.service_name, name: of.__name__, host: of.node,
			...readPprof(Buffer.from(series.samples[0].rawProfile, 'base64'))}];
	} else {
		rows = /otlp|v1development/.test(file) ? readOtlp(bytes) : [readPprof(bytes)];
	}
	for (const row of rows)
		console.log(JSON.stringify(row));
}
