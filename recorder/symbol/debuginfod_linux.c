/* Source of the functions: elfutils 0.188, debuginfod/debuginfod.h; building needs no header. */
#include "symbol/debuginfod.h"

#include "base/library_linux.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct library {
	void *(*begin)(void);
	int (*find_debuginfo)(void *client, const unsigned char *build_id, int n, char **path);
	int (*find_executable)(void *client, const unsigned char *build_id, int n, char **path);
	void (*end)(void *client);
};

static const char *const names[] = {"debuginfod_begin", "debuginfod_find_debuginfo",
				    "debuginfod_find_executable", "debuginfod_end", NULL};

struct debuginfod {
	struct library lib;
	void *client;
};

int debuginfod_open(const char *urls, struct debuginfod **out, struct err *err)
{
	struct debuginfod *d = calloc(1, sizeof(*d));
	const char *missing;

	if (!d)
		return err_memory(err, "for debuginfod");
	missing = library_load("libdebuginfod.so.1", names, &d->lib);
	if (missing) {
		free(d);
		return err_set(err, ERR_UNSUPPORTED, "%s is missing, which asks servers for debug "
			       "files: install libdebuginfod1 (Debian), elfutils-debuginfod-client "
			       "(Fedora)", missing);
	}
	/* The library has no other way to be told. */
	if (setenv("DEBUGINFOD_URLS", urls, 1) || !(d->client = d->lib.begin())) {
		free(d);
		return err_memory(err, "for debuginfod");
	}
	*out = d;
	return 0;
}

void debuginfod_close(struct debuginfod *d)
{
	if (!d)
		return;
	d->lib.end(d->client);
	free(d);
}

/* CACHE/ID/executable -> CACHE */
static void put_cache(struct buf *out, const char *path)
{
	const char *slash = strrchr(path, '/');

	while (slash && slash > path && *--slash != '/')
		continue;
	buf_reset(out);
	buf_put(out, path, slash ? (size_t)(slash - path) : 0);
}

int debuginfod_fetch(struct debuginfod *d, const uint8_t *build_id, unsigned n, bool debug,
		     struct buf *cache, struct err *err)
{
	char *path = NULL;
	int fd = (debug ? d->lib.find_debuginfo : d->lib.find_executable)(d->client, build_id,
									  (int)n, &path);

	if (fd >= 0) {
		close(fd);
		put_cache(cache, path);
		free(path);
		return 0;
	}
	if (fd == -ENOENT || fd == -ENOSYS)
		return err_set(err, ERR_NOT_FOUND, "no server has it");
	errno = -fd;
	return err_os(err, "debuginfod");
}
