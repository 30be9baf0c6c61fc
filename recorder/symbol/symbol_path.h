/*
 * Symbol paths as in Microsoft's tools (_NT_SYMBOL_PATH): elements separated by ';', each a
 * directory, or a server with its local stores: srv*C:\sym*https://..., symsrv*DLL*...,
 * cache*C:\sym. Portable; any thread. Source: Microsoft's "Advanced SymSrv Use".
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* A part of a path's text; no NUL follows it. */
struct symbol_element {
	const char *text;
	size_t nbytes;
};

/* The next element that is not empty, from *at on (NULL allowed); false at the end. */
bool symbol_path_next(const char **at, struct symbol_element *out);

/* The i-th directory (from 0) of an element: itself; in "srv*C:\sym*https://..." only C:\sym. */
bool symbol_path_directory(const struct symbol_element *element, unsigned i,
			   struct symbol_element *out);

/* Does it name a server? */
bool symbol_path_is_server(const struct symbol_element *element);

/* Split a path (NULL allowed): servers of debuginfod, separated by blanks, and the rest, by ';'. */
void symbol_path_split(const char *path, struct buf *others, struct buf *servers);
