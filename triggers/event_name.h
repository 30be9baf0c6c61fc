/*
 * Names of providers and numbers of events, in rules and in events. For names of events see
 * event_name_is() in model/event.h. No state, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define KERNEL_PROVIDER "Windows Kernel"

/* Whether an event's provider is the one wanted: by name in any case, by GUID, or by *Name. */
bool provider_is(const char *wanted, const char *provider);

/* The number in "EventID(12)"; -1 for any other name. */
int event_id_of(const char *name);

/* A GUID's text without its braces, if it has any, and the length. */
const char *guid_without_braces(const char *guid, size_t *len);
