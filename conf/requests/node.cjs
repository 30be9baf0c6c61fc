// Loaded into a Node.js program (18.10 or later): writes a line for each request that it has
// answered, with the milliseconds that it took. See node.conf.
'use strict';
const fs = require('node:fs');
const channels = require('node:diagnostics_channel');

const path = process.env.RECORDER_REQUESTS || '/var/log/node/recorder.log';
const log = fs.createWriteStream(path, { flags: 'a' });
const begun = new WeakMap();

// A log that cannot be written must not end the program.
log.on('error', () => {});
channels.subscribe('http.server.request.start', ({ request }) => {
	begun.set(request, performance.now());
});
channels.subscribe('http.server.response.finish', ({ request, response }) => {
	const { method, url, httpVersion, socket } = request;
	const ms = performance.now() - begun.get(request);
	log.write(`${socket.remoteAddress} "${method} ${url} HTTP/${httpVersion}" ` +
		`${response.statusCode} ${ms.toFixed(3)}\n`);
});
