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
	int (*find_source)(void *client, const unsigned char *build_id, int n, const char *file,
			   char **path);
	void (*end)(void *client);
};

static const char *const names[] = {"debuginfod_begin", "debuginfod_find_debuginfo",
				    "debuginfod_find_executable", "debuginfod_find_source",
				    "debuginfod_end", NULL};

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

static int why_none(int fd, struct err *err)
{
	if (fd == -ENOENT || fd == -ENOSYS)
		return err_set(err, ERR_NOT_FOUND, "no server has it");
	errno = -fd;
	return err_os(err, "debuginfod");
}

/* CACHE/ID/executable -> CACHE */
static void add_cache(struct buf *dirs, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct buf cache = {0};

	while (slash && slash > path && *--slash != '/')
		continue;
	buf_put(&cache, path, slash ? (size_t)(slash - path) : 0);
	if (cache.len && !strstr(buf_text(dirs), buf_text(&cache)))
		buf_printf(dirs, "%s%s", dirs->len ? ";" : "", buf_text(&cache));
	buf_free(&cache);
}

int debuginfod_fetch(struct debuginfod *d, const uint8_t *build_id, unsigned n, struct buf *dirs,
		     struct err *err)
{
	unsigned debug;
	int rc = ERR_NOT_FOUND;

	for (debug = 0; debug < 2; debug++) {
		char *path = NULL;
		int fd = (debug ? d->lib.find_debuginfo : d->lib.find_executable)(
			d->client, build_id, (int)n, &path);

		if (fd < 0 && rc)
			rc = why_none(fd, err);
		if (fd < 0)
			continue;
		rc = 0;
		close(fd);
		add_cache(dirs, path);
		free(path);
	}
	return rc;
}

int debuginfod_fetch_source(struct debuginfod *d, const uint8_t *build_id, unsigned n,
			    const char *file, struct buf *path, struct err *err)
{
	char *found = NULL;
	int fd = d->lib.find_source(d->client, build_id, (int)n, file, &found);

	if (fd < 0)
		return why_none(fd, err);
	close(fd);
	buf_reset(path);
	buf_puts(path, found);
	free(found);
	return 0;
}
