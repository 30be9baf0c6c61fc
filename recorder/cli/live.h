/*
 * What happens on this machine now, window after window: read from the recorder that runs, or from
 * one that is started for the purpose in this program and leaves nothing behind. Either hands over
 * its windows as a history beside its store, on request (engine/control.h, "top"); the recorder's
 * buffer, history and incidents stay as they are. One thread uses it; a recorder of its own has the
 * threads of any recorder.
 */
#pragma once

#include "cli/cmd.h"

struct live;

/*
 * Find the running recorder of --store, or start one: where --source or --event asks for something
 * that is not recorded yet, or none runs. The first window begins when this returns. Signals are
 * the caller's: call os_signals_open() before. ERR_STOPPED: one came.
 */
int live_open(const struct options *o, struct live **out, struct err *err);
void live_close(struct live *l);                     /* NULL allowed */

/* The moment of the wall clock at which the next window begins. */
uint64_t live_from_ns(const struct live *l);

/* Tell the recorder that somebody still looks; call at least every 5 s. Errors show later. */
void live_keep(struct live *l);

/*
 * Load the next window, which ends now, and begin another. What --process, --thread, --kernel and
 * --event leave out is gone; an empty window is one without samples. Waits for what the sources
 * deliver late, about 0.3 s.
 *
 * stream   which samples: CPU, or those of --event
 * in       free with incident_free(), after an error too
 */
int live_take(struct live *l, enum stream *stream, struct incident *in, struct err *err);
