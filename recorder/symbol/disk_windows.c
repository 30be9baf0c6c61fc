/* Windows programs have their function names in PDB files, which their reader opens in place. */
#include "symbol/disk.h"

#include <string.h>

int symbol_disk_open(const char *dir, uint64_t max_bytes, struct symbol_disk **out, struct err *err)
{
	(void)dir;
	(void)max_bytes;
	(void)out;
	return err_set(err, ERR_UNSUPPORTED, "there is no symbol cache on disk on Windows");
}

void symbol_disk_close(struct symbol_disk *disk)
{
	(void)disk;
}

int symbol_disk_get(struct symbol_disk *disk, const struct object_key *key, struct os_file **out,
		    struct err *err)
{
	(void)disk;
	(void)key;
	(void)out;
	return err_set(err, ERR_UNSUPPORTED, "there is no symbol cache on disk on Windows");
}

int symbol_disk_put(struct symbol_disk *disk, const struct object_key *key, const void *bytes,
		    size_t n, struct err *err)
{
	(void)disk;
	(void)key;
	(void)bytes;
	(void)n;
	return err_set(err, ERR_UNSUPPORTED, "there is no symbol cache on disk on Windows");
}

void symbol_disk_drop(struct symbol_disk *disk, const struct object_key *key)
{
	(void)disk;
	(void)key;
}

void symbol_disk_use(const struct symbol_disk *disk, struct symbol_disk_use *out)
{
	(void)disk;
	memset(out, 0, sizeof(*out));
}
