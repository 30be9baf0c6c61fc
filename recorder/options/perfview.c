/*
 * PerfView's qualifiers and commands that have no counterpart: what to use instead.
 */
#include "options/options_private.h"

#include "base/array.h"

#include <string.h>

struct unmatched {
	const char *names;                   /* separated by blanks */
	const char *instead;                 /* a sentence, after "NAME: " */
};

#define CALLS \
	"calls are not recorded one by one; samples (--freq) show where time is spent"
#define ALLOCATION \
	"objects are not recorded one by one: use --dotnet-alloc-sampled, an event for each " \
	"100 KB; or --clr-events Default,GCSampledObjectAllocationLow in an ETW session"
#define PACKETS \
	"packets are not recorded; run a capture program beside the recorder, and end it with" \
	" --stop-command"
#define TRACE_FILE \
	"no .etl file is written: an incident is a window of samples and events; 'recorder " \
	"export' writes it for PerfView and others"
#define WINDOW \
	"give the part of an incident when it is read: 'recorder export --from SEC --to SEC'"
#define HEAP_DUMP \
	"heaps of .NET programs are not dumped; dotnet-gcdump and PerfView do that"

static const struct unmatched qualifiers[] = {
	{"OSHeapMaxMB",
	 "no file is written that could grow: --buffer-mb is how much of the past is kept"},
	{"DotNetCalls DotNetCallsSampled", CALLS},
	{"DotNetAlloc", ALLOCATION},
	{"DisableInlining",
	 "programs are never changed while they run; --inlines of 'recorder export' "
	 "shows what was inlined where there is debug information"},
	{"JITInlining",
	 "use --clr-events Default,JitTracing"},
	{"RuntimeLoading",
	 "use --clr-events Default,Loader,Binder"},
	{"CCWRefCount",
	 "use --clr-events Default,Interop in an ETW session"},
	{"GCOnly",
	 "use --gc-collect-only: collections without stacks; or --clr-events GC,Stack "
	 "with --kernel-events None in an ETW session: collections with stacks"},
	{"GCTriggeredStacks",
	 "use --clr-events GC,Stack: the events of collections have their stacks"},
	{"NetworkCapture NetMonCapture", PACKETS},
	{"Wpr SaveETL SavedEtl", TRACE_FILE},
	{"MaxEventCount SkipMSec StartTime EndTime", WINDOW},
	{"Freeze MaxDumpCountK MaxNodeCountK SaveHeapDump DumpData DumpHeap", HEAP_DUMP},
	{"SymbolsForDlls",
	 "names are looked up when an incident needs them; --symbol-path says where"},
	{"UnsafePDBMatch",
	 "a PDB file that does not match its program gives wrong names, so it is never "
	 "used"},
	{"Persist",
	 "use 'recorder service install' (Windows) or the systemd unit: it starts with "
	 "the machine"},
	{"EnableEventsInContainers",
	 "on Linux programs in containers are always recorded; on Windows run the "
	 "recorder on the host"},
	{"ContainerId",
	 "on Linux use --record-process; programs in containers are always recorded"},
	{"ImageIDsOnly",
	 "identities of programs are always recorded with their samples"},
};

static const struct unmatched commands[] = {
	{"merge",
	 "nothing has to be merged: an incident is complete where it was recorded"},
	{"unzip",
	 "trace files are read as they are: recorder collect --from FILE.etl.zip"},
	{"view",
	 "use 'recorder report ID', or 'recorder export ID -o x.html' for a browser"},
	{"listcpucounters",
	 "'recorder counters --pmu' lists them"},
	{"guirun guicollect",
	 "there is no window to open; use 'recorder collect'"},
	{"heapsnapshot heapsnapshotfromprocessdump forcegc", HEAP_DUMP},
	{"enablekernelstacks disablekernelstacks",
	 "stacks of the kernel need no setting since Windows 8"},
	{"fetchsymbolsforprocess",
	 "names are looked up when an incident needs them; --symbol-path says where"},
	{"usercommand usercommandhelp createextensionproject",
	 "there are no extensions; 'recorder export' has formats for other programs"},
};

static const char *find(const struct unmatched *all, size_t n, const char *name, size_t nname)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (option_is_one_of(all[i].names, name, nname))
			return all[i].instead;
	return NULL;
}

const char *perfview_qualifier(const char *name, size_t n)
{
	return find(qualifiers, COUNT_OF(qualifiers), name, n);
}

const char *perfview_command(const char *name)
{
	return find(commands, COUNT_OF(commands), name, strlen(name));
}
