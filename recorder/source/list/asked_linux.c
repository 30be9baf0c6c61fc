#include "source/list/asked.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/text.h"
#include "source/dotnet/providers_linux.h"
#include "source/etw/wanted.h"
#include "source/probe/cpu_counter_linux.h"
#include "source/probe/throw_linux.h"
#include "source/probe/tracepoint_linux.h"
#include "source/probe/uprobe_linux.h"
#include "source/runtime/pause_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Tracepoints that mean what PerfView's keywords of the kernel mean; those of a flag. */
static const struct {
	uint32_t flag;
	const char *events;                  /* separated by blanks; NULL: there are none */
} kernel_events[] = {
	{ETW_FLAG_PROCESS,
	 "sched:sched_process_fork sched:sched_process_exec sched:sched_process_exit"},
	{ETW_FLAG_THREAD, "task:task_newtask sched:sched_process_exit"},
	{ETW_FLAG_CSWITCH, "sched:sched_switch"},
	{ETW_FLAG_DISPATCHER, "sched:sched_waking"},
	{ETW_FLAG_DISK_IO, "block:block_rq_complete"},
	{ETW_FLAG_DISK_IO_INIT, "block:block_rq_issue"},
	{ETW_FLAG_SPLIT_IO, "block:block_split"},
	{ETW_FLAG_FILE_IO,
	 "syscalls:sys_exit_openat syscalls:sys_exit_read syscalls:sys_exit_write "
	 "syscalls:sys_exit_close"},
	{ETW_FLAG_FILE_IO_INIT,
	 "syscalls:sys_enter_openat syscalls:sys_enter_read syscalls:sys_enter_write "
	 "syscalls:sys_enter_close syscalls:sys_enter_unlinkat"},
	{ETW_FLAG_PAGE_FAULTS, "exceptions:page_fault_user"},
	{ETW_FLAG_HARD_FAULTS, "filemap:mm_filemap_add_to_page_cache"},
	{ETW_FLAG_VIRTUAL_ALLOC,
	 "syscalls:sys_enter_mmap syscalls:sys_enter_munmap syscalls:sys_enter_brk "
	 "syscalls:sys_enter_mremap syscalls:sys_enter_mprotect syscalls:sys_enter_madvise "
	 "syscalls:sys_exit_mmap "
	 "syscalls:sys_exit_munmap syscalls:sys_exit_brk syscalls:sys_exit_mremap "
	 "syscalls:sys_exit_mprotect"},
	{ETW_FLAG_VAMAP, "syscalls:sys_enter_mmap syscalls:sys_enter_munmap"},
	{ETW_FLAG_NETWORK, "sock:inet_sock_set_state sock:sock_send_length sock:sock_recv_length"},
	{ETW_FLAG_SYSTEM_CALL, "raw_syscalls:sys_enter"},
	{ETW_FLAG_INTERRUPT, "irq:irq_handler_entry"},
	{ETW_FLAG_DPC, "irq:softirq_entry"},
	{ETW_FLAG_REGISTRY, NULL},
	{ETW_FLAG_ALPC, NULL},
	{ETW_FLAG_DRIVER, NULL},
};

/* Of Linux, these are recorded anyway, or there is no such thing. */
#define KERNEL_OTHERS                                                                  \
	(ETW_FLAG_PROFILE | ETW_FLAG_IMAGE | ETW_FLAG_PROCESS_COUNTERS | ETW_FLAG_DISK_FILE_IO)

struct asking {
	struct needs *needs;
	struct buf dotnet;                   /* the parts that name .NET providers */
};

/* ---- keys ------------------------------------------------------------------------------------ */

/* Names and pids of the keys, with ';' between. */
static int put_processes(const struct etw_wanted_provider *p, char out[EVENT_PROCESSES_MAX],
			 struct err *err)
{
	size_t used = (size_t)snprintf(out, EVENT_PROCESSES_MAX, "%s", p->programs);
	uint32_t i;

	for (i = 0; i < p->npids && used < EVENT_PROCESSES_MAX; i++)
		used += (size_t)snprintf(out + used, EVENT_PROCESSES_MAX - used, "%s%" PRIu32,
					 used ? ";" : "", p->pids[i]);
	return used < EVENT_PROCESSES_MAX
		       ? 0
		       : err_set(err, ERR_LIMIT, "--providers: the processes of one provider take "
				 "over %u bytes", EVENT_PROCESSES_MAX - 1);
}

static int add_event(struct asking *a, const char *provider, const char *name,
		     const struct etw_wanted_provider *keys, struct err *err)
{
	struct need_event e = {.asked = true, .stack = keys->stacks};
	int rc;

	if (keys->events.n || keys->with_stacks.n)
		return err_set(err, ERR_USAGE,
			       "--providers: events of %s have no numbers: name them, as in "
			       "%s:EVENT, instead of @EventIDsToEnable and the like",
			       provider, provider);
	if (strlen(name) >= sizeof(e.name))
		return err_set(err, ERR_LIMIT, "--providers: '%.60s...' is too long", name);
	strcpy(e.provider, provider);
	strcpy(e.name, name);
	rc = put_processes(keys, e.processes, err);
	if (!rc)
		rc = needs_filtered_provider(a->needs, provider, UINT64_MAX, 5, err);
	return rc ? rc : needs_event(a->needs, &e, err);
}

/* ---- Linux' own ------------------------------------------------------------------------------ */

/* name: a part without its keys, "sched:sched_process_exec" or "uprobe:/bin/a:f". */
static bool is_linux(const char *name, char provider[PROVIDER_NAME_MAX])
{
	size_t n = strcspn(name, ":/");

	if (!n || n >= PROVIDER_NAME_MAX)
		return false;
	snprintf(provider, PROVIDER_NAME_MAX, "%.*s", (int)n, name);
	return tracepoint_provider(provider) || uprobe_provider(provider);
}

static int add_linux(struct asking *a, const char *name, const char *provider,
		     const struct etw_wanted_provider *keys, struct err *err)
{
	const char *event = name + strlen(provider);

	event += *event == ':' || (*event == '/' && !uprobe_provider(provider));
	if (throw_provider(provider))
		return err_set(err, ERR_USAGE,
			       "--providers: '%.100s': use uprobe:/path:__cxa_throw", name);
	if (uprobe_provider(provider) && !*event)
		return err_set(err, ERR_USAGE,
			       "--providers: '%.100s' names no function: %s:/path:%s", name,
			       provider, strcmp(provider, "usdt") == 0 ? "provider:name"
									: "function");
	return add_event(a, provider, *event ? event : "*", keys, err);
}

static int add_flags(struct asking *a, uint64_t flags, const struct etw_wanted_provider *keys,
		     struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < COUNT_OF(kernel_events); i++) {
		const char *at = kernel_events[i].events;
		char name[100], provider[PROVIDER_NAME_MAX];

		if (!(flags & kernel_events[i].flag))
			continue;
		if (!at)
			return err_set(err, ERR_UNSUPPORTED,
				       "Linux has no registry, no local procedure calls and no "
				       "driver events as Windows has; use its own tracepoints "
				       "('recorder events' lists them)");
		for (; !rc && sscanf(at, "%99s", name) == 1; at += strspn(at, " ")) {
			at += strlen(name);
			if (is_linux(name, provider))
				rc = add_linux(a, name, provider, keys, err);
		}
	}
	return rc;
}

/* Cut off ":@KEY=VALUE;..." and read it. */
static int take_keys(char *part, struct etw_wanted_provider *keys, struct err *err)
{
	char *at = strstr(part, ":@");

	*keys = (struct etw_wanted_provider){.level = 5};
	if (!at)
		return 0;
	*at = '\0';
	return etw_wanted_keys(keys, at + 1, part, err);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static int add_provider(struct asking *a, char *part, struct err *err)
{
	struct etw_wanted_provider keys;
	char provider[PROVIDER_NAME_MAX];
	int rc;

	if (!is_linux(part, provider)) {
		buf_printf(&a->dotnet, "%s%s", a->dotnet.len ? "," : "", part);
		return 0;
	}
	rc = take_keys(part, &keys, err);
	return rc ? rc : add_linux(a, part, provider, &keys, err);
}

/* "kernel:KEYWORD" or "kernel:sched:sched_switch"; others are .NET's. */
static int add_kernel_event(struct asking *a, const char *what, struct err *err)
{
	const struct etw_wanted_provider keys = {.stacks = true};
	char provider[PROVIDER_NAME_MAX];
	uint64_t flags = 0;
	int rc;

	if (strpbrk(what, ":/") && is_linux(what, provider))
		return add_linux(a, what, provider, &keys, err);
	rc = etw_wanted_kernel_keyword("--event", what, &flags, err);
	if (rc && tracepoint_provider(what))
		return add_linux(a, what, what, &keys, err);
	if (!rc && !(flags & ~(uint64_t)KERNEL_OTHERS) && !(flags & ETW_FLAG_PROFILE))
		return err_set(err, ERR_UNSUPPORTED,
			       "--event: no tracepoint of Linux means what kernel:%.60s means on "
			       "Windows; syscalls:sys_enter_mmap is where a file is mapped", what);
	return rc ? rc : add_flags(a, flags, &keys, err);
}

static int each_part(const char *list, int (*one)(struct asking *a, char *part, struct err *err),
		     struct asking *a, struct err *err)
{
	char *copy = list ? text_dup(list, SIZE_MAX) : NULL, *part = copy, *next;
	int rc = list && !copy ? err_memory(err, "for --providers") : 0;

	for (; !rc && part; part = next) {
		next = strchr(part, ',');
		if (next)
			*next++ = '\0';
		if (*part)
			rc = one(a, part, err);
	}
	free(copy);
	return rc;
}

/* ---- .NET ------------------------------------------------------------------------------------ */

/* "5 7" or "!3"; "*" = all. */
static void put_ids(const struct etw_ids *ids, char out[EVENT_NAME_MAX])
{
	size_t used = (size_t)snprintf(out, EVENT_NAME_MAX, "%s", ids->n ? "" : "*");
	uint32_t i;

	for (i = 0; i < ids->n && used < EVENT_NAME_MAX; i++)
		used += (size_t)snprintf(out + used, EVENT_NAME_MAX - used, "%s%" PRIu32,
					 i ? " " : ids->are_left_out ? "!" : "", ids->ids[i]);
}

/* A recording may wait for programs that have it, unlike a rule, which would never fire. */
static void note_asked(struct needs *needs, const char *name)
{
	uint32_t i;

	for (i = 0; i < needs->nproviders; i++)
		if (text_same_fold(needs->providers[i].name, name))
			needs->providers[i].asked = true;
}

/* EventPipe sends each event with its stack, so which of them have one is not asked. */
static int add_dotnet(struct asking *a, const struct etw_wanted_provider *p, struct err *err)
{
	uint64_t keywords = p->keywords ? p->keywords : UINT64_MAX;
	struct need_event e = {.asked = true, .stack = p->stacks};
	int rc;

	if (!p->events.n && !p->npids && !p->programs[0]) {
		rc = needs_provider(a->needs, p->name, keywords, p->level, err);
		note_asked(a->needs, p->name);
		return rc;
	}
	strcpy(e.provider, p->name);
	put_ids(&p->events, e.name);
	rc = put_processes(p, e.processes, err);
	if (!rc)
		rc = needs_filtered_provider(a->needs, p->name, keywords, p->level, err);
	note_asked(a->needs, p->name);
	return rc ? rc : needs_event(a->needs, &e, err);
}

static int add_all_dotnet(struct asking *a, const struct capture *capture, struct err *err)
{
	const struct etw_wanted_provider none = {.stacks = false};
	struct etw_wanted *w = malloc(sizeof(*w));
	struct capture c = *capture;
	uint32_t i;
	int rc;

	c.providers = a->dotnet.len ? buf_text(&a->dotnet) : NULL;
	c.only_providers = c.events = NULL;
	rc = w && !a->dotnet.failed ? etw_wanted_named(&c, w, err)
				    : err_memory(err, "for --providers");
	if (!rc && w->kernel_flags & ~(uint32_t)KERNEL_OTHERS)
		rc = add_flags(a, w->kernel_flags, &none, err);
	for (i = 0; !rc && i < w->nproviders; i++)
		rc = add_dotnet(a, &w->providers[i], err);
	free(w);
	return rc;
}

/* "clr:KEYWORD:EVENT": read alone, because its filter would widen that of other parts. */
static int add_event_part(struct asking *a, char *part, struct err *err)
{
	struct capture c = {.events = part};
	struct etw_wanted *w;
	uint32_t i;
	int rc;

	if (strncasecmp(part, "kernel:", 7) == 0)
		return add_kernel_event(a, part + 7, err);
	w = malloc(sizeof(*w));
	rc = w ? etw_wanted_named(&c, w, err) : err_memory(err, "for --event");
	for (i = 0; !rc && i < w->nproviders; i++)
		rc = add_dotnet(a, &w->providers[i], err);
	free(w);
	return rc;
}

/* "cache-misses@100000", or as PerfView, "TotalIssues:10000" */
static int add_counter(struct asking *a, char *part, struct err *err)
{
	struct need_event e = {.provider = CPU_COUNTER_PROVIDER, .asked = true, .stack = true};

	snprintf(e.name, sizeof(e.name), "%s", part);
	return needs_event(a->needs, &e, err);
}

int asked_needs(const struct capture *capture, struct needs *needs, struct err *err)
{
	struct asking a = {.needs = needs};
	int rc = each_part(capture->providers, add_provider, &a, err);

	if (!rc)
		rc = each_part(capture->only_providers, add_provider, &a, err);
	if (!rc)
		rc = each_part(capture->events, add_event_part, &a, err);
	if (!rc)
		rc = each_part(capture_dotnet_events(capture), add_event_part, &a, err);
	if (!rc)
		rc = each_part(capture->cpu_counters, add_counter, &a, err);
	if (!rc)
		rc = add_all_dotnet(&a, capture, err);
	buf_free(&a.dotnet);
	return rc;
}

bool asked_unknown(const struct needs *needs, struct buf *out)
{
	uint32_t i;

	for (i = 0; i < needs->nproviders; i++)
		if (needs->providers[i].asked &&
		    dotnet_asked_unknown(needs->providers[i].name, out))
			return true;
	return false;
}

const struct need_event *asked_of_stacks(const struct needs *needs)
{
	uint32_t i;

	for (i = 0; i < needs->nevents; i++) {
		const char *provider = needs->events[i].provider;

		/* Exceptions are also .NET's, which another source delivers. */
		if (!throw_provider(provider) && pause_provider(provider) == PAUSE_PROVIDERS &&
		    (tracepoint_provider(provider) || uprobe_provider(provider)))
			return &needs->events[i];
	}
	return NULL;
}
