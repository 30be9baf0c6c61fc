#include "base/os_service.h"

static int unsupported(struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED,
		       "a service of Linux is a unit of systemd, whose ExecStart is 'recorder "
		       "collect --config /etc/recorder.conf'; this command is for Windows");
}

int os_service_install(const char *name, const char *description, char *const *argv,
		       struct err *err)
{
	(void)name;
	(void)description;
	(void)argv;
	return unsupported(err);
}

int os_service_uninstall(const char *name, struct err *err)
{
	(void)name;
	return unsupported(err);
}

int os_service_start(const char *name, struct err *err)
{
	(void)name;
	return unsupported(err);
}

int os_service_stop(const char *name, struct err *err)
{
	(void)name;
	return unsupported(err);
}

int os_service_run(const char *name, os_service_main *run, void *ctx, struct err *err)
{
	(void)name;
	(void)run;
	(void)ctx;
	return unsupported(err);
}
