/*
 * This program as a service of the system: installed, started, stopped, removed, and run by the service
 * manager. Windows only; elsewhere everything is ERR_UNSUPPORTED and says what to use. One thread, but
 * for os_service_run().
 *
 * Source: docs, "Service Control Manager", "Service Programs".
 */
#ifndef BASE_OS_SERVICE_H
#define BASE_OS_SERVICE_H

#include "base/err.h"

/*
 * Install: started with the machine, in the system's account, as this program with these arguments.
 * When it crashes it is started again after a minute.
 *
 * name         letters, digits, dashes
 * argv         ends in NULL; without the program
 * returns      0; ERR_EXISTS; ERR_ACCESS
 */
int os_service_install(const char *name, const char *description, char *const *argv, struct err *err);
/* Stops it first; one that does not stop goes when it ends. ERR_NOT_FOUND: no such service. */
int os_service_uninstall(const char *name, struct err *err);
/* Waits until it runs; ERR_IO when it has ended at once. */
int os_service_start(const char *name, struct err *err);
/* Waits until it has stopped, a minute at most. 0 also when it did not run. */
int os_service_stop(const char *name, struct err *err);

/*
 * For the service manager: be the service until run() returns. A stop of the service, and the end of
 * the machine, arrive in run() as OS_SIGNAL_STOP (os.h).
 *
 * run      on a thread of the service manager; its result 0 is a good end
 * returns  what run() returned; ERR_USAGE when it was not the service manager that started us
 */
typedef int os_service_main(void *ctx, struct err *err);
int os_service_run(const char *name, os_service_main *run, void *ctx, struct err *err);

#endif
