/*
 * The table of options; the table of commands is options/commands.c. To add an option, add a row
 * here, a field in struct options or struct capture, a line in conf/recorder.conf, and a sentence
 * in the topic of cli/help/ that it belongs to.
 */
#include "options/options.h"

#include <math.h>

/* The default of a number that has none: outside all bounds. */
#define UNSET -INFINITY

#define IN(command) (1u << CMD_##command)

#define RECORDING (IN(COLLECT) | IN(CHECK))
#define RULES (RECORDING | IN(BACKTEST))
#define ONE_INCIDENT (IN(SHOW) | IN(REPORT) | IN(EXPORT))
#define PART_OF (ONE_INCIDENT | IN(DIFF))
#define INCIDENTS (ONE_INCIDENT | IN(DELETE) | IN(PIN) | IN(UNPIN))
#define CONTROL (IN(STATUS) | IN(SNAPSHOT) | IN(STOP) | IN(ABORT))
#define WITH_STORE (RULES | CONTROL | IN(LIST) | INCIDENTS | IN(DIFF))
#define WITH_CONFIG (WITH_STORE | IN(COUNTERS) | IN(SERVICE))

#define FIELD(name) .offset = offsetof(struct options, name)

const char *const option_groups[OPTION_GROUPS] = {
	[GROUP_TRIGGER] = "When an incident is kept",
	[GROUP_RECORD] = "How much is recorded and kept",
	[GROUP_SELECT] = "Which incident, and which part of it",
	[GROUP_OUTPUT] = "Output",
	[GROUP_STORE] = "Files",
	[GROUP_PERFVIEW] = "Accepted from PerfView's command lines, without effect",
};

const struct short_option short_options[] = {
	{'f', "format", "folded"},
	{'o', "output", NULL},
	{'p', "process", NULL},
	{'h', "help", NULL},
	{0, NULL, NULL},
};

/* An option of PerfView that has no counterpart here. */
#define UNUSED_BOOL(name_) \
	{.name = name_, .type = OPTION_BOOL, .group = GROUP_PERFVIEW, .commands = RECORDING, \
	 .no_effect = RECORDING, FIELD(ignored_bool)}

const struct option_info option_table[] = {
	/* When an incident is kept */
	{
		.name = "stop-on-perf-counter", .value = "SPEC", .type = OPTION_RULE,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire when a counter is beyond a limit: CATEGORY:COUNTER:INSTANCE>NUMBER, "
			"or with < >= <=; K, M or G may follow the number. 'recorder counters' "
			"lists the names. Repeatable; any rule fires.",
	}, {
		.name = "stop-on-etw-event", .other_names = "StopOnEvent", .value = "SPEC",
		.type = OPTION_RULE_EVENT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire at an event: PROVIDER/EVENT;Key=Value... With ;TriggerMSec=MS, fire "
			"when it takes longer than MS until its stop. Keys: FieldFilter (FIELD, "
			"one of < > <= >= = != ~, and a value; repeatable), StopEvent, "
			"StartStopID, InFlight, Process, Keywords, Level, and on Linux Stack to "
			"keep the thread's stack. On Linux: tracepoints "
			"(sched/sched_process_exit), uprobe:/path:function, "
			"usdt:/path:provider:name. Repeatable.",
	}, {
		.name = "stop-on-gc-over-msec", .value = "MS", .type = OPTION_RULE_TEXT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire when a .NET garbage collection takes longer than MS milliseconds, "
			"background collections left out. On Linux also a pause of Java (HotSpot) "
			"and, as root, of CPython and Node.js where they have probes. "
			";Measure=pause measures the whole pause. Also ;Process= and "
			";InFlight=false. Repeatable.",
	}, {
		.name = "stop-on-gc-suspend-over-msec", .value = "MS", .type = OPTION_RULE_TEXT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire when suspending a .NET program for a collection takes longer than "
			"MS.",
	}, {
		.name = "stop-on-bgc-final-pause-over-msec", .value = "MS",
		.type = OPTION_RULE_TEXT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire when the final pause of a background collection takes longer than "
			"MS.",
	}, {
		.name = "stop-on-gen2-gc", .type = OPTION_RULE_FLAG,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire when a .NET collection of generation 2 begins, background "
			"collections left out, or a full collection of Java, CPython or Node.js. "
			"Also --stop-on-gen2-gc=';Process=NAME'.",
	}, {
		.name = "stop-on-request-over-msec", .value = "MS", .type = OPTION_RULE_TEXT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire when a request of IIS or ASP.NET Core takes longer than MS, or has "
			"been open for longer. Also ;Process= and ;InFlight=false.",
	}, {
		.name = "stop-on-app-fabric-over-msec", .value = "MS", .type = OPTION_RULE_TEXT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "The same for requests of AppFabric (Windows).",
	}, {
		.name = "stop-on-exception", .value = "REGEX", .type = OPTION_RULE_TEXT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire when a .NET exception is thrown whose type, or 'Type: Message', "
			"matches; an empty expression matches every exception. With ;Process= "
			"also C++ exceptions (Linux), by type. Repeatable.",
	}, {
		.name = "stop-on-event-log-message", .value = "[LOG@]REGEX",
		.type = OPTION_RULE_TEXT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire when a new line of a log matches, ignoring case. LOG: kernel, "
			"journal, the path of a file, Application (the default), System, or any "
			"channel of Windows. Repeatable.",
	}, {
		.name = "stop-on-process", .value = "NAME|PID", .type = OPTION_RULE_TEXT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire when a process ends: a name, a pid, a list of them, or *. Then "
			";On=start, ;On=crash, ;ExitCode=1, ;ExitCode!=0 or ;Signal=SEGV. On "
			"Linux with tracefs also ;On=crash;Stack=true (with the stack that "
			"crashed) and ;On=oom. Repeatable.",
	}, {
		.name = "stop-on", .value = "EXPR", .type = OPTION_RULE_TEXT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true,
		.help = "Fire when rules come together: 'cpu for 10s and not gc within 1m', 'a "
			"then b within 5s', 'rate(a) > 10/s', 'p99(a) > 200ms over 60s'; also or, "
			"( ). --rule gives the names. Repeatable.",
	}, {
		.name = "rule", .value = "NAME=SPEC", .type = OPTION_TEXTS,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true, FIELD(named_rules),
		.help = "Name a part of --stop-on, which fires nothing by itself: "
			"NAME=StopOnGCOverMsec:100, or any other qualifier with its value; a "
			"counter's rule may stand alone. Repeatable.",
	}, {
		.name = "min-sec-for-trigger", .value = "SEC", .type = OPTION_FLOAT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true, FIELD(min_sec),
		.def = 3, .min = 0, .max = 86400, .unit = "s",
		.help = "How long a counter must be beyond its limit before its rule fires. As in "
			"PerfView it takes one sample more than this many seconds; 0 fires at the "
			"first sample.",
	}, {
		.name = "poll-sec", .value = "SEC", .type = OPTION_FLOAT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true, FIELD(poll_sec),
		.def = 1, .min = 0.1, .max = 86400, .unit = "s",
		.help = "How often the counters of rules are read.",
	}, {
		.name = "decay-to-zero-hours", .value = "HOURS", .type = OPTION_FLOAT,
		.group = GROUP_TRIGGER, .commands = RULES, .conf = true, FIELD(decay_hours),
		.def = 0, .min = 0, .max = 87600, .unit = "hours",
		.help = "Let the limits of '>' rules sink to zero over this time, so that "
			"something is caught in the end. 0 = they stay.",
	}, {
		.name = "start-on-perf-counter", .value = "SPEC", .type = OPTION_RULE,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true,
		.help = "Arm the other rules only when this counter rule has fired; recording "
			"runs all the time. Repeatable; any of them arms.",
	}, {
		.name = "min-interval-sec", .value = "SEC", .type = OPTION_SECONDS,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true,
		FIELD(capture.min_interval_ns),
		.def = 0, .min = 0, .max = 30 * 86400, .unit = "s",
		.help = "After an incident, ignore its rule for this long. 0 = off.",
	}, {
		.name = "dedup", .value = "SEC", .type = OPTION_SECONDS,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true,
		FIELD(capture.dedup_ns),
		.def = 0, .min = 0, .max = 30 * 86400, .unit = "s",
		.help = "When the same fires again within this time (rule, process and the first "
			"8 named functions of the stack), count it in the note of the earlier "
			"incident. 0 = off.",
	}, {
		.name = "max-per-hour", .value = "N", .type = OPTION_INT,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true, FIELD(max_per_hour),
		.def = 10, .min = 1, .max = 1000,
		.help = "Incidents of one rule in an hour; further ones are counted, not kept. "
			"Default 10; with --from only if given.",
	}, {
		.name = "max-per-day", .value = "N", .type = OPTION_INT,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true, FIELD(max_per_day),
		.def = 100, .min = 1, .max = 10000,
		.help = "The same in a day. Default 100; with --from only if given.",
	}, {
		.name = "stop-command", .value = "COMMAND", .type = OPTION_TEXT,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true, FIELD(stop_command),
		.help = "Run this program, without a shell, for each stored incident. "
			"%OUTPUTFILE% (of --data-file), %OUTPUTDIR%, %OUTPUTBASENAME%, "
			"%INCIDENT%, %STORE%, %RULE%, %REASON% and %HOST% are replaced. Its "
			"output goes to the log; its failure does not stop the recorder.",
	}, {
		.name = "stop-command-timeout-sec", .value = "SEC", .type = OPTION_SECONDS,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true,
		FIELD(capture.stop_command_timeout_ns),
		.def = 60, .min = 1, .max = 86400, .unit = "s",
		.help = "End the stop command when it runs for longer.",
	}, {
		.name = "data-file", .value = "FILE", .type = OPTION_TEXT,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true,
		FIELD(capture.data_file),
		.help = "Also write each incident to this file, in the format of its suffix "
			"(x.html, x.folded; x.etl becomes x.perfView.xml.zip), before the stop "
			"command runs. Existing files are kept; x.1.html, x.2.html follow. A file "
			"name after 'collect' is the same.",
	}, {
		.name = "sweep", .value = "A:B:STEP", .type = OPTION_TEXT,
		.group = GROUP_TRIGGER, .commands = IN(BACKTEST), FIELD(sweep),
		.help = "Count the incidents that each limit from A to B would have given, for "
			"one rule.",
	}, {
		.name = "collect-multiple", .value = "N", .type = OPTION_INT,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true,
		FIELD(capture.incidents),
		.def = 0, .min = 0, .max = 1000000,
		.help = "End after this many incidents. 0 or 1 = after the first.",
	}, {
		.name = "max-collect-sec", .value = "SEC", .type = OPTION_SECONDS,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true,
		FIELD(capture.max_collect_ns),
		.def = 0, .min = 0, .max = 3650.0 * 86400, .unit = "s",
		.help = "End after this time, with a last incident. 0 = never.",
	}, {
		.name = "monitor-perf-counter", .value = "SPEC", .type = OPTION_LIST,
		.group = GROUP_TRIGGER, .commands = RECORDING, .conf = true, FIELD(monitors),
		.help = "Keep the values of this counter in every incident: "
			"CATEGORY:COUNTER:INSTANCE[@SEC], every 2 s unless SEC says otherwise "
			"(0.1 at least). Repeatable.",
	},

	/* How much is recorded and kept */
	{
		.name = "freq", .value = "HZ", .type = OPTION_INT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(capture.freq_hz),
		.def = 99, .min = 1, .max = 10000, .unit = "Hz",
		.help = "Samples per second and CPU.",
	}, {
		.name = "cpu-sample-msec", .value = "MS", .type = OPTION_PERIOD_MS,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(capture.freq_hz),
		.same_as = "freq", .def = UNSET, .min = 0.1, .max = 1000, .unit = "ms",
		.help = "The same as the time between two samples: 1 = 1000 Hz.",
	}, {
		.name = "pre-sec", .value = "SEC", .type = OPTION_SECONDS,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(capture.pre_ns),
		.def = 120, .min = 0, .max = 86400, .unit = "s",
		.help = "How much of the time before a firing an incident keeps, as far as the "
			"buffer reaches.",
	}, {
		.name = "delay-after-trigger-sec", .value = "SEC", .type = OPTION_SECONDS,
		.group = GROUP_RECORD, .commands = RULES, .conf = true, FIELD(capture.post_ns),
		.def = 5, .min = 0, .max = 86400, .unit = "s",
		.help = "How much of the time after a firing it keeps.",
	}, {
		.name = "buffer-mb", .other_names = "CircularMB Circular", .value = "MB",
		.type = OPTION_INT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(buffer_mb),
		.def = 64, .min = 1, .max = 65536, .unit = "MB",
		.help = "Memory for the recent past.",
	}, {
		.name = "no-kernel-stacks", .type = OPTION_BOOL,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true,
		FIELD(capture.no_kernel_stacks),
		.help = "Record no kernel frames.",
	}, {
		.name = "runtime-events", .type = OPTION_BOOL,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(runtime_events),
		.help = "Record collections, exceptions and lock waits of .NET programs and "
			"pauses of Java programs even when no rule needs them.",
	}, {
		.name = "gc-collect-only", .type = OPTION_BOOL,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true,
		FIELD(capture.gc_collect_only),
		.help = "Record collections of .NET and Java programs and no stacks, for days.",
	}, {
		.name = "enable-perf-map", .type = OPTION_BOOL,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(enable_perf_map),
		.help = "Linux: ask .NET (8 or later) and Java programs (17 or later) to write "
			"maps of their code to /tmp, so that their functions have names. This "
			"acts in these programs, as jcmd and dotnet-trace do.",
	}, {
		.name = "thread-time", .type = OPTION_BOOL,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true,
		FIELD(capture.thread_time),
		.help = "Record context switches with stacks too (Linux, needs tracefs), which "
			"tells where the time of every thread went: stream off-cpu, in ns, with "
			"the leaves CPU_TIME, BLOCKED_TIME, DISK_TIME, READIED_TIME and "
			"UNKNOWN_TIME. Costs about 5 us for each switch. On Windows: from an ETW "
			"session, or a trace file that has them; rules do not see the switches "
			"there.",
	}, {
		.name = "wakers", .type = OPTION_BOOL,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(capture.wakers),
		.help = "The same, with a frame READIED_BY below BLOCKED_TIME and DISK_TIME, and "
			"the stack of the thread that ended the wait.",
	}, {
		.name = "stack-kb", .value = "KB", .type = OPTION_INT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(capture.stack_kb),
		.def = 32, .min = 0, .max = 32, .unit = "KB",
		.help = "How much of a thread's stack is copied with each sample at most, to be "
			"unwound: 8, 16 or 32. 0 = follow frame pointers instead, which most "
			"programs lack.",
	}, {
		.name = "max-cpu-percent", .value = "PCT", .type = OPTION_FLOAT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(max_cpu_pct),
		.def = UNSET, .min = 0, .max = 100000, .unit = "%",
		.help = "How much of one CPU the recorder may take. Over it for 5 s it samples at "
			"49 Hz, then at 19 Hz, then (Linux) copies 8 KB of stack; later it takes "
			"the steps back. 0 = no limit. Default: 1, or 0.3 for each CPU; more in "
			"proportion to a --freq over 99; four times as much with --thread-time.",
	}, {
		.name = "max-rss-mb", .value = "MB", .type = OPTION_INT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(max_rss_mb),
		.def = 0, .min = 0, .max = 1048576, .unit = "MB",
		.help = "How much memory the recorder may have resident. --buffer-mb becomes what "
			"fits below it; near it caches and then the oldest history are given up; "
			"over it for 5 s the recorder samples less, too. 44 at least; 0 = no "
			"limit.",
	}, {
		.name = "allow-fp", .type = OPTION_BOOL,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(capture.allow_fp),
		.help = "Let the last step down be to follow frame pointers, which most programs "
			"lack.",
	}, {
		.name = "plan", .type = OPTION_BOOL,
		.group = GROUP_RECORD, .commands = IN(CHECK), FIELD(plan),
		.help = "Measure for ten seconds what is recorded here; say how far back "
			"--buffer-mb will reach and how much memory that takes.",
	}, {
		.name = "record-process", .value = "NAME|PID", .type = OPTION_TEXT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true,
		FIELD(capture.only_process),
		.help = "Record the stacks of processes with this pid or name only: of the program "
			"file (dash), the one it was started by (sh), or the script (manage.py).",
	}, {
		.name = "store-mb", .value = "MB", .type = OPTION_INT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(store_mb),
		.def = 1024, .min = 8, .max = 16777216, .unit = "MB",
		.help = "Size of the store; the oldest incidents that are not pinned make room.",
	}, {
		.name = "symbol-cache-mb", .value = "MB", .type = OPTION_INT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(symbol_cache_mb),
		.def = 256, .min = 0, .max = 1048576, .unit = "MB",
		.help = "Keep names of large programs on disk for when the programs are gone; the "
			"least recently used make room. 0 = none.",
	}, {
		.name = "keep-days", .value = "DAYS", .type = OPTION_INT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(keep_days),
		.def = 30, .min = 1, .max = 36500, .unit = "days",
		.help = "Remove incidents that are older than this, unless they are pinned.",
	},

	/* Which incident, and which part of it */
	{
		.name = "base", .value = "ID", .type = OPTION_INT,
		.group = GROUP_SELECT, .commands = IN(DIFF), FIELD(base_id), .min = 1,
		.max = 4294967295.0,
		.help = "The incident to compare with: how it was before.",
	}, {
		.name = "test", .value = "ID", .type = OPTION_INT,
		.group = GROUP_SELECT, .commands = IN(DIFF), FIELD(test_id), .min = 1,
		.max = 4294967295.0,
		.help = "The incident to look at: how it is now.",
	}, {
		.name = "base-store", .value = "FILE", .type = OPTION_TEXT,
		.group = GROUP_SELECT, .commands = IN(DIFF), FIELD(base_store),
		.help = "The store of the base, if it is not that of the test.",
	}, {
		.name = "id", .value = "ID", .type = OPTION_IDS,
		.group = GROUP_SELECT, .commands = INCIDENTS | IN(BACKTEST), FIELD(ids),
		.help = "The incident's number in 'recorder list'.",
	}, {
		.name = "process", .value = "NAME|PID", .type = OPTION_TEXT,
		.group = GROUP_SELECT,
		.commands = PART_OF | IN(EVENTS) | IN(STACKS) | RECORDING | IN(BACKTEST),
		.conf = true,
		FIELD(process),
		/* As in PerfView; rules on counters name a process themselves. */
		.help = "Only processes with this pid or name: of the program file (dash), the one "
			"they were started by (sh), or the script (manage.py). For rules: whose "
			"events may fire the rules on events (a list such as 1234,nginx). "
			"--record-process says whose stacks are recorded.",
	}, {
		.name = "thread", .value = "TID", .type = OPTION_INT,
		.group = GROUP_SELECT, .commands = ONE_INCIDENT, FIELD(tid),
		.def = 0, .min = 1, .max = 4294967295.0,
		.help = "Only this thread.",
	}, {
		.name = "from", .value = "FILE", .type = OPTION_TEXT,
		.group = GROUP_STORE, .commands = IN(COLLECT) | IN(EVENTS) | IN(BACKTEST),
		FIELD(capture.file),
		.help = "Read this trace (.etl, .etl.zip, .nettrace) instead of the machine.",
	}, {
		.name = "from", .other_names = "start", .value = "SEC", .type = OPTION_SECONDS,
		.group = GROUP_SELECT, .commands = PART_OF, FIELD(from_ns),
		.def = UNSET, .min = -1e8, .max = 1e8, .unit = "s",
		.help = "Only what comes after this moment; 0 is the trigger, -10 is 10 s before "
			"it.",
	}, {
		.name = "to", .other_names = "end", .value = "SEC", .type = OPTION_SECONDS,
		.group = GROUP_SELECT, .commands = PART_OF, FIELD(to_ns),
		.def = UNSET, .min = -1e8, .max = 1e8, .unit = "s",
		.help = "Only what comes before this moment.",
	}, {
		.name = "provider", .value = "NAME", .type = OPTION_TEXT,
		.group = GROUP_SELECT, .commands = IN(EVENTS), FIELD(provider),
		.help = "Only events of this provider, such as Microsoft-Windows-DotNETRuntime.",
	}, {
		.name = "live", .value = "SPEC", .type = OPTION_TEXT,
		.group = GROUP_SELECT, .commands = IN(EVENTS), FIELD(live),
		.help = "Watch this machine: PROVIDER/EVENT;Key=Value... as in /StopOnEvent. With "
			";TriggerMSec= only the stops of what took longer.",
	}, {
		.name = "seconds", .value = "SEC", .type = OPTION_SECONDS,
		.group = GROUP_SELECT, .commands = IN(EVENTS), FIELD(seconds_ns),
		.def = 10, .min = 0.1, .max = 86400, .unit = "s",
		.help = "How long --live watches.",
	}, {
		.name = "name", .value = "NAME", .type = OPTION_TEXT,
		.group = GROUP_SELECT, .commands = IN(EVENTS), FIELD(event_name),
		.help = "Only events of this name, such as GC/Start.",
	}, {
		.name = "kernel", .type = OPTION_BOOL,
		.group = GROUP_SELECT, .commands = IN(SHOW), FIELD(kernel),
		.help = "Show kernel frames too.",
	}, {
		.name = "no-kernel", .type = OPTION_BOOL,
		.group = GROUP_SELECT, .commands = PART_OF, FIELD(no_kernel),
		.help = "Leave out kernel frames; their samples count for the caller.",
	}, {
		.name = "no-idle", .type = OPTION_BOOL,
		.group = GROUP_SELECT, .commands = IN(REPORT) | IN(EXPORT) | IN(DIFF),
		FIELD(no_idle),
		.help = "Leave out process 0: interrupts on idle CPUs, the idle loop of Windows "
			"traces.",
	},

	/* Output */
	{
		.name = "format", .value = "NAME", .type = OPTION_TEXT,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT) | IN(DIFF), FIELD(format),
		.help = "The format; an unknown one prints the list. -f is --format folded.",
	}, {
		.name = "output", .value = "FILE", .type = OPTION_TEXT,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT) | IN(DIFF), FIELD(output),
		.help = "Write to this file; - is standard output. A suffix .gz packs it.",
	}, {
		.name = "force", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT) | IN(DIFF), FIELD(force),
		.help = "Replace the file if it exists.",
	}, {
		.name = "all", .value = "DIR", .type = OPTION_TEXT,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT), FIELD(all_dir),
		.help = "Write the usual formats into this directory, as incident-ID.SUFFIX; make "
			"it if necessary.",
	}, {
		.name = "man", .value = "DIR", .type = OPTION_TEXT,
		.group = GROUP_OUTPUT, .commands = IN(HELP), FIELD(all_dir),
		.help = "Write the manual pages into this directory, as man1/recorder.1 and so "
			"on.",
	}, {
		.name = "sqlite-flat", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT), FIELD(sqlite_flat),
		.help = "The same as --format sqlite-flat.",
	}, {
		.name = "metric", .value = "cpu|off-cpu|alloc|event", .type = OPTION_TEXT,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT) | IN(DIFF) | IN(REPORT),
		FIELD(metric),
		.help = "Which samples: cpu (counted; the default), off-cpu (ns), alloc (bytes) "
			"or event.",
	}, {
		.name = "livestacks", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT), FIELD(livestacks),
		.help = "Folded: with offsets in functions, without threads, most frequent first, "
			"as LiveStacks.",
	}, {
		.name = "top", .value = "N", .type = OPTION_INT,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT), FIELD(top),
		.def = 10, .min = 0, .max = 4294967295.0,
		.help = "LiveStacks text: how many stacks; 0 = all.",
	}, {
		.name = "min-count", .value = "N", .type = OPTION_INT,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT), FIELD(min_count),
		.def = 0, .min = 0, .max = 4294967295.0,
		.help = "LiveStacks: leave out stacks that weigh less.",
	}, {
		.name = "evented", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT), FIELD(evented),
		.help = "Speedscope: calls and returns instead of samples.",
	}, {
		.name = "excel", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT), FIELD(excel),
		.help = "CSV: an apostrophe before cells that a spreadsheet would compute.",
	}, {
		.name = "no-annotate", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT) | IN(DIFF), FIELD(no_annotate),
		.help = "Folded: no _[k] after kernel frames and no _[j] after jitted frames.",
	}, {
		.name = "no-ids", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT), FIELD(no_ids),
		.help = "No process and thread numbers in names, so that runs can be compared.",
	}, {
		.name = "addresses", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = PART_OF, FIELD(addresses),
		.help = "Offsets and addresses where names are missing.",
	}, {
		.name = "inlines", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT), FIELD(inlines),
		.help = "Add functions that the compiler inlined, and source lines where the "
			"format has room, from the debug information installed here now. Files "
			"that have changed since the recording keep their recorded names. Linux, "
			"with libdw.",
	}, {
		.name = "lines", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(SHOW), FIELD(lines),
		.help = "Show file, line and inlined functions of the stacks, in the same way as "
			"export --inlines.",
	}, {
		.name = "by-name", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(REPORT), FIELD(by_name),
		.help = "All functions, the most expensive first.",
	}, {
		.name = "tree", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(REPORT), FIELD(tree),
		.help = "The calls, from processes and threads on.",
	}, {
		.name = "callers", .value = "FUNCTION", .type = OPTION_TEXT,
		.group = GROUP_OUTPUT, .commands = IN(REPORT), FIELD(callers),
		.help = "Who called this function; part of its name will do if it is the only "
			"match.",
	}, {
		.name = "callees", .value = "FUNCTION", .type = OPTION_TEXT,
		.group = GROUP_OUTPUT, .commands = IN(REPORT), FIELD(callees),
		.help = "What this function called.",
	}, {
		.name = "normalize", .value = "duration|samples|none", .type = OPTION_TEXT,
		.group = GROUP_OUTPUT, .commands = IN(DIFF), FIELD(normalize),
		.help = "Scale the base by the windows' duration (the default), by samples "
			"(compare shares), or not at all.",
	}, {
		.name = "per-process", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(EXPORT) | IN(DIFF), FIELD(per_process),
		.help = "Write a file for each process, such as cpu-nginx-100.pb.gz. diff: a "
			"report for each name.",
	}, {
		.name = "rows", .value = "N", .type = OPTION_INT,
		.group = GROUP_OUTPUT, .commands = IN(REPORT) | IN(DIFF) | IN(EVENTS), FIELD(rows),
		.def = 20, .min = 1, .max = 1000000,
		.help = "Length of tables; events --live: end after this many.",
	}, {
		.name = "group", .value = "PATTERNS", .type = OPTION_TEXT,
		.group = GROUP_SELECT, .commands = IN(REPORT) | IN(DIFF), FIELD(group),
		.help = "Make one frame of those that match; or module, module-entry, class, "
			"class-entry, just-my-code.",
	}, {
		.name = "fold", .value = "PATTERNS", .type = OPTION_TEXT,
		.group = GROUP_SELECT, .commands = IN(REPORT) | IN(DIFF), FIELD(fold),
		.help = "Give the cost of frames that match to their callers.",
	}, {
		.name = "fold-percent", .value = "PCT", .type = OPTION_FLOAT,
		.group = GROUP_SELECT, .commands = IN(REPORT), FIELD(fold_percent),
		.def = 1, .min = 0, .max = 100, .unit = "percent",
		.help = "In trees, fold what is smaller than this into its callers.",
	}, {
		.name = "inc", .value = "PATTERNS", .type = OPTION_TEXT,
		.group = GROUP_SELECT, .commands = IN(REPORT) | IN(DIFF), FIELD(include),
		.help = "Only samples whose stack, process or thread matches each of these.",
	}, {
		.name = "exc", .value = "PATTERNS", .type = OPTION_TEXT,
		.group = GROUP_SELECT, .commands = IN(REPORT) | IN(DIFF), FIELD(exclude),
		.help = "No samples whose stack, process or thread matches any of these.",
	}, {
		.name = "losses", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(SHOW), FIELD(losses),
		.help = "What was expected, recorded and lost, by CPU and by second.",
	}, {
		.name = "reason", .value = "TEXT", .type = OPTION_TEXT,
		.group = GROUP_OUTPUT, .commands = IN(SNAPSHOT), FIELD(reason),
		.help = "Why, for those who read the incident later.",
	}, {
		.name = "count", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT, .commands = IN(EVENTS), FIELD(count),
		.help = "How many events there are of each provider and name.",
	}, {
		.name = "json", .type = OPTION_BOOL,
		.group = GROUP_OUTPUT,
		.commands = IN(LIST) | IN(SHOW) | IN(REPORT) | IN(EVENTS) | IN(COUNTERS) |
			    IN(BACKTEST) | IN(CHECK) | IN(DIFF) | IN(STACKS) | CONTROL,
		FIELD(json),
		.help = "One JSON object a line.",
	}, {
		.name = "color", .value = "auto|always|never", .type = OPTION_TEXT,
		.group = GROUP_OUTPUT,
		.commands = IN(LIST) | IN(SHOW) | IN(REPORT) | IN(DIFF) | IN(CHECK) | IN(STATUS) |
			    IN(EVENTS),
		FIELD(color),
		.help = "When to use colors. Default auto: on a terminal, unless NO_COLOR is set "
			"or TERM is dumb.",
	},

	/* What an ETW session delivers (Windows) */
	{
		.name = "source", .value = "perf|etw|sampler|none", .type = OPTION_TEXT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true, FIELD(source),
		.help = "Where stacks come from: perf (Linux), etw (Windows), or sampler, which "
			"on Windows records --record-process without administrator rights. none = "
			"only counters, logs and processes.",
	}, {
		.name = "providers", .value = "LIST", .type = OPTION_TEXT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true,
		FIELD(capture.providers),
		.help = "Windows: also events of these providers, separated by ','. Each is a "
			"registered name, a GUID or *EventSourceName, then :KEYWORDS:LEVEL and "
			"keys such as :@StacksEnabled=true; see 'recorder help windows'.",
	}, {
		.name = "only-providers", .value = "LIST", .type = OPTION_TEXT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true,
		FIELD(capture.only_providers),
		.help = "The same, without samples and .NET events unless they are asked for.",
	}, {
		.name = "kernel-events", .value = "LIST", .type = OPTION_TEXT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true,
		FIELD(capture.kernel_events),
		.help = "Windows: Profile, ContextSwitch, DiskIO and so on, as PerfView calls "
			"them. Default: Process, Thread, ImageLoad, Profile.",
	}, {
		.name = "clr-events", .value = "LIST", .type = OPTION_TEXT,
		.group = GROUP_RECORD, .commands = RECORDING, .conf = true,
		FIELD(capture.clr_events),
		.help = "Windows: GC, Jit, Exception and so on, as PerfView calls them. None = no "
			".NET events. Default: GC, Loader, Jit, NGen, Exception, Contention, "
			"Stack.",
	},

	/* Files */
	{
		.name = "store", .value = "FILE", .type = OPTION_TEXT,
		.group = GROUP_STORE, .commands = WITH_STORE | IN(STACKS), .conf = true,
		FIELD(store),
		.help = "The store of incidents. Otherwise $RECORDER_STORE, then the conf file's, "
			"then the user's own; readers who have none get the system's.",
	}, {
		.name = "symbol-path", .value = "PATH", .type = OPTION_TEXT,
		.group = GROUP_STORE, .commands = RECORDING | IN(STACKS), .conf = true,
		FIELD(capture.symbol_path),
		.help = "Directories of programs and PDB files for names in traces, separated by "
			"';'; on Windows also symbol servers: srv*DIR*https://... "
			"$_NT_SYMBOL_PATH is searched after it.",
	}, {
		.name = "config", .value = "FILE", .type = OPTION_TEXT,
		.group = GROUP_STORE, .commands = WITH_CONFIG, FIELD(config),
		.help = "A file of these options, one 'name = value' a line. Otherwise "
			"$RECORDER_CONFIG.",
	}, {
		.name = "symbol-cache", .value = "DIR", .type = OPTION_TEXT,
		.group = GROUP_STORE, .commands = RECORDING, .conf = true,
		FIELD(capture.symbol_cache),
		.help = "Directory of the names on disk. Otherwise the store's name and "
			"'.symbols'.",
	}, {
		.name = "log-file", .value = "FILE", .type = OPTION_TEXT,
		.group = GROUP_STORE, .commands = RECORDING, .conf = true, FIELD(log_file),
		.help = "Append the log to this file. Otherwise it goes to standard error. SIGHUP "
			"reopens it.",
	}, {
		.name = "low-priority", .type = OPTION_BOOL,
		.group = GROUP_STORE, .commands = RECORDING, .conf = true,
		FIELD(capture.low_priority),
		.help = "Store, name and export at the lowest priority (nice 19, idle I/O), even "
			"while an incident waits for it. This takes longer on a busy machine. "
			"Sampling keeps its own priority.",
	}, {
		.name = "service-name", .value = "NAME", .type = OPTION_TEXT,
		.group = GROUP_STORE, .commands = IN(SERVICE), FIELD(service_name),
		.help = "Which service, if there are several. Default: recorder.",
	}, {
		.name = "help", .type = OPTION_BOOL,
		.group = GROUP_STORE, .commands = UINT32_MAX, FIELD(help),
		.help = "Print this text.",
	}, {
		.name = "version", .type = OPTION_BOOL,
		.group = GROUP_STORE, .commands = UINT32_MAX, FIELD(version),
		.help = "Print the program's version.",
	},

	/* Accepted for PerfView's command lines */
	UNUSED_BOOL("accept-eula"),
	UNUSED_BOOL("no-view"),
	UNUSED_BOOL("no-gui"),
	UNUSED_BOOL("merge"),
	UNUSED_BOOL("zip"),
	UNUSED_BOOL("no-rundown"),
	UNUSED_BOOL("in-memory-circular-buffer"),
	{
		.name = "buffer-size-mb", .other_names = "BufferSize", .value = "MB",
		.type = OPTION_INT,
		.group = GROUP_PERFVIEW, .commands = RECORDING, .no_effect = RECORDING,
		FIELD(ignored_int), .def = 0, .min = 0, .max = 1048576, .unit = "MB",
	},
	{.name = NULL},
};
