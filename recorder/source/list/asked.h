/*
 * What --providers, --only-providers, --event and the options on .NET ask to record, as needs that
 * sources meet like those of rules.
 *
 * On Windows an ETW session reads these options itself (etw/wanted.h), and nothing is added here.
 * On Linux each part of the list is
 *
 *	SUBSYSTEM:EVENT, SUBSYSTEM/EVENT   a tracepoint; '*' may stand in its name
 *	SUBSYSTEM                          all its tracepoints
 *	uprobe:/path:function, usdt:/path:provider:name
 *	*EventSource:KEYWORDS:LEVEL        of .NET programs, and the other spellings of etw/wanted.h
 *	Windows Kernel:KEYWORDS            tracepoints of the same meaning
 *
 * each followed by :@KEY=VALUE;... as on Windows. Reads no files, but Windows' list of providers.
 * Any thread.
 */
#pragma once

#include "base/buf.h"
#include "model/capture.h"
#include "model/needs.h"

/*
 * Does a list of --event ask for an event of an ETW session, by its names in the store? Others come
 * with a stack too: those of processes and threads always do.
 */
bool asked_event(const char *list, const char *provider, const char *name);

/*
 * The first event that only the source of stacks delivers, as tracepoints and probes of programs on
 * Linux; NULL = none.
 */
const struct need_event *asked_of_stacks(const struct needs *needs);
/*
 * Whether a provider that is asked for is nobody's now and would come with a later program; appends
 * a sentence with the nearest names. May take a second for each. Never on Windows, where such a
 * provider is refused.
 */
bool asked_unknown(const struct needs *needs, struct buf *out);
/* returns  0; ERR_USAGE with the part that is wrong; ERR_LIMIT; ERR_MEMORY */
int asked_needs(const struct capture *capture, struct needs *needs, struct err *err);
