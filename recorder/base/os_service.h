/*
 * This program as a service of the system: installed, started, stopped, removed, and run by the
 * service manager. Windows only. One thread, except os_service_run().
 *
 * Source: docs, "Service Control Manager", "Service Programs".
 */
#pragma once

#include "base/err.h"

/*
 * Install this program with these arguments as a service that starts with the machine, in the
 * system's account. After a crash it restarts within a minute.
 *
 * name         letters, digits, dashes
 * argv         ends in NULL; without the program
 * returns      0; ERR_EXISTS; ERR_ACCESS
 */
int os_service_install(const char *name, const char *description, char *const *argv,
		       struct err *err);
/* Stop and remove it; a service that does not stop is removed when it ends. ERR_NOT_FOUND. */
int os_service_uninstall(const char *name, struct err *err);
/* Start it and wait until it runs; ERR_IO when it has ended at once. */
int os_service_start(const char *name, struct err *err);
/* Stop it and wait, a minute at most. 0 also when it did not run. */
int os_service_stop(const char *name, struct err *err);

/*
 * For the service manager: be the service until run() returns. A stop of the service, and a
 * shutdown of the machine, reach run() as OS_SIGNAL_STOP (os.h).
 *
 * run      on a thread of the service manager; returns 0 for success
 * returns  what run() returned; ERR_USAGE when we were not started by the service manager
 */
typedef int os_service_main(void *ctx, struct err *err);
int os_service_run(const char *name, os_service_main *run, void *ctx, struct err *err);
