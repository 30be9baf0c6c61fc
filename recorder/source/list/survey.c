#include "source/list/survey.h"

#include <stdio.h>
#include <string.h>

/* Less is a compiled regular expression or a callback trampoline: many programs have some. */
#define JIT_WORTH_A_WORD_BYTES ((uint64_t)1 << 20)

static const struct {
	const char *name, *text;
} causes[SURVEY_CAUSES] = {
	[SURVEY_JVM] = {"jvm",
		"a JVM of OpenJ9 has no tables of HotSpot, so most of its stacks will be "
		"broken: run the program on HotSpot"},
	[SURVEY_NATIVE_IMAGE] = {"native-image",
		"Java compiled ahead of time (GraalVM native-image) has no unwind tables for its "
		"own code: stacks break there; build it with -H:+PreserveFramePointer, or run the "
		"program on HotSpot"},
	[SURVEY_NO_TABLES] = {"no-unwind-tables",
		"no unwind tables (.eh_frame) in the program or the library named: stacks break "
		"there unless it was built with frame pointers; rebuild with "
		"-fasynchronous-unwind-tables"},
	[SURVEY_REPLACED] = {"replaced",
		"they still run files that were deleted or replaced since they started (an "
		"upgrade?), whose unwind tables nobody can read any more: restart them"},
	[SURVEY_UNREADABLE] = {"unreadable",
		"this user may not look at them, so their code stays unknown, and pauses of "
		"those that are of Java or .NET: run as root (of the host), or with "
		"cap_sys_ptrace and cap_dac_read_search (for .NET cap_dac_override)"},
	[SURVEY_INTERPRETER] = {"interpreter",
		"their own functions are not read: stacks show the interpreter's native frames "
		"and what it called; nothing helps but a profiler of that language"},
	[SURVEY_GO] = {"go",
		"Go has no unwind tables; its frame pointers are followed, and such stacks are "
		"good, but never marked complete: nothing to do"},
	[SURVEY_JIT] = {"jit-names",
		"code made at run time has no names (the stacks are not harmed): let the program "
		"write a perf map; Java 17+ that is not HotSpot: recorder collect "
		"--enable-perf-map"},
	[SURVEY_NO_PERF_DATA] = {"java-pauses-unseen",
		"no /tmp/hsperfdata_USER/PID, and no probes in libjvm.so: collections of these "
		"Java programs cannot be seen; start them without -XX:-UsePerfData and "
		"-XX:+PerfDisableSharedMem"},
	[SURVEY_JAVA_PROBES] = {"java-by-probes",
		"no /tmp/hsperfdata_USER/PID: pauses are seen by probes in libjvm.so, as root "
		"and if they run when recording starts; for all, and JVM Memory: start them "
		"without -XX:-UsePerfData and -XX:+PerfDisableSharedMem"},
	[SURVEY_NO_DIAGNOSTICS] = {"dotnet-events-unseen",
		"no diagnostic socket: collections, exceptions, events and names of these .NET "
		"programs cannot be seen; start them without DOTNET_EnableDiagnostics=0 (and in "
		"a container without TMPDIR)"},
	[SURVEY_JAVA] = {"java",
		"pauses are seen when a rule asks or with --runtime-events: nothing to do"},
	[SURVEY_DOTNET] = {"dotnet",
		"collections, exceptions, lock waits and events of EventSources are seen when a "
		"rule asks or with --runtime-events: nothing to do"},
	[SURVEY_PYTHON] = {"python",
		"collections are seen, by probes, when a rule asks and as root: nothing to do"},
	[SURVEY_NO_PYTHON_PROBES] = {"python-collections-unseen",
		"this Python was built without probes, so its collections cannot be seen: use "
		"that of the distribution, or one built --with-dtrace"},
	[SURVEY_NODE] = {"node",
		"collections of V8 are seen, by probes, when a rule asks and as root: nothing "
		"to do"},
	[SURVEY_NO_NODE_PROBES] = {"node-collections-unseen",
		"this node was stripped of its symbols, so collections of V8 cannot be seen: "
		"use one that was not, as those of nodejs.org and Debian"},
};

const char *survey_cause_name(enum survey_cause cause)
{
	return causes[cause].name;
}

const char *survey_cause_text(enum survey_cause cause, bool is_root)
{
	if (cause == SURVEY_UNREADABLE && is_root)
		return "not even root may look at them from here, so their code stays unknown: "
		       "they belong to another user namespace or are protected (a security "
		       "module), or this root has no cap_sys_ptrace, as in a container: run on the "
		       "host";
	return causes[cause].text;
}

uint32_t survey_judge(const struct survey_facts *f)
{
	uint32_t bits = 0;

	if (f->unreadable)
		return 1u << SURVEY_UNREADABLE;
	if (f->is_openj9)
		bits |= 1u << SURVEY_JVM;
	if (f->is_unread)
		bits |= 1u << SURVEY_INTERPRETER;
	if (f->is_native_image)
		bits |= 1u << SURVEY_NATIVE_IMAGE;
	if (f->is_jvm)
		bits |= 1u << (f->has_perf_data	  ? SURVEY_JAVA
			       : f->has_gc_probes ? SURVEY_JAVA_PROBES
						  : SURVEY_NO_PERF_DATA);
	if (f->is_dotnet)
		bits |= 1u << (f->has_diagnostics ? SURVEY_DOTNET : SURVEY_NO_DIAGNOSTICS);
	if (f->is_python)
		bits |= 1u << (f->has_gc_probes ? SURVEY_PYTHON : SURVEY_NO_PYTHON_PROBES);
	if (f->is_node)
		bits |= 1u << (f->has_gc_probes ? SURVEY_NODE : SURVEY_NO_NODE_PROBES);
	if (f->replaced)
		bits |= 1u << SURVEY_REPLACED;
	if (f->is_go)
		bits |= 1u << SURVEY_GO;
	else if (f->without_tables && !f->is_native_image)
		bits |= 1u << SURVEY_NO_TABLES;
	/* HotSpot's code is named by its own tables, as V8's; that of .NET by its runtime. */
	if (!f->has_perf_map && f->jit_bytes && (!f->is_jvm || f->is_openj9) && !f->is_dotnet &&
	    !f->is_node &&
	    (f->runtime || f->is_jvm || f->jit_bytes >= JIT_WORTH_A_WORD_BYTES))
		bits |= 1u << SURVEY_JIT;
	return bits;
}

void survey_add(struct survey *s, enum survey_cause cause, const char *name, uint32_t pid)
{
	struct survey_group *g;
	uint32_t i;

	for (i = 0; i < s->ngroups; i++) {
		g = &s->groups[i];
		if (g->cause == cause && strncmp(g->name, name, sizeof(g->name) - 1) == 0)
			break;
	}
	if (i == SURVEY_GROUPS_MAX)
		return;
	g = &s->groups[i];
	if (i == s->ngroups) {
		s->ngroups++;
		g->cause = cause;
		g->pid = pid;
		snprintf(g->name, sizeof(g->name), "%s", name);
	}
	g->n++;
}
