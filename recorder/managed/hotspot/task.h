/*
 * What a task reads of a JVM: tables, a blob, methods, an exception, or whether what is known still
 * holds.
 * Private to this folder.
 */
#pragma once

#include "managed/hotspot/blob.h"
#include "managed/hotspot/exception.h"
#include "managed/hotspot/method.h"
#include "managed/hotspot/unloads.h"

#define TASK_METHODS_MAX 130u                /* of two records */

#define CHANGES_UNKNOWN UINT64_MAX

enum hotspot_now { NOW_UNREADABLE, NOW_SAME, NOW_OTHER };

struct hotspot_check_blob {
	uint64_t start;
	struct hotspot_identity identity;
	enum hotspot_now now;
};

struct hotspot_check_method {
	struct hotspot_method method;        /* without texts */
	/* How many classes had come and gone when its class was looked at last; in and out. */
	uint64_t changes;
	enum hotspot_now now;
};

struct hotspot_task {
	struct managed_task base;
	struct hotspot_layout *layout;       /* a reference; hotspot_task_learn() sets it */

	uint64_t image_base;                 /* learn */
	int rc;
	struct err err;

	uint64_t pc;                         /* read a blob; 0 = none is wanted */
	struct hotspot_blob *blob;

	uint64_t wanted[TASK_METHODS_MAX];   /* read methods; a blob adds its own */
	struct hotspot_method methods[TASK_METHODS_MAX];     /* function NULL: there is none */
	uint32_t nmethods;

	struct hotspot_check_blob *check_blobs;              /* check */
	uint32_t ncheck_blobs;
	struct hotspot_check_method *check_methods;
	uint32_t ncheck_methods;

	uint64_t exception;                  /* read an exception object; 0 = none is wanted */
	struct hotspot_exceptions exceptions;
	struct managed_thrown *thrown;       /* owned; type "": there is none */

	bool counts;                         /* read the JVM's, though nothing else is wanted */
	uint64_t changes;                    /* of classes; read first */
	uint64_t collections;                /* so far; read last, and so is: */
	uint64_t unloads_at, unloads;        /* unloads_at 0: it is looked for, and so is: */
	uint64_t loads_at;
	uint64_t heap;                       /* that of objects, as read before; 0 = not yet */
};

/* A task that does nothing yet; layout: takes a reference, NULL allowed. NULL = no memory. */
struct hotspot_task *hotspot_task_new(struct hotspot_layout *layout);
void hotspot_task_free(struct hotspot_task *t);      /* NULL allowed */
