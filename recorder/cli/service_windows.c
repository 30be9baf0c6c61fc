/* service: record as a Windows service (base/os_service.h). */
#include "cli/cmd.h"

#include "base/array.h"
#include "base/os.h"
#include "base/os_service.h"
#include "base/text.h"

#include <string.h>

#define SERVICE_NAME "recorder"
#define NAME_MAX_BYTES 80u

static const char description[] = "Keeps the recent call stacks of this machine, and stores those "
				  "around what its rules find.";

static const char *name_of(const struct options *o)
{
	return o->service_name ? o->service_name : SERVICE_NAME;
}

static int check_name(const char *name, struct err *err)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

	if (*name && strlen(name) <= NAME_MAX_BYTES && strspn(name, allowed) == strlen(name))
		return 0;
	return err_set(err, ERR_USAGE, "--service-name: '%.80s' is not a valid name: use letters, "
		       "digits and dashes, at most %u", name, NAME_MAX_BYTES);
}

/* ---- installing ------------------------------------------------------------------------------ */

/* The service starts in another folder, where a relative path means another file. */
static bool is_absolute(const char *path)
{
	return path[0] == '\\' ||
	       (path[0] && path[1] == ':' && (path[2] == '\\' || path[2] == '/'));
}

static int check_paths(const struct options *o, struct err *err)
{
	if (!is_absolute(o->config))
		return err_set(err, ERR_USAGE,
			       "--config: '%s': a service needs the whole path, like C:\\%s",
			       o->config, text_base_name(o->config));
	if (o->store && !is_absolute(o->store))
		return err_set(err, ERR_USAGE, "%s: store = %s: a service needs the whole path",
			       o->config, o->store);
	if (o->log_file && !is_absolute(o->log_file))
		return err_set(err, ERR_USAGE, "%s: log-file = %s: a service needs the whole path",
			       o->config, o->log_file);
	return 0;
}

/* main.c has read the conf file already, so its errors were reported before this. */
static int install(const struct options *o, struct err *err)
{
	char *argv[] = {"service", "run", "--service-name", (char *)name_of(o), "--config",
			o->config, NULL};
	int rc;

	if (!o->config)
		return err_set(err, ERR_USAGE,
			       "service install: --config FILE says what to record");
	rc = check_paths(o, err);
	if (!rc)
		rc = os_service_install(name_of(o), description, argv, err);
	if (!rc)
		cmd_note("the service '%s' is installed and starts with the machine; 'recorder "
			 "service start' starts it now", name_of(o));
	return rc;
}

/* ---- running --------------------------------------------------------------------------------- */

static int record(void *ctx, struct err *err)
{
	const struct options *given = ctx;
	struct options o = *given;           /* borrows all of it */
	struct buf store = {0};
	int rc;

	o.pattern = NULL;
	rc = cmd_own_log(&o, &store, err);
	if (!rc)
		rc = cmd_collect(&o, err);
	buf_free(&store);
	return rc;
}

int cmd_service(const struct options *o, struct err *err)
{
	static const struct {
		const char *verb, *done;
		int (*act)(const char *name, struct err *err);
	} verbs[] = {
		{"uninstall", "is removed", os_service_uninstall},
		{"start", "runs", os_service_start},
		{"stop", "has stopped", os_service_stop},
	};
	const char *verb = o->pattern ? o->pattern : "", *name = name_of(o);
	size_t i;
	int rc = check_name(name, err);

	if (rc)
		return rc;
	if (text_same_fold(verb, "run"))
		return os_service_run(name, record, (void *)o, err);
	if (text_same_fold(verb, "install"))
		return install(o, err);
	for (i = 0; i < COUNT_OF(verbs) && !text_same_fold(verb, verbs[i].verb); i++)
		;
	if (i == COUNT_OF(verbs))
		return err_set(err, ERR_USAGE, "service: install, uninstall, start or stop?");
	rc = verbs[i].act(name, err);
	if (!rc)
		cmd_note("the service '%s' %s", name, verbs[i].done);
	return rc;
}
