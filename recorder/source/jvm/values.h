/*
 * Counters of rules that are numbers which JVMs keep of themselves, in the file of table_linux.h:
 *
 *	JVM:java.threads.live:shop	JVM:sun.rt.safepointTime:pid=4711
 *
 * What only grows is its increase a second; where it is a time, the percentage of time. The value
 * of several JVMs is their sum. One thread.
 */
#pragma once

#include "base/out.h"
#include "source/jvm/table_linux.h"

struct jvm_values;

/*
 * Before a recording: each counter must be one that a JVM of its instance keeps, or any JVM if none
 * of the instance runs. ERR_USAGE with the nearest names.
 */
int jvm_values_check(const struct needs *needs, struct err *err);
/* Numbers of the JVMs that run, for people: what source_ops.list is, for patterns from "JVM" on. */
int jvm_values_list(const char *pattern, bool json, struct out *out, struct err *err);

/* *out is NULL where no rule wants one. */
int jvm_values_new(const struct needs *needs, struct jvm_values **out, struct err *err);
void jvm_values_free(struct jvm_values *v);             /* NULL allowed, also below */
/* jvm_table.take, of these values: find their places. */
void jvm_values_take(void *values, struct jvm *j, const struct hsperf_file *file);

/*
 * Put those that are due as EVENT_COUNTER at now_ns.
 *
 * returns  when the next one is due; UINT64_MAX = never
 */
uint64_t jvm_values_poll(struct jvm_values *v, struct jvm_table *t, uint64_t now_ns,
			 void (*deliver)(void *ctx, const struct event *e), void *ctx);
