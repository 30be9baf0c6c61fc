#include "source/dotnet/images_linux.h"

#include "base/array.h"
#include "source/host/maps.h"
#include "source/host/proc_pid_linux.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPS_BYTES_MAX ((size_t)4 << 20)
#define ANSWER_NS (200 * NS_PER_MS)
#define PATH_BYTES 4096

struct reading {
	struct job job;
	uint32_t pid;
	struct dotnet_image *images;         /* its own */
	uint32_t n, room;
};

/* Shared libraries are native: what is precompiled lies in .dll files or in the program. */
static bool may_have_methods(const char *path)
{
	const char *base = strrchr(path, '/');

	return base && !strstr(base, ".so");
}

static void take_line(struct reading *r, char *line)
{
	static const char deleted[] = " (deleted)";
	struct dotnet_image image = {0};
	struct maps_line l;
	char *path;
	size_t n;

	if (!maps_line_read(line, &l) || !l.executable || l.path[0] != '/' || l.end <= l.start)
		return;
	path = l.path;
	n = strlen(path);
	if (n > sizeof(deleted) && strcmp(path + n - (sizeof(deleted) - 1), deleted) == 0)
		path[n - (sizeof(deleted) - 1)] = '\0';
	if (n >= PATH_BYTES || !may_have_methods(path) ||
	    ARRAY_ROOM(r->images, r->room, r->n + 1))
		return;
	image.start = l.start;
	image.pgoff = l.pgoff;
	image.bytes = l.end - l.start;
	image.path = strdup(path);
	if (image.path)
		r->images[r->n++] = image;
}

static void read_maps(struct job *job)
{
	struct reading *r = (struct reading *)job;
	struct buf text = {0};
	char *line, *end;

	if (proc_pid_load(r->pid, "maps", MAPS_BYTES_MAX, &text) && buf_text(&text))
		for (line = text.data; (end = strchr(line, '\n')) != NULL; line = end + 1) {
			*end = '\0';
			take_line(r, line);
		}
	buf_free(&text);
}

static void free_reading(struct job *job)
{
	struct reading *r = (struct reading *)job;

	dotnet_images_free(r->images, r->n);
	free(r);
}

void dotnet_images_read(struct pool *pool, uint32_t pid, struct dotnet_program *program)
{
	struct reading *r;

	if (!dotnet_program_wants_images(program) || !(r = calloc(1, sizeof(*r))))
		return;
	r->job = (struct job){.run = read_maps, .free = free_reading,
			      .what = "the mappings of a .NET program"};
	job_init(&r->job);
	r->pid = pid;
	if (!pool_ask(pool, pid, &r->job, ANSWER_NS)) {
		dotnet_program_want_images(program);
		return;
	}
	dotnet_program_images(program, r->images, r->n);
	r->images = NULL;
	r->n = 0;
	job_drop(&r->job);
}
