#include "source/ring/bpf_call_linux.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LICENSE "Dual MIT/GPL"               /* of these programs; helpers ask for it */

int bpf_call(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

int bpf_table_new(int type, unsigned key_bytes, unsigned value_bytes, unsigned max,
		  unsigned flags)
{
	/* Before Linux 5.11 tables count as locked memory. */
	const struct rlimit room = {RLIM_INFINITY, RLIM_INFINITY};
	union bpf_attr attr;

	setrlimit(RLIMIT_MEMLOCK, &room);
	memset(&attr, 0, sizeof(attr));
	attr.map_type = (uint32_t)type;
	attr.key_size = key_bytes;
	attr.value_size = value_bytes;
	attr.max_entries = max;
	attr.map_flags = flags;
	return bpf_call(BPF_MAP_CREATE, &attr);
}

int bpf_table_ask(int command, int table, const void *key, void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)table;
	attr.key = (uint64_t)(uintptr_t)key;
	attr.value = (uint64_t)(uintptr_t)value;
	return bpf_call(command, &attr);
}

static int load(const uint64_t *insns, unsigned n, int type, uint32_t tracepoint, const char *name)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = (uint32_t)type;
	attr.insns = (uint64_t)(uintptr_t)insns;
	attr.insn_cnt = n;
	attr.license = (uint64_t)(uintptr_t)LICENSE;
	snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", name);
	if (tracepoint) {
		attr.expected_attach_type = BPF_TRACE_RAW_TP;
		attr.attach_btf_id = tracepoint;
	}
	return bpf_call(BPF_PROG_LOAD, &attr);
}

int bpf_program_load(const uint64_t *insns, unsigned n, int type, const char *name)
{
	return load(insns, n, type, 0, name);
}

int bpf_program_load_typed(const uint64_t *insns, unsigned n, uint32_t tracepoint, const char *name)
{
	return load(insns, n, BPF_PROG_TYPE_TRACING, tracepoint, name);
}

int bpf_program_attach(int program, const char *tracepoint)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uint64_t)(uintptr_t)tracepoint;
	attr.raw_tracepoint.prog_fd = (uint32_t)program;
	return bpf_call(BPF_RAW_TRACEPOINT_OPEN, &attr);
}
