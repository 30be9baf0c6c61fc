#include "http/server.h"

int http_server_check(const struct http_config *cfg, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "--http %.200s: the recorder answers over HTTP on "
		       "Linux only; `recorder status --json` prints the same", cfg->address);
}

int http_server_open(const struct http_config *cfg, struct http_server **out, struct err *err)
{
	(void)out;
	return http_server_check(cfg, err);
}

void http_server_close(struct http_server *h)
{
	(void)h;
}
