#include "source/etw/wanted.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/text.h"
#include "source/etw/guids.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct etw_guid etw_clr_guid = CLR_GUID;
const struct etw_guid etw_clr_rundown_guid = CLR_RUNDOWN_GUID;

#define CLR_NAME "Microsoft-Windows-DotNETRuntime"
#define KERNEL_NAME "Windows Kernel"         /* in rules: flags, not a provider */
#define WORD_MAX 64u

struct keyword {
	const char *name;
	uint64_t bits;
};

#define PROCESS 0x1u
#define THREAD 0x2u
#define IMAGE 0x4u
#define CSWITCH 0x10u
#define DISK_IO 0x100u
#define DISK_FILE_IO 0x200u
#define DISK_IO_INIT 0x400u
#define DISPATCHER 0x800u
#define HARD_FAULTS 0x2000u
#define VIRTUAL_ALLOC 0x4000u
#define NETWORK 0x10000u
#define REGISTRY 0x20000u
#define FILE_IO_INIT 0x4000000u

/* Stacks need these for their process, thread and names. */
#define KERNEL_ALWAYS (PROCESS | THREAD | IMAGE)
/* The default samples CPUs. Rules on other kernel events need --kernel-events. */
#define KERNEL_DEFAULT (KERNEL_ALWAYS | ETW_FLAG_PROFILE)

static const struct keyword kernel_keywords[] = {
	{"Process", PROCESS}, {"Thread", THREAD}, {"ImageLoad", IMAGE}, {"ProcessCounters", 0x8},
	{"ContextSwitch", CSWITCH}, {"DeferedProcedureCalls", 0x20}, {"Interrupt", 0x40},
	{"SystemCall", 0x80}, {"DiskIO", DISK_IO}, {"DiskFileIO", DISK_FILE_IO},
	{"DiskIOInit", DISK_IO_INIT}, {"Dispatcher", DISPATCHER}, {"MemoryPageFaults", 0x1000},
	{"MemoryHardFaults", HARD_FAULTS}, {"VirtualAlloc", VIRTUAL_ALLOC}, {"VAMap", 0x8000},
	{"NetworkTCPIP", NETWORK}, {"Registry", REGISTRY},
	{"AdvancedLocalProcedureCalls", 0x100000}, {"SplitIO", 0x200000}, {"Driver", 0x800000},
	{"Profile", ETW_FLAG_PROFILE}, {"FileIO", 0x2000000}, {"FileIOInit", FILE_IO_INIT},
	{"ThreadTime", CSWITCH | DISPATCHER},
	{"Default", KERNEL_DEFAULT | DISK_IO | DISK_FILE_IO | DISK_IO_INIT | HARD_FAULTS | NETWORK},
	{"None", 0},
};

#define CLR_DEFAULT (0x1u | 0x8u | 0x10u | 0x20u | 0x4000u | 0x8000u | 0x40000000u)
/* Code needs these for names, and events for stacks. */
#define CLR_ALWAYS (0x8u | 0x10u | 0x20u | 0x40000000u)
#define CLR_LEVEL 5                          /* MethodLoadVerbose and AllocationTick are verbose */

static const struct keyword clr_keywords[] = {
	{"GC", 0x1}, {"GCHandle", 0x2}, {"Binder", 0x4}, {"Loader", 0x8}, {"Jit", 0x10},
	{"NGen", 0x20}, {"StartEnumeration", 0x40}, {"StopEnumeration", 0x80}, {"Security", 0x400},
	{"AppDomainResourceManagement", 0x800}, {"JitTracing", 0x1000}, {"Interop", 0x2000},
	{"Contention", 0x4000}, {"Exception", 0x8000}, {"Threading", 0x10000},
	{"JittedMethodILToNativeMap", 0x20000}, {"OverrideAndSuppressNGenEvents", 0x40000},
	{"Type", 0x80000}, {"GCHeapDump", 0x100000}, {"GCSampledObjectAllocationHigh", 0x200000},
	{"GCHeapSurvivalAndMovement", 0x400000}, {"GCHeapCollect", 0x800000},
	{"GCHeapAndTypeNames", 0x1000000}, {"GCSampledObjectAllocationLow", 0x2000000},
	{"PerfTrack", 0x20000000}, {"Stack", 0x40000000}, {"ThreadTransfer", 0x80000000u},
	{"Debugger", 0x100000000}, {"Monitoring", 0x200000000}, {"Codesymbols", 0x400000000},
	{"Compilation", 0x1000000000}, {"Default", CLR_DEFAULT}, {"All", UINT64_MAX}, {"None", 0},
};

/* The events with stacks of each flag. */
static const struct {
	uint32_t flag;
	struct etw_class_event event;
} stack_events[] = {
	{ETW_FLAG_PROFILE, {PERF_GUID, 46}}, {CSWITCH, {THREAD_GUID, 36}},
	{DISPATCHER, {THREAD_GUID, 50}}, {PROCESS, {PROCESS_GUID, 1}}, {THREAD, {THREAD_GUID, 1}},
	{IMAGE, {IMAGE_GUID, 10}}, {DISK_IO_INIT, {DISK_GUID, 12}}, {DISK_IO_INIT, {DISK_GUID, 13}},
	{DISK_IO_INIT, {DISK_GUID, 15}}, {HARD_FAULTS, {MEMORY_GUID, 32}},
	{VIRTUAL_ALLOC, {MEMORY_GUID, 98}}, {VIRTUAL_ALLOC, {MEMORY_GUID, 99}},
	{FILE_IO_INIT, {FILE_GUID, 64}}, {FILE_IO_INIT, {FILE_GUID, 67}},
	{FILE_IO_INIT, {FILE_GUID, 68}}, {REGISTRY, {REGISTRY_GUID, 10}},
	{REGISTRY, {REGISTRY_GUID, 11}}, {REGISTRY, {REGISTRY_GUID, 14}}, {NETWORK, {TCP_GUID, 10}},
	{NETWORK, {TCP_GUID, 11}}, {NETWORK, {TCP_GUID, 12}},
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
	rc = err_set(err, ERR_USAGE, "%s: there is no keyword '%s'%s%s", option, word,
		     text.len ? "; near is " : "", buf_text(&text));
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

	while (!rc && next_word(&text, ", ", word))
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

static int read_level(const char *text, uint8_t *level, const char *spec, struct err *err)
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
		       "--providers: '%s': '%s' is not a level: 1 (critical) to 5 (verbose)",
		       spec, text);
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

/* Read NAME:KEYWORDS:LEVEL:KEYS; a part that begins with '@' is KEYS, at any place. */
static int read_provider(char *text, struct etw_wanted *w, struct err *err)
{
	struct etw_wanted_provider p = {.level = 5};
	char *spec = text_dup(text, SIZE_MAX), *part, *end;
	unsigned number;
	int rc = 0;

	if (!spec)
		return err_memory(err, "for --providers");
	for (part = text, number = 0; !rc && part; part = end, number++) {
		end = part[0] == '@' || number == 3 ? NULL : split(part, ':');
		if (part[0] == '@' || number == 3)
			rc = read_keys(&p, part, spec, err);
		else if (number == 0 && (!*part || strlen(part) >= sizeof(p.name)))
			rc = err_set(err, ERR_USAGE, "--providers: '%.60s' names no provider",
				     spec);
		else if (number == 0)
			snprintf(p.name, sizeof(p.name), "%s", part);
		else if (number == 1 && *part && strcmp(part, "*") &&
			 !read_number(part, &p.keywords))
			rc = err_set(err, ERR_USAGE,
				     "--providers: '%s': the keywords '%s' are not a number", spec,
				     part);
		else if (number == 2)
			rc = read_level(part, &p.level, spec, err);
	}
	if (p.keywords == UINT64_MAX)
		p.keywords = 0;
	w->named_stacks |= p.stacks;
	if (!rc)
		rc = add_provider(w, &p, err);
	free(spec);
	return rc;
}

static int read_providers(const char *list, struct etw_wanted *w, struct err *err)
{
	char *copy = text_dup(list, SIZE_MAX), *text = copy, *next;
	int rc = 0;

	if (!copy)
		return err_memory(err, "for --providers");
	for (; !rc && text; text = next) {
		next = split(text, ',');
		if (*text)
			rc = read_provider(text, w, err);
	}
	free(copy);
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int add_needs(const struct needs *needs, struct etw_wanted *w, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < needs->nproviders; i++) {
		const struct need_provider *n = &needs->providers[i];
		struct etw_wanted_provider p = {
			.keywords = n->keywords, .level = n->level, .stacks = true};

		if (text_same_fold(n->name, KERNEL_NAME)) {
			w->kernel_flags |= KERNEL_DEFAULT;
			continue;
		}
		if (p.keywords == UINT64_MAX)
			p.keywords = 0;
		snprintf(p.name, sizeof(p.name), "%s", n->name);
		rc = add_provider(w, &p, err);
	}
	return rc;
}

/* The CLR writes its own stacks (keyword 0x40000000); ETW's would duplicate them. */
static void finish_clr(struct etw_wanted *w)
{
	uint32_t i;

	for (i = 0; i < w->nproviders; i++) {
		struct etw_wanted_provider *p = &w->providers[i];

		if (!p->has_guid || !guid_same(&p->guid, &etw_clr_guid))
			continue;
		p->stacks = false;
		if (p->keywords)
			p->keywords |= CLR_ALWAYS;
		p->level = CLR_LEVEL;
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
		bits = KERNEL_DEFAULT;
	else if (w->named_stacks)
		bits = KERNEL_ALWAYS;
	if (capture_switches(c))
		bits |= KERNEL_DEFAULT | CSWITCH | DISPATCHER;
	w->kernel_flags |= (uint32_t)bits;
	if (w->kernel_flags)
		w->kernel_flags |= KERNEL_ALWAYS;
	return rc;
}

int etw_wanted_read(const struct capture *c, const struct needs *needs, struct etw_wanted *w,
		    struct err *err)
{
	const char *only = only_providers(c);
	struct etw_wanted_provider clr = {.name = CLR_NAME, .level = CLR_LEVEL};
	size_t i;
	int rc = 0;

	memset(w, 0, sizeof(*w));
	if (c->clr_events)
		rc = read_keywords(clr_keywords, COUNT_OF(clr_keywords), "--clr-events",
				   c->clr_events, &clr.keywords, err);
	else if (!only)
		clr.keywords = CLR_DEFAULT;
	if (!rc && clr.keywords)
		rc = add_provider(w, &clr, err);
	if (!rc)
		rc = add_needs(needs, w, err);
	if (!rc && c->providers)
		rc = read_providers(c->providers, w, err);
	if (!rc && only)
		rc = read_providers(only, w, err);
	/* Stacks need names: like PerfView, add the CLR events that name code. */
	clr.keywords = CLR_ALWAYS;
	if (!rc && only && !c->clr_events && w->named_stacks)
		rc = add_provider(w, &clr, err);
	if (!rc)
		rc = add_kernel(c, w, err);
	finish_clr(w);
	for (i = 0; !rc && i < COUNT_OF(stack_events); i++)
		if (w->kernel_flags & stack_events[i].flag)
			w->stacks[w->nstacks++] = stack_events[i].event;
	return rc;
}
