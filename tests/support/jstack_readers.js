// node jstack_readers.js FILE: read a thread dump by the rules of three programs, and print what
// they take from it: a line "TID STATE LOCK FRAMES" for each thread, "-" for no lock, then a line
// "deadlock NAME NAME" for each circle. Exit 1, with the line, where one of them would refuse it.
//
// Source (read of 2026-11):
//	github.com/eclipse/jifa, JStackParser.java and jstack_pattern.properties: strict; a thread
//	with a line that it does not know is lost
//	github.com/parttimenerd/jthreaddump, ThreadDumpParser.java: no ')' within parentheses, and
//	the section of deadlocks
//	github.com/spotify/threaddump-analyzer, analyze.js: ids of locks
'use strict';
const fs = require('fs');

const [text, tail = ''] = fs.readFileSync(process.argv[2], 'utf8').split('\nFound one Java-level ');
const lines = text.split('\n').map((line) => line.trim());
let number = 0;

function must(holds, rule) {
	if (holds)
		return holds;
	console.error(`line ${number + 1} is no ${rule}: ${lines[number]}`);
	process.exit(1);
}

// Long.decode() of Java throws what exceeds 63 bits.
const isLong = (hex) => /^0x[0-9a-f]+$/.test(hex) && BigInt(hex) < 2n ** 63n;

function readHeader(line) {
	const [, last] = must(/^".+?" #\d+(?: daemon)? prio=\d+ os_prio=\d+.* tid=(.+)$/
		.exec(line), 'head of a Java thread (jifa)');
	const m = must(/^(.+?) nid=([0-9a-fx]+) (.+?) *\[(.+?)\]$/.exec(last),
		'head of a Java thread (jifa)');

	must(isLong(m[1]) && isLong(m[2]) && isLong(m[4]), 'head with numbers of 63 bits (jifa)');
	must(/^"[^"]+"\s+#\d+(\s+prio=\d+)?.*nid=0x/.test(line), 'head (jthreaddump)');
	must(['runnable', 'waiting for monitor entry', 'waiting on condition', 'sleeping']
		.includes(m[3].trim()), 'known state of a thread of the system (jifa)');
	return {tid: Number(m[2]), frames: 0, lock: '-'};
}

function readState(line, thread) {
	const m = must(/^java\.lang\.Thread\.State: (.+)$/.exec(line), 'state (jifa)');

	must(['RUNNABLE', 'WAITING (parking)', 'BLOCKED (on object monitor)'].includes(m[1]),
		'known state (jifa, spotify)');
	thread.state = m[1].split(' ')[0];
}

function readFrame(line, thread) {
	const m = must(/^at (.+)\.(.+)\((.+?)\)$/.exec(line), 'frame (jifa)');

	must(['Native Method', 'Unknown Source'].includes(m[3]) && !m[3].includes(':'),
		'source of a frame (jifa)');
	must(/^at\s+[^(]+\([^)]+\)$/.test(line), 'frame (jthreaddump)');
	thread.frames++;
}

function readLock(line, thread) {
	const form = /^- (parking to wait for ?|waiting to lock|locked) <(0x[0-9a-f]+)> \(a [^)]+/;
	const m = must(form.exec(line), 'lock (of each reader)');

	must(isLong(m[2]), 'id of a lock of 63 bits (jifa)');
	must(thread.frames > 0, 'lock below a frame (jifa)');
	if (m[1] === 'locked')
		return;
	must(thread.lock === '-', 'second lock that it waits for (spotify)');
	thread.lock = m[2];
}

must(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(lines[number]), 'time (jifa)');
number++;
must(/^Full thread dump .+:$/.test(lines[number]), 'version (jifa)');
const threads = [];
for (number++; number < lines.length; number++) {
	const line = lines[number], thread = threads[threads.length - 1];

	if (!line)
		continue;
	if (line.startsWith('"'))
		threads.push(readHeader(line));
	else if (must(thread, 'head') && !thread.state)
		readState(line, thread);
	else if (line.startsWith('at'))
		readFrame(line, thread);
	else
		readLock(line, thread);
}
for (const t of threads)
	console.log(t.tid, t.state, t.lock, t.frames);

// The section of deadlocks: who waits for whom, then their stacks, then how many there are.
const parts = tail.split('\n\nFound ');
const circles = tail ? tail.split(/\n\nFound one Java-level /) : [];
for (const circle of circles) {
	const [head, rest] = circle.split('\n\nJava stack information for the threads listed ' +
		'above:\n');
	const names = [];

	must(/^deadlock:\n=+\n/.test(head) && rest, 'section of a deadlock (jifa)');
	const who = head.split('\n').slice(2);
	must(who.length % 3 === 0, 'three lines for each thread (jifa)');
	for (let i = 0; i < who.length; i += 3) {
		const name = must(/^"([^"]+)":$/.exec(who[i]), 'thread of a deadlock')[1];
		must(/^ {2}waiting to lock monitor 0x[0-9a-f]+\s+\(object 0x[0-9a-f]+, a [^)]+\),$/
			.test(who[i + 1]), 'lock of a deadlock (jthreaddump)');
		must(/^ {2}which is held by "[^"]+"$/.test(who[i + 2]), 'owner (jthreaddump)');
		names.push(name);
	}
	must(names.every((name) => rest.includes(`"${name}":\n\tat `)), 'stack of each (jifa)');
	console.log('deadlock', names.join(' '));
}
const said = /^(\d+) deadlocks?\.\n$/.exec(parts[parts.length - 1]);
must(!tail || (said && Number(said[1]) === circles.length), 'number of deadlocks (jifa)');
