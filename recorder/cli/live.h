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
 *
 * screen   a recorder of our own leaves standard error alone
 */
int live_open(const struct options *o, bool screen, struct live **out, struct err *err);
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
/* Events of --event that had no stack in the window that was loaded last. */
uint64_t live_bare_events(const struct live *l);

/* ---- for a screen, which never waits --------------------------------------------------------- */

/* Can what happened until a moment be read by now? Call it again until it can. */
int live_reach(struct live *l, uint64_t to_ns, bool *can, struct err *err);
/*
 * Load the last span_ns before a moment that was reached, all streams of it, less what --process,
 * --thread and --event leave out. *span_ns becomes shorter where the recording is.
 */
int live_load(struct live *l, uint64_t to_ns, bool kernel, uint64_t *span_ns, struct incident *in,
	      struct err *err);
/* Nothing before now is loaded any more: the program was stopped meanwhile. */
void live_restart(struct live *l);
/*
 * Keep an incident: of the running recorder's as `recorder snapshot` does; of our own, the last
 * two minutes in the usual store. said: a sentence about it.
 */
int live_snapshot(struct live *l, const char *reason, struct buf *said, struct err *err);
/* Who records: "recorder of /var/lib/recorder/incidents.db", "own recording". */
void live_put_source(const struct live *l, struct buf *out);
