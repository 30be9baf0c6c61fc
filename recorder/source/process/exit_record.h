/*
 * Parses a message of the Linux process connector: a netlink message with one struct proc_event.
 *
 *	 0  u32 length, u16 type, u16 flags, u32 sequence, u32 port       struct nlmsghdr
 *	16  u32 idx = 1, u32 val = 1, u32 seq, u32 ack, u16 len, u16 flags    struct cn_msg
 *	36  u32 what, u32 cpu, u64 time in ns, CLOCK_MONOTONIC            struct proc_event
 *	52  exit: i32 tid, i32 pid, u32 status as of wait(2), u32 signal to the parent; since Linux
 *	    4.18 i32 tid, i32 pid of the parent, before that 0
 *	    the answer to our request: u32 errno
 *
 * In the machine's byte order, read as little-endian. Portable and pure. Source: linux/netlink.h,
 * connector.h, cn_proc.h; drivers/connector/cn_proc.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_RECORD_WHAT_AT 36u              /* for a filter in the kernel */
#define EXIT_RECORD_TID_AT 52u
#define EXIT_RECORD_PID_AT 56u
#define EXIT_WHAT_ANSWER 0u
#define EXIT_WHAT_EXIT 0x80000000u

enum exit_record_kind { EXIT_RECORD_OTHER, EXIT_RECORD_ANSWER, EXIT_RECORD_EXIT };

struct exit_record {
	enum exit_record_kind kind;
	uint32_t error;                      /* EXIT_RECORD_ANSWER: errno; 0 = granted */
	uint64_t time_ns;
	uint32_t pid, tid;                   /* of the thread; equal for a first thread */
	uint32_t parent;                     /* its pid; 0 = unknown */
	uint8_t code;                        /* given to exit(), if signal is 0 */
	uint8_t signal;                      /* that killed it; 0 = none */
	bool core;                           /* a core was dumped */
};

/* Parse one datagram; false = not such a message. */
bool exit_record_parse(const void *bytes, size_t n, struct exit_record *out);
