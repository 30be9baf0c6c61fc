/*
 * What the code of one .NET program is called: methods by address and time, from the runtime's own
 * events. MethodLoadVerbose tells of code when it is made, the rundown of what was made before,
 * MethodUnloadVerbose of code that goes; memory is used again by other methods.
 *
 * All of it is hostile: bounded by the program's share and by DOTNET_METHODS_MAX. Portable; one
 * thread at a time.
 */
#pragma once

#include "base/shares.h"
#include "source/dotnet/nettrace.h"

#define DOTNET_METHODS_MAX 200000u           /* of one program */
#define DOTNET_GONE_MAX 4096u                /* methods that were unloaded or replaced last */
#define DOTNET_TEXT_BYTES 1024u              /* of a method with its class; a module's path */

struct dotnet_method {
	uint64_t start;                      /* first: sorted_upto() */
	uint64_t module;
	uint32_t bytes;
	uint32_t number;                     /* of its name, the owner's; 0 = not used yet */
	char *text;                          /* "Namespace.Class.Method"; NULL = unloaded; then
						"=(class System.String,int32)", or "", behind */
	bool dynamic;                        /* made by the program itself: it has no module */
	/* When it was there; 0 = before it was told of. until_ns: of those that are gone. */
	uint64_t from_ns, until_ns;
};

struct dotnet_module {
	uint64_t id;
	char name[64];                       /* without ".dll" */
};

struct dotnet_code {
	struct shares *shares;               /* borrowed, and the program's of them: */
	struct share *share;
	struct dotnet_method *methods;       /* sorted by start, but for the last ones */
	uint32_t nsorted, n, room;
	struct dotnet_method *gone;          /* the newest at (ngone - 1) % DOTNET_GONE_MAX */
	uint64_t ngone;
	struct dotnet_gone_place {
		uint64_t start;              /* first: sorted_upto() */
		uint32_t at;                 /* in `gone` */
	} *places;                           /* of all in `gone`, sorted; behind it in its block */
	uint32_t gone_max_bytes;             /* the longest that ever went */
	uint64_t since_ns;                   /* when the runtime began to tell; 0 = not yet */
	struct dotnet_module *modules;
	uint32_t nmodules, modules_room;
	uint32_t nlearned;                   /* calls of dotnet_code_learn() */
};

/* All else is {0} at first. */
void dotnet_code_free(struct dotnet_code *c);

/* Whether an event tells of code, so that only stacks need it. */
bool dotnet_tells_code(const struct nettrace_event *event);
/*
 * Learn from such an event of that time (recorder clock). returns  whether it told of a module: the
 * program may map another file
 */
bool dotnet_code_learn(struct dotnet_code *c, const struct nettrace_event *event,
		       uint64_t time_ns);

/*
 * The method whose code was at this address at this time; NULL = not known. The first one that was
 * told of there counts from the beginning, a dynamic one 100 ms before, if the runtime told already
 * of what goes. Valid until the next dotnet_code_learn().
 */
struct dotnet_method *dotnet_code_find(struct dotnet_code *c, uint64_t address, uint64_t time_ns);
/*
 * The same. since_ns: until the next dotnet_code_learn() it is also the answer for every time from
 * then on; UINT64_MAX = for this one only.
 */
struct dotnet_method *dotnet_code_find_since(struct dotnet_code *c, uint64_t address,
					     uint64_t time_ns, uint64_t *since_ns);
/* The same if no other method was ever told of there. */
struct dotnet_method *dotnet_code_find_only(struct dotnet_code *c, uint64_t address);
/* The one that was there at both times, and between them. */
struct dotnet_method *dotnet_code_throughout(struct dotnet_code *c, uint64_t address,
					     uint64_t first_ns, uint64_t last_ns);
/* The detail of its name (managed/names.h); NULL = none. */
const char *dotnet_method_detail(const struct dotnet_method *m);
/* The module of a method; NULL = not told (yet). */
const struct dotnet_module *dotnet_code_module(const struct dotnet_code *c, uint64_t id);
