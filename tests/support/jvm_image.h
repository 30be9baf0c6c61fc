/*
 * A recorded image of a JVM: one thread's registers, and what a frame reader read of the memory.
 *
 * The file is a zlib stream behind its raw size (u32); raw, all little-endian:
 *
 *   u64 base of libjvm, u64 registers[17] in the order of enum eh_register, u32 ranges
 *   for each range: u64 address, u32 bytes, the bytes
 *
 * Made by build/linux/programs/jvm_image_linux PID FILE, of a thread that runs Java code.
 */
#pragma once

#include "base/buf.h"
#include "managed/reader.h"

#define JVM_IMAGE_HEAD (8u + 17u * 8u + 4u)
#define JVM_IMAGE_MAX ((size_t)8 << 20)

struct jvm_image {
	uint8_t *raw;
	size_t nraw;
	uint64_t base, regs[17];
	struct { uint64_t address; uint32_t n; const uint8_t *bytes; } *ranges;
	uint32_t nranges;
};

/* false: there is no such file, or it is damaged */
bool jvm_image_load(const char *path, struct jvm_image *out);
void jvm_image_free(struct jvm_image *image);

/* As managed_memory.read(), of an image as context. */
size_t jvm_image_read(void *image, uint64_t address, void *to, size_t n);
/* As managed_host.run(), with memory as context: runs the task at once. */
bool jvm_image_run(void *memory, struct managed_task *task);

/*
 * Walk from the registers to the end of the Java code; the functions' names, a line each. Where
 * `between` is given it is called then, and they are walked again, as samples of a later moment.
 */
void jvm_image_walk(const struct managed_memory *memory, uint64_t base, const uint64_t regs[17],
		    void (*between)(void *ctx), void *ctx, struct buf *out);
