/*
 * Translates counter names of rules into paths of PDH (Performance Data Helper), and selects the
 * wanted ones of the instances that PDH returns. Portable, no state, any thread.
 *
 *	Memory:Available MBytes:          \Memory\Available MBytes
 *	Process:Working Set:java          \Process(java)\Working Set
 *	Process:Working Set:java#*        \Process(java*)\Working Set, the sum of java, java#1, ...
 *	Process:Working Set:w3*           \Process(w3*)\Working Set, the sum of all that match
 *	Process:Working Set:pid=4711      \Process(*)\Working Set of the instance whose
 *	                                  \Process(*)\ID Process is 4711
 *
 * Source: docs, "Specifying a Counter Path".
 */
#pragma once

#include "source/counter_name.h"

#define PDH_PATH_MAX (COUNTER_NAME_MAX + 8u)

enum pdh_want { PDH_ONE, PDH_SUM, PDH_PID };

struct pdh_name {
	struct counter_name name;
	enum pdh_want want;
	uint32_t pid;                        /* PDH_PID */
	char path[PDH_PATH_MAX];
	char id_path[PDH_PATH_MAX];          /* the pids of the instances, for processes; else "" */
};

/* returns  0 or ERR_USAGE */
int pdh_name_read(const char *name, struct pdh_name *out, struct err *err);

/* PDH_SUM: whether the instance belongs to the sum. */
bool pdh_name_takes(const struct pdh_name *name, const char *instance);
