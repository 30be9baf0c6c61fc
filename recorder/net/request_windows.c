#include "net/request.h"

int net_open(struct net **out, struct err *err)
{
	(void)out;
	return err_set(err, ERR_UNSUPPORTED, "requests are made on Linux only: on Windows have "
		       "--data-file or `recorder export` write a file, and another program send it "
		       "(--stop-command)");
}

void net_close(struct net *n)
{
	(void)n;
}

int net_ask(struct net *n, struct net_request *r, struct net_answer *a, struct err *err)
{
	(void)n;
	(void)r;
	(void)a;
	return err_set(err, ERR_UNSUPPORTED, "requests are made on Linux only");
}
