/*
 * How far back a ring of some size would reach here: the sources record for a while into segments
 * that are measured and dropped. Nothing is stored, no rule fires. One thread, and one for each
 * source.
 *
 * Segments get denser as they grow: 200 samples of the six-program load take 19.4 bytes each, 2,000
 * take 14.3, and 8,192 take 12.3. Ten seconds at 2 x 99 Hz have 1,980 samples, and extrapolating
 * from them is up to 19 % wrong. So a source that can takes up to 8 times as many samples
 * meanwhile, until a segment is full. The frequency makes no difference to their bytes: of 174,000
 * samples of six programs at 499 Hz, beside other people's builds, full segments take 10.6 bytes
 * each; with every 2nd sample 10.3, every 3rd 10.9, every 5th 10.5. The events of the time that a
 * segment would really span are added. What remains to be extrapolated follows a power law through
 * the mean of the two halves and the whole. The first second is not counted: it lists what runs
 * already, which a full ring has once.
 */
#pragma once

#include "model/segment.h"
#include "source/source.h"

struct plan_config {
	const struct source_ops *const *sources;     /* ending in NULL */
	struct source_config source;                 /* its tables and queue are filled in */
	const struct needs *needs;
	size_t ring_bytes;
	uint64_t keeps_ns;                   /* before and after a firing */
	uint64_t measure_ns;
};

struct plan {
	double measured_s;
	uint64_t samples;                    /* taken in that time */
	double samples_per_s, bytes_per_sample;      /* in full segments, events included */
	double history_s;                    /* 0 = not known, as no samples came */
	bool by_processes;                   /* the table of processes limits it, not the ring */
	double ring_s;                       /* what the ring alone would hold */
	double new_processes_s;
	uint64_t held_samples;
	uint64_t memory_bytes;               /* what the recorder takes once the ring is full */
};

/*
 * What a segment that was sealed into empty tables would take in a full ring; bytes. The numbers of
 * the frames and threads that it lists take 1 byte each while it fills the tables itself, and 2
 * once it lists what others have brought in. Measured: 1.00, 1.66, 1.85, 1.93, 1.97, then 2.05 to
 * 2.21 in segments of six programs at 499 Hz, with some 10,000 numbers each; 1.7 with
 * tests/support/bench_stream.h.
 */
double plan_ring_bytes(const struct segment *s);

/* The bytes of a segment of n samples, from those of segments of n1 < n2 samples. */
double plan_segment_bytes(double n1, double bytes1, double n2, double bytes2, double n);

/*
 * How many segments of some size a ring holds on average, with the open one. Sealed segments leave
 * whole, so half of one is missing, and the open one is half full. Whole segments plus a half,
 * which is the same where all segments have one size, would jump by 1 (9 % of a 1 MB ring) when
 * that size changes by 1 %.
 */
double plan_segments_held(double ring_bytes, double segment_bytes);

/* returns  0, or why a source cannot be opened */
int plan_measure(const struct plan_config *cfg, struct plan *out, struct err *err);
