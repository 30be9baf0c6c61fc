/* Windows names neither its starts nor who ended a process, without an audit of its own. */
#include "source/host/death.h"

void death_boot_id(char out[DEATH_BOOT_BYTES])
{
	out[0] = '\0';
}

void death_kills(char out[DEATH_KILLS_BYTES])
{
	out[0] = '\0';
}

void death_put_cause(const struct death *d, struct buf *out)
{
	(void)d;
	buf_puts(out, "why is unknown");
}
