// The importer of speedscope (an npm package) in node. It has none of its own for node: its bundle
// runs without the window that it would open.
//
//	node speedscope.js NPM_DIR FILE
//
// prints "NAME SELF_US" for each function of a profile, as speedscope sums it over its threads.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

// The importer of speedscope: all of its bundle but the last statements, which draw.
function speedscopeImporter(npm) {
	const release = path.join(npm, 'node_modules/speedscope/dist/release');
	const name = fs.readdirSync(release).find((f) => /^speedscope-.*\.js$/.test(f));
	const source = fs.readFileSync(path.join(release, name), 'utf8');
	const promise = /\(await (\w+)\)\.importProfilesFromArrayBuffer/.exec(source);
	const end = source.lastIndexOf('console.log(`speedscope v');
	if (!promise || end < 0)
		return null;
	const nothing = new Proxy(function () {}, {
		get: (_, key) => (key === Symbol.toPrimitive ? () => '' : nothing),
		apply: () => nothing,
		construct: () => nothing,
		set: () => true,
	});
	const sandbox = {
		console, TextDecoder, TextEncoder, URL, Blob, performance, setTimeout, clearTimeout,
		Uint8Array, ArrayBuffer, DataView, BigInt, WebAssembly, atob, btoa,
		document: nothing, navigator: {platform: '', userAgent: ''},
		localStorage: nothing, location: {protocol: 'file:', hash: '', href: 'file:///'},
		matchMedia: () => nothing,
		addEventListener: () => {}, requestAnimationFrame: () => 0,
	};
	sandbox.window = sandbox.self = sandbox.globalThis = sandbox;
	vm.runInNewContext(source.slice(0, end) +
		`globalThis.importFile = async (name, bytes) =>
			(await ${promise[1]}).importProfilesFromArrayBuffer(name, bytes);})();`,
		sandbox);
	return sandbox.importFile;
}

async function printSelfs(npm, file) {
	const importFile = speedscopeImporter(npm);
	const log = console.log, sums = new Map();
	const toUs = {nanoseconds: 1e-3, microseconds: 1, milliseconds: 1e3, seconds: 1e6};

	if (!importFile)
		return;
	console.log = console.warn = () => {};
	const bytes = new Uint8Array(fs.readFileSync(file));
	const group = await importFile(path.basename(file), bytes.buffer);
	console.log = log;
	for (const profile of group.profiles)
		profile.forEachFrame((frame) => {
			const us = frame.getSelfWeight() * (toUs[profile.getWeightUnit()] || 1);
			sums.set(frame.name, (sums.get(frame.name) || 0) + us);
		});
	for (const [name, us] of [...sums].sort())
		log(`${name} ${Math.round(us)}`);
}

module.exports = {speedscopeImporter};
if (require.main === module)
	printSelfs(...process.argv.slice(2));
