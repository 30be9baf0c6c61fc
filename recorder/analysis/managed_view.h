/*
 * More of managed frames than their names, from what incidents keep as their raw names and offsets
 * (managed/names.h): parameters, how a frame was run, file and line. Java frames have all of these.
 * One thread.
 */
#pragma once

#include "model/incident.h"

struct managed_view {
	bool parameters;         /* HashMap.getNode(Object) in place of HashMap.getNode */
	bool kinds;              /* with " [interpreted]", " [C1]", " [C2]" or " [native]" behind */
	bool lines;              /* file and line of frames (struct incident_frame) */
};

/* In place. returns  0 or ERR_MEMORY */
int managed_view_apply(struct incident *in, const struct managed_view *view, struct err *err);

/* Append "(int, Object[])" for "(I[Ljava/lang/Object;)V"; nothing when it is malformed. */
void managed_parameters(const char *signature, struct buf *out);

/*
 * The line of an index of bytecodes, by the detail of a name.
 * returns  false: it is not known; else *file is where the file's name begins, *nfile bytes
 */
bool managed_line(const char *detail, int32_t bci, const char **file, size_t *nfile,
		  uint32_t *line);
