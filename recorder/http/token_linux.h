/* The token that clients show: the first line of a file that only its owner can read. */
#pragma once

#include "base/buf.h"

#define TOKEN_MIN 16u
#define TOKEN_MAX 256u

/*
 * Read it. ERR_USAGE: the file is no regular file of ours or root's, others can read it, or it
 * holds no token.
 */
int token_load(const char *path, struct buf *out, struct err *err);
/* Compare; the time that it takes says nothing about where they differ. shown NULL = no. */
bool token_same(const struct buf *token, const char *shown);
/* A PEM file, for the library; key: nobody else may read it. */
int pem_load(const char *path, bool key, struct buf *out, struct err *err);
