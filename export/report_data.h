/*
 * The data of the HTML report as JSON, for export/report/data.js: samples of one stream, summed by
 * time and node of the call tree, counters and events.
 *
 *	{"incident":7, "metric":"cpu", "unit":"samples", "unit_ns":10000000 or null,
 *	 "from_ms":-5000.000, "to_ms":5000.000, "buckets":2000, "small":1, "samples":12,
 *	 "texts":[...], "callers":[...], "names":[...],
 *	 "weights":[n, node, weight, node, weight, ..., n, ...],
 *	 "counters":[time_ms, "name", value or null, ...],
 *	 "events":[[time_ms, "kind", "provider/name", value or null, "process", "fields"], ...],
 *	 "events_left_out":0, "events_from_ms":-5000.000, "events_to_ms":5000.000}
 *
 * Times are relative to the trigger. unit_ns is the CPU time that a weight of 1 stands for. callers
 * and names have an entry for each node, callers before callees; a caller is given as the distance
 * to it, 0 = none. Nodes of depth 0 are processes, those of depth 1 threads. weights has for each
 * bucket the number of pairs, then the pairs, in which a node is given as its distance to the one
 * before. small counts the nodes that were summed as "(small)". When there are too many events,
 * only those around the trigger are here, from events_from_ms to events_to_ms; garbage collections
 * and their pauses are never left out.
 */
#pragma once

#include "export/export.h"

#include "base/json.h"
#include "model/stack_tree.h"

/* Parts that the page of a diff has too. more: a last text, or NULL. */
void report_data_put_texts(struct json *j, const struct stack_tree *t, const char *more);
void report_data_put_nodes(struct json *j, const struct stack_tree_node *nodes, uint32_t n);

/*
 * whole: also what does not belong to the stream: "incident", "metrics" (the streams there are),
 * counters, events, "runtimes" (opt's rows). 0, or ERR_MEMORY or ERR_LIMIT with a sentence.
 */
int report_data(const struct incident *in, const struct export_options *opt, bool whole,
		struct buf *out, struct err *err);

/*
 * How many events are left out of the data. skip, n: which of the listed ones event_list_pack() is
 * to pack, those around the trigger.
 */
uint32_t report_data_left_out(const struct incident *in, uint32_t *skip, uint32_t *n);
