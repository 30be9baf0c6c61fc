/* Small things done with NUL-terminated texts. Any thread. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A copy of at most max_bytes (SIZE_MAX = all of it), from malloc; NULL = no memory. */
char *text_dup(const char *text, size_t max_bytes);

/*
 * What follows the last separator of a recorded path that something follows; points into it. A path that
 * begins with '/' is a Unix one, where '\' is a letter like others; in the rest both separate. For files of
 * this host there is os_base_name().
 */
const char *text_base_name(const char *path);

/* Whether two texts are the same, leaving the case of ASCII letters aside. */
bool text_same_fold(const char *a, const char *b);

#endif
