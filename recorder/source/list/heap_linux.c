#include "source/list/heap.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "source/host/proc_pid_linux.h"
#include "source/ring/heap_ring.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "librecorder-heap.so"
#define MAPS_BYTES (16u << 20)

static int find_library(struct buf *out, struct err *err)
{
	static const char *const folders[] = {"", "../lib/recorder/"};
	char self[512];
	struct buf folder = {0};
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	self[n > 0 ? n : 0] = '\0';
	os_dirname(self, &folder);
	for (i = 0; i < 2; i++) {
		buf_reset(out);
		buf_printf(out, "%s/%s" LIBRARY, buf_text(&folder), folders[i]);
		if (os_exists(buf_text(out)))
			break;
	}
	buf_free(&folder);
	if (i < 2)
		return buf_check(out, "the name of " LIBRARY, err);
	return err_set(err, ERR_NOT_FOUND, "--heap needs " LIBRARY ", which is neither beside %s "
		       "nor in ../lib/recorder: install it again", self);
}

static int add_probe(struct needs *needs, const char *library, const char *name, struct err *err)
{
	struct need_event e = {.provider = "usdt", .stack = true, .asked = true};
	int rc = needs_provider(needs, "usdt", UINT64_MAX, 4, err);

	snprintf(e.name, sizeof(e.name), "%s:%s", library, name);
	return rc ? rc : needs_event(needs, &e, err);
}

int heap_needs(const char *next, const char *process, struct needs *needs, struct err *err)
{
	static const char *const probes[] = {
		"otel_memory:alloc", "otel_memory:free",
		"recorder_heap:double_free", "recorder_heap:unknown_free",
	};
	struct buf library = {0};
	int rc;
	size_t i;

	(void)next;
	if (process)
		return err_set(err, ERR_UNSUPPORTED, "--heap-process needs Windows; on Linux use "
			       "'recorder run --heap --process %.100s'", process);
	rc = find_library(&library, err);
	for (i = 0; !rc && i < COUNT_OF(probes); i++)
		rc = add_probe(needs, buf_text(&library), probes[i], err);
	buf_free(&library);
	return rc;
}

static uint64_t inode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* variable: of it. returns  0 = there is none: probes tell all */
static int make_ring(struct buf *variable)
{
	struct heap_ring begin = {.pid_namespace = inode_of("/proc/self/ns/pid"),
				  .time_namespace = inode_of("/proc/self/ns/time")};
	int fd = memfd_create("recorder-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd > 0 && getrandom(&begin.nonce, sizeof(begin.nonce), 0) == sizeof(begin.nonce) &&
	    ftruncate(fd, HEAP_RING_PAGE_BYTES + HEAP_RING_DATA_BYTES) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
	    pwrite(fd, &begin, sizeof(begin), 0) == sizeof(begin)) {
		buf_printf(variable, HEAP_RING_VARIABLE "=/proc/%u/fd/%d:%" PRIx64,
			   (unsigned)getpid(), fd, begin.nonce);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return 0;
}

int heap_environment(uint64_t mean_bytes, struct heap_environment *out, struct err *err)
{
	const char *before = getenv("LD_PRELOAD");
	struct buf library = {0}, text = {0};
	int rc = find_library(&library, err);

	memset(out, 0, sizeof(*out));
	if (!rc) {
		buf_printf(&text, "LD_PRELOAD=%s%s%s", buf_text(&library),
			   before && *before ? ":" : "", before ? before : "");
		out->variables[0] = text_dup(buf_text(&text), SIZE_MAX);
		buf_reset(&text);
		buf_printf(&text, "RECORDER_HEAP_BYTES=%" PRIu64, mean_bytes ? mean_bytes : 1);
		out->variables[1] = text_dup(buf_text(&text), SIZE_MAX);
		buf_reset(&text);
		out->ring = make_ring(&text);
		out->variables[2] = out->ring ? text_dup(buf_text(&text), SIZE_MAX) : NULL;
		if (text.failed || !out->variables[0] || !out->variables[1])
			rc = err_memory(err, "for the environment of a program");
	}
	buf_free(&library);
	buf_free(&text);
	return rc;
}

void heap_environment_free(struct heap_environment *e)
{
	unsigned i;

	for (i = 0; i < HEAP_VARIABLES; i++)
		free(e->variables[i]);
	if (e->ring)
		close(e->ring);
	memset(e, 0, sizeof(*e));
}

int heap_sampler_of(uint32_t pid, enum heap_sampler *out, struct err *err)
{
	static const char *const files[] = {
		[HEAP_SAMPLER_OURS] = "/" LIBRARY,
		[HEAP_SAMPLER_JEMALLOC] = "/libjemalloc.so",
		[HEAP_SAMPLER_TCMALLOC] = "/libtcmalloc",
		[HEAP_SAMPLER_GO] = "\nc000000000-",         /* Go's malloc.go: arenaHints */
		[HEAP_SAMPLER_JAVA] = "/server/libjvm.so",
	};
	struct buf maps = {0};
	unsigned i;
	bool read = proc_pid_load(pid, "maps", MAPS_BYTES, &maps);

	*out = HEAP_SAMPLER_NONE;
	for (i = HEAP_SAMPLER_OURS; read && !*out && i < COUNT_OF(files); i++)
		if (strstr(buf_text(&maps), files[i]))
			*out = (enum heap_sampler)i;
	buf_free(&maps);
	return read ? 0 : err_set(err, ERR_NOT_FOUND, "the maps of process %u cannot be read, so "
				  "what samples its heap is not known: is it there, and yours?",
				  (unsigned)pid);
}

int heap_probe_malloc(uint32_t pid, struct buf *out, struct err *err)
{
	static const char *const files[] = {"/libjemalloc.so", "/libtcmalloc", "/libc.so.6",
					    "/ld-musl-"};
	struct buf maps = {0};
	const char *at = NULL, *path = NULL;
	unsigned i;

	proc_pid_load(pid, "maps", MAPS_BYTES, &maps);
	for (i = 0; !at && i < COUNT_OF(files); i++)
		at = strstr(buf_text(&maps), files[i]);
	for (path = at; path && path > buf_text(&maps) && path[-1] != ' '; path--)
		;
	if (path)
		buf_printf(out, "%suprobe:%.*s:malloc:@StacksEnabled=true;@ProcessIDFilter=%u",
			   out->len ? "," : "", (int)strcspn(path, "\n"), path, (unsigned)pid);
	buf_free(&maps);
	return path ? buf_check(out, "a probe on malloc", err)
		    : err_set(err, ERR_NOT_FOUND, "--force: process %u has neither the C library "
			      "nor jemalloc nor tcmalloc as a file of its own, so its malloc "
			      "cannot be probed; without --force page faults are recorded",
			      (unsigned)pid);
}

int heap_next_begin(const char *name, uint64_t mean_bytes, struct heap_next **out, struct err *err)
{
	struct buf library = {0};
	int rc = find_library(&library, err);

	if (!rc)
		rc = heap_next_begin_at(NULL, NULL, buf_text(&library), name,
					mean_bytes ? mean_bytes : 1, out, err);
	buf_free(&library);
	return rc;
}
