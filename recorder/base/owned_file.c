#include "base/owned_file.h"

#include "base/os.h"

int owned_file_load(const char *path, bool secret, size_t max, struct buf *out, struct err *err)
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
	return rc;
}
