/* JVMs that come while it records; see probes_private.h. */
#include "source/probe/probes_private.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATER_FILES_MAX (2 * THROW_LIBRARIES_MAX)
#define LATER_PIDS_MAX 64u

struct probes_later {
	struct need_event *needs;
	uint32_t nneeds, needs_room;
	struct program_id known[LATER_FILES_MAX];
	unsigned nknown;
	uint32_t pids[LATER_PIDS_MAX];       /* that have mapped one, oldest first */
	unsigned npids;
	char added[UPROBE_PATH_MAX];         /* the library that came last */
	bool full_logged;
};

int probes_later_want(struct probes *p, const struct need_event *need,
		      const struct program_files *known, struct err *err)
{
	struct probes_later *l = p->later;

	if (!l)
		l = p->later = calloc(1, sizeof(*l));
	if (!l || ARRAY_ROOM(l->needs, l->needs_room, l->nneeds + 1))
		return err_memory(err, "for the exceptions of programs");
	l->needs[l->nneeds++] = *need;
	l->nknown = known->n;
	memcpy(l->known, known->ids, known->n * sizeof(*l->known));
	return 0;
}

void probes_later_free(struct probes *p)
{
	if (p->later)
		free(p->later->needs);
	free(p->later);
}

void probes_saw_java(void *probes, const struct process *process)
{
	struct probes *p = probes;
	struct probes_later *l = p->later;

	/* Where too many come at once, others of theirs come again. */
	if (l && l->npids < LATER_PIDS_MAX)
		l->pids[l->npids++] = process->pid;
}

static void ask_next(struct probes *p)
{
	struct probes_later *l = p->later;
	struct program_library *library = malloc(sizeof(*library));
	uint32_t pid = l->pids[0];

	memmove(l->pids, l->pids + 1, --l->npids * sizeof(*l->pids));
	if (!library)
		return;
	throw_java_library(library);
	library->known = malloc(sizeof(l->known));
	if (library->known) {
		memcpy(library->known, l->known, sizeof(l->known));
		library->nknown = l->nknown;
	}
	programs_ask(p->programs, pid, library);
}

static bool add_library(struct probes *p)
{
	struct probes_later *l = p->later;
	uint32_t from = p->n, i;

	if (l->nknown == LATER_FILES_MAX) {
		if (!l->full_logged)
			log_line(p->log, LOG_WARN,
				 "exceptions of Java are seen in %u different libjvm.so, and not "
				 "in %s and others that come later",
				 LATER_FILES_MAX, p->library->path);
		l->full_logged = true;
		return false;
	}
	l->known[l->nknown++] = p->library->id;
	for (i = 0; i < l->nneeds; i++)
		probes_add_library(p, &l->needs[i]);
	probes_load_filters(p, from);
	snprintf(l->added, sizeof(l->added), "%s", p->library->path);
	return p->n > from;
}

void probes_followed(const struct probes *p, const struct err *failed)
{
	if (failed)
		log_line(p->log, LOG_WARN, "exceptions of Java in %s are not seen on each CPU: %s",
			 p->later->added, failed->text);
	else
		log_line(p->log, LOG_INFO, "exceptions of Java are seen in %s from now on",
			 p->later->added);
}

bool probes_follow(struct probes *p)
{
	struct program_library *library;
	bool waits, added = false;
	unsigned i;

	if (!p->later)
		return false;
	library = programs_answer(p->programs, &waits);
	if (library && library->path[0]) {
		p->library = library;
		added = add_library(p);
		p->library = NULL;
		for (i = 0; i < PROGRAM_FUNCTIONS_MAX; i++)
			programs_close(p->programs, library->places[i].file);
	}
	program_library_free(library);
	if (!waits && p->later->npids)
		ask_next(p);
	return added;
}
