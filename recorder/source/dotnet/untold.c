#include "source/dotnet/untold.h"

#include <stdlib.h>

#define LATEST (4 * DOTNET_UNTOLD_MAX)       /* a power of two */
#define LOOK_MAX 512u                        /* places at once: each may cost 4,096 steps */

struct place {
	uint64_t address;
	uint64_t since_ns;                   /* the address has had no name */
	uint64_t first_ns, last_ns;          /* of the samples */
	uint64_t due_ns;                     /* look again then; 0 = not looked yet */
	uint32_t number, name;
};

struct dotnet_untold {
	struct place all[DOTNET_UNTOLD_MAX]; /* number n at n % DOTNET_UNTOLD_MAX */
	uint32_t last, looked;               /* numbers; looked: all up to it are settled */
	uint32_t turn;                       /* was looked at last */
	uint32_t latest[LATEST];             /* the number of an address, by its hash; 0 = none */
};

struct dotnet_untold *dotnet_untold_new(void)
{
	return calloc(1, sizeof(struct dotnet_untold));
}

void dotnet_untold_free(struct dotnet_untold *u)
{
	free(u);
}

size_t dotnet_untold_bytes(void)
{
	return sizeof(struct dotnet_untold);
}

/* NULL = it has made place for a newer one. */
static struct place *place_of(const struct dotnet_untold *u, uint32_t number)
{
	const struct place *p = &u->all[number % DOTNET_UNTOLD_MAX];

	return number && p->number == number ? (struct place *)p : NULL;
}

uint32_t dotnet_untold_put(struct dotnet_untold *u, uint64_t address, uint64_t time_ns)
{
	uint32_t *latest = &u->latest[address * 0x9e3779b97f4a7c15u >> 32 & (LATEST - 1)];
	struct place *before = place_of(u, *latest), *p;
	uint64_t since_ns = time_ns;

	if (before && before->address == address) {
		if (time_ns >= before->first_ns &&
		    time_ns - before->first_ns < DOTNET_UNTOLD_SPAN_NS && !before->name) {
			before->last_ns = time_ns > before->last_ns ? time_ns : before->last_ns;
			return before->number | DOTNET_UNTOLD_MARK;
		}
		since_ns = before->name ? time_ns : before->since_ns;
		if (time_ns > since_ns && time_ns - since_ns >= DOTNET_UNTOLD_WAIT_NS)
			return 0;
	}
	u->last = u->last == DOTNET_UNTOLD_MARK - 1 ? 1 : u->last + 1;
	p = &u->all[u->last % DOTNET_UNTOLD_MAX];
	*p = (struct place){.address = address, .since_ns = since_ns, .first_ns = time_ns,
			    .last_ns = time_ns, .number = u->last};
	*latest = u->last;
	return u->last | DOTNET_UNTOLD_MARK;
}

/* 0.5, 1, 2, 4 and 8 s after its last sample. */
static bool is_due(struct place *p, uint64_t now_ns)
{
	uint64_t waited_ns = now_ns > p->last_ns ? now_ns - p->last_ns : 0;

	if (p->name || waited_ns < DOTNET_UNTOLD_SURE_NS || now_ns < p->due_ns)
		return false;
	p->due_ns = now_ns + waited_ns;
	return true;
}

/* Those that need no look any more, from the oldest one on. */
static void pass_settled(struct dotnet_untold *u, uint64_t now_ns)
{
	const struct place *p;

	if (u->last < u->looked)             /* numbers began anew */
		u->looked = 0;
	if (u->last - u->looked > DOTNET_UNTOLD_MAX)
		u->looked = u->last - DOTNET_UNTOLD_MAX;
	for (; u->looked < u->last; u->looked++) {
		p = place_of(u, u->looked + 1);
		if (p && !p->name && now_ns < p->last_ns + DOTNET_UNTOLD_WAIT_NS)
			break;
	}
}

void dotnet_untold_look(struct dotnet_untold *u, struct dotnet_code *c, uint64_t now_ns,
			uint32_t (*name)(void *ctx, struct dotnet_method *m), void *ctx)
{
	uint32_t i, open, n = 0;

	pass_settled(u, now_ns);
	open = u->last - u->looked;
	for (i = 0; i < open && n < LOOK_MAX; i++) {
		struct place *p;
		struct dotnet_method *m;

		u->turn = u->turn > u->looked && u->turn < u->last ? u->turn + 1 : u->looked + 1;
		p = place_of(u, u->turn);
		if (!p || !is_due(p, now_ns))
			continue;
		n++;
		m = dotnet_code_throughout(c, p->address, p->first_ns, p->last_ns);
		p->name = m ? name(ctx, m) : 0;
	}
}

uint32_t dotnet_untold_name(const struct dotnet_untold *u, uint32_t place)
{
	const struct place *p = place_of(u, place & ~DOTNET_UNTOLD_MARK);

	return p ? p->name : 0;
}
