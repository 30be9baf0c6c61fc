/*
 * The table of commands: their names and what help says about them. Their options are the rows of
 * options/table.c that name them. To add a command, add a row here, an enum command, a line in
 * main.c, and a row in the README.
 */
#include "options/options.h"

const struct command_info command_table[COMMANDS] = {
	[CMD_NONE] = {
		"", OPERAND_NONE, "", "flight recorder for call stacks", "",
		"",
	},
	[CMD_COLLECT] = {
		"collect", OPERAND_DATA_FILE, "[-- COMMAND [ARG...]]",
		"record; when a rule fires, keep the time around it as an incident",
		.about =
"Records until --collect-multiple incidents are stored, until --max-collect-sec has\n"
"passed, or until Ctrl-C or SIGTERM; the last two store a final incident, and so does\n"
"recorder stop. Without a rule it just records until then. A second Ctrl-C within 2 s ends\n"
"it without storing. Recording never pauses for an incident.\n"
"\n"
"-- COMMAND starts a program, as run does, and records it and all that it starts until it\n"
"ends; its exit code becomes recorder's. Rules still look at the whole machine, and each\n"
"firing becomes an incident. Stopping the recorder stops the program.\n"
"\n"
"With --from it reads a trace file instead, as fast as it can, in the trace's own time:\n"
"rules fire where they would have fired. Without a rule the whole file becomes one\n"
"incident. Exit code 3: no rule fired. Exit code 5: --on-failure exit ended it.\n",
		.examples =
"recorder collect /StopOnPerfCounter:'Processor:% Processor Time:_Total>80'\n"
"recorder collect --stop-on-perf-counter 'Memory:Available MBytes:<500'\n"
"recorder collect --config /etc/recorder.conf --max-collect-sec 8h\n"
"recorder collect --stop-on-gc-over-msec 200 -- ./server --port 8080\n"
"recorder collect --from slow.etl /StopOnGCOverMsec:200 /CollectMultiple:20\n",
	},
	[CMD_START] = {
		"start", OPERAND_DATA_FILE, "",
		"collect in the background: returns once it records",
		.about =
"Takes the options of collect, and returns when recording has begun; what keeps it from\n"
"beginning is printed, with collect's exit code. The recorder then belongs to no terminal.\n"
"It ends by recorder stop, by abort, which stores nothing, or as collect does. Its log is\n"
"--log-file, or else the store's name and '.log'. Linux; on Windows see recorder service.\n",
		.examples =
"recorder start --freq 199 && ./load-test; recorder stop\n"
"recorder start --config /etc/recorder.conf\n",
	},
	[CMD_RUN] = {
		"run", OPERAND_COMMAND, "[--] COMMAND [ARG...]",
		"run a program, and show where its time went",
		.about =
"Records the program and all that it starts, from their first instruction to their end, as\n"
"one incident of the store, and prints what show prints; with -o it exports the incident\n"
"instead. The program has this terminal, and its exit code becomes recorder's. Options of\n"
"recorder stand before the program's name. There is no limit on the recorder's own CPU time\n"
"unless --max-cpu-percent sets one.\n"
"\n"
"Your own programs need no rights where kernel.perf_event_paranoid is 2 or less; at 2 the\n"
"kernel's part of the stacks is missing. On Windows it needs administrator rights.\n"
"\n"
"-p PID,... records processes that run already, until they end or until Ctrl-C, with the rights\n"
"that collect needs. Called as recorder-dtrace it takes the arguments that cargo-flamegraph\n"
"passes to dtrace: -x KEY=N, -n 'profile-HZ ...', -o FILE, and -c COMMAND or -p PID...\n",
		.examples =
"recorder run make -j8\n"
"recorder run --freq 499 -o sort.svg -- sort -n big.txt\n"
"recorder run --thread-time -- ./slow-start --port 8080\n",
	},
	[CMD_TOP] = {
		"top", OPERAND_NONE, "",
		"show where the time goes now, as a screen or as LiveStacks does",
		.about =
"On a terminal, without -i, -c, -C and -f, it is a screen: processes, the functions of the\n"
"chosen one, and its heaviest stacks, over the last 10 s, redrawn every 3 s or less often:\n"
"drawing costs 0.5 % of a CPU at most. Where top records itself, the screen takes 49 samples a\n"
"second and CPU unless --freq is given. ? lists the keys; s keeps what happened as an incident.\n"
"It needs ncurses (Debian: libncursesw6), or a Windows 10 console.\n"
"\n"
"Otherwise it prints the stacks with most samples, every --interval seconds or once at Ctrl-C, in\n"
"the text of LiveStacks and with its options: -p, -P, -e, -i, -c, -C, -T, -f, -K. The time and\n"
"the number of events go to standard error.\n"
"\n"
"A recorder that runs hands over what it records anyway, and its buffer and incidents stay as\n"
"they are; where none runs, or for -e and --source perf, top records itself and leaves nothing\n"
"behind but the incidents that s keeps.\n",
		.examples =
"recorder top\n"
"recorder top -p 4711 --thread-time\n"
"recorder top -i 1 -c 3 -T 5\n"
"recorder top -p 4711 -c 1 -i 10 -f | flamegraph.pl > now.svg\n"
"recorder top -e clr:gc:gc/triggered -i 5\n"
"recorder top -e kernel:syscalls:sys_enter_fsync -K\n",
	},
	[CMD_STATUS] = {
		"status", OPERAND_NONE, "",
		"show how the running recorder is: health, rules, losses, cost",
		.about =
"Health is ok, degraded (recording goes on with less than was asked for: lost samples, a new\n"
"store, no history, files that do not answer) or failing (evidence is lost now: a source\n"
"stalls or has ended, a tenth of the samples is lost, incidents are not stored); each reason\n"
"is a line. Exit code 0: ok; 4: degraded; 5: failing; 3: no recorder runs. What else happens\n"
"when it fails is set by --on-failure of collect.\n",
		.examples =
"recorder status\n"
"recorder status --json | jq -r '.health, .reasons[].text'\n"
"recorder status >/dev/null || echo \"the recorder needs a look: $?\"\n",
	},
	[CMD_SNAPSHOT] = {
		"snapshot", OPERAND_NONE, "", "have the running recorder keep the recent past now",
		.about =
"The incident's rule is 'manual'. Recording goes on. SIGUSR2 does the same. With --last,\n"
"--from with --to, or --at with --for, a window of the history becomes an incident, also\n"
"while no recorder runs. --peers has recorders of other machines keep the same window.\n",
		.examples =
"recorder snapshot --reason 'checkout is slow again'\n"
"recorder snapshot --from 'yesterday 03:10' --to 03:15 --reason 'the alert came late'\n"
"recorder snapshot --last 60 --peers 'web1,web2:9427;Auth=token'\n",
	},
	[CMD_MARK] = {
		"mark", OPERAND_PATTERN, "MESSAGE",
		"put a message among the events that the running recorder keeps",
		.about =
"Nothing is stored for it: incidents and windows of the history that hold this moment show\n"
"the message, as the event Recorder/Mark.\n",
		.examples =
"recorder mark 'load test 3 begins'\n",
	},
	[CMD_RELOAD] = {
		"reload", OPERAND_NONE, "",
		"have the running recorder read its configuration file anew",
		.about =
"The whole file is checked first; when anything in it is wrong, exit code 2 says what, and\n"
"the recorder goes on as before. Otherwise it takes the new rules and limits, --freq, the windows\n"
"and what is kept of incidents and history, without losing what it has recorded. A rule\n"
"that did not change goes on where it was. What needs a restart is named. SIGHUP does the\n"
"same.\n",
		.examples =
"recorder check --config /etc/recorder.conf && recorder reload\n",
	},
	[CMD_LIST_SESSIONS] = {
		"list-sessions", OPERAND_NONE, "", "list the recorders that run on this machine",
		.about =
"A line for each, with its store; status --store FILE says more. Of a recorder that you may\n"
"not ask only the store is shown. Exit code 3: none runs.\n",
		.examples =
"recorder list-sessions\n",
	},
	[CMD_STOP] = {
		"stop", OPERAND_NONE, "",
		"end the running recorder after it has stored a last incident", "",
		"recorder stop\n",
	},
	[CMD_ABORT] = {
		"abort", OPERAND_NONE, "", "end the running recorder without storing anything", "",
		"recorder abort\n",
	},
	[CMD_LIST] = {
		"list", OPERAND_NONE, "", "list the incidents in the store, newest first", "",
		"recorder list\nrecorder list --json | jq -r 'select(.lost > 0).id'\n",
	},
	[CMD_HISTORY] = {
		"history", OPERAND_NONE, "",
		"show what the history on disk holds: from, to, gaps, incidents",
		.about =
"A row for each stretch of recording, then a bar of the last days: how busy the machine was\n"
"each hour, and the incidents. Any of it can be read without an incident: show, report\n"
"and export take --last, --from with --to, or --at with --for. See\n"
"recorder help history.\n",
		.examples =
"recorder history\n"
"recorder show --at 'yesterday 03:12' --for 60\n"
"recorder export --last 30m -o report.html\n",
	},
	[CMD_SHOW] = {
		"show", OPERAND_IDS, "[ID]",
		"show one incident: what fired, window, losses, hottest stacks",
		.about =
"The newest incident, unless a number is given. Kernel frames are left out of the\n"
"hottest functions and stacks unless --kernel is given.\n",
		.examples = "recorder show 3\nrecorder show 3 --process mysqld --kernel\n",
	},
	[CMD_REPORT] = {
		"report", OPERAND_IDS, "[ID...]",
		"show where the time went: functions, call trees, callers",
		.about =
"CPU time of processes and threads, functions, garbage collections, counters. --by-name\n"
"lists all functions, --tree the calls. --group, --fold, --inc and --exc take PerfView's\n"
"patterns: * any characters, % letters and digits, ^ the beginning, | or, {} a part that $1\n"
"stands for; PATTERN->GROUP, or PATTERN=>GROUP, which keeps entry points; ';' separates\n"
"patterns. WHEN shows 32 parts of the window in PerfView's letters: _ nothing, . under 0.1 %,\n"
"o under 1 % of a CPU, 0-9 its tenths, A-Y those above 100 %, * 350 % and more. Where some\n"
"code is managed, CODE says what each row is: Java, Python, JavaScript, .NET, native, kernel,\n"
"or generated (by a runtime that is not known).\n"
"\n"
"Several incidents (3,5-9, --all, --rule TEXT, more than one --store) are shown as one, their\n"
"triggers at one moment. Each has a node above its processes, and a letter in WHICH, its share\n"
"of the row.\n",
		.examples =
"recorder report 3\n"
"recorder report --rule GC --since 2d\n"
"recorder report 3 --tree --group module-entry --fold-percent 2\n"
"recorder report 3 --callers 'libc.so.6!malloc'\n",
	},
	[CMD_EXPORT] = {
		"export", OPERAND_IDS, "[ID...]",
		"write an incident for another program: browser, PerfView, ...",
		.about =
"The newest incident, unless a number is given; to standard output unless -o names a\n"
"file. --format chooses the format, or else the file's suffix. The same incident and\n"
"options give the same bytes on every system.\n"
"\n"
"Colours of flame graphs (html, svg) tell kinds of code apart: native from orange to rose,\n"
"kernel grey, Java green, Python blue, JavaScript yellow, .NET violet.\n",
		.examples =
"recorder export 3 -o report.html\n"
"recorder export 3 -f | flamegraph.pl > cpu.svg\n"
"recorder export 3 -o cpu.perfView.xml\n"
"recorder export 3 -f --process nginx --from -10 --to 0 --no-kernel\n",
	},
	[CMD_DIFF] = {
		"diff", OPERAND_PAIR, "[BASE TEST]",
		"show what changed from one incident (base) to another (test)",
		.about =
"Compares CPU time by function, inclusive, each stack counted once. The base is scaled to\n"
"the length of the test's window, so windows and rates may differ.\n"
"\n"
"RESP. is a function's part of the whole change. OVERWEIGHT is its change relative to the\n"
"change it would have had if everything had changed alike: 100 % is just that, 400 % four\n"
"times as much, below 0 the other way. INTEREST has a point each for an overweight beyond\n"
"110 %, for a part over 5, 20 and 100 %, and for less than 95 and 75 % of the test (not\n"
"everybody's caller). Parts under 2 % are left out. n/a: both weigh the same. A last table\n"
"has the functions whose own time changed most.\n"
"\n"
"Two sets (--base 3,5-9 --test 12-15) are compared by their means: a program or function is\n"
"named only if the difference exceeds three times the spread within the sets, so that one\n"
"noisy incident does not mislead.\n"
"\n"
"With --against it compares one incident, or a window of the history, with the same time of\n"
"other days, and says only what exceeds the spread that those days have.\n"
"\n"
"With --format or -o: folded (two columns, for flamegraph.pl), perfview-xml (test minus\n"
"base), pprof, svg, html.\n",
		.examples =
"recorder diff 3 7\n"
"recorder diff 3 7 --process nginx --group module-entry\n"
"recorder diff --incident 3 --against week\n"
"recorder diff 3 7 -f | flamegraph.pl > diff.svg\n"
"recorder diff --base-store monday.db --base 3 --test 7 -o diff.html\n",
	},
	[CMD_DELETE] = {
		"delete", OPERAND_IDS, "ID...", "delete incidents", "",
		"recorder delete 3\nrecorder delete 3 4 7\n",
	},
	[CMD_PIN] = {
		"pin", OPERAND_IDS, "ID...", "keep incidents whatever their age and size", "",
		"recorder pin 3\n",
	},
	[CMD_NOTE] = {
		"note", OPERAND_PATTERN, "TEXT",
		"keep a remark with an incident",
		.about =
"Adds a line, with the time, to the incident of --id, or to the newest one. show, reports and\n"
"the HTML page print it. What the recorder says of the incident stays.\n",
		.examples =
"recorder note --id 3 'the connection pool was restarted at 03:14'\n",
	},
	[CMD_UNPIN] = {
		"unpin", OPERAND_IDS, "ID...", "undo pin", "",
		"recorder unpin 3\n",
	},
	[CMD_VERIFY] = {
		"verify", OPERAND_STORE, "[STORE]", "look for damage in a store",
		.about =
"Reads every page of the file, and everything that each incident needs, also while a\n"
"recorder runs. Exit code 1: something is damaged; each damage is a line. With --json the\n"
"last object is about the whole store.\n",
		.examples =
"recorder verify\n"
"recorder verify --json | jq -s -e 'last.sound'\n"
"recorder verify incidents.db.damaged-20261122-220501\n",
	},
	[CMD_SALVAGE] = {
		"salvage", OPERAND_STORE, "[STORE]",
		"copy what is readable of a damaged store into a new one",
		.about =
"The new store must not exist yet. Incidents keep their numbers; those that lack parts are\n"
"marked partial. The damaged store is not changed. Exit code 3: no incident is readable.\n",
		.examples =
"recorder salvage incidents.db.damaged-20261122-220501 -o salvaged.db\n"
"recorder list --store salvaged.db\n",
	},
	[CMD_SYMBOLIZE] = {
		"symbolize", OPERAND_STORE, "[STORE]",
		"name frames that had no name when they were recorded",
		.about =
"Looks for the programs and debug files of all frames in the store and its history that have no\n"
"name (with --id: of these incidents), by their build ids and PDB GUIDs: at the recorded paths,\n"
"in the directories of --symbol-path (ELF: as .build-id/, a root directory, or side by side), and\n"
"with debuginfod servers that it names (https://...; no other is asked). It works on any machine.\n"
"Existing names stay. What is left is listed by module, the most frames first.\n"
"Exit code 3: nothing was named.\n",
		.examples =
"recorder symbolize\n"
"recorder symbolize --id 3 --symbol-path ~/build/release\n"
"recorder symbolize incident.db --symbol-path 'https://debuginfod.debian.net'\n",
	},
	[CMD_SHIP] = {
		"ship", OPERAND_IDS, "[ID...]",
		"send incidents to where others can read them",
		.about =
"Sends the incidents that were not sent yet, in order, to --to or to the conf file's `ship =`.\n"
"With numbers it sends these, with --all all of them, even if they were sent before. A recorder\n"
"with `ship =` does it by itself whenever an incident is complete. Exit code 1: something was\n"
"not sent; a line says why.\n",
		.examples =
"recorder ship --to s3://evidence/prod\n"
"recorder ship 7 --to 'https://user.example/incidents/;Auth=/etc/recorder/auth'\n"
"recorder ship --all --since 2d --to 'https://user.example/in;Format=pprof'\n",
	},
	[CMD_FLEET] = {
		"fleet", OPERAND_PATTERN, "list|top|report|diff|fold|schema",
		"ask a database about the incidents of all machines",
		.about =
"Asks ClickHouse or PostgreSQL, where `ship` has put them; `schema` prints the statements that\n"
"make their tables. list: the incidents. top: functions by CPU time over all hosts. report: the\n"
"same, and incidents with the same signature, services and their versions, and hosts that differ\n"
"from the rest. diff: what changed since another version, or since an earlier time: only what\n"
"exceeds three times the spread of the hosts. Setup: `recorder help fleet`.\n",
		.examples =
"recorder fleet schema --clickhouse --ttl-days 30 | clickhouse-client --multiquery -d recorder\n"
"recorder fleet list --at clickhouse://ch.example/recorder --since 2d --rule GC\n"
"recorder fleet top --at postgresql://reader@db.example/recorder --service checkout\n"
"recorder fleet report --at clickhouse://ch.example/recorder --since 1d -o fleet.html\n"
"recorder fleet diff --at clickhouse://ch.example/recorder --version 2.1 --against 2.0\n"
"recorder fleet diff --at clickhouse://ch.example/recorder --since 1d --against 7d\n",
	},
	[CMD_EVENTS] = {
		"events", OPERAND_PATTERN, "[PATTERN]",
		"list or watch events that rules can name; read those of a trace",
		.about =
"Lists the events that match the pattern, with their fields (Linux: tracepoints; for the\n"
"path of a program, the probes that it brings with it, USDT). --live prints events as they\n"
"come, for --seconds or until --rows of them; SPEC is that of /StopOnEvent. --from prints\n"
"the events of a trace file (.etl, also zipped; .nettrace; perf.data); --id those of an\n"
"incident; --from with a time, --last and --at those of a window of the history. One event a\n"
"line: milliseconds since the beginning (of the history: local time), process, thread, cpu,\n"
"provider/name, fields. --histogram shows when they came, --columns picks fields, and --format\n"
"writes CSV or XML.\n",
		.examples =
"recorder events sched_process\n"
"recorder events --live 'sched/sched_process_exec;FieldFilter=filename~/bin/'\n"
"recorder events --last 1h --count\n"
"recorder events --from slow.etl --count\n"
"recorder events --from slow.etl --name GC/Start --process 3676\n"
"recorder events --id 3 --histogram --text '!sched_'\n"
"recorder events --from slow.etl --name FileIO --columns 'IoSize>=65536,FileName' --format csv\n"
"recorder events --from slow.etl.zip --json | jq 'select(.fields.Depth == 2)'\n",
	},
	[CMD_COUNTERS] = {
		"counters", OPERAND_PATTERN, "[PATTERN]",
		"list counters as rules name them, with values and units", "",
		"recorder counters\nrecorder counters memory\n",
	},
	[CMD_STACKS] = {
		"stacks", OPERAND_NONE, "",
		"print where all threads of a process are, or were at its death, and their waits",
		.about =
"Stops each thread of --process for as long as its stack takes to copy; the longest time\n"
"is printed. Programs of your own need no administrator rights. On Linux each thread says\n"
"what it waits for, and threads that wait for each other's mutexes are a deadlock; a few\n"
"system calls, such as epoll_wait(2), return EINTR when a thread is stopped. [fp]: found\n"
"through generated code by frame pointers, or with --no-stop. [truncated], [broken]: the rest\n"
"is missing.\n"
"--core reads a dump of a dead process; the thread that died is the first. --store also keeps\n"
"the picture as an incident, in which each thread is an event, for show and export. With\n"
"--repeat the threads that have not moved since the picture before are named without their\n"
"frames.\n",
		.examples =
"recorder stacks -p mysqld --group\n"
"recorder stacks -p mysqld --repeat 5 --every 200\n"
"recorder stacks -p 4711 --format jstack > dump.txt\n"
"recorder stacks -p w3wp --store hang.db\n"
"recorder stacks -p w3wp --json | jq -r .name\n"
"recorder stacks --core core.4711\n"
"coredumpctl dump myserver | recorder stacks --core - --store crashes.db\n",
	},
	[CMD_CHECK] = {
		"check", OPERAND_NONE, "",
		"check options, conf file, rules and privileges; record nothing",
		.about =
"Takes the options of collect. Prints each rule with its counter's value now and the\n"
"processes that its names mean, which privileges are missing and what that costs, and\n"
"(Linux) which processes will have incomplete stacks or no names, and what helps. Takes 2 s\n"
"at most on a machine with many processes. --plan measures ten seconds more and says how\n"
"many seconds the buffer will hold.\n",
		.examples =
"recorder check --config recorder.conf\n"
"recorder check --plan --buffer-mb 16 --freq 199\n"
"recorder check /StopOnPerfCounter:'Processor:% Processor Time:_Total>80'\n",
	},
	[CMD_BACKTEST] = {
		"backtest", OPERAND_IDS, "[ID]",
		"tell when rules would have fired on what was recorded",
		.about =
"Feeds the recorded events and counters to the rules, in the order in which they came, and\n"
"prints when the rules would have fired, and with which value. Times are\n"
"from the incident's trigger, or from the trace's start. After a firing a rule waits for\n"
"--delay-after-trigger-sec. --sweep shows how many incidents each limit would have given.\n"
"--history reads all that is on disk, and --last (--since), --at or --from with a time a\n"
"window of it; times are local then. Exit code 3: no rule would have fired; names that were\n"
"not there are reported.\n",
		.examples =
"recorder backtest 3 /StopOnPerfCounter:'Memory:Available MBytes:<900'\n"
"recorder backtest --history --since 7d /StopOnPerfCounter:'Memory:Available MBytes:<900'\n"
"recorder backtest --from prod.etl.zip /StopOnGCOverMsec:1 --sweep 1:20:1\n",
	},
	[CMD_SERVICE] = {
		"service", OPERAND_PATTERN, "install|uninstall|start|stop|status",
		"record as a service, from the start of the machine on",
		.about =
"Linux: install enables the unit recorder.service of the package, or of make install, which\n"
"records with /etc/recorder/recorder.conf into /var/lib/recorder; uninstall stops and disables\n"
"it. All of it goes through systemctl. recorder-incident@.service makes an incident of the\n"
"failure of any unit that says OnFailure=recorder-incident@%n.service.\n"
"\n"
"Windows: install makes a service that records with the options of the file of --config, in the\n"
"system's account, started with the machine and again after a crash. Paths in that file\n"
"must be absolute. Its log is --log-file, or else the store's name and '.log'. recorder status,\n"
"snapshot and stop reach it like any other; there is no service status.\n"
"\n"
"Packages, of make deb, rpm, tarball, zip and msi. The .deb and the .rpm put the configuration\n"
"into /etc/recorder/recorder.conf, with the rules of examples/always-on.conf. The service of the\n"
".deb is on once it is installed; that of the .rpm as the presets of systemd say, and else after\n"
"recorder service install and start. The .msi installs the service stopped, to be started by\n"
"hand: it records with C:\\ProgramData\\recorder\\recorder.conf, which you write; examples lie\n"
"beside the program in C:\\Program Files\\recorder. Then: sc.exe config recorder start= auto, and\n"
"recorder service start. The tarball and the .zip are the program with its files: the tarball\n"
"has the unit in lib/systemd/system.\n",
		.examples =
"recorder service install --config C:\\recorder\\recorder.conf\n"
"recorder service start\n",
	},
	[CMD_HELP] = {
		"help", OPERAND_PATTERN, "[COMMAND|TOPIC]",
		"list commands and topics; explain one of them",
		.about =
"Topics go through $PAGER (or less) on a terminal.\n",
		.examples = "recorder help export\nrecorder help triggers\n",
	},
};
