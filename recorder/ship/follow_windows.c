#include "ship/follow.h"

/* ship_check() has refused it before. */
int follow_open(const struct follow_config *cfg, struct follow **out, struct err *err)
{
	(void)cfg;
	(void)out;
	return err_set(err, ERR_UNSUPPORTED, "--ship works on Linux only");
}

void follow_stored(void *follow)
{
	(void)follow;
}

void follow_put_status(void *follow, struct json *j)
{
	(void)follow;
	(void)j;
}

void follow_close(struct follow *f)
{
	(void)f;
}
