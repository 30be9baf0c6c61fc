/* Bytes as a gzip file (RFC 1952) without a name or a time: the same bytes on every host. */
#ifndef EXPORT_GZIP_H
#define EXPORT_GZIP_H

#include "base/out.h"

int gzip_write(const struct buf *plain, struct out *out, struct err *err);   /* 0 or ERR_MEMORY */

#endif
