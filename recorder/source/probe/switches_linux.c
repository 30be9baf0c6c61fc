/* Rings are laid out as perf's: perf_event_open(2), "MMAP layout". */
#include "source/probe/switches_linux.h"

#include "base/array.h"
#include "base/bytes.h"
#include "source/host/proc_pid_linux.h"
#include "source/probe/bpf_emit_private.h"
#include "source/ring/perf_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096                            /* of x86-64 */
#define DATA (1 << 20)                       /* bytes of records */
#define RECORD 64                            /* bytes, so that none wraps */
#define ID (-8)                              /* on the program's stack: the CPU, */
#define KEY (-16)                            /* of a ring, of a known stack, */
#define NUMBER (-24)                         /* of the stack that repeats; 0 = none, */
#define WORD (-32)                           /* of a stack: where it is, */
#define BASE (-40)                           /* and where the window begins */
#define KNOWN_MAX 8192u                      /* stacks; one takes the place of another */
#define REPEATS 64                           /* one in so many has its stack taken all the same, */
#define TAKE_NS (10 * (int32_t)NS_PER_MS)    /* but not sooner after the last one of that stack */
#define STATES 0xff                          /* of a task; without TASK_REPORT_MAX */

/* At the start of the first page, where perf has nothing that the reader needs. */
struct control {
	uint64_t enabled;
	uint64_t left;                       /* switches until the next one that has a stack */
	uint64_t lost;                       /* records, not told yet */
	uint64_t own;                        /* where the program's own stack is */
};

struct switches {
	int rings, stacks, wakes;            /* tables; rings: of tables */
	int known;                           /* -1 = not here, or: */
	struct switch_stack *stacks_known;   /* KNOWN_MAX of them, mapped: bpf(2) for one would
					        keep programs from running meanwhile */
	int every;                           /* of one number: switches to a stack, less one */
	int programs[2], attached[2];        /* attached: events at the tracepoints */
	uint64_t missed;                     /* that were told */
};

/* ---- the program ----------------------------------------------------------------------------- */

#define WINDOW 384                           /* bytes read at once to compare words */
#define PIECE 128                            /* less than what is above all frames: pt_regs */

/* Where the records are, in perf's first page. */
enum {
	HEAD = offsetof(struct perf_event_mmap_page, data_head),
	TAIL = offsetof(struct perf_event_mmap_page, data_tail),
	ENABLED = offsetof(struct control, enabled),
	LEFT = offsetof(struct control, left),
	LOST = offsetof(struct control, lost),
	OWN = offsetof(struct control, own),
	TAKEN = PAGE / 2,                    /* what a stack that is taken has as raw data: */
	TAKEN_STATE = TAKEN, TAKEN_KERNEL = TAKEN + 8, TAKEN_BYTES = 8 + 12 * PIECE,
	READ = PAGE - WINDOW,                /* the window, behind that */
};

/* Of struct pt_regs of x86-64. */
enum { REGS_BP = 32, REGS_DI = 112, REGS_IP = 128, REGS_SP = 152 };

/* What a record has at which byte: a body of 8 bytes, then perf's trailer at the end. */
enum { AT_BODY = 8, AT_LOST = 16, AT_PID = 32, AT_TIME = 40, AT_CPU = 48, AT_ID = 56 };

static uint64_t header(unsigned type, unsigned misc)
{
	return type | (uint64_t)misc << 32 | (uint64_t)RECORD << 48;
}

static void store(struct bpf_code *c, uint8_t base, int16_t off, uint8_t from)
{
	emit(c, BPF_STX | BPF_MEM | BPF_DW, base, from, off, 0);
}

static void store_zero(struct bpf_code *c, uint8_t base, int16_t off)
{
	emit(c, BPF_ST | BPF_MEM | BPF_DW, base, 0, off, 0);
}

/* A field of the tracepoint, whose record is at r6. */
static void load_field(struct bpf_code *c, uint8_t to, const struct trace_field *field)
{
	uint8_t size = field->size == 8 ? BPF_DW : field->size == 4 ? BPF_W : BPF_H;

	emit(c, BPF_LDX | BPF_MEM | size, to, BPF_REG_6, (int16_t)field->offset, 0);
}

/* Write bytes of the ring's first page to the event of this CPU in a table. */
static void output(struct bpf_code *c, int table, int16_t from, int32_t nbytes)
{
	move(c, BPF_REG_1, BPF_REG_6);
	set_wide(c, BPF_REG_2, BPF_PSEUDO_MAP_FD, (uint32_t)table);
	emit(c, BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, -1);
	move(c, BPF_REG_4, BPF_REG_7);
	alu(c, BPF_ADD, BPF_REG_4, from);
	set(c, BPF_REG_5, nbytes);
	call(c, BPF_FUNC_perf_event_output);
}

/* r6 = the tracepoint's record; r7 = the CPU's ring; r8 = pid and tid of the current thread */
static void begin(struct bpf_code *c, const struct switches *s, struct label *end)
{
	move(c, BPF_REG_6, BPF_REG_1);
	call(c, BPF_FUNC_get_smp_processor_id);
	store(c, BPF_REG_10, ID, BPF_REG_0);
	look_up(c, s->rings, ID);
	jump(c, end, BPF_JEQ | BPF_K, BPF_REG_0, 0, 0);
	store_zero(c, BPF_REG_10, KEY);
	move(c, BPF_REG_1, BPF_REG_0);
	move(c, BPF_REG_2, BPF_REG_10);
	alu(c, BPF_ADD, BPF_REG_2, KEY);
	call(c, BPF_FUNC_map_lookup_elem);
	jump(c, end, BPF_JEQ | BPF_K, BPF_REG_0, 0, 0);
	move(c, BPF_REG_7, BPF_REG_0);
	load(c, BPF_REG_1, BPF_REG_7, ENABLED);
	jump(c, end, BPF_JEQ | BPF_K, BPF_REG_1, 0, 0);
	call(c, BPF_FUNC_get_current_pid_tgid);
	move(c, BPF_REG_8, BPF_REG_0);
	alu(c, BPF_LSH, BPF_REG_8, 32);
	alu(c, BPF_RSH, BPF_REG_0, 32);
	emit(c, BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_8, BPF_REG_0, 0, 0);
}

/* r5 = where the next record goes; r1 = the head */
static void place(struct bpf_code *c)
{
	move(c, BPF_REG_5, BPF_REG_1);
	alu(c, BPF_AND, BPF_REG_5, DATA - RECORD);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_5, BPF_REG_7, 0, 0);
}

/* Of a record at r5 now; r9 = its header, r0 = the time. */
static void finish_record(struct bpf_code *c)
{
	store(c, BPF_REG_5, PAGE, BPF_REG_9);
	store(c, BPF_REG_5, PAGE + AT_TIME, BPF_REG_0);
	load(c, BPF_REG_3, BPF_REG_10, ID);
	store(c, BPF_REG_5, PAGE + AT_CPU, BPF_REG_3);
	store_zero(c, BPF_REG_5, PAGE + AT_ID);
	alu(c, BPF_ADD, BPF_REG_1, RECORD);
}

/* The record of r9, a header, with the number of another thread that a field has. */
static void write_record(struct bpf_code *c, const struct switches *s,
			 const struct trace_field *other, struct label *end)
{
	struct label full = {.n = 0}, complete = {.n = 0};

	call(c, BPF_FUNC_ktime_get_ns);
	load(c, BPF_REG_1, BPF_REG_7, HEAD);
	load(c, BPF_REG_2, BPF_REG_7, TAIL);
	move(c, BPF_REG_3, BPF_REG_1);
	emit(c, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_3, BPF_REG_2, 0, 0);
	load(c, BPF_REG_4, BPF_REG_7, LOST);
	jump(c, &full, BPF_JGT | BPF_K, BPF_REG_3, 0, DATA - 2 * RECORD);
	jump(c, &complete, BPF_JEQ | BPF_K, BPF_REG_4, 0, 0);
	place(c);
	store_zero(c, BPF_REG_5, PAGE + AT_BODY);
	store(c, BPF_REG_5, PAGE + AT_LOST, BPF_REG_4);
	store_zero(c, BPF_REG_5, PAGE + AT_PID);
	store_zero(c, BPF_REG_7, LOST);
	move(c, BPF_REG_2, BPF_REG_9);
	set_wide(c, BPF_REG_9, 0, header(PERF_RECORD_LOST, 0));
	finish_record(c);
	move(c, BPF_REG_9, BPF_REG_2);
	here(c, &complete);
	place(c);
	load_field(c, BPF_REG_3, other);
	alu(c, BPF_LSH, BPF_REG_3, 32);
	load(c, BPF_REG_2, BPF_REG_10, NUMBER);
	emit(c, BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_3, BPF_REG_2, 0, 0);
	store(c, BPF_REG_5, PAGE + AT_BODY, BPF_REG_3);
	store(c, BPF_REG_5, PAGE + AT_PID, BPF_REG_8);
	finish_record(c);
	store(c, BPF_REG_7, HEAD, BPF_REG_1);
	alu(c, BPF_AND, BPF_REG_1, DATA / 4 - 1);
	jump(c, end, BPF_JNE | BPF_K, BPF_REG_1, 0, 0);
	output(c, s->wakes, TAKEN, 4);
	jump(c, end, BPF_JA, 0, 0, 0);
	here(c, &full);
	alu(c, BPF_ADD, BPF_REG_4, 1);
	store(c, BPF_REG_7, LOST, BPF_REG_4);
	here(c, end);
	leave(c, 1);                         /* 0 would end the event for everyone's tracing */
}

#define KNOWN(field) ((int16_t)offsetof(struct switch_stack, field))

/* Go on if a register of the thread, whose struct pt_regs is at r9, is that of the stack at r0. */
static void compare(struct bpf_code *c, int16_t reg, int16_t known, struct label *differs)
{
	load(c, BPF_REG_1, BPF_REG_9, reg);
	load(c, BPF_REG_2, BPF_REG_0, known);
	jump(c, differs, BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 0);
}

/*
 * Go on if the word at the address of r3 has the value that is known at r9. A helper's call costs
 * more than what it reads, so neighbours are read with it: not beyond the page, for the next one
 * may be none.
 */
static void compare_word(struct bpf_code *c, int helper, int16_t known, struct label *differs)
{
	struct label within = {.n = 0}, read = {.n = 0};

	move(c, BPF_REG_1, BPF_REG_3);
	load(c, BPF_REG_2, BPF_REG_10, BASE);
	emit(c, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	jump(c, &within, BPF_JLE | BPF_K, BPF_REG_1, 0, WINDOW - 8);
	store(c, BPF_REG_10, WORD, BPF_REG_3);
	move(c, BPF_REG_1, BPF_REG_3);
	alu(c, BPF_AND, BPF_REG_1, PAGE - 1);
	jump(c, &read, BPF_JLE | BPF_K, BPF_REG_1, 0, PAGE - WINDOW);
	emit(c, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_3, BPF_REG_1, 0, 0);
	alu(c, BPF_ADD, BPF_REG_3, PAGE - WINDOW);
	here(c, &read);
	store(c, BPF_REG_10, BASE, BPF_REG_3);
	move(c, BPF_REG_1, BPF_REG_7);
	alu(c, BPF_ADD, BPF_REG_1, READ);
	set(c, BPF_REG_2, WINDOW);
	call(c, helper);
	jump(c, differs, BPF_JNE | BPF_K, BPF_REG_0, 0, 0);
	load(c, BPF_REG_1, BPF_REG_10, WORD);
	load(c, BPF_REG_2, BPF_REG_10, BASE);
	emit(c, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	jump(c, differs, BPF_JGT | BPF_K, BPF_REG_1, 0, WINDOW - 8);
	here(c, &within);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_1, BPF_REG_7, 0, 0);
	load(c, BPF_REG_1, BPF_REG_1, READ);
	load(c, BPF_REG_2, BPF_REG_9, known);
	jump(c, differs, BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 0);
}

/*
 * Go on if the thread is where the stack at r9 is in the kernel. The frames of the calls that led
 * to the switch lie above the program's own stack, at the same distance each time; between them
 * and the system call's begin is a gap of random size.
 */
static void compare_kernel(struct bpf_code *c, struct label *differs)
{
	struct label same = {.n = 0};
	int16_t i;

	store(c, BPF_REG_7, OWN, BPF_REG_10);
	for (i = 0; i < (int16_t)SWITCH_KERNEL_MAX; i++) {
		int16_t at = (int16_t)(KNOWN(kernel) + 16 * i);

		load(c, BPF_REG_2, BPF_REG_9, (int16_t)(at + 8));
		jump(c, &same, BPF_JEQ | BPF_K, BPF_REG_2, 0, 0);
		load(c, BPF_REG_3, BPF_REG_7, OWN);
		load(c, BPF_REG_1, BPF_REG_9, at);
		emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_3, BPF_REG_1, 0, 0);
		compare_word(c, BPF_FUNC_probe_read_kernel, (int16_t)(at + 8), differs);
	}
	here(c, &same);
}

/*
 * Is the thread's stack the one that is known? Where it returns to tells: equal registers and equal
 * return addresses at equal places are the same calls, and in the kernel the first ones are looked
 * at. For those above them, within the same system call, one in REPEATS is taken: that costs some
 * ten times as much, so of one stack at most a hundred a second.
 */
static void recognize(struct bpf_code *c, const struct switches *s,
		      const struct trace_field *state, struct label *differs)
{
	struct label same = {.n = 0}, often = {.n = 0};
	int16_t i;

	load_field(c, BPF_REG_1, state);
	alu(c, BPF_AND, BPF_REG_1, STATES);
	store(c, BPF_REG_10, WORD, BPF_REG_1);
	call(c, BPF_FUNC_get_current_task_btf);
	move(c, BPF_REG_1, BPF_REG_0);
	call(c, BPF_FUNC_task_pt_regs);
	move(c, BPF_REG_9, BPF_REG_0);
	/* As switches_place(). */
	load(c, BPF_REG_1, BPF_REG_9, REGS_SP);
	alu(c, BPF_RSH, BPF_REG_1, 3);
	load(c, BPF_REG_2, BPF_REG_9, REGS_IP);
	emit(c, BPF_ALU64 | BPF_XOR | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	load(c, BPF_REG_2, BPF_REG_10, WORD);
	emit(c, BPF_ALU64 | BPF_XOR | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	alu(c, BPF_AND, BPF_REG_1, SWITCH_PLACES - 1);
	move(c, BPF_REG_2, BPF_REG_8);
	alu(c, BPF_RSH, BPF_REG_2, 32);
	emit(c, BPF_ALU64 | BPF_MUL | BPF_K, BPF_REG_2, 0, 0, SWITCH_PLACES);
	emit(c, BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	alu(c, BPF_AND, BPF_REG_1, KNOWN_MAX - 1);
	store(c, BPF_REG_10, KEY, BPF_REG_1);
	look_up(c, s->known, KEY);
	jump(c, differs, BPF_JEQ | BPF_K, BPF_REG_0, 0, 0);
	move(c, BPF_REG_1, BPF_REG_8);
	alu(c, BPF_RSH, BPF_REG_1, 32);
	load(c, BPF_REG_2, BPF_REG_0, KNOWN(tid));
	jump(c, differs, BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 0);
	compare(c, REGS_IP, KNOWN(ip), differs);
	compare(c, REGS_SP, KNOWN(sp), differs);
	compare(c, REGS_DI, KNOWN(di), differs);
	load(c, BPF_REG_1, BPF_REG_9, REGS_BP);
	load(c, BPF_REG_2, BPF_REG_0, KNOWN(bp_mask));
	emit(c, BPF_ALU64 | BPF_AND | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	load(c, BPF_REG_2, BPF_REG_0, KNOWN(bp));
	jump(c, differs, BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 0);
	load(c, BPF_REG_1, BPF_REG_10, WORD);
	load(c, BPF_REG_2, BPF_REG_0, KNOWN(state));
	jump(c, differs, BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 0);
	move(c, BPF_REG_9, BPF_REG_0);
	load(c, BPF_REG_1, BPF_REG_9, KNOWN(repeats));
	alu(c, BPF_ADD, BPF_REG_1, 1);
	store(c, BPF_REG_9, KNOWN(repeats), BPF_REG_1);
	alu(c, BPF_AND, BPF_REG_1, REPEATS - 1);
	jump(c, &often, BPF_JNE | BPF_K, BPF_REG_1, 0, 0);
	call(c, BPF_FUNC_ktime_get_ns);
	move(c, BPF_REG_1, BPF_REG_0);
	load(c, BPF_REG_2, BPF_REG_9, KNOWN(taken_ns));
	emit(c, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	jump(c, &often, BPF_JLT | BPF_K, BPF_REG_1, 0, TAKE_NS);
	store(c, BPF_REG_9, KNOWN(taken_ns), BPF_REG_0);
	jump(c, differs, BPF_JA, 0, 0, 0);
	here(c, &often);
	set_wide(c, BPF_REG_1, 0, 1ULL << 63);
	store(c, BPF_REG_10, BASE, BPF_REG_1);   /* no address is in that window */
	for (i = 0; i < (int16_t)SWITCH_WORDS_MAX; i++) {
		int16_t at = (int16_t)(KNOWN(words) + 16 * i);

		load(c, BPF_REG_1, BPF_REG_9, KNOWN(nwords));
		jump(c, &same, BPF_JLE | BPF_K, BPF_REG_1, 0, i);
		load(c, BPF_REG_3, BPF_REG_9, at);
		compare_word(c, BPF_FUNC_probe_read_user, (int16_t)(at + 8), differs);
	}
	here(c, &same);
	compare_kernel(c, differs);
	load(c, BPF_REG_1, BPF_REG_9, KNOWN(number));
	store(c, BPF_REG_10, NUMBER, BPF_REG_1);
}

/* The idle task has no stack. */
static void take_stack(struct bpf_code *c, const struct switches *s,
		       const struct trace_field *prev, const struct trace_field *state)
{
	struct label take = {.n = 0}, done = {.n = 0}, differs = {.n = 0};
	int32_t at;

	store_zero(c, BPF_REG_10, NUMBER);
	load_field(c, BPF_REG_1, prev);
	jump(c, &done, BPF_JEQ | BPF_K, BPF_REG_1, 0, 0);
	if (s->known >= 0) {
		recognize(c, s, state, &differs);
		jump(c, &done, BPF_JA, 0, 0, 0);
	}
	here(c, &differs);
	load(c, BPF_REG_1, BPF_REG_7, LEFT);
	jump(c, &take, BPF_JEQ | BPF_K, BPF_REG_1, 0, 0);
	alu(c, BPF_SUB, BPF_REG_1, 1);
	store(c, BPF_REG_7, LEFT, BPF_REG_1);
	jump(c, &done, BPF_JA, 0, 0, 0);
	here(c, &take);
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, (uint32_t)s->every);
	load(c, BPF_REG_1, BPF_REG_1, 0);
	store(c, BPF_REG_7, LEFT, BPF_REG_1);
	load_field(c, BPF_REG_1, state);
	store(c, BPF_REG_7, TAKEN_STATE, BPF_REG_1);
	store(c, BPF_REG_7, OWN, BPF_REG_10);
	for (at = 0; at < TAKEN_BYTES - 8; at += PIECE) {   /* beyond the stack's end: zeros */
		move(c, BPF_REG_1, BPF_REG_7);
		alu(c, BPF_ADD, BPF_REG_1, TAKEN_KERNEL + at);
		set(c, BPF_REG_2, PIECE);
		load(c, BPF_REG_3, BPF_REG_7, OWN);
		alu(c, BPF_ADD, BPF_REG_3, at);
		call(c, BPF_FUNC_probe_read_kernel);
	}
	output(c, s->stacks, TAKEN, TAKEN_BYTES);
	here(c, &done);
}

/*
 * Who could run on has no bit of TASK_REPORT in its state, which may have TASK_REPORT_MAX
 * (include/trace/events/sched.h).
 */
static void write_switch(struct bpf_code *c, const struct switches *s,
			 const struct trace_field *fields[3])
{
	struct label end = {.n = 0}, blocked = {.n = 0}, taken = {.n = 0};

	begin(c, s, &end);
	take_stack(c, s, fields[0], fields[1]);
	set_wide(c, BPF_REG_9, 0, header(PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT));
	load_field(c, BPF_REG_1, fields[1]);
	alu(c, BPF_AND, BPF_REG_1, STATES);
	jump(c, &blocked, BPF_JNE | BPF_K, BPF_REG_1, 0, 0);
	set_wide(c, BPF_REG_9, 0, header(PERF_RECORD_SWITCH_CPU_WIDE,
					 PERF_RECORD_MISC_SWITCH_OUT |
						 PERF_RECORD_MISC_SWITCH_OUT_PREEMPT));
	here(c, &blocked);
	load(c, BPF_REG_1, BPF_REG_10, NUMBER);
	jump(c, &taken, BPF_JEQ | BPF_K, BPF_REG_1, 0, 0);
	set_wide(c, BPF_REG_1, 0, (uint64_t)PERF_MISC_REPEATS << 32);
	emit(c, BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_9, BPF_REG_1, 0, 0);
	here(c, &taken);
	write_record(c, s, fields[2], &end);
}

static void write_wakeup(struct bpf_code *c, const struct switches *s,
			 const struct trace_field *woken)
{
	struct label end = {.n = 0};

	begin(c, s, &end);
	store_zero(c, BPF_REG_10, NUMBER);
	set_wide(c, BPF_REG_9, 0, header(PERF_RECORD_WAKE, 0));
	write_record(c, s, woken, &end);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int refused(struct err *err)
{
	if (errno == EPERM || errno == EACCES)
		return err_set(err, ERR_ACCESS, "this user may not load a program (BPF) that "
			       "runs at switches: run as root, or give the program CAP_BPF and "
			       "CAP_PERFMON");
	return err_os(err, "the kernel cannot run a program (BPF) at switches");
}

/* Run a program at a tracepoint: on all CPUs, whether its event is enabled or not. */
static int attach(int program, uint32_t tracepoint, unsigned ncpus)
{
	struct perf_event_attr attr;
	int fd = -1, os_error;
	unsigned cpu;

	perf_attr_common(&attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = tracepoint;
	attr.sample_period = 1;
	for (cpu = 0; cpu < ncpus && fd < 0; cpu++)
		fd = perf_event_fd(&attr, cpu);
	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program)) {
		os_error = errno;
		close(fd);
		fd = -1;
		errno = os_error;
	}
	return fd;
}

static int load_program(const struct bpf_code *code, const char *name)
{
	return bpf_program_load(code->insns, code->n, BPF_PROG_TYPE_TRACEPOINT, name);
}

static bool find_fields(const struct trace_format *format, const char *const *names, unsigned n,
			const struct trace_field **out)
{
	uint32_t at;

	for (; n--; names++, out++) {
		if (!trace_format_find(format, *names, &at))
			return false;
		*out = &format->fields[at];
	}
	return true;
}

static int attach_all(struct switches *s, const struct trace_format *change,
		      const struct trace_format *wakeup, unsigned ncpus, struct bpf_code *code,
		      struct err *err)
{
	static const char *const of_change[] = {"prev_pid", "prev_state", "next_pid"};
	static const char *const of_wakeup[] = {"pid"};
	const struct trace_field *fields[3], *woken;

	if (!find_fields(change, of_change, 3, fields) ||
	    !find_fields(wakeup, of_wakeup, 1, &woken))
		return err_set(err, ERR_UNSUPPORTED, "this kernel's sched/sched_switch has other "
			       "fields");
	write_wakeup(code, s, woken);
	s->programs[1] = load_program(code, "recorder_wakeup");
	if (s->programs[1] < 0)
		return refused(err);
	*code = (struct bpf_code){.n = 0};
	write_switch(code, s, fields);
	s->programs[0] = load_program(code, "recorder_switch");
	if (s->programs[0] < 0 && s->known >= 0) {
		close(s->known);             /* before Linux 5.15 */
		s->known = -1;
		*code = (struct bpf_code){.n = 0};
		write_switch(code, s, fields);
		s->programs[0] = load_program(code, "recorder_switch");
	}
	if (s->programs[0] >= 0)
		s->attached[0] = attach(s->programs[0], change->id, ncpus);
	if (s->attached[0] >= 0)
		s->attached[1] = attach(s->programs[1], wakeup->id, ncpus);
	return s->attached[1] < 0 ? refused(err) : 0;
}

/* A ring, and a table of one for each CPU: of those that are offline it has none. */
static int new_ring(void)
{
	return bpf_table_new(BPF_MAP_TYPE_ARRAY, 4, PAGE + DATA, 1, BPF_F_MMAPABLE);
}

static int new_rings(unsigned ncpus)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY_OF_MAPS, .key_size = 4,
			       .value_size = 4, .max_entries = ncpus};
	int like = new_ring(), fd, os_error;

	if (like < 0)
		return -1;
	attr.inner_map_fd = (uint32_t)like;
	fd = bpf_call(BPF_MAP_CREATE, &attr);
	os_error = errno;
	close(like);
	errno = os_error;
	return fd;
}

int switches_new(const struct trace_format *change, const struct trace_format *wakeup,
		 unsigned ncpus, struct switches **out, struct err *err)
{
	struct switches *s;
	struct bpf_code *code;
	int rc = 0;

	if (!proc_sees_machine())
		return err_set(err, ERR_UNSUPPORTED, "the recorder runs in a pid namespace of its "
			       "own, where a program of the kernel would see other pids");
	s = malloc(sizeof(*s));
	code = calloc(1, sizeof(*code));
	if (!s || !code) {
		free(s);
		free(code);
		return err_memory(err, "for a program at switches");
	}
	*s = (struct switches){-1, -1, -1, -1, NULL, -1, {-1, -1}, {-1, -1}, 0};
	s->rings = new_rings(ncpus);
	s->stacks = bpf_table_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, ncpus, 0);
	s->wakes = bpf_table_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, ncpus, 0);
	s->every = bpf_table_new(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	if (s->every < 0 || s->rings < 0 || s->stacks < 0 || s->wakes < 0)
		rc = refused(err);
	s->known = bpf_table_new(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct switch_stack), KNOWN_MAX,
				 BPF_F_MMAPABLE);
	s->stacks_known = mmap(NULL, KNOWN_MAX * sizeof(struct switch_stack),
			       PROT_READ | PROT_WRITE, MAP_SHARED, s->known, 0);
	if (!rc && s->stacks_known == MAP_FAILED)
		rc = refused(err);
	if (!rc)
		rc = attach_all(s, change, wakeup, ncpus, code, err);
	free(code);
	if (rc)
		switches_free(s);
	else
		*out = s;
	return rc;
}

void switches_free(struct switches *s)
{
	unsigned i;

	if (!s)
		return;
	if (s->stacks_known && s->stacks_known != MAP_FAILED)
		munmap(s->stacks_known, KNOWN_MAX * sizeof(struct switch_stack));
	const int fds[] = {s->attached[0], s->attached[1], s->programs[0], s->programs[1],
			   s->rings, s->stacks, s->wakes, s->every, s->known};

	for (i = 0; i < COUNT_OF(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(s);
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* An event that wakes who waits for that ring. The table keeps it. */
static int open_wake(const struct switches *s, unsigned cpu, const struct perf_ring *ring)
{
	struct perf_event_attr attr;
	int fd, rc;

	perf_attr_common(&attr);
	attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			   PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
	attr.sample_period = 1;
	attr.watermark = 0;
	attr.wakeup_events = 1;
	fd = perf_event_fd(&attr, cpu);
	if (fd < 0)
		return -1;
	rc = perf_ring_redirect(ring, fd) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) ||
	     bpf_table_ask(BPF_MAP_UPDATE_ELEM, s->wakes, &cpu, &fd);
	close(fd);
	return rc ? -1 : 0;
}

int switches_open_cpu(struct switches *s, unsigned cpu, int stacks, const struct perf_ring *wakes,
		      struct perf_ring *out, struct err *err)
{
	*out = (struct perf_ring){.fd = -1, .cpu = cpu, .probes = true, .unpolled = true,
				  .page_bytes = PAGE, .data_bytes = DATA};
	if (open_wake(s, cpu, wakes) ||
	    bpf_table_ask(BPF_MAP_UPDATE_ELEM, s->stacks, &cpu, &stacks))
		return err_os(err, "cannot open the events of a program at switches");
	out->fd = new_ring();
	out->map = mmap(NULL, PAGE + DATA, PROT_READ | PROT_WRITE, MAP_SHARED, out->fd, 0);
	out->scratch = malloc(PERF_RECORD_MAX_BYTES);
	if (out->map != MAP_FAILED && out->scratch &&
	    !bpf_table_ask(BPF_MAP_UPDATE_ELEM, s->rings, &cpu, &out->fd))
		return 0;
	err_os(err, "cannot map the ring of switches of CPU %u", cpu);
	out->map = out->map == MAP_FAILED ? NULL : out->map;
	perf_ring_close(out);
	return ERR_UNSUPPORTED;
}

void switches_enable(const struct perf_ring *ring, bool on)
{
	__atomic_store_n(&((struct control *)ring->map)->enabled, on, __ATOMIC_RELEASE);
}

uint64_t switches_missed(struct switches *s)
{
	uint64_t missed = 0, before = s->missed;
	unsigned i;

	for (i = 0; i < COUNT_OF(s->programs); i++) {
		struct bpf_prog_info info = {0};
		union bpf_attr attr = {.info = {(uint32_t)s->programs[i], sizeof(info),
						(uintptr_t)&info}};

		if (!bpf_call(BPF_OBJ_GET_INFO_BY_FD, &attr))
			missed += info.recursion_misses;
	}
	s->missed = missed > before ? missed : before;
	return s->missed - before;
}

void switches_every(const struct switches *s, uint64_t n)
{
	uint32_t key = 0;
	uint64_t between = n - 1;

	bpf_table_ask(BPF_MAP_UPDATE_ELEM, s->every, &key, &between);
}

uint8_t switches_state(const struct perf_record *stack)
{
	return stack->u.sample.raw_bytes ? stack->u.sample.raw[0] & STATES : 0;
}

bool switches_kernel(const struct perf_record *r, struct switch_stack *out)
{
	const uint8_t *words = r->u.sample.raw + (TAKEN_KERNEL - TAKEN);
	uint32_t nwords = r->u.sample.raw_bytes < TAKEN_BYTES ? 0 : (TAKEN_BYTES - 8) / 8;
	uint32_t n = r->u.sample.nkernel ? r->u.sample.nkernel - 1 : 0, at = 0, i;

	/* The last one, of the system call's begin, is above the gap. */
	n = n < SWITCH_KERNEL_MAX ? n : SWITCH_KERNEL_MAX;
	for (i = 0; i < n; i++) {
		while (at < nwords && le64(words + 8 * at) != r->u.sample.kernel[i])
			at++;
		if (at == nwords)
			return false;
		out->kernel[i].distance = 8 * at;
		out->kernel[i].value = r->u.sample.kernel[i];
	}
	return n > 0;
}

unsigned switches_place(const struct switch_stack *stack)
{
	return (stack->sp >> 3 ^ stack->ip ^ stack->state) & (SWITCH_PLACES - 1);
}

bool switches_know(const struct switches *s)
{
	return s && s->known >= 0;
}

void switches_tell(const struct switches *s, uint32_t tid, const struct switch_stack *stack)
{
	unsigned at = (tid * SWITCH_PLACES | switches_place(stack)) & (KNOWN_MAX - 1);
	struct switch_stack *known = &s->stacks_known[at];

	/* What the program reads meanwhile has a number that is none of that thread's. */
	__atomic_store_n(&known->tid, 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*known = *stack;
	known->tid = 0;
	__atomic_store_n(&known->tid, tid, __ATOMIC_RELEASE);
}
