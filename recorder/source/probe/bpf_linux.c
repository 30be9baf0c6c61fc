#include "source/probe/bpf_linux.h"

#include "base/array.h"
#include "source/host/proc_pid_linux.h"
#include "source/ring/bpf_call_linux.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECENT_MAX 8192u                     /* processes */
#define SETTLED_NS 1000000000ULL             /* a program that has no arguments by then has none */

struct bpf_filters {
	struct bpf_tables tables;
	int on_exec, on_exit;                /* attached programs */
	struct process_filter filters[BPF_PROCESS_FILTERS_MAX];
	unsigned nfilters;
	uint64_t missed;                     /* hits of processes that a rule means */
	struct bpf_code code;
};

/* ---- tables and programs --------------------------------------------------------------------- */

static int make_table(int type, unsigned value_bytes, unsigned max, unsigned flags)
{
	return bpf_table_new(type, 8, value_bytes, max, flags);
}

static int load(const struct bpf_code *code, int type, const char *name)
{
	return bpf_program_load(code->insns, code->n, type, name);
}

/* Load a program and attach it; the attachment keeps it. */
static int attach(const struct bpf_code *code, const char *tracepoint, const char *name)
{
	int program = load(code, BPF_PROG_TYPE_RAW_TRACEPOINT, name), fd, os_error;

	if (program < 0)
		return -1;
	fd = bpf_program_attach(program, tracepoint);
	os_error = errno;
	close(program);
	errno = os_error;
	return fd;
}

static int refused(const char *what, struct err *err)
{
	if (errno == EPERM || errno == EACCES)
		return err_set(err, ERR_ACCESS, "this user may not %s: run as root, or give the "
			       "program CAP_BPF and CAP_PERFMON", what);
	return err_os(err, "the kernel cannot %s", what);
}

/* The kernel's programs see pids of the first namespace. */
static int make_tables(struct bpf_tables *t, struct err *err)
{
	t->known = make_table(BPF_MAP_TYPE_HASH, sizeof(struct bpf_known), BPF_KNOWN_MAX,
			      BPF_F_NO_PREALLOC);
	if (t->known >= 0)
		t->execs = make_table(BPF_MAP_TYPE_LRU_HASH, 8, RECENT_MAX, 0);
	if (t->execs >= 0)
		t->news = make_table(BPF_MAP_TYPE_LRU_HASH, 8, RECENT_MAX, 0);
	return t->news >= 0 ? 0
			    : refused("make tables of processes for filters of probes (BPF)", err);
}

static int watch_programs(struct bpf_filters *f, struct err *err)
{
	bpf_code_exec(&f->tables, &f->code);
	f->on_exec = attach(&f->code, "sched_process_exec", "recorder_exec");
	bpf_code_exit(&f->tables, &f->code);
	if (f->on_exec >= 0)
		f->on_exit = attach(&f->code, "sched_process_exit", "recorder_exit");
	return f->on_exit >= 0 ? 0 : refused("watch processes for filters of probes (BPF)", err);
}

int bpf_filters_new(struct bpf_filters **out, struct err *err)
{
	struct bpf_filters *f;
	int rc;

	if (!proc_sees_machine())
		return err_set(err, ERR_UNSUPPORTED, "the recorder runs in a pid namespace of its "
			       "own, where the kernel's filters (BPF) would see other pids");
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_memory(err, "for filters of probes");
	f->on_exec = f->on_exit = -1;
	f->tables = (struct bpf_tables){-1, -1, -1};
	rc = make_tables(&f->tables, err);
	if (!rc)
		rc = watch_programs(f, err);
	if (rc) {
		bpf_filters_free(f);
		return rc;
	}
	*out = f;
	return 0;
}

void bpf_filters_free(struct bpf_filters *f)
{
	size_t i;

	if (!f)
		return;
	int *const all[] = {&f->on_exec, &f->on_exit, &f->tables.known,
			    &f->tables.execs, &f->tables.news};

	for (i = 0; i < COUNT_OF(all); i++)
		if (*all[i] >= 0)
			close(*all[i]);
	free(f);
}

/* ---- wants ----------------------------------------------------------------------------------- */

/* The bit of a process filter; the same filter has one. 0 = too many. */
static uint64_t bit_of(struct bpf_filters *f, const struct process_filter *processes)
{
	unsigned i;

	for (i = 0; i < f->nfilters; i++)
		if (memcmp(&f->filters[i], processes, sizeof(*processes)) == 0)
			return (uint64_t)1 << i;
	if (f->nfilters == BPF_PROCESS_FILTERS_MAX)
		return 0;
	f->filters[f->nfilters++] = *processes;
	return (uint64_t)1 << i;
}

bool bpf_filters_want(struct bpf_filters *f, const struct process_filter *processes,
		      const char *conditions, struct bpf_want *out)
{
	unsigned i;

	*out = (struct bpf_want){.conditions = conditions};
	/* Where a process lives is known late, and may change: who reads the events decides. */
	if (!processes->n || process_filter_has_homes(processes))
		return *conditions;
	if (process_filter_has_names(processes)) {
		out->left_out_bit = bit_of(f, processes);
		for (i = 0; i < f->nfilters && out->left_out_bit >> i != 1; i++)
			;
		out->names = &f->filters[i];
		return out->left_out_bit;
	}
	for (i = 0; i < processes->n; i++)
		out->pids[out->npids++] = processes->items[i].pid;
	return true;
}

int bpf_filters_load(const struct bpf_filters *f, const struct uprobe *probe, unsigned place,
		     const struct bpf_want *wants, unsigned nwants, struct err *err)
{
	struct bpf_code *code = malloc(sizeof(*code));
	int fd = -1;

	err->text[0] = '\0';
	if (!code) {
		err_memory(err, "for a filter");
		return -1;
	}
	if (bpf_code_filter(probe, place, wants, nwants, &f->tables, code)) {
		fd = load(code, BPF_PROG_TYPE_KPROBE, "recorder_filter");
		if (fd < 0)
			refused("load a filter (BPF)", err);
	}
	free(code);
	return fd;
}

bool bpf_filters_pass(const struct bpf_filters *f, const struct bpf_want *want,
		      const struct process *process)
{
	unsigned i;

	for (i = 0; i < want->npids; i++)
		if (want->pids[i] == process->pid)
			return true;
	for (i = 0; i < f->nfilters && want->left_out_bit >> i != 1; i++)
		;
	return !want->npids && (i == f->nfilters || process_filter_pass(&f->filters[i], process));
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Whether all its names are known that ever will be. */
static bool is_settled(const struct process *process, uint64_t time_ns)
{
	return atomic_load(&process->cmdline) ||
	       (!process->exec && time_ns > process->start_ns + SETTLED_NS);
}

/* It is known now; count what it lost while it was not. */
static void note_missed(struct bpf_filters *f, uint64_t pid)
{
	uint64_t hits;

	if (bpf_table_ask(BPF_MAP_LOOKUP_ELEM, f->tables.news, &pid, &hits))
		return;
	bpf_table_ask(BPF_MAP_DELETE_ELEM, f->tables.news, &pid, NULL);
	if (hits > BPF_NEWS_MAX)
		f->missed += hits - BPF_NEWS_MAX;
}

bool bpf_filters_look(struct bpf_filters *f, const struct process *process, uint64_t time_ns)
{
	const uint64_t all = ((uint64_t)1 << f->nfilters) - 1;
	struct bpf_known value = {.time_ns = time_ns};
	uint64_t key = process->pid;
	unsigned i;

	if (!f->nfilters || !is_settled(process, time_ns))
		return false;
	for (i = 0; i < f->nfilters; i++)
		if (!process_filter_pass(&f->filters[i], process))
			value.left_out_bits |= (uint64_t)1 << i;
	/* A full table only costs time. */
	bpf_table_ask(BPF_MAP_UPDATE_ELEM, f->tables.known, &key, &value);
	if (value.left_out_bits != all)
		note_missed(f, key);
	return true;
}

uint64_t bpf_filters_missed(struct bpf_filters *f)
{
	uint64_t missed = f->missed;

	f->missed = 0;
	return missed;
}
