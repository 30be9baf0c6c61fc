/*
 * Counters of rules that .NET programs tell of themselves (EventCounters):
 *
 *	System.Runtime:cpu-usage:shop
 *	Microsoft.AspNetCore.Hosting:requests-per-second:_Global_
 *
 * A program sends each counter of an EventSource once a second, once a session has asked for it. A
 * counter that is a mean is told as it is, one that is an increment as its increase a second. The
 * value of several programs is their sum; a program that has sent none for 3 s counts no more.
 * Portable; one thread.
 *
 * Source: dotnet/runtime, System/Diagnostics/Tracing/EventCounter.cs, IncrementingEventCounter.cs.
 */
#pragma once

#include "model/event.h"
#include "model/needs.h"

#define DOTNET_COUNTER_ARGUMENTS "EventCounterIntervalSec=1"

struct dotnet_counters;

/* *out is NULL where no rule wants one. */
int dotnet_counters_new(const struct needs *needs, struct dotnet_counters **out, struct err *err);
void dotnet_counters_free(struct dotnet_counters *c);   /* NULL allowed, also below */
/* The EventSource of the i-th; NULL after the last. */
const char *dotnet_counters_source(const struct dotnet_counters *c, uint32_t i);

/* An event of a program; others than EventCounters are passed over. */
void dotnet_counters_event(struct dotnet_counters *c, const struct event *e);
/* As gc_counters_poll(). */
uint64_t dotnet_counters_poll(struct dotnet_counters *c, uint64_t now_ns,
			      void (*deliver)(void *ctx, const struct event *e), void *ctx);
