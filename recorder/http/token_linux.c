#include "http/token_linux.h"

#include "base/owned_file.h"

#include <string.h>

#define PEM_MAX 65536u

/* Whatever is wrong with a file that options name is wrong with the options. */
static int load(const char *path, bool secret, size_t max, struct buf *out, struct err *err)
{
	int rc = owned_file_load(path, secret, max, out, err);

	if (rc && err)
		err->code = ERR_USAGE;
	return rc ? ERR_USAGE : 0;
}

int token_load(const char *path, struct buf *out, struct err *err)
{
	int rc = load(path, true, TOKEN_MAX + 2, out, err);
	size_t n, i;

	if (rc)
		return rc;
	n = strcspn(buf_text(out), "\r\n");
	for (i = 0; i < n; i++)
		if (out->data[i] <= ' ' || out->data[i] > '~')
			break;
	if (n < TOKEN_MIN || n > TOKEN_MAX || i < n)
		return err_set(err, ERR_USAGE, "%.300s: its first line is no token: %u to %u "
			       "visible ASCII characters, such as those of `openssl rand -hex 16`",
			       path, TOKEN_MIN, TOKEN_MAX);
	out->data[n] = '\0';
	out->len = n;
	return 0;
}

bool token_same(const struct buf *token, const char *shown)
{
	size_t n = shown ? strlen(shown) : 0, i;
	unsigned char differ = n != token->len || !n;

	for (i = 0; i < token->len; i++)
		differ |= (unsigned char)(token->data[i] ^ (n ? shown[i % n] : 0));
	return !differ;
}

int pem_load(const char *path, bool key, struct buf *out, struct err *err)
{
	int rc = load(path, key, PEM_MAX, out, err);

	if (!rc && (!strstr(buf_text(out), "-----BEGIN ") || strlen(out->data) != out->len))
		rc = err_set(err, ERR_USAGE, "%.300s is no PEM file", path);
	return rc;
}
