/* service: the unit of systemd that the package, or make install, brings. */
#include "cli/cmd.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "listing/sheet.h"

#include <stdio.h>
#include <string.h>

#define SYSTEMCTL_NS (120 * NS_PER_SEC)      /* a start waits until recording has begun */
#define OUTPUT_BYTES 16384u

static const struct verb {
	const char *name, *done;
	const char *args[3];                 /* of systemctl; the unit follows */
} verbs[] = {
	{"install", "starts with the machine; 'recorder service start' starts it now", {"enable"}},
	{"uninstall", "has stopped, and does not start with the machine any more",
	 {"disable", "--now"}},
	{"start", "runs", {"start"}},
	{"stop", "has stopped", {"stop"}},
	{"status", NULL, {"--no-pager", "status"}},
};

static const struct verb *find_verb(const char *name)
{
	size_t i;

	for (i = 0; name && i < COUNT_OF(verbs); i++)
		if (text_same_fold(name, verbs[i].name))
			return &verbs[i];
	return NULL;
}

/* Its exit code and what it printed. */
static int systemctl(const struct verb *verb, const char *unit, struct buf *output, int *code,
		     struct err *err)
{
	char *none[] = {NULL}, *argv[6] = {"systemctl"};
	size_t n = 1, i;

	for (i = 0; i < COUNT_OF(verb->args) && verb->args[i]; i++)
		argv[n++] = (char *)verb->args[i];
	argv[n] = (char *)unit;
	if (!os_finds_program("systemctl"))
		return err_set(err, ERR_UNSUPPORTED, "this system has no systemctl; another "
			       "service manager can run 'recorder collect --config FILE'");
	return os_run(argv, none, SYSTEMCTL_NS, output, OUTPUT_BYTES, code, err);
}

/* systemctl's exit codes of status: 3 = it does not run, 4 = there is no such unit. */
static int status(const struct buf *output, int code, struct err *err)
{
	int rc = print_text(output, err);

	return rc || !code ? rc : CMD_EXITS + (code == 4 ? 3 : code);
}

int cmd_service(const struct options *o, struct err *err)
{
	const struct verb *verb = find_verb(o->pattern);
	struct buf output = {0};
	char unit[100];
	int code = 0, rc;

	if (!verb)
		return err_set(err, ERR_USAGE,
			       "service: install, uninstall, start, stop or status?");
	if (o->config)
		return err_set(err, ERR_USAGE, "--config: the unit names its file itself, "
			       "/etc/recorder/recorder.conf; change that by 'systemctl edit'");
	snprintf(unit, sizeof(unit), "%.80s.service",
		 o->service_name ? o->service_name : "recorder");
	if (*unit == '-')
		return err_set(err, ERR_USAGE, "--service-name: '%s' is not a unit's name", unit);
	rc = systemctl(verb, unit, &output, &code, err);
	if (!rc && !verb->done)
		rc = status(&output, code, err);
	else if (!rc && code)
		rc = err_set(err, ERR_IO, "systemctl %s %s ended with exit code %d: %.300s",
			     verb->args[0], unit, code, buf_text(&output));
	else if (!rc)
		cmd_note("%s %s", unit, verb->done);
	buf_free(&output);
	return rc;
}
