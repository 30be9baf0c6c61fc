/*
 * Presets: a few rules on events, each of which may fire. check and the start of a recording show
 * what a preset stands for, as an example for rules of your own.
 *
 *	StopOnRequestOverMsec:MS       requests of IIS, and of ASP.NET Core's hosting (Kestrel)
 *	StopOnAppFabricOverMsec:MS     requests of AppFabric (WCF)
 *
 * MS 0 switches them off. The keys of durations follow it (InFlight, on by default; Process;
 * Floor...).
 *
 * Source for ASP.NET Core: HostingEventSource.cs, events 3 and 4.
 */
#pragma once

#include "triggers/trigger.h"

extern const struct trigger_ops request_trigger;
extern const struct trigger_ops app_fabric_trigger;

/* The i-th rule that a preset stands for; NULL after the last. */
const char *preset_line(const struct trigger *t, unsigned i);
