/*
 * Whose events may fire a rule: /Process and ;Process=.
 *
 *	nginx            every process with this name: its file's, argv[0]'s or its script's
 *	1234             this pid
 *	nginx,1234,php   any of these
 *	unit:web         processes of this unit; also container:, pod:, service: (model/home.h)
 *
 * Names are compared when the event comes, so processes that start later count too; which names a
 * process has: model/process_name.h. An event without a process passes an empty filter only. Any
 * thread.
 */
#pragma once

#include "base/err.h"
#include "model/home.h"
#include "model/process.h"

#define PROCESS_FILTER_MAX 16u

struct process_filter {
	unsigned n;                          /* 0 = all pass */
	struct {
		uint32_t pid;                /* 0 = by name */
		char name[64 + 1];
		enum home_key key;           /* of name; HOME_NONE = it is a process's name */
	} items[PROCESS_FILTER_MAX];
};

/* ERR_USAGE for an empty item, a name that is too long, or too many items. */
int process_filter_parse(const char *text, size_t len, struct process_filter *out, struct err *err);
bool process_filter_pass(const struct process_filter *f, const struct process *process);
/* The same for a process of which only the names are known: where it lives is not. */
bool process_filter_pass_named(const struct process_filter *f, uint32_t pid,
			       const struct process_names *names);
bool process_filter_has_names(const struct process_filter *f);
bool process_filter_has_homes(const struct process_filter *f);
