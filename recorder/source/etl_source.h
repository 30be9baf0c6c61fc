/* Inside of the source of trace files: etl.c reads the file twice, etl_events.c makes its events. */
#ifndef SOURCE_ETL_SOURCE_H
#define SOURCE_ETL_SOURCE_H

#include "base/os.h"
#include "source/etl_file.h"
#include "source/etw_code.h"
#include "source/etw_decode.h"
#include "source/etw_stacks.h"
#include "source/etw_state.h"
#include "source/source.h"

#define ETL_START_NS NS_PER_SEC              /* t0 on the recorder's clock, which has no 0 */
#define ETL_INTERVAL_100NS 10000u            /* between samples, where a trace does not say */

#define ETL_CLASSES 512u                     /* power of two */

/* What etw_class_find() said last of records like this; a trace has millions of few kinds. */
struct etl_class {
	struct etw_guid guid;
	uint16_t key;
	uint8_t header;
	bool known;
	const struct etw_class *class;
};

struct etl {
	struct source base;
	struct source_config cfg;
	struct etl_file *file;
	const struct etl_facts *facts;
	struct etw_state *state;
	struct etw_code *code;
	struct etw_stacks *stacks;
	struct etw_decode *decode;

	/* of the thread that runs it */
	bool delivering;
	struct etl_class classes[ETL_CLASSES];
	struct etl_counts counts;
	uint32_t interval_100ns;             /* 0 = the trace has not said yet */
	uint64_t last_ns, marked_ns;
	uint64_t idle;                       /* samples of it, not delivered */
	uint64_t cut;                        /* stacks over STACK_MAX_FRAMES */
	struct etw_decoded decoded;
	struct frame_ref frames[STACK_MAX_FRAMES];

	_Atomic bool stopping;
	_Atomic uint64_t delivered;
	struct os_mutex *lock;               /* guards what follows */
	uint64_t period_ns;
	char note[400];
};

/* Put into the queue; waits while it is full. 0 or ERR_STOPPED. */
int etl_put(struct etl *s, const struct event *e);
/* A sample of a CPU's idle loop, outside of interrupts and deferred calls (flags 1 and 2). */
bool etl_is_idle_sample(const struct etw_record *r, const struct etw_class *class);
/* What a record becomes: one event, or none. 0 or ERR_STOPPED. */
int etl_deliver(struct etl *s, const struct etw_whole *w);
/* The record tells how often samples are taken. */
void etl_learn_interval(struct etl *s, const struct etw_record *record, const struct etw_class *class);

#endif
