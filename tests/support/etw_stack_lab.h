/*
 * A script of ETW records with their stacks, put by hand into etw_stacks, and what comes out of the
 * line: for tests/unit/etl/etw_stacks.c, tests/unit/etw/stacks_keys.c. Records are added in order,
 * each with room of its own for its bytes.
 */
#pragma once

#include "source/etw/stacks.h"
#include "tests/support/etw_bytes.h"

#define STACK_GUID "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3"
#define DISK_GUID "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c"
#define THREAD_GUID "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c"
#define PRIVATE_GUID "763fd754-7086-4dfe-95eb-c01a46faf4ca"
#define IMAGE_ID_GUID "b3e675d7-2554-4f18-830b-2762732560de"
#define USER_PART_GUID "b675ec37-bdb6-4648-bc92-f3fdc74d3ca2"
#define OTHER_GUID "11111111-2222-3333-4444-555555555555"

#define K(n) (0xFFFFF80000000000u + (n))     /* kernel addresses */
#define U(n) (0x7F0000000000u + (n))         /* user addresses */

enum { SCRIPT = 64, GIVEN = 8 };

/* Records to put; each has room of its own for its bytes. */
struct script {
	struct etw_record record[SCRIPT];
	struct etw_bytes bytes[SCRIPT];
	uint32_t n;
	/* so many records of no interest stand behind that one */
	uint32_t filler_after, nfiller;
};

/* What left the line, by number of the record in the script. */
struct result {
	struct {
		uint64_t addresses[GIVEN];
		uint32_t n, tid;
		enum etw_stack_state state;
		bool from_runtime;
	} of[SCRIPT];
	uint32_t n;
	struct etw_stacks_count count;
};

extern struct script script;
extern struct result result;

/* A test's setup: both empty. */
int begin(void **state);

struct etw_bytes *next_bytes(void);
/* Adds it, not before the last one; returns its number. */
uint32_t add(struct etw_record record, int64_t ticks, uint16_t cpu);
uint32_t sample(int64_t ticks, uint32_t tid, uint16_t cpu);
uint32_t event_of(const char *guid, int64_t ticks, uint32_t pid, uint32_t tid);
uint32_t event(int64_t ticks, uint32_t pid, uint32_t tid);
/* StackWalk 32; addresses end with 0. */
void stack(int64_t of_ticks, uint32_t pid, uint32_t tid, const uint64_t *addresses);
#define STACK(ticks, pid, tid, ...) stack(ticks, pid, tid, (const uint64_t[]){__VA_ARGS__, 0})
/* StackWalk 37 (kernel) and 38 (user). */
void key(uint8_t opcode, int64_t of_ticks, uint32_t pid, uint32_t tid, uint64_t number);
/* StackWalk 35 (delete) and 36 (rundown). */
void define(uint8_t opcode, int64_t at_ticks, uint64_t number, const uint64_t *addresses);
#define DEFINE(opcode, ticks, number, ...) \
	define(opcode, ticks, number, (const uint64_t[]){__VA_ARGS__, 0})
/* A stack by the CLR. */
void runtime_stack(const char *guid, int64_t ticks, uint32_t tid, uint64_t address);
/* Give the last record an extended item: a match id, then addresses or a key. */
void item(uint16_t type, uint64_t match, const uint64_t *values);
#define ITEM(type, match, ...) item(type, match, (const uint64_t[]){__VA_ARGS__, 0})
void take(struct etw_stacks *s);
/* As a file is read: twice. */
void run_file(void);
struct etw_stacks *run_live(void);
void stack_is(uint32_t number, const uint64_t *addresses);
#define STACK_IS(number, ...) stack_is(number, (const uint64_t[]){__VA_ARGS__, 0})
