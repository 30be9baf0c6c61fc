/*
 * The table of options; the table of commands is options/commands.c. To add an option, add a row
 * here, a field in struct options or struct capture, a line in conf/recorder.conf, and a sentence
 * in the topic of cli/help/ that it belongs to.
 */
#include "options/options.h"

#include <math.h>

/* The default of a number that has none: outside all bounds. */
#define UNSET -INFINITY

#define IN(command) (1ull << CMD_##command)

#define RECORDING (IN(COLLECT) | IN(START) | IN(CHECK))
#define SAMPLING (RECORDING | IN(RUN) | IN(TOP))
#define RULES (RECORDING | IN(BACKTEST))
#define ONE_INCIDENT (IN(SHOW) | IN(REPORT) | IN(EXPORT))
#define PART_OF (ONE_INCIDENT | IN(DIFF))
/* What also reads the history. */
#define WINDOW (ONE_INCIDENT | IN(SNAPSHOT) | IN(DIFF) | IN(EVENTS))
#define INCIDENTS (ONE_INCIDENT | IN(DELETE) | IN(PIN) | IN(NOTE) | IN(UNPIN))
#define SETS (IN(REPORT) | IN(EXPORT))
#define CONTROL \
	(IN(STATUS) | IN(SNAPSHOT) | IN(MARK) | IN(RELOAD) | IN(STOP) | IN(ABORT))
#define REPAIR (IN(VERIFY) | IN(SALVAGE) | IN(SYMBOLIZE))
#define WITH_STORE \
	(RULES | IN(RUN) | IN(TOP) | CONTROL | IN(LIST) | IN(HISTORY) | INCIDENTS | IN(DIFF) | \
	 IN(EVENTS) | REPAIR | IN(SHIP))
#define WITH_CONFIG (WITH_STORE | IN(COUNTERS) | IN(SERVICE))

/* What a row may have after its commands. */
#define CONF .conf = true
#define LIVE .conf = true, .live = true
#define FIELD(name) .offset = offsetof(struct options, name)
#define NUMBER(def_, min_, max_, unit_) .def = def_, .min = min_, .max = max_, .unit = unit_

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
	{'e', "event", NULL},
	{'P', "process", NULL},
	{'i', "interval", NULL},
	{'c', "count", NULL},
	{'T', "top", NULL},
	{'C', "clear", "true"},
	{'K', "kernel", "true"},
	{'h', "help", NULL},
	{0, NULL, NULL},
};

#define OF_FLEET(name, unit, kind, field, text) \
	{name, unit, text, OPTION_##kind, GROUP_SELECT, IN(FLEET), FIELD(field)}
/* An option of PerfView that has no counterpart here. */
#define UNUSED_BOOL(name) \
	{name, NULL, NULL, OPTION_BOOL, GROUP_PERFVIEW, RECORDING, RECORDING, FIELD(ignored_bool)}
#define UNUSED_INT(name, unit) \
	{name, unit, NULL, OPTION_INT, GROUP_PERFVIEW, RECORDING, RECORDING, FIELD(ignored_int), \
	 NUMBER(0, 0, 1048576, unit)}

const struct option_info option_table[] = {
	/* When an incident is kept */
	{"stop-on-perf-counter", "SPEC",
	 "Fire when a counter is beyond a limit: CATEGORY:COUNTER:INSTANCE>NUMBER, or with < >= "
	 "<=; K, M or G may follow the number. 'recorder counters' lists the names. Repeatable; "
	 "any rule fires.", OPTION_RULE, GROUP_TRIGGER, RULES, LIVE},
	{"stop-on-etw-event", "SPEC",
	 "Fire at an event: PROVIDER/EVENT;Key=Value... With ;TriggerMSec=MS, fire when it takes "
	 "longer than MS until its stop. Keys: FieldFilter (FIELD, one of < > <= >= = != ~, and a "
	 "value; repeatable), StopEvent, StartStopID, InFlight, Process, Keywords, Level, and on "
	 "Linux Stack to keep the thread's stack. On Linux: tracepoints "
	 "(sched/sched_process_exit), uprobe:/path:function, usdt:/path:provider:name. Repeatable.",
	 OPTION_RULE_EVENT, GROUP_TRIGGER, RULES, LIVE, .other_names = "StopOnEvent"},
	{"stop-on-gc-over-msec", "MS",
	 "Fire when a .NET garbage collection takes longer than MS milliseconds, background "
	 "collections left out. On Linux also a pause of Java (HotSpot) and, as root, of CPython "
	 "and Node.js where they have probes. ;Measure=pause measures the whole pause. Also "
	 ";Process= and ;InFlight=false. Repeatable.",
	 OPTION_RULE_TEXT, GROUP_TRIGGER, RULES, LIVE},
	{"stop-on-gc-suspend-over-msec", "MS",
	 "Fire when suspending a .NET program for a collection takes longer than MS.",
	 OPTION_RULE_TEXT, GROUP_TRIGGER, RULES, LIVE},
	{"stop-on-bgc-final-pause-over-msec", "MS",
	 "Fire when the final pause of a background collection takes longer than MS.",
	 OPTION_RULE_TEXT, GROUP_TRIGGER, RULES, LIVE},
	{"stop-on-gen2-gc", NULL,
	 "Fire when a .NET collection of generation 2 begins, background collections left out, or "
	 "a full collection of Java, CPython or Node.js. Also --stop-on-gen2-gc=';Process=NAME'.",
	 OPTION_RULE_FLAG, GROUP_TRIGGER, RULES, LIVE},
	{"stop-on-request-over-msec", "MS",
	 "Fire when a request of IIS or ASP.NET Core takes longer than MS, or has been open for "
	 "longer. Also ;Process= and ;InFlight=false.",
	 OPTION_RULE_TEXT, GROUP_TRIGGER, RULES, LIVE},
	{"stop-on-app-fabric-over-msec", "MS", "The same for requests of AppFabric (Windows).",
	 OPTION_RULE_TEXT, GROUP_TRIGGER, RULES, LIVE},
	{"stop-on-exception", "REGEX",
	 "Fire when a .NET exception is thrown whose type, or 'Type: Message', matches; an empty "
	 "expression matches every exception. On Linux also those of Java, and with ;Process= "
	 "of C++, by type. Repeatable.", OPTION_RULE_TEXT, GROUP_TRIGGER, RULES, LIVE},
	{"stop-on-event-log-message", "[LOG@]REGEX",
	 "Fire when a new line of a log matches, ignoring case. LOG: kernel, journal, the path of "
	 "a file, Application (the default), System, or any channel of Windows. Repeatable.",
	 OPTION_RULE_TEXT, GROUP_TRIGGER, RULES, LIVE},
	{"stop-on-process", "NAME|PID",
	 "Fire when a process ends: a name, a pid, a list of them, or *. Then ;On=start, "
	 ";On=crash, ;ExitCode=1, ;ExitCode!=0 or ;Signal=SEGV. On Linux with tracefs also "
	 ";On=crash;Stack=true (with the stack that crashed) and ;On=oom. Repeatable.",
	 OPTION_RULE_TEXT, GROUP_TRIGGER, RULES, LIVE},
	{"stop-on", "EXPR",
	 "Fire when rules come together: 'cpu for 10s and not gc within 1m', 'a then b within 5s', "
	 "'rate(a) > 10/s', 'p99(a) > 200ms over 60s'; also or, ( ). --rule gives the names. "
	 "Repeatable.",
	 OPTION_RULE_TEXT, GROUP_TRIGGER, RULES, LIVE},
	{"rule", "NAME=SPEC",
	 "Name a part of --stop-on, which fires nothing by itself: NAME=StopOnGCOverMsec:100, or "
	 "any other qualifier with its value; a counter's rule may stand alone. Repeatable.",
	 OPTION_TEXTS, GROUP_TRIGGER, RULES, LIVE, FIELD(named_rules)},
	{"assume-exists", NULL,
	 "Accept rules on an EventSource that no program here has now, because the program will be "
	 "installed or started later. `status` names what has not come.",
	 OPTION_BOOL, GROUP_TRIGGER, RULES, LIVE, FIELD(assume_exists)},
	{"min-sec-for-trigger", "SEC",
	 "How long a counter must be beyond its limit before its rule fires. As in PerfView, 3 "
	 "seconds are 4 readings in a row at one a second; 0 fires at the first reading.",
	 OPTION_FLOAT, GROUP_TRIGGER, RULES, LIVE, FIELD(min_sec), NUMBER(3, 0, 86400, "s")},
	{"poll-sec", "SEC", "How often the counters of rules are read.",
	 OPTION_FLOAT, GROUP_TRIGGER, RULES, LIVE, FIELD(poll_sec), NUMBER(1, 0.1, 86400, "s")},
	{"decay-to-zero-hours", "HOURS",
	 "Let the limits of '>' rules sink to zero over this time, so that something is caught in "
	 "the end. 0 = they stay.",
	 OPTION_FLOAT, GROUP_TRIGGER, RULES, LIVE, FIELD(decay_hours),
	 NUMBER(0, 0, 87600, "hours")},
	{"start-on-perf-counter", "SPEC",
	 "Arm the other rules only when this counter rule has fired; recording runs all the time. "
	 "Repeatable; any of them arms.",
	 OPTION_RULE, GROUP_TRIGGER, RECORDING, LIVE},
	{"min-interval-sec", "SEC", "After an incident, ignore its rule for this long. 0 = off.",
	 OPTION_SECONDS, GROUP_TRIGGER, RECORDING, LIVE, FIELD(capture.min_interval_ns),
	 NUMBER(0, 0, 30 * 86400, "s")},
	{"replay-late", NULL,
	 "Place an incident where the line of a log, or the alert, that fired says that it "
	 "happened, if that is over 2 s ago and the buffer still holds it.",
	 OPTION_BOOL, GROUP_TRIGGER, RECORDING, LIVE, FIELD(capture.replay_late)},
	{"dedup", "SEC",
	 "When the same fires again within this time (rule, process and the first 8 named "
	 "functions of the stack), count it in the note of the earlier incident. 0 = off.",
	 OPTION_SECONDS, GROUP_TRIGGER, RECORDING, LIVE, FIELD(capture.dedup_ns),
	 NUMBER(0, 0, 30 * 86400, "s")},
	{"max-per-hour", "N",
	 "Incidents of one rule in an hour; further ones are counted, not kept. Default 10; with "
	 "--from only if given.",
	 OPTION_INT, GROUP_TRIGGER, RECORDING, LIVE, FIELD(max_per_hour),
	 NUMBER(10, 1, 1000, NULL)},
	{"max-per-day", "N", "The same in a day. Default 100; with --from only if given.",
	 OPTION_INT, GROUP_TRIGGER, RECORDING, LIVE, FIELD(max_per_day),
	 NUMBER(100, 1, 10000, NULL)},
	{"stop-command", "COMMAND",
	 "Run this program, without a shell, for each stored incident. %OUTPUTFILE% (of "
	 "--data-file), %OUTPUTDIR%, %OUTPUTBASENAME%, %INCIDENT%, %STORE%, %RULE%, %REASON% and "
	 "%HOST% are replaced; the environment has RECORDER_REASON and so on. Its output goes to "
	 "the log; its failure does not stop the recorder.",
	 OPTION_TEXT, GROUP_TRIGGER, RECORDING, CONF, FIELD(stop_command)},
	{"stop-command-timeout-sec", "SEC", "End the stop command when it runs for longer.",
	 OPTION_SECONDS, GROUP_TRIGGER, RECORDING, CONF, FIELD(capture.stop_command_timeout_ns),
	 NUMBER(60, 1, 86400, "s")},
	{"on-failure", "log|exit|command:CMD",
	 "What to do when a source stalls or ends, a tenth of the samples is lost, or incidents "
	 "cannot be stored: say so in the log (the default), end with exit code 5 after a last "
	 "incident, or run CMD as --stop-command does, with the reason in $RECORDER_REASON.",
	 OPTION_TEXT, GROUP_TRIGGER, RECORDING, CONF, FIELD(on_failure)},
	{"data-file", "FILE",
	 "Also write each incident to this file, in the format of its suffix (x.html, x.folded; "
	 "x.etl becomes x.perfView.xml.zip), before the stop command runs. Existing files are "
	 "kept; x.1.html, x.2.html follow. A file name with such a suffix after 'collect' is the "
	 "same.",
	 OPTION_TEXT, GROUP_TRIGGER, RECORDING, CONF, FIELD(capture.data_file)},
	{"on-fire", "KIND",
	 "When a rule fires, also write a dump of the process that ;Stacks names, or that fired: "
	 "gcore on Linux, minidump on Windows; into STORE.dumps, the last 8. See 'recorder help "
	 "triggers'.",
	 OPTION_TEXT, GROUP_TRIGGER, RECORDING, CONF, FIELD(capture.on_fire)},
	{"sweep", "A:B:STEP",
	 "Count the incidents that each limit from A to B would have given, for one rule.",
	 OPTION_TEXT, GROUP_TRIGGER, IN(BACKTEST), FIELD(sweep)},
	{"collect-multiple", "N", "End after this many incidents. 0 or 1 = after the first.",
	 OPTION_INT, GROUP_TRIGGER, RECORDING, LIVE, FIELD(capture.incidents),
	 NUMBER(0, 0, 1000000, NULL)},
	{"max-collect-sec", "SEC", "End after this time, with a last incident. 0 = never.",
	 OPTION_SECONDS, GROUP_TRIGGER, RECORDING, LIVE, FIELD(capture.max_collect_ns),
	 NUMBER(0, 0, 3650.0 * 86400, "s")},
	{"monitor-perf-counter", "SPEC",
	 "Keep the values of this counter in every incident: CATEGORY:COUNTER:INSTANCE[@SEC], "
	 "every 2 s unless SEC says otherwise (0.1 at least). Repeatable.",
	 OPTION_LIST, GROUP_TRIGGER, RECORDING, CONF, FIELD(monitors)},

	/* How much is recorded and kept */
	{"freq", "HZ", "Samples per second and CPU.",
	 OPTION_INT, GROUP_RECORD, SAMPLING, LIVE, FIELD(capture.freq_hz),
	 NUMBER(99, 1, 10000, "Hz")},
	{"cpu-sample-msec", "MS", "The same as the time between two samples: 1 = 1000 Hz.",
	 OPTION_PERIOD_MS, GROUP_RECORD, SAMPLING, LIVE, FIELD(capture.freq_hz),
	 NUMBER(UNSET, 0.1, 1000, "ms"), .same_as = "freq"},
	{"pre-sec", "SEC",
	 "How much of the time before a firing an incident keeps, as far as the buffer reaches.",
	 OPTION_SECONDS, GROUP_RECORD, RECORDING, LIVE, FIELD(capture.pre_ns),
	 NUMBER(120, 0, 86400, "s")},
	{"delay-after-trigger-sec", "SEC", "How much of the time after a firing it keeps.",
	 OPTION_SECONDS, GROUP_RECORD, RULES, LIVE, FIELD(capture.post_ns),
	 NUMBER(5, 0, 86400, "s")},
	{"buffer-mb", "MB", "Memory for the recent past.",
	 OPTION_INT, GROUP_RECORD, SAMPLING, CONF, FIELD(buffer_mb), NUMBER(64, 1, 65536, "MB"),
	 .other_names = "CircularMB Circular"},
	{"no-kernel-stacks", NULL, "Record no kernel frames.",
	 OPTION_BOOL, GROUP_RECORD, SAMPLING, CONF, FIELD(capture.no_kernel_stacks)},
	{"no-python", NULL,
	 "Record no Python frames. Without this, while a Python program lives, a thread per CPU "
	 "reads at each of its samples which functions it is in (Linux).",
	 OPTION_BOOL, GROUP_RECORD, SAMPLING, CONF, FIELD(capture.no_python)},
	{"no-node", NULL, "Read no JavaScript functions of Node.js in its memory (Linux).",
	 OPTION_BOOL, GROUP_RECORD, SAMPLING, CONF, FIELD(capture.no_node)},
	{"runtime-events", NULL,
	 "Record collections, exceptions and lock waits of .NET programs and pauses of Java "
	 "programs even when no rule needs them.",
	 OPTION_BOOL, GROUP_RECORD, RECORDING, CONF, FIELD(runtime_events)},
	{"gc-collect-only", NULL, "Record collections of .NET and Java and no stacks, for days.",
	 OPTION_BOOL, GROUP_RECORD, RECORDING, CONF, FIELD(capture.gc_collect_only)},
	{"dotnet-alloc-sampled", NULL,
	 "Record what .NET programs allocate, of which type and by whom, one object for each 100 "
	 "KB, and those over 85 KB: metric alloc. On Windows an ETW session has it anyway.",
	 OPTION_BOOL, GROUP_RECORD, RECORDING, CONF, FIELD(capture.dotnet_alloc)},
	{"dotnet-heap", NULL,
	 "The same, and which of these objects collections find alive: metrics heap and heap-net. "
	 "Collections take longer: 'recorder help memory'.",
	 OPTION_BOOL, GROUP_RECORD, RECORDING, CONF, FIELD(capture.dotnet_heap)},
	{"enable-perf-map", NULL,
	 "Linux: ask .NET (8 or later) and Java programs (17 or later) for maps of their code in "
	 "/tmp, so that functions have names: it acts in them, as jcmd and dotnet-trace do.",
	 OPTION_BOOL, GROUP_RECORD, RECORDING, CONF, FIELD(enable_perf_map)},
	{"no-dotnet-names", NULL,
	 "Linux: do not ask .NET programs what their code is called. Otherwise each has a session "
	 "at its diagnostic socket, and is asked once for all of it, some 100 ms of one of its "
	 "threads.",
	 OPTION_BOOL, GROUP_RECORD, RECORDING, CONF, FIELD(no_dotnet_names)},
	{"thread-time", NULL,
	 "Record context switches with stacks too (Linux, needs tracefs), which tells where the "
	 "time of every thread went: metric off-cpu, in ns, with leaves such as CPU_TIME, "
	 "BLOCKED_TIME, DISK_TIME and READIED_TIME. Costs 1 to 5 us for each switch. On Windows: "
	 "from an ETW session, or a trace file that has them; rules do not see switches there.",
	 OPTION_BOOL, GROUP_RECORD, SAMPLING, CONF, FIELD(capture.thread_time)},
	{"wakers", NULL,
	 "The same, with a frame READIED_BY below BLOCKED_TIME and DISK_TIME, and process, thread "
	 "and stack of who ended the wait.",
	 OPTION_BOOL, GROUP_RECORD, SAMPLING, CONF, FIELD(capture.wakers)},
	{"stack-kb", "KB",
	 "How much of a thread's stack is copied with each sample at most, to be unwound: 8, 16 or "
	 "32. 0 = follow frame pointers instead, which most programs lack.",
	 OPTION_INT, GROUP_RECORD, SAMPLING, CONF, FIELD(capture.stack_kb),
	 NUMBER(32, 0, 32, "KB")},
	{"memory-period", "N",
	 "Record one page fault in N with its stack (Linux), which tells who made memory grow: "
	 "metrics rss and rss-net; 61 is a good number. When faults are frequent fewer are "
	 "recorded; the number becomes a prime. 0 = none. Not given: 61 if a rule is about memory, "
	 "such as On=oom, else none.",
	 OPTION_INT, GROUP_RECORD, SAMPLING, CONF, FIELD(capture.memory_period),
	 NUMBER(0, 0, 16381, "")},
	{"heap", NULL,
	 "Sample the heap of the program that run starts (Linux), and of all that it starts: bytes "
	 "allocated by stack (metric heap), and of these what was not freed (heap-net). Preloads "
	 "librecorder-heap.so; 2 to 5 ns for each malloc and free. collect records programs that "
	 "were started with that library in LD_PRELOAD; so does run --process, and of others their "
	 "page faults.",
	 OPTION_BOOL, GROUP_RECORD, RECORDING | IN(RUN), CONF, FIELD(heap)},
	{"heap-next", "NAME",
	 "--heap for all programs whose file has this name and that start while it records. Linux, "
	 "root: by a line in /etc/ld.so.preload, removed at the end, also after a kill; other "
	 "programs that start meanwhile load the library, which does nothing in them; 32-bit "
	 "ones say on standard error that they leave it out. Windows: by TracingFlags of "
	 "NAME.exe, and as --heap-process.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING, CONF, FIELD(capture.heap_next),
	 .other_names = "OSHeapExe"},
	{"heap-process", "NAME|PID",
	 "Record what this process allocates from Windows' heaps, each block with its stack, and "
	 "what it frees: metrics heap, heap-net and heap-peak. It costs the program some "
	 "microseconds for each. On Linux: run --heap --process PID.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING, CONF, FIELD(capture.heap_process),
	 .other_names = "OSHeapProcess"},
	{"heap-kb", "KB",
	 "One allocation in so many KB is sampled, on average, in the program that run starts and "
	 "in those of --heap-next; its chance grows with its size, so sums are right. "
	 "0 = each one: slow, but it finds frees of unknown blocks. Other programs: "
	 "RECORDER_HEAP_BYTES in their environment.",
	 OPTION_INT, GROUP_RECORD, RECORDING | IN(RUN), CONF, FIELD(heap_kb),
	 NUMBER(512, 0, 1048576, "KB")},
	{"max-cpu-percent", "PCT",
	 "How much of one CPU the recorder may take. Over it for 5 s it samples at 49 Hz, then at "
	 "19 Hz, then (Linux) copies 8 KB of stack; later it takes the steps back. 0 = no limit. "
	 "Default: the larger of 1 and 0.3 for each CPU; more in proportion to a --freq over 99; "
	 "four times that with --thread-time.",
	 OPTION_FLOAT, GROUP_RECORD, SAMPLING, LIVE, FIELD(max_cpu_pct),
	 NUMBER(UNSET, 0, 100000, "%")},
	{"max-rss-mb", "MB",
	 "How much memory the recorder may have resident. --buffer-mb becomes what fits below it; "
	 "near it caches and then the oldest history are given up; over it for 5 s the recorder "
	 "samples less, too. 56 at least; 0 = no limit.",
	 OPTION_INT, GROUP_RECORD, SAMPLING, CONF, FIELD(max_rss_mb), NUMBER(0, 0, 1048576, "MB")},
	{"allow-fp", NULL,
	 "Let the last step down be to follow frame pointers, which most programs lack.",
	 OPTION_BOOL, GROUP_RECORD, RECORDING, CONF, FIELD(capture.allow_fp)},
	{"plan", NULL,
	 "Measure for ten seconds what is recorded here; say how far back --buffer-mb will reach "
	 "and how much memory that takes.", OPTION_BOOL, GROUP_RECORD, IN(CHECK), FIELD(plan)},
	{"record-process", "NAME|PID",
	 "Record the stacks of processes with this pid or name only: of the program file (dash), "
	 "the one it was started by (sh), or the script (manage.py).",
	 OPTION_TEXT, GROUP_RECORD, RECORDING, CONF, FIELD(capture.only_process),
	 .other_names = "FocusProcess"},
	{"store-mb", "MB", "Size of the store; the oldest incidents that are not pinned make room.",
	 OPTION_INT, GROUP_RECORD, RECORDING, LIVE, FIELD(store_mb),
	 NUMBER(1024, 8, 16777216, "MB")},
	{"symbol-cache-mb", "MB",
	 "Keep names of large programs on disk for when the programs are gone; the least recently "
	 "used make room. 0 = none.",
	 OPTION_INT, GROUP_RECORD, SAMPLING, CONF, FIELD(symbol_cache_mb),
	 NUMBER(256, 0, 1048576, "MB")},
	{"keep-days", "DAYS", "Remove incidents that are older than this, unless they are pinned.",
	 OPTION_INT, GROUP_RECORD, RECORDING, LIVE, FIELD(keep_days), NUMBER(30, 1, 36500, "days")},

	{"history-mb", "MB",
	 "Keep the past on disk beside the store, all samples of it, in so much space; the oldest "
	 "hours make room. It outlives the recorder. 0 = none. 'recorder help history'.",
	 OPTION_INT, GROUP_RECORD, RECORDING, LIVE, FIELD(history_mb),
	 NUMBER(512, 0, 16777216, "MB")},
	{"history-days", "DAYS", "Remove what is older from the history. 0 = no limit.",
	 OPTION_INT, GROUP_RECORD, RECORDING, LIVE, FIELD(history_days),
	 NUMBER(0, 0, 36500, "days")},
	{"history-sync-sec", "SEC",
	 "How often the history is written to disk: a kill or power cut may cost this much.",
	 OPTION_SECONDS, GROUP_RECORD, RECORDING, CONF, FIELD(history_sync_ns),
	 NUMBER(10, 1, 60, "s")},

	/* Which incident, and which part of it */
	{"base", "ID,...", "The incident to compare with: how it was before; or several: 3,5-9.",
	 OPTION_IDS, GROUP_SELECT, IN(DIFF), FIELD(base_ids)},
	{"test", "ID,...", "The incident to look at: how it is now; or several.",
	 OPTION_IDS, GROUP_SELECT, IN(DIFF), FIELD(test_ids)},
	{"base-store", "FILE", "The store of the base, if it is not that of the test.",
	 OPTION_TEXT, GROUP_SELECT, IN(DIFF), FIELD(base_store)},
	{"id", "ID,...",
	 "The incident's number in 'recorder list'. report and export take several as one: 3,5-9.",
	 OPTION_IDS, GROUP_SELECT,
	 INCIDENTS | IN(BACKTEST) | IN(DIFF) | IN(EVENTS) | IN(SYMBOLIZE) | IN(SHIP), FIELD(ids),
	 .other_names = "incident"},
	{"all", NULL, "All incidents of the store, as one.",
	 OPTION_BOOL, GROUP_SELECT, IN(REPORT), FIELD(all_incidents)},
	{"all", NULL, "All incidents; symbolize: the default; ship: also those that were sent.",
	 OPTION_BOOL, GROUP_SELECT, IN(SHIP) | IN(SYMBOLIZE), FIELD(all_incidents)},
	{"all-incidents", NULL, "All incidents of the store, as one.",
	 OPTION_BOOL, GROUP_SELECT, IN(EXPORT), FIELD(all_incidents)},
	{"rule", "TEXT",
	 "All incidents whose rule has this text in it, as one; with --since 2d only those of the "
	 "last two days.",
	 OPTION_TEXT, GROUP_SELECT, SETS, FIELD(rule_text)},
	OF_FLEET("rule", "TEXT", TEXT, rule_text, "Only rules or reasons with this text."),
	/* As in PerfView; rules on counters name a process themselves. */
	{"process", "NAME|PID",
	 "Only processes with this pid or name: of the program file (dash), the one they were "
	 "started by (sh), or the script (manage.py); or a list: 1234,nginx. events: also a "
	 "regular expression, if it looks like one (^py). For rules: whose events may fire rules "
	 "on events. --record-process says whose stacks are recorded.",
	 OPTION_TEXT, GROUP_SELECT, PART_OF | IN(EVENTS) | IN(STACKS) | IN(RUN) | IN(TOP) |
	 RECORDING | IN(BACKTEST), LIVE, FIELD(process), .other_names = "pid pname"},
	{"container", "ID",
	 "Only processes of this container (docker, podman, containerd, CRI-O); its first 4 digits "
	 "will do.",
	 OPTION_TEXT, GROUP_SELECT, PART_OF, FIELD(home[HOME_CONTAINER])},
	{"unit", "NAME",
	 "Only processes of this unit of systemd, such as nginx, session-2.scope or user.slice.",
	 OPTION_TEXT, GROUP_SELECT, PART_OF, FIELD(home[HOME_UNIT])},
	{"pod", "UID", "Only processes of this Kubernetes pod.",
	 OPTION_TEXT, GROUP_SELECT, PART_OF, FIELD(home[HOME_POD])},
	OF_FLEET("service", "NAME", TEXT, home[HOME_SERVICE], "Only this service."),
	{"service", "NAME", "Only processes that publish this service.name (OpenTelemetry).",
	 OPTION_TEXT, GROUP_SELECT, PART_OF, FIELD(home[HOME_SERVICE])},
	{"thread", "TID", "Only this thread.",
	 OPTION_INT, GROUP_SELECT, ONE_INCIDENT, FIELD(tid), NUMBER(0, 1, UINT32_MAX, NULL)},
	{"from", "FILE",
	 "Read this trace (.etl, .etl.zip, .nettrace, perf.data, stacks) instead of the machine; "
	 "or each of a directory, or of a set of scenarios (.scenarioSet.xml).",
	 OPTION_TEXT, GROUP_STORE, IN(COLLECT), FIELD(capture.file)},
	{"from", "FILE|TIME",
	 "Read this trace (.etl, .etl.zip, .nettrace, perf.data); or the history from this time: "
	 "2026-11-21T03:10, 'yesterday 03:12', -30m (local, or with Z at its end).",
	 OPTION_TEXT, GROUP_STORE, IN(EVENTS) | IN(BACKTEST), FIELD(capture.file)},
	{"from", "SEC|TIME",
	 "Only what comes after this moment; 0 is the trigger, -10 is 10 s before it. A time "
	 "(2026-11-21T03:10, 03:10, 'yesterday 03:12', -30m; local, or with Z at its end) without "
	 "an incident's number: a window of the history.",
	 OPTION_MOMENT, GROUP_SELECT, PART_OF | IN(SNAPSHOT), FIELD(from),
	 NUMBER(UNSET, -1e8, 1e8, "s"), .other_names = "start"},
	{"to", "SEC|TIME", "Only what comes before this moment.",
	 OPTION_MOMENT, GROUP_SELECT, PART_OF | IN(SNAPSHOT), FIELD(to),
	 NUMBER(UNSET, -1e8, 1e8, "s"), .other_names = "end"},
	{"to", "TIME", "The history up to this moment; with --from TIME.",
	 OPTION_MOMENT, GROUP_SELECT, IN(EVENTS), FIELD(to), NUMBER(UNSET, -1e8, 1e8, "s")},
	{"to", "TIME", "The history up to this moment; with --from TIME.",
	 OPTION_MOMENT, GROUP_SELECT, IN(BACKTEST), FIELD(to),
	 NUMBER(UNSET, -1e8, 1e8, "s"), .other_names = "end"},
	{"history", NULL, "The history, all of it or its window (--since 7d), not incidents.",
	 OPTION_BOOL, GROUP_SELECT, IN(BACKTEST) | IN(FLEET), FIELD(history)},
	{"last", "SEC", "The history's last 90 s, 30m, 12h, in place of an incident.",
	 OPTION_SECONDS, GROUP_SELECT, WINDOW | IN(BACKTEST), FIELD(last_ns),
	 NUMBER(UNSET, 1, 1e8, "s"), .other_names = "since"},
	{"since", "SEC", "Only incidents of the last 30m, 12h, 2d.",
	 OPTION_SECONDS, GROUP_SELECT, IN(LIST) | IN(SHIP) | IN(FLEET), FIELD(last_ns),
	 NUMBER(UNSET, 1, 1e8, "s")},
	{"host", "NAME", "Only incidents of this machine.",
	 OPTION_TEXT, GROUP_SELECT, IN(LIST) | SETS | IN(FLEET), FIELD(host)},
	{"group-id", "UUID",
	 "Only incidents that several machines keep of one window: the uuid of the one that fired.",
	 OPTION_TEXT, GROUP_SELECT, IN(LIST) | IN(SHOW) | SETS, FIELD(group_id)},
	OF_FLEET("at", "URL", TEXT, at, "clickhouse://HOST/DB or postgresql://USER@HOST/DB."),
	OF_FLEET("version", "TEXT", TEXT, release, "Only this version of services."),
	OF_FLEET("against", "VERSION|SEC", TEXT, against, "diff: this version, or so far back."),
	OF_FLEET("cluster", "NAME", TEXT, cluster, "schema: shard tables over this cluster."),
	OF_FLEET("clickhouse", NULL, BOOL, clickhouse, "schema: for ClickHouse."),
	OF_FLEET("postgresql", NULL, BOOL, postgresql, "schema: for PostgreSQL."),
	{"ttl-days", "DAYS", "schema: remove what is older. 0 = never.", OPTION_INT, GROUP_SELECT,
	 IN(FLEET), FIELD(ttl_days), NUMBER(0, 0, 36500, "days")},
	{"at", "TIME", "The history from this moment on, for as long as --for says.",
	 OPTION_TEXT, GROUP_SELECT, WINDOW | IN(BACKTEST), FIELD(at)},
	{"against", "yesterday|week|same-hour*N|hour*N|before*N",
	 "Compare one incident (--id), or a window of the history, with the same time of other "
	 "days, of hours before, or with the windows just before it; what exceeds their spread.",
	 OPTION_TEXT, GROUP_SELECT, IN(DIFF), FIELD(against)},
	{"for", "SEC", "How long after --at or --from. Default 60 s.",
	 OPTION_SECONDS, GROUP_SELECT, WINDOW | IN(BACKTEST), FIELD(for_ns),
	 NUMBER(UNSET, 1, 1e8, "s")},
	{"provider", "NAME",
	 "Only events of this provider, such as Microsoft-Windows-DotNETRuntime.",
	 OPTION_TEXT, GROUP_SELECT, IN(EVENTS), FIELD(provider)},
	{"live", "SPEC",
	 "Watch this machine: PROVIDER/EVENT;Key=Value... as in /StopOnEvent. With ;TriggerMSec= "
	 "only the stops of what took longer.",
	 OPTION_TEXT, GROUP_SELECT, IN(EVENTS), FIELD(live)},
	{"seconds", "SEC", "How long --live watches.",
	 OPTION_SECONDS, GROUP_SELECT, IN(EVENTS), FIELD(seconds_ns), NUMBER(10, 0.1, 86400, "s")},
	{"name", "REGEX",
	 "Only events whose name, or PROVIDER/NAME, this matches: GC/Start, '^GC/|^Method/'.",
	 OPTION_TEXT, GROUP_SELECT, IN(EVENTS), FIELD(event_name)},
	{"text", "REGEX|!REGEX",
	 "Only events whose line this matches, or does not match; the line without its time.",
	 OPTION_TEXT, GROUP_SELECT, IN(EVENTS), FIELD(event_text)},
	{"start", "MS", "Only events from here on, in the milliseconds that stand before events.",
	 OPTION_FLOAT, GROUP_SELECT, IN(EVENTS), FIELD(start_ms), NUMBER(UNSET, -1e15, 1e15, "ms")},
	{"end", "MS", "Only events up to here.",
	 OPTION_FLOAT, GROUP_SELECT, IN(EVENTS), FIELD(end_ms),
	 NUMBER(INFINITY, -1e15, 1e15, "ms")},
	{"columns", "FIELD,...",
	 "Only these fields, in this order; * are the others. With a condition (Size>=1024, "
	 "FileName~\\.dmp$) only the events that meet it.",
	 OPTION_TEXT, GROUP_SELECT, IN(EVENTS), FIELD(columns)},
	{"kernel", NULL, "Show kernel frames too.",
	 OPTION_BOOL, GROUP_SELECT, IN(SHOW) | IN(TOP), FIELD(kernel)},
	{"no-kernel", NULL, "Leave out kernel frames; their samples count for the caller.",
	 OPTION_BOOL, GROUP_SELECT, PART_OF, FIELD(no_kernel)},
	{"managed-only", NULL,
	 "Only Java, Python, JavaScript and .NET: native and kernel frames of their stacks are "
	 "left out, and their samples count for the managed caller. Stacks without managed code "
	 "stay as they are.",
	 OPTION_BOOL, GROUP_SELECT, PART_OF, FIELD(managed_only)},
	{"interpreter-frames", NULL,
	 "Python: keep the interpreter's own frames between Python functions and their callers.",
	 OPTION_BOOL, GROUP_SELECT, PART_OF, FIELD(interpreter_frames)},
	{"no-idle", NULL,
	 "Leave out process 0: interrupts on idle CPUs, the idle loop of Windows traces.",
	 OPTION_BOOL, GROUP_SELECT, IN(REPORT) | IN(EXPORT) | IN(DIFF), FIELD(no_idle)},

	/* Output */
	{"format", "NAME", "The format; an unknown one prints the list. -f is --format folded.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(EXPORT) | IN(DIFF) | IN(RUN) | IN(TOP) |
	 IN(STACKS), FIELD(format)},
	{"format", "text|json|csv|xml",
	 "How events are printed; xml is that of PerfView's DumpEventsAsXml.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(EVENTS), FIELD(format)},
	{"output", "FILE", "Write to this file; - is standard output. A suffix .gz packs it.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(EXPORT) | IN(DIFF) | IN(RUN) | IN(FLEET), FIELD(output)},
	{"output", "FILE", "The new store.", OPTION_TEXT, GROUP_OUTPUT, IN(SALVAGE), FIELD(output)},
	{"force", NULL,
	 "Replace the file if it exists. With run --heap --process: probe malloc, which takes "
	 "0.5 us longer then, in all programs that share its file.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EXPORT) | IN(DIFF) | IN(RUN) | IN(FLEET), FIELD(force)},
	{"all", "DIR",
	 "Write the usual formats into this directory, as incident-ID.SUFFIX; make it if "
	 "necessary.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(EXPORT), FIELD(all_dir)},
	{"man", "DIR", "Write the manual pages into this directory, as man1/recorder.1 and so on.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(HELP), FIELD(all_dir)},
	{"sqlite-flat", NULL, "The same as --format sqlite-flat.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EXPORT), FIELD(sqlite_flat)},
	{"metric", "cpu|off-cpu|alloc|rss|heap|vm|io-bytes|io-time|event|...",
	 "Which samples: cpu (counted; the default), off-cpu (ns), alloc (bytes), rss (bytes of "
	 "memory that was touched), rss-net (of these what was still there), heap (bytes allocated "
	 "by programs under --heap), heap-net (of these what was not freed), heap-peak (when the "
	 "process had most), vm (bytes asked of the system, by --event kernel:VirtualAlloc), "
	 "vm-net (of these what was kept), vm-peak (when the process had most), io-bytes and "
	 "io-time (disks), file-bytes and file-time (calls that read and write), event (all with "
	 "stacks), or one event or counter: cache-misses, event:GC/Start. PerfView's names work.",
	 OPTION_TEXT, GROUP_OUTPUT, SETS | IN(DIFF) | IN(RUN) | IN(FLEET), FIELD(metric)},
	{"livestacks", NULL,
	 "Folded: with offsets in functions, without threads, most frequent first, as LiveStacks.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EXPORT), FIELD(livestacks)},
	{"interval", "SEC",
	 "Print a summary every SEC seconds; without it, and without --count, one at Ctrl-C.",
	 OPTION_FLOAT, GROUP_OUTPUT, IN(TOP), FIELD(interval_s), NUMBER(UNSET, 0.1, 86400, "s")},
	{"count", "N", "End after so many summaries; without --interval one every 5 s.",
	 OPTION_INT, GROUP_OUTPUT, IN(TOP), FIELD(times), NUMBER(0, 0, UINT32_MAX, NULL)},
	{"clear", NULL, "Clear the screen before each summary.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(TOP), FIELD(clear)},
	{"top", "N", "LiveStacks text: how many stacks; 0 = all.",
	 OPTION_INT, GROUP_OUTPUT, IN(EXPORT) | IN(TOP), FIELD(top),
	 NUMBER(10, 0, UINT32_MAX, NULL)},
	{"min-count", "N", "LiveStacks: leave out stacks that weigh less.",
	 OPTION_INT, GROUP_OUTPUT, IN(EXPORT) | IN(TOP), FIELD(min_count),
	 NUMBER(0, 0, UINT32_MAX, NULL)},
	{"evented", NULL, "Speedscope: calls and returns instead of samples.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EXPORT), FIELD(evented)},
	{"excel", NULL, "CSV: an apostrophe before cells that a spreadsheet would compute.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EXPORT), FIELD(excel)},
	{"no-annotate", NULL,
	 "Folded: no _[k] after kernel frames and no _[j] after jitted frames.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EXPORT) | IN(DIFF), FIELD(no_annotate)},
	{"no-ids", NULL, "No process and thread numbers in names, so that runs can be compared.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EXPORT), FIELD(no_ids)},
	{"addresses", NULL, "Offsets and addresses where names are missing.",
	 OPTION_BOOL, GROUP_OUTPUT, PART_OF, FIELD(addresses)},
	{"signatures", NULL,
	 "Java and .NET: parameters of methods, as in HashMap.getNode(Object), so that overloads "
	 "are apart.",
	 OPTION_BOOL, GROUP_OUTPUT, PART_OF, FIELD(signatures)},
	{"frame-kinds", NULL,
	 "Java: how each frame was run: [interpreted], [C1], [C2] or [native].",
	 OPTION_BOOL, GROUP_OUTPUT, PART_OF, FIELD(frame_kinds)},
	{"inlines", NULL,
	 "Add functions that the compiler inlined, and source lines where the format has room, "
	 "from the debug information installed here now. Files that have changed since the "
	 "recording keep their recorded names. Linux, with libdw. Lines of Java are in the "
	 "incident.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EXPORT), FIELD(inlines)},
	{"lines", NULL,
	 "Show file, line and inlined functions of the stacks, in the same way as export "
	 "--inlines.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(SHOW), FIELD(lines)},
	{"by", "container|unit|pod|service",
	 "Sum up by where processes live; each with its processes, in place of threads.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(REPORT), FIELD(by)},
	{"by-name", NULL, "All functions, the most expensive first.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(REPORT), FIELD(by_name)},
	{"memory", NULL,
	 "How memory grew: each process's size (Linux) at the start, at the trigger and at most; "
	 "what is still there by module, function and stack; what looks like a leak.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(REPORT), FIELD(memory)},
	{"requests", NULL,
	 "The slowest requests, or other activities from a start event to its stop: with those "
	 "nested in them, their thread time, and the stack with most of it.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(REPORT), FIELD(requests)},
	{"activities", NULL,
	 "Group by activity, as PerfView's Thread Time (with Start-Stop Activities): what each "
	 "request spent, over all its threads.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(REPORT) | IN(EXPORT), FIELD(activities)},
	{"activity", "START;StopEvent=STOP",
	 "The events that start and stop an activity, written as for StopOnEvent. Repeatable. "
	 "Otherwise their names tell.",
	 OPTION_TEXTS, GROUP_OUTPUT, IN(REPORT) | IN(EXPORT), FIELD(pairs)},
	{"runtimes", NULL,
	 "What .NET, Java, Python and Node.js tell of themselves: collections by process and "
	 "generation, compiled methods, exceptions by type, waits for locks by site.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(REPORT), FIELD(runtimes)},
	{"tree", NULL, "The calls, from processes and threads on.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(REPORT), FIELD(tree)},
	{"callers", "FUNCTION",
	 "Who called this function; part of its name will do if it is the only match.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(REPORT), FIELD(callers)},
	{"callees", "FUNCTION", "What this function called.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(REPORT), FIELD(callees)},
	{"caller-callee", "FUNCTION", "One function with its callers and callees.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(REPORT), FIELD(caller_callee)},
	{"columns", "LIST",
	 "More columns: first, last (s from the trigger), fold (what was folded into it), rate "
	 "(per second of the window).",
	 OPTION_TEXT, GROUP_OUTPUT, IN(REPORT), FIELD(columns)},
	{"normalize", "duration|samples|none",
	 "Scale the base by the windows' duration (the default), by samples (compare shares), or "
	 "not at all.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(DIFF), FIELD(normalize)},
	{"per-process", NULL,
	 "Write a file for each process, such as cpu-nginx-100.pb.gz. diff: a report for each "
	 "name.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EXPORT) | IN(DIFF), FIELD(per_process)},
	{"rows", "N", "Length of tables; events: end after this many, if it is given.",
	 OPTION_INT, GROUP_OUTPUT, IN(REPORT) | IN(DIFF) | IN(EVENTS) | IN(FLEET), FIELD(rows),
	 NUMBER(20, 1, 1000000, NULL), .other_names = "max"},
	{"group", "PATTERNS",
	 "Make one frame of those that match; or module, module-entry, class, class-entry, "
	 "just-my-code.",
	 OPTION_TEXT, GROUP_SELECT, IN(REPORT) | IN(DIFF), CONF, FIELD(group)},
	{"group-preset", "NAME=PATTERNS",
	 "A name for patterns of --group, in the conf file for instance. Repeatable.",
	 OPTION_TEXTS, GROUP_SELECT, IN(REPORT) | IN(DIFF), CONF, FIELD(group_presets)},
	{"group", NULL, "Print threads that have the same stack once.",
	 OPTION_BOOL, GROUP_SELECT, IN(STACKS), FIELD(group_threads)},
	{"all-processes", NULL, "All processes in turn.",
	 OPTION_BOOL, GROUP_SELECT, IN(STACKS), FIELD(all_processes)},
	{"no-stop", NULL,
	 "Stop no thread (Linux): those that wait are read as they stand, those that run are "
	 "sampled. Stacks may be [fp], or end earlier than without this, as [broken].",
	 OPTION_BOOL, GROUP_SELECT, IN(STACKS), FIELD(no_stop)},
	{"core", "FILE",
	 "Read a dead process's core dump; - = standard input, as the kernel or coredumpctl "
	 "pipes it.",
	 OPTION_TEXT, GROUP_SELECT, IN(STACKS), FIELD(core)},
	{"dump", "FILE", "Read a dead process's Windows minidump; - = standard input.",
	 OPTION_TEXT, GROUP_SELECT, IN(STACKS), FIELD(dump)},
	{"exe", "FILE", "With --core, --dump: where the program's file is now.",
	 OPTION_TEXT, GROUP_SELECT, IN(STACKS), FIELD(exe)},
	{"repeat", "N", "Take the stacks N times; later ones say which threads have not moved.",
	 OPTION_INT, GROUP_SELECT, IN(STACKS), FIELD(repeat), NUMBER(1, 1, 1000, NULL)},
	{"every", "MS", "With --repeat: the time from one to the next.",
	 OPTION_INT, GROUP_SELECT, IN(STACKS), FIELD(every_ms), NUMBER(1000, 1, 3600000, "ms")},
	{"fold", "PATTERNS", "Give the cost of frames that match to their callers.",
	 OPTION_TEXT, GROUP_SELECT, IN(REPORT) | IN(DIFF), FIELD(fold)},
	{"fold-percent", "PCT",
	 "Fold what is smaller than this into its callers. Trees do so below 1 %.",
	 OPTION_FLOAT, GROUP_SELECT, IN(REPORT), FIELD(fold_percent), NUMBER(1, 0, 100, "percent")},
	{"inc", "PATTERNS", "Only samples whose stack, process or thread matches one of these.",
	 OPTION_TEXT, GROUP_SELECT, IN(REPORT) | IN(DIFF), FIELD(include)},
	{"exc", "PATTERNS", "No samples whose stack, process or thread matches any of these.",
	 OPTION_TEXT, GROUP_SELECT, IN(REPORT) | IN(DIFF), FIELD(exclude)},
	{"losses", NULL, "What was expected, recorded and lost, by CPU and by second.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(SHOW), FIELD(losses)},
	{"threads", NULL, "The threads that a rule with ;Stacks looked at, and their stacks.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(SHOW), FIELD(threads)},
	{"reason", "TEXT", "Why, for those who read the incident later.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(SNAPSHOT), FIELD(reason)},
	{"peers", "HOST:PORT,...",
	 "Other recorders keep the same window (the last 2 minutes, unless another is given), too: "
	 "web1:9427,web2;Auth=FILE. 'recorder help fleet'.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(SNAPSHOT), FIELD(peers)},
	{"count", NULL, "How many events each provider has, by name; also of what can be named.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EVENTS), FIELD(count)},
	{"histogram", NULL,
	 "The same, with 32 letters that show when they came: A is the most, 9 nine tenths of it.",
	 OPTION_BOOL, GROUP_OUTPUT, IN(EVENTS), FIELD(histogram)},
	{"json", NULL, "One JSON object a line.", OPTION_BOOL, GROUP_OUTPUT,
	 IN(LIST) | IN(HISTORY) | IN(SHOW) | IN(REPORT) | IN(EVENTS) | IN(COUNTERS) |
	 IN(BACKTEST) | IN(CHECK) | IN(DIFF) | IN(STACKS) | IN(SHIP) | IN(FLEET) | CONTROL |
	 REPAIR | IN(LIST_SESSIONS), FIELD(json)},
	{"color", "auto|always|never",
	 "When to use colors. Default auto: on a terminal, unless NO_COLOR is set or TERM is dumb.",
	 OPTION_TEXT, GROUP_OUTPUT,
	 IN(LIST) | IN(HISTORY) | IN(SHOW) | IN(REPORT) | IN(DIFF) | IN(CHECK) | IN(STATUS) |
	 IN(EVENTS) | IN(FLEET), FIELD(color)},

	/* What an ETW session delivers (Windows) */
	{"source", "perf|etw|sampler|none|running",
	 "Where stacks come from: perf (Linux), etw (Windows), or sampler, which on Windows "
	 "records --record-process without administrator rights. none = only counters, logs and "
	 "processes. top: running = the recorder of --store, the default where one runs.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING | IN(TOP), CONF, FIELD(source)},
	{"source", "FUNCTION",
	 "The lines of this function with what each costs, beside their text (Linux, libdw).",
	 OPTION_TEXT, GROUP_OUTPUT, IN(REPORT) | IN(EXPORT), FIELD(source_of)},
	{"source-path", "DIRS",
	 "Where source files are, separated by ';', that are not where they were compiled.",
	 OPTION_TEXT, GROUP_OUTPUT, IN(REPORT) | IN(EXPORT), FIELD(source_path)},
	{"providers", "LIST",
	 "Also events of these providers, separated by ','. Each is *EventSourceName, on Windows "
	 "also a registered name or a GUID, then :KEYWORDS:LEVEL; on Linux also a tracepoint "
	 "(sched:sched_process_exec, block:*), uprobe:/path:function or usdt:/path:provider:name. "
	 "Keys such as :@StacksEnabled=true may follow; see 'recorder help windows' and 'recorder "
	 "help linux'.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING, CONF, FIELD(capture.providers)},
	{"only-providers", "LIST",
	 "The same, without samples and .NET events unless they are asked for.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING, CONF, FIELD(capture.only_providers)},
	{"event", "LIST",
	 "Also these events, with stacks: kernel:KEYWORD (kernel:DiskIO, as PerfView calls them; "
	 "on Linux also kernel:SUBSYSTEM:TRACEPOINT) or clr:KEYWORD:EVENT "
	 "(clr:GC:GC/AllocationTick), separated by ','.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING | IN(TOP), CONF, FIELD(capture.events)},
	{"pmu", NULL, "The processor's counters, as --cpu-counters names them.",
	 OPTION_BOOL, GROUP_SELECT, IN(COUNTERS), FIELD(pmu)},
	{"cpu-counters", "LIST",
	 "Also stacks of what the processor counts: NAME or NAME@PERIOD, separated by ',', as in "
	 "cache-misses@100000 (one of so many is recorded); 'recorder counters --pmu' lists "
	 "them. Each is a metric: --metric cache-misses.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING, CONF, FIELD(capture.cpu_counters)},
	{"kernel-events", "LIST",
	 "Windows: Profile, ContextSwitch, DiskIO and so on, as PerfView calls them, or its groups "
	 "Default, ThreadTime, Verbose, OS, All and None. Without it: Process, Thread, ImageLoad, "
	 "Profile.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING, CONF, FIELD(capture.kernel_events)},
	{"clr-events", "LIST",
	 "GC, Jit, Exception and so on, as PerfView calls them, or Default, All and None. "
	 "Without it, on Windows: GC, Loader, Jit, NGen, Exception, Contention, Stack.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING, CONF, FIELD(capture.clr_events)},
	{"clr-event-level", "LEVEL",
	 "How much .NET tells: 1 to 5, or Critical, Error, Warning, Informational, "
	 "Verbose. Without it: Verbose.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING, CONF, FIELD(capture.clr_event_level)},
	{"tpl-events", "LIST",
	 "Also events of .NET's tasks: Default, None, or Tasks, Parallel and so on, as "
	 "PerfView calls them. Without it: none.",
	 OPTION_TEXT, GROUP_RECORD, RECORDING, CONF, FIELD(capture.tpl_events)},

	/* Files */
	{"store", "FILE",
	 "The store of incidents. Otherwise $RECORDER_STORE, then the conf file's, then the user's "
	 "own; readers who have none get the system's.",
	 OPTION_TEXT, GROUP_STORE, WITH_STORE | IN(STACKS), CONF, FIELD(store)},
	{"symbol-path", "PATH",
	 "Directories of programs, debug files and PDB files, separated by ';'; on Windows also "
	 "symbol servers: srv*DIR*https://... $_NT_SYMBOL_PATH is searched after it. symbolize "
	 "and source lines: also debuginfod, https://...", OPTION_TEXT, GROUP_STORE, SAMPLING |
	 IN(STACKS) | IN(SYMBOLIZE) | IN(REPORT) | IN(EXPORT) | IN(SHOW), CONF,
	 FIELD(capture.symbol_path)},
	{"config", "FILE",
	 "A file of these options, one 'name = value' a line. Otherwise $RECORDER_CONFIG.",
	 OPTION_TEXT, GROUP_STORE, WITH_CONFIG, FIELD(config)},
	{"symbol-cache", "DIR",
	 "Directory of the names on disk. Otherwise the store's name and '.symbols'.",
	 OPTION_TEXT, GROUP_STORE, RECORDING, CONF, FIELD(capture.symbol_cache)},
	{"log-file", "FILE",
	 "Append the log to this file; at 16 MB it becomes FILE.1, replacing the last one. "
	 "Otherwise the log goes to standard error. SIGHUP reopens it.",
	 OPTION_TEXT, GROUP_STORE, RECORDING, CONF, FIELD(log_file)},
	{"http", "ADDRESS",
	 "Answer over HTTP: 127.0.0.1:9427, [::1]:9427, unix:/run/recorder.sock, or fd for a "
	 "socket of the service manager. Beyond this machine only with --http-token and TLS. "
	 "Linux. 'recorder help http'.",
	 OPTION_TEXT, GROUP_STORE, RECORDING, CONF, FIELD(http)},
	{"http-token", "FILE",
	 "What clients must show: the first line of this file, which only its owner may read.",
	 OPTION_TEXT, GROUP_STORE, RECORDING, CONF, FIELD(http_token)},
	{"http-cert", "FILE", "Use TLS, with this certificate (PEM), and those that signed it.",
	 OPTION_TEXT, GROUP_STORE, RECORDING, CONF, FIELD(http_cert)},
	{"http-key", "FILE", "The certificate's key (PEM), which only its owner may read.",
	 OPTION_TEXT, GROUP_STORE, RECORDING, CONF, FIELD(http_key)},
	{"textfile", "FILE",
	 "Write metrics into this file every 15 s, for the textfile collector of node_exporter: a "
	 "name in .prom. 'recorder help http'.",
	 OPTION_TEXT, GROUP_STORE, RECORDING, CONF, FIELD(textfile)},
	{"ship", "URL",
	 "Send each incident there when it is complete: s3://BUCKET/PREFIX, https://HOST/PATH. "
	 "Repeatable. Linux, needs libcurl. 'recorder help ship'.",
	 OPTION_TEXTS, GROUP_STORE, RECORDING, CONF, FIELD(ship)},
	{"to", "URL", "Where to send them; repeatable. Otherwise where the conf file says: ship =.",
	 OPTION_TEXTS, GROUP_STORE, IN(SHIP), FIELD(ship_to)},
	{"due", NULL,
	 "Skip targets that wait after a failure; tell only changes. The recorder does so.",
	 OPTION_BOOL, GROUP_STORE, IN(SHIP), FIELD(due)},
	{"low-priority", NULL,
	 "Store, name and export at the lowest priority (nice 19, idle I/O), even while an "
	 "incident waits for it. This takes longer on a busy machine. Sampling keeps its own "
	 "priority.",
	 OPTION_BOOL, GROUP_STORE, RECORDING, CONF, FIELD(capture.low_priority)},
	{"service-name", "NAME", "Which service, if there are several. Default: recorder.",
	 OPTION_TEXT, GROUP_STORE, IN(SERVICE), FIELD(service_name)},
	{"help", NULL, "Print this text.", OPTION_BOOL, GROUP_STORE, UINT64_MAX, FIELD(help)},
	{"version", NULL, "Print the program's version.",
	 OPTION_BOOL, GROUP_STORE, ~IN(FLEET), FIELD(version)},

	/* Accepted for PerfView's command lines */
	UNUSED_BOOL("accept-eula"), UNUSED_BOOL("no-view"), UNUSED_BOOL("no-gui"),
	UNUSED_BOOL("merge"), UNUSED_BOOL("zip"), UNUSED_BOOL("no-rundown"),
	UNUSED_BOOL("in-memory-circular-buffer"), UNUSED_BOOL("no-ngen-pdbs"),
	UNUSED_BOOL("no-ngen-rundown"), UNUSED_BOOL("no-clr-rundown"),
	UNUSED_BOOL("no-v2-rundown"), UNUSED_BOOL("force-ngen-rundown"),
	UNUSED_BOOL("stack-compression"), UNUSED_BOOL("trust-pdbs"), UNUSED_BOOL("safe-mode"),
	UNUSED_BOOL("keep-all-events"), UNUSED_BOOL("continue-on-error"),
	UNUSED_INT("rundown-timeout", "SEC"), UNUSED_INT("min-rundown-time", "MS"),
	UNUSED_INT("rundown-max-mb", "MB"),
	{"session-name", "NAME", NULL,
	 OPTION_TEXT, GROUP_PERFVIEW, RECORDING, FIELD(ignored_text), .no_effect = RECORDING},
	{"buffer-size-mb", "MB", NULL,
	 OPTION_INT, GROUP_PERFVIEW, RECORDING, FIELD(ignored_int), NUMBER(0, 0, 1048576, "MB"),
	 .other_names = "BufferSize", .no_effect = RECORDING},
	{.name = NULL},
};

_Static_assert(sizeof(option_table) / sizeof(*option_table) <= OPTIONS_MAX, "room for all");
