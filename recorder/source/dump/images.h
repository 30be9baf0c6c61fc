/*
 * The files that a dead process had mapped, as far as they are still there: for the pages that a
 * dump leaves out, because they are in the file, and for names and unwind tables.
 *
 * Another file may be at the path by now, or on this machine. An ELF file is the one that was
 * mapped if its build id is the one in the dump; one that has none, if its first page is the dumped
 * one and it is older than the dump. A file of another format, such as a JVM's class archive, must
 * be older than the dump too. What is not used is told with its reason. One thread.
 */
#pragma once

#include "model/frame.h"
#include "source/dump/dump.h"

struct images;

/*
 * program  look here for the program's file; NULL = at its path
 * wall_ns  when the dump was made
 */
int images_open(const struct dump *d, struct frames *frames, const char *program, uint64_t wall_ns,
		struct images **out, struct err *err);
void images_close(struct images *s);                 /* NULL allowed */

/* The object of a module, and the offset of an address in it; false: it is no file's code. */
bool images_find(struct images *s, uint64_t address, struct frame_ref *out);

/* The reverse: where a frame is, as a position or a return address; 0 = not known. */
uint64_t images_address(const struct images *s, const struct frame_ref *ref);

/* Read memory out of the dump, else out of a mapped file: how many of n bytes. */
size_t images_memory(struct images *s, uint64_t address, void *to, size_t n);

/* The path of the program; "" = unknown. */
const char *images_program(const struct images *s);

/* Each file that was asked for and is not used, with the reason. */
void images_doubts(const struct images *s, void (*one)(void *ctx, const char *text), void *ctx);
