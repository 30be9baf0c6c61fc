/*
 * A trace of a program that grows, by hand: heap_etl FILE kernel|heap|all|dotnet.
 *
 * Process 50, shop.exe, in 10 s: seventy.dll keeps 700 KB of the heap and 7 MB of VirtualAlloc,
 * thirty.dll 300 KB and 3 MB, in 100 steps each; churn.dll takes 5,000 bytes and 1 MB in each step
 * and gives both back, and keep.dll has 2 MB of heap at the end. Each step has a demand-zero fault
 * of seventy.dll, and one in ten a hard fault. No trace of a real heap was at hand; layouts are
 * those of MOF class HeapTrace.
 *
 * dotnet: the same program with objects of .NET, 100 KB a tick. seventy.dll allocates seven,
 * thirty.dll three, churn.dll five, and keep.dll a large one of 2 MB. A collection of generation 0
 * moves the ten and leaves the five; one of generation 1 finds the seven where they are and leaves
 * the three. Layouts are those of ClrEtwAll.man.
 */
#include "tests/support/etl_writer.h"
#include "tests/support/etw_bytes.h"

#include <stdio.h>
#include <string.h>

#define U(n) (0x7F0000000000u + (n))
#define STEPS 100
#define STEP_TICKS 1000000                   /* 100 ms */
#define MB 1048576u

enum { MEMORY = 2, PROCESS = 3, THREAD = 5, HEAP = 16, IMAGE = 20, STACK = 24 };
enum module { SHOP, SEVENTY, THIRTY, CHURN, KEEP, NTDLL, MODULES };

static struct etl_writer writer;
static bool kernel, heaps;

static void put(unsigned group, uint8_t opcode, uint16_t version, int64_t ticks,
		const struct etw_bytes *b)
{
	struct etw_record r = {.ticks = ticks, .pid = 50, .tid = 7, .opcode = opcode,
			       .version = version, .payload = b->at, .payload_bytes = b->n};

	etl_write_kernel(&writer, &r, group);
}

static void stack(int64_t of, enum module who)
{
	const uint64_t frames[] = {U(who * 0x10000u + 0x10), U(SHOP * 0x10000u + 0x20),
				   U(NTDLL * 0x10000u + 0x30)};
	struct etw_bytes b = {.n = 0};
	unsigned i;

	etw_int(&b, (uint64_t)of, 8);
	etw_int(&b, 50, 4);
	etw_int(&b, 7, 4);
	for (i = 0; i < 3; i++)
		etw_int(&b, frames[i], 8);
	put(STACK, 32, 2, of + 1, &b);
}

static void begin(void)
{
	static const char *const names[] = {"shop.exe", "seventy.dll", "thirty.dll", "churn.dll",
					    "keep.dll", "ntdll.dll"};
	struct etw_bytes b = {.n = 0};
	char path[60];
	unsigned i, k;

	etw_int(&b, 0, 8);
	etw_int(&b, 50, 4);
	etw_int(&b, 1, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, 259, 4);
	etw_int(&b, 0, 8);
	etw_int(&b, 0, 8);
	etw_text8(&b, "shop.exe");
	etw_text16(&b, "shop");
	put(PROCESS, 3, 4, 10, &b);
	b.n = 0;
	etw_int(&b, 50, 4);
	etw_int(&b, 7, 4);
	etw_int(&b, 0, 8);
	put(THREAD, 3, 3, 20, &b);
	for (i = 0; i < MODULES; i++) {
		b.n = 0;
		etw_int(&b, U(i * 0x10000u), 8);
		etw_int(&b, 0x10000, 8);
		etw_int(&b, 50, 4);
		for (k = 0; k < 9; k++)
			etw_int(&b, 0, 4);
		snprintf(path, sizeof(path), "\\Device\\HarddiskVolume1\\shop\\%s", names[i]);
		etw_text16(&b, path);
		put(IMAGE, 3, 3, 30 + i, &b);
	}
}

static void heap_event(uint8_t opcode, int64_t ticks, uint64_t first, uint64_t second)
{
	struct etw_bytes b = {.n = 0};

	if (!heaps)
		return;
	etw_int(&b, opcode == 35 ? first : 0xA0000, 8);
	if (opcode != 35)
		etw_int(&b, first, 8);
	if (opcode == 33)
		etw_int(&b, second, 8);
	if (opcode != 35)
		etw_int(&b, 2, 4);
	put(HEAP, opcode, 2, ticks, &b);
}

static void allocate(int64_t ticks, enum module who, uint64_t bytes, uint64_t address)
{
	heap_event(33, ticks, bytes, address);
	if (heaps)
		stack(ticks, who);
}

static void virtual(uint8_t opcode, int64_t ticks, uint64_t at, uint64_t bytes, enum module who)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, at, 8);
	etw_int(&b, bytes, 8);
	etw_int(&b, 50, 4);
	etw_int(&b, opcode == 98 ? 0x3000 : 0x8000, 4);      /* RESERVE and COMMIT; RELEASE */
	put(MEMORY, opcode, 2, ticks, &b);
	stack(ticks, who);
}

static void faults(int64_t ticks, bool hard)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, U(0x5000000), 8);
	etw_int(&b, U(SEVENTY * 0x10000u + 0x10), 8);
	put(MEMORY, 11, 2, ticks, &b);
	stack(ticks, SEVENTY);
	if (!hard)
		return;
	b.n = 0;
	etw_int(&b, (uint64_t)ticks, 8);
	etw_int(&b, 4096, 8);
	etw_int(&b, U(0x6000000), 8);
	etw_int(&b, 0, 8);
	etw_int(&b, 7, 4);
	etw_int(&b, 16384, 4);
	put(MEMORY, 32, 2, ticks + 10, &b);
	stack(ticks + 10, SHOP);
}

static void step(unsigned i)
{
	int64_t t = (int64_t)(i + 1) * STEP_TICKS;

	allocate(t, SEVENTY, 7168, 0x100000 + i * 0x10000u);
	allocate(t + 100, THIRTY, 3072, 0x104000 + i * 0x10000u);
	allocate(t + 200, CHURN, 5000, 0x108000);
	heap_event(36, t + 300, 0x108000, 0);
	if (!kernel)
		return;
	virtual(98, t + 400, 0x10000000u + i * 0x100000u, 7 * MB / STEPS, SEVENTY);
	virtual(98, t + 500, 0x40000000u + i * 0x100000u, 3 * MB / STEPS, THIRTY);
	virtual(98, t + 600, 0x80000000u, MB, CHURN);
	virtual(99, t + 700, 0x80000000u, MB, CHURN);
	faults(t + 800, i % 10 == 0);
}

static void clr(uint16_t id, uint16_t version, int64_t ticks, const struct etw_bytes *b)
{
	struct etw_record r = etw_manifest(ETW_RUNTIME_GUID, id, version, b);

	r.ticks = ticks;
	r.pid = 50;
	r.tid = 7;
	etl_write_event(&writer, &r);
}

static void object(int64_t ticks, enum module who, const char *type, uint64_t address,
		   uint64_t bytes)
{
	const uint64_t frames[] = {U(who * 0x10000u + 0x10), U(SHOP * 0x10000u + 0x20),
				   U(NTDLL * 0x10000u + 0x30)};
	struct etw_bytes b = {.n = 0};
	unsigned i;

	etw_int(&b, bytes, 4);
	etw_int(&b, who == KEEP, 4);                         /* large */
	etw_int(&b, 1, 2);
	etw_int(&b, bytes, 8);
	etw_int(&b, 0x7000 + who, 8);
	etw_text16(&b, type);
	etw_int(&b, 0, 4);
	etw_int(&b, address, 8);
	clr(10, 3, ticks, &b);
	b.n = 0;
	etw_int(&b, 1, 4);                                   /* ClrStack/Walk */
	etw_int(&b, 3, 4);
	for (i = 0; i < 3; i++)
		etw_int(&b, frames[i], 8);
	clr(82, 0, ticks + 1, &b);
}

/* Everything [from, from + bytes) is of this generation. */
static void generation(int64_t ticks, uint8_t number, uint64_t from, uint64_t bytes)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, number, 1);
	etw_int(&b, from, 8);
	etw_int(&b, bytes, 8);
	etw_int(&b, bytes, 8);
	etw_int(&b, 1, 2);
	clr(23, 0, ticks, &b);
}

/* What is at `from` lives, and is at `to`. */
static void survives(int64_t ticks, uint64_t from, uint64_t to, uint64_t bytes)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 0, 4);
	etw_int(&b, 1, 4);
	etw_int(&b, 1, 2);
	etw_int(&b, from, 8);
	if (from != to)
		etw_int(&b, to, 8);
	etw_int(&b, bytes, 8);
	clr(from == to ? 21 : 22, 0, ticks, &b);
}

static void collection(int64_t ticks, uint32_t count, uint32_t of, bool starts)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, count, 4);
	etw_int(&b, of, 4);
	if (starts) {
		etw_int(&b, 0, 4);                           /* Reason: small objects */
		etw_int(&b, 0, 4);                           /* Type: nothing beside it */
	}
	etw_int(&b, 1, 2);
	clr(starts ? 1 : 2, 1, ticks, &b);
}

static void objects(void)
{
	static const enum module whose[15] = {SEVENTY, CHURN, SEVENTY, CHURN, SEVENTY, CHURN,
					      SEVENTY, CHURN, SEVENTY, CHURN, SEVENTY, SEVENTY,
					      THIRTY, THIRTY, THIRTY};
	static const char *const types[MODULES] = {[SEVENTY] = "Shop.Cart", [THIRTY] = "Shop.Row",
						   [CHURN] = "System.Byte[]"};
	uint64_t to = 0x500000;
	int64_t t = STEP_TICKS;
	unsigned i;

	object(t, KEEP, "System.Int64[]", 0x900000, 2 * MB);
	for (i = 0; i < 15; i++)
		object(t += STEP_TICKS, whose[i], types[whose[i]], 0x100000 + i * 0x1000u, 102400);
	collection(t += STEP_TICKS, 1, 0, true);
	generation(t + 10, 0, 0x100000, 0x10000);
	generation(t + 20, 3, 0x900000, 2 * MB);
	for (i = 0; i < 15; i++) {
		if (whose[i] == CHURN)
			continue;
		survives(t + 30 + i, 0x100000 + i * 0x1000u, to, 0x800);
		to += 0x800;
	}
	collection(t + 100, 1, 0, false);
	collection(t += STEP_TICKS, 2, 1, true);
	generation(t + 10, 1, 0x500000, 0x5000);
	survives(t + 30, 0x500000, 0x500000, 7 * 0x800);
	collection(t + 100, 2, 1, false);
}

int main(int argc, char **argv)
{
	FILE *out;
	unsigned i;

	if (argc != 3)
		return 2;
	kernel = strcmp(argv[2], "heap") != 0;
	heaps = strcmp(argv[2], "kernel") != 0;
	etl_writer_begin(&writer, &(struct etl_session){0});
	if (kernel)
		begin();
	if (strcmp(argv[2], "dotnet") == 0) {
		objects();
	} else {
		for (i = 0; i < STEPS; i++)
			step(i);
		allocate((STEPS + 1) * STEP_TICKS, KEEP, 2 * MB, 0x10800000);
		heap_event(35, (STEPS + 2) * STEP_TICKS, 0xA0001, 0);        /* not this heap */
	}
	etl_writer_end(&writer);
	out = fopen(argv[1], "wb");
	if (!out || fwrite(writer.out.data, 1, writer.out.len, out) != writer.out.len ||
	    fclose(out))
		return 1;
	etl_writer_free(&writer);
	return 0;
}
