/*
 * Source lines and inlined functions for a loaded incident, before it is shown or exported.
 */
#pragma once

#include "model/incident.h"

#define SOURCE_LINES_MAX_NS (180 * NS_PER_SEC)   /* for all objects together */

/*
 * Expand the frames of ELF objects that samples and events use (incident_expand()), from the debug
 * information of the files that have the recorded build id. Where that fails (a changed file,
 * no debug information), a note on standard error says so and the frames stay as they are.
 *
 * symbol_path  of --symbol-path, or NULL: where files are, too; servers are asked for those objects
 *              whose debug information is not here
 * returns  0; ERR_UNSUPPORTED on hosts that cannot at all; ERR_MEMORY, ERR_IO
 */
int source_lines_add(struct incident *in, const char *symbol_path, struct err *err);

/* Where else a source file's text is: asks the servers of a symbol path. */
struct source_texts {
	const struct incident *in;
	const char *symbol_path;
};
/* Sets path to a copy of the text; ctx is a struct source_texts. */
bool source_text_find(void *ctx, uint32_t module, const char *file, struct buf *path);
