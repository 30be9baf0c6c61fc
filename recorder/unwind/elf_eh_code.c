/*
 * Functions without an FDE, followed by their code.
 *
 * GCC's start files (crti.o, crtbegin.o) put _init, _fini, frame_dummy and __do_global_dtors_aux
 * into every program and library, without unwind tables. They run first and last, so page faults of
 * a starting or ending process are often taken in them. Their code is a few instructions, always of
 * the same kinds. These are followed from the first byte on, in a straight line, for what they do
 * to RSP and RBP. Any other instruction ends it; everything before that is exact.
 *
 * Source: GCC 12, libgcc/crtstuff.c; glibc 2.36, sysdeps/x86_64/crti.S and crtn.S; the encodings:
 * Intel's manual, volume 2.
 */
#include "unwind/elf_eh_private.h"

#include "base/array.h"

enum effect {
	NOTHING,
	TO_REGISTER,                    /* bits 3-5 of the ModRM byte say which; not RSP or RBP */
	SUB_RSP, ADD_RSP,               /* by the last byte */
	PUSH_RBP, POP_RBP,
	RSP_TO_RBP,
	END,
};

struct form {
	uint8_t bytes[4], nbytes;       /* that identify it */
	uint8_t last_mask;              /* of the last of these bytes */
	uint8_t length;                 /* of the whole instruction */
	uint8_t effect;
};

static const struct form forms[] = {
	{{0xf3, 0x0f, 0x1e, 0xfa}, 4, 0xff, 4, NOTHING},        /* endbr64 */
	{{0x48, 0x8b, 0x05}, 3, 0xc7, 7, TO_REGISTER},          /* mov disp32(%rip), reg */
	{{0x48, 0x8d, 0x05}, 3, 0xc7, 7, TO_REGISTER},          /* lea disp32(%rip), reg */
	{{0x80, 0x3d}, 2, 0xff, 7, NOTHING},                    /* cmpb imm8, disp32(%rip) */
	{{0x48, 0x83, 0x3d}, 3, 0xff, 8, NOTHING},              /* cmpq imm8, disp32(%rip) */
	{{0xc6, 0x05}, 2, 0xff, 7, NOTHING},                    /* movb imm8, disp32(%rip) */
	{{0x48, 0x85, 0xc0}, 3, 0xc0, 3, NOTHING},              /* test reg, reg */
	{{0x74}, 1, 0xfe, 2, NOTHING},                          /* je, jne */
	{{0xe8}, 1, 0xff, 5, NOTHING},                          /* call */
	{{0xff, 0xd0}, 2, 0xff, 2, NOTHING},                    /* call *%rax */
	{{0xff, 0x15}, 2, 0xff, 6, NOTHING},                    /* call *disp32(%rip) */
	{{0x48, 0x83, 0xec}, 3, 0xff, 4, SUB_RSP},
	{{0x48, 0x83, 0xc4}, 3, 0xff, 4, ADD_RSP},
	{{0x55}, 1, 0xff, 1, PUSH_RBP},
	{{0x5d}, 1, 0xff, 1, POP_RBP},
	{{0x48, 0x89, 0xe5}, 3, 0xff, 3, RSP_TO_RBP},
	{{0xe9}, 1, 0xff, 5, END},                              /* jmp */
	{{0xeb}, 1, 0xff, 2, END},
	{{0xff, 0xe0}, 2, 0xff, 2, END},                        /* jmp *%rax */
	{{0xc3}, 1, 0xff, 1, END},                              /* ret */
};

static const struct form *find_form(const uint8_t *code, size_t n)
{
	size_t i, j;

	for (i = 0; i < COUNT_OF(forms); i++) {
		const struct form *f = &forms[i];

		for (j = 0; j + 1 < f->nbytes && j < n && code[j] == f->bytes[j]; j++)
			;
		if (f->length <= n && j + 1 == f->nbytes && (code[j] & f->last_mask) == f->bytes[j])
			return f;
	}
	return NULL;
}

/* Apply the instruction to the state; false when it is not one that can be followed. */
static bool follow(const struct form *f, const uint8_t *code, struct eh_code *state)
{
	unsigned reg = code[f->nbytes - 1] >> 3 & 7, bytes = code[f->length - 1];

	switch (f->effect) {
	case TO_REGISTER:
		return reg != 4 && reg != 5;
	case SUB_RSP:
		state->depth += bytes;
		return bytes % 8 == 0 && bytes < 0x80;
	case ADD_RSP:
		state->depth -= bytes;
		return bytes % 8 == 0 && bytes <= state->depth + bytes && bytes < 0x80;
	case PUSH_RBP:
		state->depth += 8;
		state->rbp_saved = true;
		return state->depth == 8;       /* right below the return address */
	case POP_RBP:
		state->rbp_saved = false;
		state->depth -= 8;
		return state->depth == 0;
	case RSP_TO_RBP:
		return state->rbp_saved;
	}
	return f->effect == NOTHING;
}

void eh_frame_add_code(struct eh_frame *t, uint64_t vaddr, const uint8_t *code, size_t n)
{
	struct eh_code state = {.start = vaddr};
	uint32_t budget = EH_BUDGET;
	const struct form *f;
	struct eh_row row;

	while (t->ncode < EH_CODE_MAX && (f = find_form(code, n)) != NULL &&
	       eh_frame_row(t, state.start, &budget, &row) == EH_NONE) {
		state.end = state.start + f->length;
		t->code[t->ncode++] = state;
		if (!follow(f, code, &state))
			return;
		state.start = state.end;
		code += f->length;
		n -= f->length;
	}
}

const struct eh_code *eh_frame_find_code(const struct eh_frame *t, uint64_t vaddr)
{
	uint32_t i;

	for (i = 0; i < t->ncode; i++) {
		if (vaddr >= t->code[i].start && vaddr < t->code[i].end)
			return &t->code[i];
	}
	return NULL;
}
