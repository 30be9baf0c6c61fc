/*
 * Record an image of a JVM for tests (tests/support/jvm_image.h):
 *
 *	jvm_image_linux PID FILE
 *
 * Stops the JVM's threads one after the other until one of them runs Java code, and prints the
 * names of that one's stack.
 */
#include "base/bytes.h"
#include "base/deflate.h"
#include "managed/hotspot/hotspot.h"
#include "source/host/proc_pid_linux.h"
#include "tests/support/jvm_image.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

struct recording {
	uint32_t pid, nranges;
	struct buf ranges;
};

static size_t read_and_keep(void *ctx, uint64_t address, void *to, size_t n)
{
	struct recording *r = ctx;
	size_t got = proc_pid_memory(r->pid, address, to, n);

	if (got) {
		buf_put_le(&r->ranges, address, 8);
		buf_put_le(&r->ranges, got, 4);
		buf_put(&r->ranges, to, got);
		r->nranges++;
	}
	return got;
}

static uint64_t find_libjvm(uint32_t pid)
{
	char path[64], line[4600];
	unsigned long base = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "r");
	while (maps && !base && fgets(line, sizeof(line), maps))
		if (strstr(line, "/libjvm.so"))
			base = strtoul(line, NULL, 16);
	if (maps)
		fclose(maps);
	return base;
}

static void take_registers(const struct user_regs_struct *u, uint64_t regs[17])
{
	const uint64_t values[17] = {
		[EH_RAX] = u->rax, [EH_RDX] = u->rdx, [EH_RCX] = u->rcx, [EH_RBX] = u->rbx,
		[EH_RSI] = u->rsi, [EH_RDI] = u->rdi, [EH_RBP] = u->rbp, [EH_RSP] = u->rsp,
		[EH_R8] = u->r8, [EH_R9] = u->r9, [EH_R10] = u->r10, [EH_R11] = u->r11,
		[EH_R12] = u->r12, [EH_R13] = u->r13, [EH_R14] = u->r14, [EH_R15] = u->r15,
		[EH_RIP] = u->rip};

	memcpy(regs, values, sizeof(values));
}

static int write_image(const char *path, uint64_t base, const uint64_t regs[17],
		       const struct recording *r)
{
	struct buf raw = {0}, packed = {0};
	struct deflater *d = deflater_new(false);
	FILE *file = fopen(path, "w");
	unsigned i;

	buf_put_le(&raw, base, 8);
	for (i = 0; i < 17; i++)
		buf_put_le(&raw, regs[i], 8);
	buf_put_le(&raw, r->nranges, 4);
	buf_put(&raw, r->ranges.data, r->ranges.len);
	buf_put_le(&packed, raw.len, 4);
	deflater_start(d);
	deflater_put(d, raw.data, raw.len, &packed);
	deflater_end(d, &packed);
	if (!file || fwrite(packed.data, 1, packed.len, file) != packed.len || fclose(file))
		return 1;
	deflater_free(d);
	buf_free(&raw);
	buf_free(&packed);
	return 0;
}

/* One thread; false = it does not run Java code, or its stack is short. */
static bool record(uint32_t pid, uint32_t tid, uint64_t base, const char *path)
{
	struct recording r = {.pid = pid};
	struct managed_memory memory = {.read = read_and_keep, .ctx = &r};
	struct user_regs_struct user;
	struct buf names = {0};
	uint64_t regs[17];
	bool good = false;
	unsigned lines = 0;
	const char *at;

	if (ptrace(PTRACE_ATTACH, tid, 0, 0) || waitpid((int)tid, NULL, __WALL) < 0)
		return false;
	if (ptrace(PTRACE_GETREGS, tid, 0, &user) == 0) {
		take_registers(&user, regs);
		jvm_image_walk(&memory, base, regs, NULL, NULL, &names);
		for (at = buf_text(&names); (at = strchr(at, '\n')) != NULL; at++)
			lines++;
		good = lines > 20 && strstr(buf_text(&names), "[call stub]\nend: on");
	}
	ptrace(PTRACE_DETACH, tid, 0, 0);
	if (good) {
		fputs(buf_text(&names), stdout);
		good = write_image(path, base, regs, &r) == 0;
	}
	buf_free(&names);
	buf_free(&r.ranges);
	return good;
}

int main(int argc, char **argv)
{
	uint32_t pid = argc == 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	uint64_t base = pid ? find_libjvm(pid) : 0;
	char tasks[64];
	int tries;

	if (!base) {
		fputs("usage: jvm_image_linux PID FILE, the PID of a JVM\n", stderr);
		return 2;
	}
	snprintf(tasks, sizeof(tasks), "/proc/%u/task", pid);
	for (tries = 0; tries < 200; tries++) {
		DIR *dir = opendir(tasks);
		const struct dirent *entry;
		bool done = false;

		while (dir && !done && (entry = readdir(dir)) != NULL)
			if (entry->d_name[0] != '.')
				done = record(pid, (uint32_t)strtoul(entry->d_name, NULL, 10), base,
					      argv[2]);
		if (dir)
			closedir(dir);
		if (done)
			return 0;
	}
	fputs("no thread was found running Java code below 20 calls\n", stderr);
	return 1;
}
