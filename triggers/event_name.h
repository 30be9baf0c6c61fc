/*
 * Names of providers and numbers of events, as rules say them and as events have them (names of events:
 * event_name_is() in model/event.h). No state, any thread.
 */
#ifndef TRIGGERS_EVENT_NAME_H
#define TRIGGERS_EVENT_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define KERNEL_PROVIDER "Windows Kernel"

/* Whether a provider as an event has it is the one that was named: in any case, by GUID, by *Name. */
bool provider_is(const char *wanted, const char *provider);

/* The number in "EventID(12)"; -1 for any other name. */
int event_id_of(const char *name);

/* A GUID's text without the braces that it may stand in, and its length. */
const char *guid_without_braces(const char *guid, size_t *len);

#endif
