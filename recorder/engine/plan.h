/*
 * How far back a ring of some size would reach here: the sources record for a while into segments that
 * are measured and dropped. Nothing is stored, no rule fires. One thread, and one for each source.
 *
 * Segments get denser as they grow: 200 samples of the six-program load take 19.4 bytes each, 2,000 take
 * 14.3, and 8,192 take 12.3. At 2 x 99 Hz ten seconds have 1,980, and what is read off from them is up to 19 %
 * wrong. So where a source can, more samples are taken meanwhile (up to 8 times as many), until a full segment
 * comes together: how often they were taken makes no difference to their bytes (174,000 samples of six programs
 * at 499 Hz beside other people's builds: 10.6 bytes each in full segments, of every 2nd 10.3, of every 3rd 10.9,
 * of every 5th 10.5); the events of the time that it would last really are added. What remains to be
 * extrapolated follows a power law through the mean of the two halves and the whole. The first second is not
 * counted: it lists what runs already, which a full ring has once.
 */
#ifndef PLAN_H
#define PLAN_H

#include "model/segment.h"
#include "source/source.h"

struct plan_config {
	const struct source_ops *const *sources;     /* ending in NULL */
	struct source_config source;                 /* tables, queue and log are filled in */
	const struct needs *needs;
	size_t ring_bytes;
	uint64_t keeps_ns;                   /* of an incident, before and after its firing */
	uint64_t measure_ns;
};

struct plan {
	double measured_s;
	uint64_t samples;                    /* taken meanwhile */
	double samples_per_s, bytes_per_sample;      /* of full segments, events included */
	double history_s;                    /* 0 = no samples came, so nothing can be said */
	bool by_processes;                   /* it is the table of processes that ends it; else the ring */
	double ring_s;                       /* that the ring would hold */
	double new_processes_s;
	uint64_t held_samples;
	uint64_t memory_bytes;               /* of the whole recorder, once the ring is full */
};

/*
 * What a segment that was sealed into empty tables would take in a ring that is full; bytes. The numbers of
 * frames and threads that it lists take 1 byte each while the tables are filled by it, and 2 once it lists what
 * others have brought in: 1.00, 1.66, 1.85, 1.93, 1.97, then 2.05 to 2.21 in the segments of six programs at
 * 499 Hz, of some 10,000 numbers each; 1.7 in those of a made stream (tests/support/bench_stream.h).
 */
double plan_ring_bytes(const struct segment *s);

/* What segments of n1 < n2 samples with so many bytes say of one with n samples; bytes. */
double plan_segment_bytes(double n1, double bytes1, double n2, double bytes2, double n);

/*
 * How many segments of so many bytes a ring holds on average, the open one with them: sealed ones leave
 * whole, which is half of one too few, and the open one is half full. Whole segments plus a half, the same
 * for segments of exactly one size, would jump by one (9 % of a 1 MB ring) where the sizes change by 1 %.
 */
double plan_segments_held(double ring_bytes, double segment_bytes);

/* returns  0, or why a source cannot be opened */
int plan_measure(const struct plan_config *cfg, struct plan *out, struct err *err);

#endif
