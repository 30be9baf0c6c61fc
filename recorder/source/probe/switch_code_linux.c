#include "source/probe/switches_private.h"

#include "base/os.h"
#include "source/probe/bpf_emit_private.h"
#include "source/ring/perf_record.h"

#define RECORD 64                            /* bytes, so that none wraps */
#define ID (-8)                              /* on the program's stack: the CPU, */
#define KEY (-16)                            /* of a ring, of a known stack, */
#define NUMBER (-24)                         /* of the stack that repeats; 0 = none, */
#define WORD (-32)                           /* of a stack: where it is, */
#define BASE (-40)                           /* and where the window begins; */
#define STATE (-48)                          /* as switches_state(). Linux moves one of 64 bytes */
#define REPEATS 64                           /* one in so many has its stack taken all the same, */
#define TAKE_NS (10 * (int32_t)NS_PER_MS)    /* but not sooner after the last one of that stack */
#define UNINTERRUPTIBLE 2

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

/* Where r6 has an argument of the tracepoint: (preempted, prev, next, state of prev), (woken). */
static int16_t argument(unsigned what)
{
	static const int16_t at[] = {[PREV] = 8, [NEXT] = 16, [CHANGE] = 24, [WOKEN] = 0};

	return at[what];
}

/* The number of a thread that the tracepoint has. */
static void load_tid(struct bpf_code *c, const struct switches *s, uint8_t to, unsigned who)
{
	if (!s->types.on_switch) {
		load_field(c, to, s->fields[who]);
		return;
	}
	load(c, to, BPF_REG_6, argument(who));
	emit(c, BPF_LDX | BPF_MEM | BPF_W, to, to, s->types.pid, 0);
}

/* r8 = pid and tid of the thread that leaves */
static void find_thread(struct bpf_code *c, const struct switches *s)
{
	if (s->types.on_switch) {
		load(c, BPF_REG_1, BPF_REG_6, argument(PREV));
		emit(c, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_0, BPF_REG_1, s->types.tgid, 0);
		emit(c, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_8, BPF_REG_1, s->types.pid, 0);
		alu(c, BPF_LSH, BPF_REG_8, 32);
	} else {
		call(c, BPF_FUNC_get_current_pid_tgid);
		move(c, BPF_REG_8, BPF_REG_0);
		alu(c, BPF_LSH, BPF_REG_8, 32);
		alu(c, BPF_RSH, BPF_REG_0, 32);
	}
	emit(c, BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_8, BPF_REG_0, 0, 0);
}

/*
 * STATE = that of the thread that leaves; 0 = it could run on. Then the tracepoint's record has no
 * bit of TASK_REPORT, but may have TASK_REPORT_MAX (include/trace/events/sched.h). Its argument is
 * the state itself, also of who is preempted on the way to sleep.
 */
static void find_state(struct bpf_code *c, const struct switches *s)
{
	struct label preempted = {.n = 0}, told = {.n = 0};

	if (!s->types.on_switch) {
		load_field(c, BPF_REG_1, s->fields[CHANGE]);
		alu(c, BPF_AND, BPF_REG_1, STATES);
		store(c, BPF_REG_10, STATE, BPF_REG_1);
		return;
	}
	set(c, BPF_REG_1, 0);
	load(c, BPF_REG_2, BPF_REG_6, 0);
	jump(c, &preempted, BPF_JNE | BPF_K, BPF_REG_2, 0, 0);
	load(c, BPF_REG_2, BPF_REG_6, argument(CHANGE));
	move(c, BPF_REG_1, BPF_REG_2);
	alu(c, BPF_AND, BPF_REG_1, STATES);
	jump(c, &told, BPF_JNE | BPF_K, BPF_REG_1, 0, 0);
	jump(c, &told, BPF_JEQ | BPF_K, BPF_REG_2, 0, 0);
	set(c, BPF_REG_1, UNINTERRUPTIBLE);  /* frozen, or waits for a lock of the kernel */
	here(c, &told);
	here(c, &preempted);
	store(c, BPF_REG_10, STATE, BPF_REG_1);
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

/* r6 = the tracepoint's record, or its arguments; r7 = the CPU's ring */
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

/* The record of r9, a header, with the number of another thread. */
static void write_record(struct bpf_code *c, const struct switches *s, unsigned other,
			 struct label *end)
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
	load_tid(c, s, BPF_REG_3, other);
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
static void compare_kernel(struct bpf_code *c, const struct switches *s, struct label *differs)
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
		if (!s->types.cast) {
			compare_word(c, BPF_FUNC_probe_read_kernel, (int16_t)(at + 8), differs);
			continue;
		}
		/* Any structure whose begin is a word will do: the kernel calls nothing here. */
		move(c, BPF_REG_1, BPF_REG_3);
		set(c, BPF_REG_2, (int32_t)s->types.regs);
		emit(c, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, (int32_t)s->types.cast);
		load(c, BPF_REG_1, BPF_REG_0, 0);
		load(c, BPF_REG_2, BPF_REG_9, (int16_t)(at + 8));
		jump(c, differs, BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 0);
	}
	here(c, &same);
}

/*
 * Is the thread's stack the one that is known? Where it returns to tells: equal registers and equal
 * return addresses at equal places are the same calls, and in the kernel the first ones are looked
 * at. For those above them, within the same system call, one in REPEATS is taken: that costs some
 * ten times as much, so of one stack at most a hundred a second.
 */
static void recognize(struct bpf_code *c, const struct switches *s, struct label *differs)
{
	struct label same = {.n = 0}, often = {.n = 0};
	int16_t i;

	if (s->types.on_switch) {
		load(c, BPF_REG_1, BPF_REG_6, argument(PREV));
	} else {
		call(c, BPF_FUNC_get_current_task_btf);
		move(c, BPF_REG_1, BPF_REG_0);
	}
	call(c, BPF_FUNC_task_pt_regs);
	move(c, BPF_REG_9, BPF_REG_0);
	/* As switches_place(). */
	load(c, BPF_REG_1, BPF_REG_9, REGS_SP);
	alu(c, BPF_RSH, BPF_REG_1, 3);
	load(c, BPF_REG_2, BPF_REG_9, REGS_IP);
	emit(c, BPF_ALU64 | BPF_XOR | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	load(c, BPF_REG_2, BPF_REG_10, STATE);
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
	load(c, BPF_REG_1, BPF_REG_10, STATE);
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
	compare_kernel(c, s, differs);
	load(c, BPF_REG_1, BPF_REG_9, KNOWN(number));
	store(c, BPF_REG_10, NUMBER, BPF_REG_1);
}

/* The idle task has no stack. */
static void take_stack(struct bpf_code *c, const struct switches *s)
{
	struct label take = {.n = 0}, done = {.n = 0}, differs = {.n = 0};
	int32_t at;

	store_zero(c, BPF_REG_10, NUMBER);
	move(c, BPF_REG_1, BPF_REG_8);
	alu(c, BPF_RSH, BPF_REG_1, 32);
	jump(c, &done, BPF_JEQ | BPF_K, BPF_REG_1, 0, 0);
	if (s->known >= 0) {
		recognize(c, s, &differs);
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
	load(c, BPF_REG_1, BPF_REG_10, STATE);
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

void switch_code_change(struct bpf_code *c, const struct switches *s)
{
	struct label end = {.n = 0}, blocked = {.n = 0}, taken = {.n = 0};

	begin(c, s, &end);
	find_thread(c, s);
	find_state(c, s);
	take_stack(c, s);
	set_wide(c, BPF_REG_9, 0, header(PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT));
	load(c, BPF_REG_1, BPF_REG_10, STATE);
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
	write_record(c, s, NEXT, &end);
}

void switch_code_wakeup(struct bpf_code *c, const struct switches *s)
{
	struct label end = {.n = 0};

	begin(c, s, &end);
	set(c, BPF_REG_8, 0);                /* nobody asks who woke it */
	store_zero(c, BPF_REG_10, NUMBER);
	set_wide(c, BPF_REG_9, 0, header(PERF_RECORD_WAKE, 0));
	write_record(c, s, WOKEN, &end);
}
