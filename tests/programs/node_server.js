'use strict';
/*
 * An HTTP service under load, with a worker, as Node.js runs in production.
 *
 * node_server.js MS: serves for so many ms of CPU time, then prints how many requests were
 * answered, and the CPU time of the server's threads in microseconds for each. Clients are a
 * process of their own.
 */
const { fork } = require('child_process');
const http = require('http');
const { Worker, isMainThread, parentPort } = require('worker_threads');

function price(name) {
	let s = 0;
	for (let i = 0; i < name.length; i++) s = (s + name.charCodeAt(i) * i) % 997;
	return s;
}
function rows(n) {
	return Array.from({ length: n },
		(_, i) => ({ name: 'item-' + i, price: price('item-' + i) }));
}
/* Requests of one length would come in step with the clock of a profiler. */
function some() { return 60 + Math.floor(Math.random() * 120); }
function escapeText(text) { return text.replace(/[&<>]/g, (c) => '&#' + c.charCodeAt(0) + ';'); }
function renderPage() {
	return rows(some()).map((r) => `<li>${escapeText(r.name)} ${r.price}</li>`).join('');
}
function search(url) {
	const q = new URL(url, 'http://localhost').searchParams.get('q');
	const found = rows(some()).filter((r) => r.name.includes(q)).map((r) => r.name);
	return JSON.stringify(found.sort((a, b) => price(a) - price(b)));
}
function checksum(text) {
	let h = 7;
	for (let k = 0; k < 8; k++)
		for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) | 0;
	return h;
}

function serve(ms) {
	const worker = new Worker(__filename);
	const waiting = [];
	let answered = 0;
	worker.on('message', (sum) => { waiting.shift().end(String(sum)); answered++; });
	const server = http.createServer(async (request, response) => {
		await null;
		if (request.url.startsWith('/task')) {
			waiting.push(response);
			worker.postMessage(renderPage());
			return;
		}
		response.end(request.url === '/page' ? renderPage() : search(request.url));
		answered++;
	}).listen(0, '127.0.0.1', () => {
		const client = fork(__filename, ['client', server.address().port],
			{ execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } });
		const beginning = process.cpuUsage();
		const timer = setInterval(() => {
			const used = process.cpuUsage(beginning);
			if (used.user + used.system < ms * 1000) return;
			clearInterval(timer);
			console.log(answered, 'requests,',
				((used.user + used.system) / answered).toFixed(1),
				'us of CPU each');
			client.kill();
			worker.terminate();
			server.close();
			server.closeAllConnections();
		}, 20);
	});
}

function load(port) {
	const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
	const paths = ['/page', '/search?q=1', '/search?q=7', '/task'];
	const ask = (i) => http.get({ port, agent, host: '127.0.0.1', path: paths[i % 4] },
		(response) => response.resume().on('end', () => ask(i + 1))).on('error', () => {});
	for (let i = 0; i < 8; i++) ask(i);
}

if (!isMainThread)
	parentPort.on('message', (text) => parentPort.postMessage(checksum(text)));
else if (process.argv[2] === 'client')
	load(Number(process.argv[3]));
else
	serve(Number(process.argv[2]));
