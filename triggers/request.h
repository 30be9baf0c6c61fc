/*
 * Rules that are presets: a few rules on events, any of which fires. What they stand for is shown by
 * check and at the start, so that nobody has to guess and others can be written like them.
 *
 *	StopOnRequestOverMsec:MS       requests of IIS, and of ASP.NET Core's hosting (Kestrel)
 *	StopOnAppFabricOverMsec:MS     requests of AppFabric (WCF)
 *
 * MS 0 switches them off. Behind it the keys of durations (InFlight, on by default; Process; Floor...).
 *
 * Source: design page triggers.md section 6. ASP.NET Core: HostingEventSource.cs, events 3 and 4.
 */
#ifndef TRIGGERS_REQUEST_H
#define TRIGGERS_REQUEST_H

#include "triggers/trigger.h"

extern const struct trigger_ops request_trigger;
extern const struct trigger_ops app_fabric_trigger;

/* The rules that a preset stands for: line i, or NULL when there are no more. */
const char *preset_line(const struct trigger *t, unsigned i);

#endif
