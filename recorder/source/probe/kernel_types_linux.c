#include "source/probe/kernel_types_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "source/probe/btf.h"

static bool find(const struct btf *b, struct kernel_types *out)
{
	struct btf_type types[] = {
		{.kind = BTF_TYPEDEF, .name = "btf_trace_sched_switch"},
		{.kind = BTF_TYPEDEF, .name = "btf_trace_sched_wakeup"},
		{.kind = BTF_STRUCT, .name = "task_struct"},
		{.kind = BTF_FUNCTION, .name = "bpf_rdonly_cast"},
		{.kind = BTF_STRUCT, .name = "pt_regs"},
	};
	uint32_t pid, tgid;

	btf_find(b, types, COUNT_OF(types));
	if (!types[0].id || !types[1].id || !btf_member(b, &types[2], "pid", &pid) ||
	    !btf_member(b, &types[2], "tgid", &tgid) || pid > INT16_MAX || tgid > INT16_MAX)
		return false;
	*out = (struct kernel_types){.on_switch = types[0].id, .on_wakeup = types[1].id,
				     .pid = (int16_t)pid, .tgid = (int16_t)tgid};
	if (types[3].id && types[4].id) {
		out->cast = types[3].id;
		out->regs = types[4].id;
	}
	return true;
}

bool kernel_types_load(struct kernel_types *out)
{
	struct buf bytes = {0};
	struct btf b;
	bool ok = os_load("/sys/kernel/btf/vmlinux", BTF_MAX_BYTES, &bytes, NULL) == 0 &&
		  btf_open((const uint8_t *)bytes.data, bytes.len, &b) && find(&b, out);

	buf_free(&bytes);
	return ok;
}
