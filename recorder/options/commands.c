/*
 * The table of commands: what they are called, what they say of themselves in help. Their options are
 * those of options/table.c that name them. Adding one: a row here, an enum command, a line in main.c,
 * a row in the README.
 */
#include "options/options.h"

const struct command_info command_table[COMMANDS] = {
	[CMD_NONE] = {
		.name = "", .operand_text = "", .summary = "flight recorder for call stacks", .about = "",
		.examples = "",
	},
	[CMD_COLLECT] = {
		.name = "collect",
		.operands = OPERAND_DATA_FILE,
		.operand_text = "",
		.summary = "record; a rule that fires keeps the time around it as an incident",
		.about =
"Records until the number of incidents of --collect-multiple is reached, until\n"
"--max-collect-sec has passed, or until Ctrl-C or SIGTERM; the last two write a\n"
"final incident. Without a rule it just records until then. A second Ctrl-C\n"
"within 2 s ends it without writing. Recording never stops for an incident.\n"
"\n"
"With --from it reads a trace file instead, as fast as it can, in the trace's\n"
"own time: rules fire where they would have fired. Without a rule the whole\n"
"file becomes one incident. Exit code 3: no rule fired.\n",
		.examples =
"recorder collect /StopOnPerfCounter:'Processor:% Processor Time:_Total>80'\n"
"recorder collect --stop-on-perf-counter 'Memory:Available MBytes:<500'\n"
"recorder collect --config /etc/recorder.conf --max-collect-sec 8h\n"
"recorder collect --from slow.etl /StopOnGCOverMsec:200 /CollectMultiple:20\n",
	},
	[CMD_STATUS] = {
		.name = "status",
		.operand_text = "",
		.summary = "how the running recorder is, what its rules see, what it lost",
		.about = "",
		.examples = "recorder status\nrecorder status --json\n",
	},
	[CMD_SNAPSHOT] = {
		.name = "snapshot",
		.operand_text = "",
		.summary = "have the running recorder keep the recent past now",
		.about =
"The incident's rule is 'manual'. Recording goes on. SIGUSR2 does the same.\n",
		.examples = "recorder snapshot --reason 'checkout is slow again'\n",
	},
	[CMD_STOP] = {
		.name = "stop",
		.operand_text = "",
		.summary = "end the running recorder after it has written a last incident",
		.about = "",
		.examples = "recorder stop\n",
	},
	[CMD_ABORT] = {
		.name = "abort",
		.operand_text = "",
		.summary = "end the running recorder without writing",
		.about = "",
		.examples = "recorder abort\n",
	},
	[CMD_LIST] = {
		.name = "list",
		.operand_text = "",
		.summary = "list the incidents in the store, newest first",
		.about = "",
		.examples = "recorder list\nrecorder list --json | jq -r 'select(.lost > 0).id'\n",
	},
	[CMD_SHOW] = {
		.name = "show",
		.operands = OPERAND_IDS,
		.operand_text = "[ID]",
		.summary = "one incident: what fired, its window, what was lost and hot",
		.about =
"The newest incident unless --id says another. Kernel frames are left out of the\n"
"hottest functions and stacks unless --kernel is given.\n",
		.examples = "recorder show --id 3\nrecorder show --id 3 --process mysqld --kernel\n",
	},
	[CMD_REPORT] = {
		.name = "report",
		.operands = OPERAND_IDS,
		.operand_text = "[ID]",
		.summary = "where the time went: by function, as a call tree, callers, callees",
		.about =
"CPU of processes and threads, functions, garbage collections, counters. With\n"
"--by-name all functions, with --tree the calls. --group, --fold, --inc, --exc\n"
"take PerfView's patterns: * any characters, % letters and digits, ^ the\n"
"beginning, | or, {} a part that $1 stands for; PATTERN->GROUP, or\n"
"PATTERN=>GROUP, which keeps entries; ';' between patterns. WHEN shows 32 parts\n"
"of the window: _ nothing, . under 1 %, o under 10 % of a CPU, 1-9 its tenths.\n",
		.examples = "recorder report --id 3\n"
			    "recorder report --id 3 --tree --group module-entry --fold-percent 2\n"
			    "recorder report --id 3 --callers 'libc.so.6!malloc'\n",
	},
	[CMD_EXPORT] = {
		.name = "export",
		.operands = OPERAND_IDS,
		.operand_text = "[ID]",
		.summary = "write an incident for another program: flame graph, PerfView, ...",
		.about =
"The newest incident unless --id says another; to standard output unless -o\n"
"names a file. The format is that of --format, else that of the file's suffix.\n"
"What is written is the same for the same incident and options, on every system.\n",
		.examples =
"recorder export --id 3 -f | flamegraph.pl > cpu.svg\n"
"recorder export --id 3 -o report.html\n"
"recorder export --id 3 -o cpu.perfView.xml\n"
"recorder export --id 3 -f --process nginx --from -10 --to 0 --no-kernel\n",
	},
	[CMD_DIFF] = {
		.name = "diff",
		.operands = OPERAND_PAIR,
		.operand_text = "[BASE TEST]",
		.summary = "what changed from one incident (base) to another (test)",
		.about =
"Compares CPU time by function, inclusive, each stack once. The base is scaled\n"
"to the length of the test's window, so windows and rates may differ. RESP. is\n"
"a function's part of the whole change; OVERWEIGHT its change against the one it\n"
"would have had if all had changed alike: 100 % is just that, 400 % four times,\n"
"below 0 it went the other way. INTEREST has a point for an overweight beyond\n"
"110 %, for a part over 5, 20, 100 %, for less than 95, 75 % of the test (not\n"
"everybody's caller). Parts under 2 % are left out; n/a: both weigh the same.\n"
"A last table has the functions whose own time changed most.\n"
"With --format or -o: folded (two columns, for flamegraph.pl), perfview-xml\n"
"(test minus base), pprof, svg, html.\n",
		.examples =
"recorder diff 3 7\n"
"recorder diff --base 3 --test 7 --process nginx --group module-entry\n"
"recorder diff --base 3 --test 7 -f | flamegraph.pl > diff.svg\n"
"recorder diff --base-store monday.db --base 3 --test 7 -o diff.html\n",
	},
	[CMD_DELETE] = {
		.name = "delete",
		.operands = OPERAND_IDS,
		.operand_text = "ID...",
		.summary = "delete incidents",
		.about = "",
		.examples = "recorder delete --id 3\nrecorder delete --id 3,4 --id 7\n",
	},
	[CMD_PIN] = {
		.name = "pin",
		.operands = OPERAND_IDS,
		.operand_text = "ID...",
		.summary = "exempt incidents from being deleted by age and size",
		.about = "",
		.examples = "recorder pin --id 3\n",
	},
	[CMD_UNPIN] = {
		.name = "unpin",
		.operands = OPERAND_IDS,
		.operand_text = "ID...",
		.summary = "undo pin",
		.about = "",
		.examples = "recorder unpin --id 3\n",
	},
	[CMD_EVENTS] = {
		.name = "events",
		.operands = OPERAND_PATTERN,
		.operand_text = "[PATTERN]",
		.summary = "events that rules can name; those of now, or of a trace file",
		.about =
"Lists what matches the pattern, with fields (Linux: tracepoints; of a program's\n"
"path the probes that it brings with it, USDT). With --live it prints events as\n"
"they come, for --seconds or until --rows of them; SPEC is that of /StopOnEvent.\n"
"With --from those of a trace file (.etl of Windows, also zipped, on any\n"
"system). One event a line: milliseconds since it began, process, thread, cpu,\n"
"provider/name, fields.\n",
		.examples =
"recorder events sched_process\n"
"recorder events --live 'sched/sched_process_exec;FieldFilter=filename~/bin/'\n"
"recorder events --from slow.etl --count\n"
"recorder events --from slow.etl --name GC/Start --process 3676\n"
"recorder events --from slow.etl.zip --json | jq 'select(.fields.Depth == 2)'\n",
	},
	[CMD_COUNTERS] = {
		.name = "counters",
		.operands = OPERAND_PATTERN,
		.operand_text = "[PATTERN]",
		.summary = "list counters as rules name them, with values and units",
		.about = "",
		.examples = "recorder counters\nrecorder counters memory\n",
	},
	[CMD_STACKS] = {
		.name = "stacks",
		.operands = OPERAND_NONE,
		.operand_text = "",
		.summary = "where the threads of a process stand now, all of them (Windows)",
		.about =
"Stops each thread of --process for as long as its stack takes to copy (the\n"
"longest time is printed), without administrator rights for programs of one's\n"
"own. [fp]: found through generated code by frame pointers; [truncated],\n"
"[broken]: the rest is missing. 64-bit programs only. --store also keeps the\n"
"picture there as an incident, a thread an event, for show and export.\n",
		.examples = "recorder stacks -p 4711\nrecorder stacks -p w3wp --store hang.db\nrecorder stacks -p w3wp --json | jq -r .name\n",
	},
	[CMD_CHECK] = {
		.name = "check",
		.operands = OPERAND_NONE,
		.operand_text = "",
		.summary = "check options, conf file, rules and privileges",
		.about =
"Takes the options of collect; prints each rule with its counter's value now,\n"
"which privileges are missing and what that costs, and (Linux) which of the\n"
"processes running now will have incomplete stacks or no names, and what helps.\n"
"Records nothing; takes 2 s at most on a machine with many processes. --plan\n"
"measures ten seconds more and says how many seconds the ring will hold.\n",
		.examples =
"recorder check --config recorder.conf\n"
"recorder check --plan --buffer-mb 16 --freq 199\n"
"recorder check /StopOnPerfCounter:'Processor:% Processor Time:_Total>80'\n",
	},
	[CMD_BACKTEST] = {
		.name = "backtest",
		.operands = OPERAND_IDS,
		.operand_text = "[ID]",
		.summary = "when rules would have fired on what was recorded",
		.about =
"Feeds what was recorded to the rules - the counters of rules and the events, in\n"
"the order in which they came - and prints when they would have fired, with what\n"
"value. Times are from the incident's trigger, or from the trace's start. After\n"
"a firing a rule rests for --delay-after-trigger-sec. --sweep shows how many\n"
"incidents each limit would have given. Exit code 3: no rule would have fired;\n"
"names of it that were not there are told.\n",
		.examples =
"recorder backtest --id 3 /StopOnPerfCounter:'Memory:Available MBytes:<900'\n"
"recorder backtest --from prod.etl.zip /StopOnGCOverMsec:1 --sweep 1:20:1\n",
	},
	[CMD_SERVICE] = {
		.name = "service",
		.operands = OPERAND_PATTERN,
		.operand_text = "install|uninstall|start|stop",
		.summary = "record as a service of Windows, from the machine's start on",
		.about =
"install makes a service that records with the options of the file of --config,\n"
"in the system's account, started with the machine and again after a crash.\n"
"Paths in that file must be absolute. Its log is --log-file, else the store's\n"
"name and '.log'. What status, snapshot and stop do is the same.\n",
		.examples = "recorder service install --config C:\\recorder\\recorder.conf\n"
			    "recorder service start\n",
	},
	[CMD_HELP] = {
		.name = "help",
		.operands = OPERAND_PATTERN,
		.operand_text = "[COMMAND|TOPIC]",
		.summary = "list commands and topics; the options of a command; a topic",
		.about =
"A topic is shown through $PAGER (or less) on a terminal.\n",
		.examples = "recorder help export\nrecorder help triggers\n",
	},
};
