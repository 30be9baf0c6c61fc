#include "source/dotnet/images_linux.h"

#include "base/array.h"
#include "base/text.h"
#include "source/host/maps.h"
#include "source/host/proc_pid_linux.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPS_MAX_BYTES ((size_t)4 << 20)
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

static bool take_mapping(void *ctx, const struct maps_line *l)
{
	static const char deleted[] = " (deleted)";
	struct reading *r = ctx;
	struct dotnet_image image = {
		.start = l->start, .pgoff = l->pgoff, .bytes = l->end - l->start};
	size_t n = strlen(l->path);

	if (l->path[0] != '/')
		return true;
	if (n > sizeof(deleted) && strcmp(l->path + n - (sizeof(deleted) - 1), deleted) == 0)
		n -= sizeof(deleted) - 1;
	image.path = n < PATH_BYTES ? text_dup(l->path, n) : NULL;
	if (!image.path || !may_have_methods(image.path) ||
	    ARRAY_ROOM(r->images, r->room, r->n + 1))
		free(image.path);
	else
		r->images[r->n++] = image;
	return true;
}

static void read_maps(struct job *job)
{
	struct reading *r = (struct reading *)job;

	proc_pid_code(r->pid, MAPS_MAX_BYTES, take_mapping, r);
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
