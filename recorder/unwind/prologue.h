/*
 * A function's frame pointer by its code, for stacks of which RSP is known, but not RBP (a thread
 * that was read without stopping it). In code with frame pointers the instructions after
 * `mov %rsp, %rbp` say how far RSP went down from there.
 *
 * No state. x86-64. Nothing is trusted: the caller checks what it finds at RBP.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROLOGUE_MAX_BYTES 160u
#define PROLOGUE_CALL_BYTES 7u               /* the longest call */

/*
 * Follow a function in a straight line from its first byte, until a call, a jump, or an instruction
 * that is not known.
 *
 * n        bytes of it, up to where it is executed at most
 * depth    RBP - RSP
 * returns  false: no frame pointer was made, or RSP was changed in another way
 */
bool prologue_depth(const uint8_t *code, size_t n, uint32_t *depth);

/*
 * Do these bytes before a return address end in a call?
 *
 * before  PROLOGUE_CALL_BYTES
 * direct  of a function by its distance, which is *by, from the return address; else *by is 0
 */
bool prologue_is_call(const uint8_t *before, bool *direct, int32_t *by);

/* What ends in front of a return address: */
enum prologue_call {
	PROLOGUE_NO_CALL,
	PROLOGUE_CALLS_ELSEWHERE,            /* through a register, memory, or another function */
	PROLOGUE_CALLS_IT,
};

/*
 * before    PROLOGUE_CALL_BYTES before the return address
 * distance  from the return address to the function, modulo 2^64
 */
enum prologue_call prologue_call_before(const uint8_t *before, uint64_t distance);
