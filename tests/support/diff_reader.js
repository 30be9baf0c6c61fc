// Reads a pprof of a diff with npm's pprof-format:
//
//	node diff_reader.js NODE_MODULES FILE SAMPLES CPU_NS
//
// Both sides hold SAMPLES samples and CPU_NS; those of the base are negative and labelled as
// `pprof -diff_base` labels them.
'use strict';
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');

const [npm, file, samples, cpuNs] = process.argv.slice(2);
const { Profile } = require(path.join(npm, 'pprof-format'));
const p = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
const text = (i) => p.stringTable.strings[Number(i)];
const sums = { base: [0, 0], test: [0, 0] };

for (const s of p.sample) {
	const base = s.label.some((l) => text(l.key) === 'pprof::base' && text(l.str) === 'true');
	// 64 bits, two's complement: read as such whatever the reader made of it.
	s.value.forEach((v, i) => {
		sums[base ? 'base' : 'test'][i] += Number(BigInt.asIntN(64, BigInt(v)));
	});
}
const want = { base: [-samples, -cpuNs], test: [+samples, +cpuNs] };
if (JSON.stringify(sums) !== JSON.stringify(want)) {
	console.log(`sums ${JSON.stringify(sums)}`);
	process.exit(1);
}
