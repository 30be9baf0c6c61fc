#include "source/etw/wanted.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/text.h"
#include "model/event.h"
#include "source/etw/guids.h"
#include "source/runtime/gc_objects.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct etw_guid etw_clr_guid = CLR_GUID;
const struct etw_guid etw_clr_rundown_guid = CLR_RUNDOWN_GUID;

#define CLR_NAME "Microsoft-Windows-DotNETRuntime"
#define TPL_NAME "System.Threading.Tasks.TplEventSource"
#define WORD_MAX 64u

struct keyword {
	const char *name;
	uint64_t bits;
};

/* Stacks need these for their process, thread and names. */
#define KERNEL_ALWAYS (ETW_FLAG_PROCESS | ETW_FLAG_THREAD | ETW_FLAG_IMAGE)
/* Without --kernel-events. */
#define KERNEL_OWN (KERNEL_ALWAYS | ETW_FLAG_PROFILE)

/* PerfView's groups. */
#define KERNEL_DEFAULT \
	(KERNEL_OWN | ETW_FLAG_PROCESS_COUNTERS | ETW_FLAG_DISK_IO | ETW_FLAG_DISK_FILE_IO | \
	 ETW_FLAG_DISK_IO_INIT | ETW_FLAG_HARD_FAULTS | ETW_FLAG_NETWORK)
#define KERNEL_THREAD_TIME (KERNEL_DEFAULT | ETW_FLAG_CSWITCH | ETW_FLAG_DISPATCHER)
#define KERNEL_VERBOSE \
	(KERNEL_THREAD_TIME | ETW_FLAG_FILE_IO | ETW_FLAG_FILE_IO_INIT | ETW_FLAG_PAGE_FAULTS | \
	 ETW_FLAG_REGISTRY | ETW_FLAG_VIRTUAL_ALLOC | ETW_FLAG_VAMAP)
#define KERNEL_OS \
	(ETW_FLAG_ALPC | ETW_FLAG_DPC | ETW_FLAG_DRIVER | ETW_FLAG_INTERRUPT | ETW_FLAG_SPLIT_IO)

static const struct keyword kernel_keywords[] = {
	{"Process", ETW_FLAG_PROCESS}, {"Thread", ETW_FLAG_THREAD}, {"ImageLoad", ETW_FLAG_IMAGE},
	{"ProcessCounters", ETW_FLAG_PROCESS_COUNTERS}, {"ContextSwitch", ETW_FLAG_CSWITCH},
	{"DeferedProcedureCalls", ETW_FLAG_DPC}, {"Interrupt", ETW_FLAG_INTERRUPT},
	{"SystemCall", ETW_FLAG_SYSTEM_CALL}, {"DiskIO", ETW_FLAG_DISK_IO},
	{"DiskFileIO", ETW_FLAG_DISK_FILE_IO}, {"DiskIOInit", ETW_FLAG_DISK_IO_INIT},
	{"Dispatcher", ETW_FLAG_DISPATCHER}, {"MemoryPageFaults", ETW_FLAG_PAGE_FAULTS},
	{"Memory", ETW_FLAG_PAGE_FAULTS}, {"MemoryHardFaults", ETW_FLAG_HARD_FAULTS},
	{"VirtualAlloc", ETW_FLAG_VIRTUAL_ALLOC}, {"VAMap", ETW_FLAG_VAMAP},
	{"NetworkTCPIP", ETW_FLAG_NETWORK}, {"Registry", ETW_FLAG_REGISTRY},
	{"AdvancedLocalProcedureCalls", ETW_FLAG_ALPC}, {"SplitIO", ETW_FLAG_SPLIT_IO},
	{"Driver", ETW_FLAG_DRIVER}, {"Profile", ETW_FLAG_PROFILE}, {"FileIO", ETW_FLAG_FILE_IO},
	{"FileIOInit", ETW_FLAG_FILE_IO_INIT}, {"Default", KERNEL_DEFAULT},
	{"ThreadTime", KERNEL_THREAD_TIME}, {"Verbose", KERNEL_VERBOSE}, {"OS", KERNEL_OS},
	{"All", KERNEL_VERBOSE | ETW_FLAG_SYSTEM_CALL | KERNEL_OS}, {"None", 0},
};

/* Without --clr-events: cheaper than PerfView's default. */
#define CLR_OWN (0x1u | 0x8u | 0x10u | 0x20u | 0x4000u | 0x8000u | 0x40000000u)
/* Besides those: types, survival and movement, binder, security, threads, ... */
#define CLR_DEFAULT (CLR_OWN | 0x804F0C84u)
/* Code needs these for names, and events for stacks. */
#define CLR_ALWAYS (0x8u | 0x10u | 0x20u | 0x40000000u)
#define PMC_SAMPLE 47                        /* opcode of PerfInfo/PMCSample */
#define VERBOSE 5                            /* as AllocationTick is */

static const struct keyword clr_keywords[] = {
	{"GC", 0x1}, {"GCHandle", 0x2}, {"Binder", 0x4}, {"Loader", 0x8}, {"Jit", 0x10},
	{"NGen", 0x20}, {"StartEnumeration", 0x40}, {"StopEnumeration", 0x80}, {"Security", 0x400},
	{"AppDomainResourceManagement", 0x800}, {"JitTracing", 0x1000}, {"Interop", 0x2000},
	{"Contention", 0x4000}, {"Exception", 0x8000}, {"Threading", 0x10000},
	{"JittedMethodILToNativeMap", 0x20000}, {"OverrideAndSuppressNGenEvents", 0x40000},
	{"SupressNGen", 0x40000}, {"Type", 0x80000}, {"GCHeapDump", 0x100000},
	{"GCSampledObjectAllocationHigh", 0x200000}, {"GCHeapSurvivalAndMovement", 0x400000},
	{"GCHeapCollect", 0x800000}, {"GCHeapAndTypeNames", 0x1000000},
	{"GCSampledObjectAllocationLow", 0x2000000}, {"PerfTrack", 0x20000000},
	{"Stack", 0x40000000}, {"ThreadTransfer", 0x80000000u}, {"Debugger", 0x100000000},
	{"Monitoring", 0x200000000}, {"Codesymbols", 0x400000000}, {"Compilation", 0x1000000000},
	{"Default", CLR_DEFAULT}, {"All", UINT64_MAX}, {"None", 0},
};

static const struct keyword tpl_keywords[] = {
	{"TaskTransfer", 0x1}, {"Tasks", 0x2}, {"Parallel", 0x4}, {"AsyncCausalityOperation", 0x8},
	{"AsyncCausalityRelation", 0x10}, {"AsyncCausalitySynchronousWork", 0x20},
	{"TaskStops", 0x40}, {"TasksFlowActivityIds", 0x80}, {"AsyncMethod", 0x100},
	{"TasksSetActivityIds", 0x10000}, {"Debug", 0x20000}, {"DebugActivityId", 0x40000},
	{"Default", 0xFF}, {"All", UINT64_MAX}, {"None", 0},
};

/* ---- words ----------------------------------------------------------------------------------- */

static bool read_number(const char *text, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10);
	return !*end && !errno;
}

static int add_keyword(const struct keyword *all, size_t n, const char *option, const char *word,
		       uint64_t *bits, struct err *err)
{
	struct nearest near = {.wanted = word};
	struct buf text = {0};
	uint64_t number;
	size_t i;
	int rc;

	if (read_number(word, &number)) {
		*bits |= number;
		return 0;
	}
	for (i = 0; i < n; i++) {
		if (text_same_fold(all[i].name, word)) {
			*bits |= all[i].bits;
			return 0;
		}
		nearest_offer(&near, all[i].name);
	}
	nearest_put(&near, "'", "'", &text);
	rc = err_set(err, ERR_USAGE, "%s: there is no keyword '%s'; %s%s", option, word,
		     text.len ? "near is " : "'recorder help windows' lists them",
		     buf_text(&text));
	buf_free(&text);
	return rc;
}

/* Copy the next word of a list, cut to WORD_MAX - 1 bytes; false = there is none. */
static bool next_word(const char **text, const char *separators, char word[WORD_MAX])
{
	size_t n;

	*text += strspn(*text, separators);
	n = strcspn(*text, separators);
	snprintf(word, WORD_MAX, "%.*s", (int)(n < WORD_MAX ? n : WORD_MAX), *text);
	*text += n;
	return n > 0;
}

static int read_keywords(const struct keyword *all, size_t n, const char *option, const char *text,
			 uint64_t *bits, struct err *err)
{
	char word[WORD_MAX];
	int rc = 0;

	while (!rc && next_word(&text, ",+| ", word))
		rc = add_keyword(all, n, option, word, bits, err);
	return rc;
}

/* ---- providers ------------------------------------------------------------------------------- */

static bool same_provider(const struct etw_wanted_provider *a, const struct etw_wanted_provider *b)
{
	if (a->has_guid || b->has_guid)
		return a->has_guid && b->has_guid && guid_same(&a->guid, &b->guid);
	return text_same_fold(a->name, b->name);
}

static void identify(struct etw_wanted_provider *p)
{
	if (p->name[0] == '*')
		etw_guid_of_name(p->name + 1, &p->guid);
	else if (text_same_fold(p->name, CLR_NAME))
		p->guid = etw_clr_guid;
	else if (text_same_fold(p->name, TPL_NAME))
		p->guid = (struct etw_guid)TPL_GUID;
	else if (!etw_guid_read(p->name, &p->guid))
		return;
	p->has_guid = true;
}

/* Neither request may filter out what the other wants: different filters become none. */
static void widen(struct etw_wanted_provider *there, const struct etw_wanted_provider *p)
{
	if (there->npids != p->npids || memcmp(there->pids, p->pids, sizeof(p->pids)) != 0)
		there->npids = 0;
	if (!text_same_fold(there->programs, p->programs))
		there->programs[0] = '\0';
	if (memcmp(&there->events, &p->events, sizeof(p->events)) != 0)
		there->events.n = 0;
	if (!there->stacks)
		there->with_stacks = p->with_stacks;
	else if (p->stacks &&
		 memcmp(&there->with_stacks, &p->with_stacks, sizeof(p->with_stacks)) != 0)
		there->with_stacks.n = 0;
}

/* Add a provider, or widen the one that is there. 0 keywords mean all. */
static int add_provider(struct etw_wanted *w, struct etw_wanted_provider *p, struct err *err)
{
	uint32_t i;

	identify(p);
	for (i = 0; i < w->nproviders; i++) {
		struct etw_wanted_provider *there = &w->providers[i];

		if (!same_provider(there, p))
			continue;
		there->keywords =
			there->keywords && p->keywords ? there->keywords | p->keywords : 0;
		there->level = there->level > p->level ? there->level : p->level;
		widen(there, p);
		there->stacks |= p->stacks;
		return 0;
	}
	if (w->nproviders == ETW_WANTED_PROVIDERS_MAX)
		return err_set(err, ERR_LIMIT, "more than %u providers: a session takes no more",
			       ETW_WANTED_PROVIDERS_MAX);
	w->providers[w->nproviders++] = *p;
	return 0;
}

static int read_level(const char *text, uint8_t *level, const char *option, struct err *err)
{
	static const char *const names[] = {"always",  "critical",	"error",
					    "warning", "informational", "verbose"};
	uint64_t number;
	uint8_t i;

	if (!*text || strcmp(text, "*") == 0)
		return 0;
	if (read_number(text, &number) && number <= 255) {
		*level = (uint8_t)number;
		return 0;
	}
	for (i = 0; i < COUNT_OF(names); i++) {
		if (text_same_fold(text, names[i])) {
			*level = i;
			return 0;
		}
	}
	return err_set(err, ERR_USAGE,
		       "%s: '%s' is not a level: 1 (critical), 2 (error), 3 (warning), "
		       "4 (informational) or 5 (verbose)", option, text);
}

/* Numbers separated by blanks. */
static int read_numbers(const char *key, const char *text, uint64_t limit, uint32_t max,
			uint32_t *out, uint32_t *n, struct err *err)
{
	char word[WORD_MAX];
	uint64_t number;

	for (*n = 0; next_word(&text, " ", word); out[(*n)++] = (uint32_t)number) {
		if (*n == max)
			return err_set(err, ERR_USAGE, "--providers: %s takes %" PRIu32
				       " numbers at most", key, max);
		if (!read_number(word, &number) || number > limit)
			return err_set(err, ERR_USAGE, "--providers: %s: '%s' is not a number", key,
				       word);
	}
	return 0;
}

/* Windows wants ';' between the names instead of blanks. */
static int read_programs(struct etw_wanted_provider *p, const char *value, struct err *err)
{
	size_t n = 0, len;

	for (; *(value += strspn(value, " ")) != '\0'; value += len) {
		len = strcspn(value, " ");
		if (n + 1 + len >= sizeof(p->programs))
			return err_set(err, ERR_USAGE,
				       "--providers: @ProcessNameFilter takes %u bytes at most",
				       ETW_FILTER_NAMES_BYTES - 1);
		if (n)
			p->programs[n++] = ';';
		memcpy(p->programs + n, value, len);
		n += len;
	}
	p->programs[n] = '\0';
	return 0;
}

/* Read one key: "@StacksEnabled=true". */
static int read_key(struct etw_wanted_provider *p, const char *text, const char *spec,
		    struct err *err)
{
	static const struct {
		const char *key;
		bool of_stacks, are_left_out;
	} lists[] = {
		{"EventIDsToEnable", false, false}, {"EventIDsToDisable", false, true},
		{"EventIDStacksToEnable", true, false}, {"EventIDStacksToDisable", true, true},
	};
	const char *value = strchr(text, '=');
	char key[WORD_MAX];

	text += *text == '@';
	next_word(&text, "=", key);
	value = value ? value + 1 : "true";
	if (text_same_fold(key, "StacksEnabled")) {
		p->stacks = text_same_fold(value, "true");
		return p->stacks || text_same_fold(value, "false")
			       ? 0
			       : err_set(err, ERR_USAGE,
					 "--providers: @StacksEnabled is true or false, not '%s'",
					 value);
	}
	if (text_same_fold(key, "ProcessIDFilter"))
		return read_numbers(key, value, UINT32_MAX, ETW_FILTER_PIDS_MAX, p->pids, &p->npids,
				    err);
	if (text_same_fold(key, "ProcessNameFilter"))
		return read_programs(p, value, err);
	for (size_t i = 0; i < COUNT_OF(lists); i++) {
		struct etw_ids *ids = lists[i].of_stacks ? &p->with_stacks : &p->events;

		if (!text_same_fold(key, lists[i].key))
			continue;
		p->stacks |= lists[i].of_stacks;
		*ids = (struct etw_ids){.are_left_out = lists[i].are_left_out};
		return read_numbers(key, value, UINT16_MAX, ETW_FILTER_IDS_MAX, ids->ids, &ids->n,
				    err);
	}
	return err_set(err, ERR_USAGE,
		       "--providers: '%s': '%s' is not one of @StacksEnabled, @ProcessIDFilter, "
		       "@ProcessNameFilter, @EventIDsToEnable, @EventIDsToDisable, "
		       "@EventIDStacksToEnable, @EventIDStacksToDisable", spec, key);
}

/* Split at the first separator, where the text then ends; NULL = the text is the last part. */
static char *split(char *text, char separator)
{
	char *end = strchr(text, separator);

	if (end)
		*end++ = '\0';
	return end;
}

static int read_keys(struct etw_wanted_provider *p, char *text, const char *spec, struct err *err)
{
	char *next;
	int rc = 0;

	for (; !rc && text; text = next) {
		next = split(text, ';');
		if (*text)
			rc = read_key(p, text, spec, err);
	}
	return rc;
}

int etw_wanted_keys(struct etw_wanted_provider *p, const char *keys, const char *spec,
		    struct err *err)
{
	char *copy = text_dup(keys, SIZE_MAX);
	int rc = copy ? read_keys(p, copy, spec, err) : err_memory(err, "for --providers");

	free(copy);
	return rc;
}

int etw_wanted_kernel_keyword(const char *option, const char *word, uint64_t *flags,
			      struct err *err)
{
	return add_keyword(kernel_keywords, COUNT_OF(kernel_keywords), option, word, flags, err);
}

/* Add the kernel: "Windows Kernel", with flags, or "Windows Kernel/DiskIO/Read". */
static int add_kernel_provider(const struct etw_wanted_provider *p, const char *event,
			       struct etw_wanted *w, struct err *err)
{
	w->kernel_flags |= p->keywords ? (uint32_t)p->keywords : event ? 0 : KERNEL_DEFAULT;
	return event ? etw_kernel_event(event, &w->kernel_flags, err) : 0;
}

/* One of --providers, as it is read. */
struct named {
	struct etw_wanted_provider p;
	bool kernel;
	const char *event;                   /* of the kernel; NULL = none is named */
};

static int read_name(struct named *n, const char *part, const char *spec, struct err *err)
{
	const char *slash = strchr(part, '/');

	if (!*part || strlen(part) >= sizeof(n->p.name))
		return err_set(err, ERR_USAGE, "--providers: '%.60s' names no provider", spec);
	snprintf(n->p.name, sizeof(n->p.name), "%.*s",
		 (int)(slash ? (size_t)(slash - part) : strlen(part)), part);
	n->kernel = etw_is_kernel(n->p.name);
	n->event = n->kernel && slash ? slash + 1 : NULL;
	if (!n->kernel)
		strcpy(n->p.name, part);
	return 0;
}

static int read_mask(struct named *n, const char *part, const char *spec, struct err *err)
{
	if (!*part || strcmp(part, "*") == 0)
		return 0;
	if (n->kernel)
		return read_keywords(kernel_keywords, COUNT_OF(kernel_keywords), "--providers",
				     part, &n->p.keywords, err);
	if (!read_number(part, &n->p.keywords))
		return err_set(err, ERR_USAGE,
			       "--providers: '%s': the keywords '%s' are not a number; those of "
			       ".NET have names in --clr-events, and in --event clr:KEYWORD",
			       spec, part);
	return 0;
}

/* Read NAME:KEYWORDS:LEVEL:KEYS; a part that begins with '@' is KEYS, at any place. */
static int read_provider(char *text, struct etw_wanted *w, struct err *err)
{
	struct named n = {.p = {.level = 5}};
	char *spec = text_dup(text, SIZE_MAX), *part, *end;
	unsigned number;
	int rc = 0;

	if (!spec)
		return err_memory(err, "for --providers");
	for (part = text, number = 0; !rc && part; part = end, number++) {
		end = part[0] == '@' || number == 3 ? NULL : split(part, ':');
		if (part[0] == '@' || number == 3)
			rc = read_keys(&n.p, part, spec, err);
		else if (number == 0)
			rc = read_name(&n, part, spec, err);
		else if (number == 1)
			rc = read_mask(&n, part, spec, err);
		else
			rc = read_level(part, &n.p.level, "--providers", err);
	}
	if (n.p.keywords == UINT64_MAX)
		n.p.keywords = 0;
	w->named_stacks |= n.p.stacks;
	if (!rc && n.kernel)
		rc = add_kernel_provider(&n.p, n.event, w, err);
	else if (!rc)
		rc = add_provider(w, &n.p, err);
	free(spec);
	return rc;
}

typedef int read_one(char *text, struct etw_wanted *w, struct err *err);

static int read_list(const char *list, read_one *one, struct etw_wanted *w, struct err *err)
{
	char *copy = text_dup(list, SIZE_MAX), *text = copy, *next;
	int rc = 0;

	if (!copy)
		return err_memory(err, "for --providers");
	for (; !rc && text; text = next) {
		next = split(text, ',');
		if (*text)
			rc = one(text, w, err);
	}
	free(copy);
	return rc;
}

/* ---- --event --------------------------------------------------------------------------------- */

static int no_clr_event(const char *event, const struct nearest *near, struct err *err)
{
	struct buf text = {0};

	nearest_put(near, "'", "'", &text);
	err_set(err, ERR_USAGE,
		"--event: the .NET runtime has no known event '%.100s'%s%s; 'recorder events "
		CLR_NAME "' lists them", event, text.len ? "; the nearest are " : "",
		buf_text(&text));
	buf_free(&text);
	return ERR_USAGE;
}

/* Let only this event of .NET pass: its number, from all the versions that are known. */
static int only_event(struct etw_wanted_provider *p, const char *event, struct err *err)
{
	struct nearest near = {.wanted = event};
	const struct etw_class *classes;
	struct etw_guid guid;
	uint32_t t, i, n;

	for (t = 0; (classes = etw_class_table(t, &n, &guid)) != NULL; t++) {
		for (i = 0; i < n && guid_same(&guid, &etw_clr_guid); i++) {
			if (!event_name_is(event, classes[i].name))
				nearest_offer(&near, classes[i].name);
			else if (p->events.n < ETW_FILTER_IDS_MAX)
				p->events.ids[p->events.n++] = classes[i].key;
		}
	}
	return p->events.n ? 0 : no_clr_event(event, &near, err);
}

/* Read kernel:KEYWORD, kernel:DiskIO/Read, clr:KEYWORD or clr:KEYWORD:GC/Start. */
static int read_event(char *text, struct etw_wanted *w, struct err *err)
{
	struct etw_wanted_provider clr = {.name = CLR_NAME, .level = VERBOSE, .stacks = true};
	char *what = split(text, ':'), *event;
	uint64_t flags = 0;
	int rc;

	w->named_stacks = true;
	if (what && text_same_fold(text, "kernel") && strchr(what, '/'))
		return etw_kernel_event(what, &w->kernel_flags, err);
	if (what && text_same_fold(text, "kernel")) {
		rc = read_keywords(kernel_keywords, COUNT_OF(kernel_keywords), "--event", what,
				   &flags, err);
		w->kernel_flags |= (uint32_t)flags;
		return rc;
	}
	if (!what || !text_same_fold(text, "clr"))
		return err_set(err, ERR_USAGE,
			       "--event: '%.60s' is neither kernel:KEYWORD nor clr:KEYWORD:EVENT",
			       text);
	event = split(what, ':');
	rc = read_keywords(clr_keywords, COUNT_OF(clr_keywords), "--event", what, &clr.keywords,
			   err);
	if (!rc && event && *event)
		rc = only_event(&clr, event, err);
	return rc ? rc : add_provider(w, &clr, err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Rules on the kernel: the flags of their events, or those that they name themselves. */
static int add_kernel_needs(const struct needs *needs, struct etw_wanted *w, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < needs->nproviders; i++)
		if (etw_is_kernel(needs->providers[i].name) &&
		    needs->providers[i].keywords != UINT64_MAX)
			w->kernel_flags |= (uint32_t)needs->providers[i].keywords;
	for (i = 0; !rc && i < needs->nevents; i++)
		if (etw_is_kernel(needs->events[i].provider))
			rc = etw_kernel_event(needs->events[i].name, &w->kernel_flags, err);
	return rc;
}

static int add_needs(const struct needs *needs, struct etw_wanted *w, struct err *err)
{
	uint32_t i;
	int rc = add_kernel_needs(needs, w, err);

	for (i = 0; !rc && i < needs->nproviders; i++) {
		const struct need_provider *n = &needs->providers[i];
		struct etw_wanted_provider p = {
			.keywords = n->keywords, .level = n->level, .stacks = true};

		if (etw_is_kernel(n->name))
			continue;
		if (p.keywords == UINT64_MAX)
			p.keywords = 0;
		snprintf(p.name, sizeof(p.name), "%s", n->name);
		rc = add_provider(w, &p, err);
	}
	return rc;
}

/*
 * The CLR writes its own stacks (keyword 0x40000000); ETW's would duplicate them. Its level is
 * --clr-event-level, or what a rule needs above it.
 */
static void finish_clr(struct etw_wanted *w, const struct capture *c)
{
	uint32_t i;

	for (i = 0; i < w->nproviders; i++) {
		struct etw_wanted_provider *p = &w->providers[i];

		if (!p->has_guid || !guid_same(&p->guid, &etw_clr_guid))
			continue;
		p->stacks = false;
		if (p->keywords)
			p->keywords |= CLR_ALWAYS;
		if (!c->clr_event_level)
			p->level = VERBOSE;
		w->clr = true;
	}
}

static const char *only_providers(const struct capture *c)
{
	return c->gc_collect_only ? CLR_NAME ":1:4" : c->only_providers;
}

static int add_kernel(const struct capture *c, struct etw_wanted *w, struct err *err)
{
	uint64_t bits = 0;
	int rc = 0;

	if (c->kernel_events)
		rc = read_keywords(kernel_keywords, COUNT_OF(kernel_keywords), "--kernel-events",
				   c->kernel_events, &bits, err);
	else if (!only_providers(c))
		bits = KERNEL_OWN;
	else if (w->named_stacks)
		bits = KERNEL_ALWAYS;
	if (capture_switches(c))
		bits |= KERNEL_OWN | ETW_FLAG_CSWITCH | ETW_FLAG_DISPATCHER;
	w->kernel_flags |= (uint32_t)bits;
	if (w->kernel_flags || c->cpu_counters)
		w->kernel_flags |= KERNEL_ALWAYS;
	return rc;
}

/* The CLR's own events, and those of its tasks. own_keywords: unless options name others. */
static int add_runtime(const struct capture *c, uint64_t own_keywords, struct etw_wanted *w,
		       struct err *err)
{
	struct etw_wanted_provider clr = {.name = CLR_NAME, .level = VERBOSE};
	/* Like PerfView: stacks of what is scheduled and waited for. */
	struct etw_wanted_provider tpl = {.name = TPL_NAME, .stacks = true,
					  .with_stacks = {.ids = {7, 10, 12}, .n = 3}};
	int rc = 0;

	if (c->clr_event_level)
		rc = read_level(c->clr_event_level, &clr.level, "--clr-event-level", err);
	tpl.level = clr.level;
	if (!rc && c->clr_events)
		rc = read_keywords(clr_keywords, COUNT_OF(clr_keywords), "--clr-events",
				   c->clr_events, &clr.keywords, err);
	else
		clr.keywords = own_keywords;
	if (!rc && clr.keywords)
		rc = add_provider(w, &clr, err);
	if (!rc && c->tpl_events)
		rc = read_keywords(tpl_keywords, COUNT_OF(tpl_keywords), "--tpl-events",
				   c->tpl_events, &tpl.keywords, err);
	if (!rc && tpl.keywords)
		rc = add_provider(w, &tpl, err);
	return rc;
}

int etw_wanted_named(const struct capture *c, struct etw_wanted *w, struct err *err)
{
	int rc;

	memset(w, 0, sizeof(*w));
	rc = add_runtime(c, 0, w, err);
	if (!rc && c->providers)
		rc = read_list(c->providers, read_provider, w, err);
	if (!rc && c->only_providers)
		rc = read_list(c->only_providers, read_provider, w, err);
	if (!rc && c->events)
		rc = read_list(c->events, read_event, w, err);
	if (!rc && capture_dotnet_events(c))
		rc = read_list(capture_dotnet_events(c), read_event, w, err);
	return rc;
}

bool etw_wanted_objects(const struct etw_wanted *wanted)
{
	uint32_t i;

	for (i = 0; i < wanted->nproviders; i++) {
		const struct etw_wanted_provider *p = &wanted->providers[i];

		if (p->has_guid && guid_same(&p->guid, &etw_clr_guid))
			return !p->keywords || p->keywords & GC_OBJECTS_KEYWORD;
	}
	return false;
}

int etw_wanted_read(const struct capture *c, const struct needs *needs, struct etw_wanted *w,
		    struct err *err)
{
	const char *only = only_providers(c);
	struct etw_wanted_provider names = {.name = CLR_NAME, .keywords = CLR_ALWAYS};
	int rc;

	memset(w, 0, sizeof(*w));
	rc = add_runtime(c, only ? 0 : CLR_OWN, w, err);
	if (!rc)
		rc = add_needs(needs, w, err);
	if (!rc && c->providers)
		rc = read_list(c->providers, read_provider, w, err);
	if (!rc && only)
		rc = read_list(only, read_provider, w, err);
	if (!rc && c->events)
		rc = read_list(c->events, read_event, w, err);
	if (!rc && capture_dotnet_events(c))
		rc = read_list(capture_dotnet_events(c), read_event, w, err);
	/* Stacks need names: like PerfView, add the CLR events that name code. */
	names.level = c->clr_event_level ? 4 : VERBOSE;
	if (!rc && only && !c->clr_events && w->named_stacks)
		rc = add_provider(w, &names, err);
	if (!rc)
		rc = add_kernel(c, w, err);
	finish_clr(w, c);
	w->nstacks = etw_kernel_stacks(w->kernel_flags, w->stacks, ETW_WANTED_STACKS_MAX - 1);
	if (c->cpu_counters)
		w->stacks[w->nstacks++] = (struct etw_class_event){PERF_GUID, PMC_SAMPLE};
	return rc;
}
