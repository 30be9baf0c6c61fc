/*
 * Data within a page: zlib, then base64 in lines of 76 characters (RFC 4648, section 4), in a
 * script element that no browser runs. unpack() of report/data.js reads it.
 */
#pragma once

#include "base/out.h"

struct packer;

/* id: the element's, plain text. 0 or ERR_MEMORY. */
int packer_open(struct out *out, const char *id, struct packer **p, struct err *err);
void packer_put(struct packer *p, const void *bytes, size_t n);
/* Ends the element; NULL allowed. */
void packer_close(struct packer *p);
