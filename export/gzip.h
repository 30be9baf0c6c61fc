/* Bytes as a gzip file (RFC 1952) without a name or a time: the same bytes on every host. */
#pragma once

#include "base/out.h"

int gzip_write(const struct buf *plain, struct out *out, struct err *err);   /* 0 or ERR_MEMORY */
