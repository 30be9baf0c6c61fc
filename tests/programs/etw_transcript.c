/*
 * A transcript of stacks as records of a live session: etw_transcript OUT <LINES. Its lines:
 *
 *	process PID NAME             it runs already
 *	start PID PARENT NAME        it starts now
 *	image PID BASE NAME FILE     NAME below \SystemRoot, '/' between; FILE's header is read
 *	samples N PID [ADDRESS...]   so many samples, the leaf first; addresses and bases are hex
 *	calls N PID [ADDRESS...]     so many ends of system calls
 */
#include "base/bytes.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/etw_record_file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define TICKS_A_RECORD 1000            /* 0.1 ms */
#define STACK_GUID "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3"

static FILE *out;
static struct record_file_head head = {RECORD_FILE_MAGIC, 0, 0, 10000000};
static int64_t now = 30000000;           /* 3 s: recording has begun by then */

static void fail(const char *what)
{
	fprintf(stderr, "etw_transcript: %s\n", what);
	exit(1);
}

static void write_record(struct etw_record r, int64_t ticks, uint32_t pid, bool ticks_inside)
{
	struct record_file_record to = {
		.ticks = ticks, .pid = pid, .tid = pid + 4, .header = (uint8_t)r.header,
		.pointer_bytes = r.pointer_bytes, .version = (uint8_t)r.version,
		.opcode = r.opcode, .ticks_inside = ticks_inside,
		.payload_bytes = (uint16_t)r.payload_bytes,
	};

	memcpy(to.guid, r.guid.bytes, 16);
	if (fwrite(&to, sizeof(to), 1, out) != 1 ||
	    fwrite(r.payload, 1, r.payload_bytes, out) != r.payload_bytes)
		fail("cannot write");
	head.nrecords++;
}

static void process(uint8_t opcode, uint32_t pid, uint32_t parent, const char *name)
{
	const uint32_t ids[] = {pid, parent, 2, 3};  /* session, exit code */
	struct etw_bytes b = {.n = 0};
	uint32_t i;

	etw_int(&b, 0, 8);
	for (i = 0; i < 4; i++)
		etw_int(&b, ids[i], 4);
	etw_int(&b, 0, 8);
	etw_int(&b, 0, 8);                   /* flags, no SID */
	etw_text8(&b, name);
	etw_text16(&b, name);
	write_record(etw_classic(ETW_PROCESS_GUID, opcode, 4, &b), now, pid, false);
	b.n = 0;
	etw_int(&b, pid, 4);
	etw_int(&b, pid + 4, 4);
	for (i = 0; i < 7; i++)
		etw_int(&b, 0, 8);
	etw_int(&b, 0, 8);                   /* service, priorities */
	etw_text16(&b, "");
	write_record(etw_classic("3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c", opcode, 3, &b), now, pid,
		     false);
}

static void image(uint32_t pid, uint64_t base, const char *name, const char *path)
{
	struct etw_bytes b = {.n = 0};
	uint8_t bytes[1024] = {0};
	FILE *file = fopen(path, "rb");
	char full[300];
	uint64_t pe;
	int n;

	if (!file || fread(bytes, 1, sizeof(bytes), file) != sizeof(bytes))
		fail(path);
	fclose(file);
	pe = le32(bytes + 0x3c);
	if (pe > sizeof(bytes) - 0x60 || memcmp(bytes + pe, "PE\0", 4))
		fail("no program");
	etw_int(&b, base, 8);
	etw_int(&b, le32(bytes + pe + 0x50), 8);
	etw_int(&b, pid, 4);
	etw_int(&b, le32(bytes + pe + 0x58), 4);
	etw_int(&b, le32(bytes + pe + 8), 4);
	etw_int(&b, 0, 4);                   /* signature */
	etw_int(&b, base, 8);
	etw_int(&b, 0, 8);
	etw_int(&b, 0, 8);
	n = snprintf(full, sizeof(full), "\\SystemRoot\\%s", name);
	while (n--)
		full[n] = full[n] == '/' ? '\\' : full[n];
	etw_text16(&b, full);
	write_record(etw_classic(ETW_IMAGE_GUID, 3, 3, &b), now, pid, false);
}

static void stacks(unsigned n, uint32_t pid, const char *addresses, bool calls)
{
	struct etw_bytes b, stack = {.n = 16};
	uint64_t leaf = strtoull(addresses, NULL, 16);
	char *end;

	while (strtoull(addresses, &end, 16), end != addresses) {
		etw_int(&stack, strtoull(addresses, NULL, 16), 8);
		addresses = end;
	}
	while (n--) {
		now += TICKS_A_RECORD;
		b.n = 0;
		etw_int(&b, calls ? 0 : leaf, calls ? 4 : 8);
		if (!calls) {
			etw_int(&b, pid + 4, 4);
			etw_int(&b, 1, 4);
		}
		write_record(etw_classic(ETW_PERF_INFO_GUID, calls ? 52 : 46, 2, &b), now, pid,
			     false);
		memcpy(stack.at, &now, 8);
		memcpy(stack.at + 8, &pid, 4);
		memcpy(stack.at + 12, &(uint32_t){pid + 4}, 4);
		write_record(etw_classic(STACK_GUID, 32, 2, &stack), now + 1, pid, true);
	}
}

int main(int argc, char **argv)
{
	char line[4000], name[100], path[1000];
	unsigned pid, parent, n;
	uint64_t base;
	int at;

	if (argc != 2 || !(out = fopen(argv[1], "wb")))
		fail("etw_transcript OUT <LINES");
	fwrite(&head, sizeof(head), 1, out);
	while (fgets(line, sizeof(line), stdin))
		if (sscanf(line, "process %u %99s", &pid, name) == 2)
			process(3, pid, 1, name);
		else if (sscanf(line, "start %u %u %99s", &pid, &parent, name) == 3)
			process(1, pid, parent, name);
		else if (sscanf(line, "image %u %" SCNx64 " %99s %999s", &pid, &base, name,
				path) == 4)
			image(pid, base, name, path);
		else if (sscanf(line, "%99s %u %u%n", name, &n, &pid, &at) == 3)
			stacks(n, pid, line + at, *name == 'c');
		else
			fail(line);
	rewind(out);
	if (fwrite(&head, sizeof(head), 1, out) != 1 || fclose(out))
		fail("cannot write");
	return 0;
}
