#include "http/token_linux.h"

#include "base/os.h"

#include <string.h>

#define PEM_MAX 65536u

/* A file that only its owner, or root, can have written; secret: or read. */
static int load(const char *path, bool secret, size_t max, struct buf *out, struct err *err)
{
	struct os_file *file = NULL;
	struct os_file_info info;
	int rc = os_open(path, OS_READ_PLAIN, &file, err);

	if (!rc)
		rc = os_file_info(file, &info, err);
	if (!rc && info.uid != os_uid() && info.uid != 0)
		rc = err_set(err, ERR_USAGE, "%.300s belongs to user %u: it must be yours or "
			     "root's", path, (unsigned)info.uid);
	if (!rc && secret && (info.mode & 077))
		rc = err_set(err, ERR_USAGE, "%.300s: others can read it: chmod 600 it", path);
	if (!rc)
		rc = os_read_all(file, max, out, err);
	os_close(file);
	if (rc && err)
		err->code = ERR_USAGE;       /* whatever is wrong with a file that options name */
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
