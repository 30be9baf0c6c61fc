/*
 * Which events of .NET programs are delivered: all of a provider that somebody wants whole, of
 * others only those that need_event.asked names (model/needs.h). Pure after dotnet_filter_new();
 * any thread.
 */
#pragma once

#include "model/event.h"
#include "model/needs.h"

struct dotnet_filter;

/* needs: borrowed for the call. returns  0; ERR_MEMORY */
int dotnet_filter_new(const struct needs *needs, struct dotnet_filter **out, struct err *err);
void dotnet_filter_free(struct dotnet_filter *f);    /* NULL allowed */
bool dotnet_filter_pass(const struct dotnet_filter *f, const struct event *e);

/* The runtime's own provider by each of its names; other names are as in EventPipe, without '*'. */
const char *dotnet_provider_name(const char *name);
