/*
 * Generated code of one .NET program that samples had before the runtime told what it is called.
 *
 * Samples of one address within DOTNET_UNTOLD_SPAN_NS are one place, whose number stands for them
 * in their frames. Once the events of that time have come, the place gets the name of the method
 * that was there from the first to the last of its samples; no other one. One thread at a time.
 */
#pragma once

#include "source/dotnet/code.h"

#define DOTNET_UNTOLD_MAX 8192u              /* places of one program, the newest; 640 KB */
#define DOTNET_UNTOLD_SPAN_NS 100000000u
#define DOTNET_UNTOLD_SURE_NS 500000000u     /* events are later than that on no machine yet */
#define DOTNET_UNTOLD_WAIT_NS 10000000000u
#define DOTNET_UNTOLD_MARK 0x80000000u       /* of a place's number: it is none of a name */

struct dotnet_untold;

struct dotnet_untold *dotnet_untold_new(void);       /* NULL = no memory */
void dotnet_untold_free(struct dotnet_untold *u);    /* NULL allowed */
size_t dotnet_untold_bytes(void);

/*
 * returns  the number of the place of a sample; 0 = nothing was told of this address for
 *          DOTNET_UNTOLD_WAIT_NS, as of the runtime's own helpers, of which it never tells
 */
uint32_t dotnet_untold_put(struct dotnet_untold *u, uint64_t address, uint64_t time_ns);

/* Number the names of what has been told since; name() gives a method's, 0 = not yet. */
void dotnet_untold_look(struct dotnet_untold *u, struct dotnet_code *c, uint64_t now_ns,
			uint32_t (*name)(void *ctx, struct dotnet_method *m), void *ctx);

/* The number of the name of a place; 0 = it has none (yet). */
uint32_t dotnet_untold_name(const struct dotnet_untold *u, uint32_t place);
