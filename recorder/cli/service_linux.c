/* service: on Linux, what to use instead. */
#include "cli/cmd.h"

int cmd_service(const struct options *o, struct err *err)
{
	if (!o->pattern)
		return err_set(err, ERR_USAGE, "service: install, uninstall, start or stop?");
	return err_set(err, ERR_UNSUPPORTED,
		       "a service of Linux is a unit of systemd, whose ExecStart is 'recorder "
		       "collect --config /etc/recorder.conf'; this command is for Windows");
}
