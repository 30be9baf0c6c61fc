#include "source/dump/dump_file.h"

#include "source/dump/core.h"
#include "source/dump/minidump.h"

#include <stdlib.h>
#include <string.h>

#define PART_BYTES ((size_t)1 << 20)
#define PAGE_BYTES 4096u

static bool is_zero(const uint8_t *bytes, size_t n)
{
	return !n || (!bytes[0] && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* Write a part, its pages of zeros left out. */
static int keep_part(struct os_file *file, const uint8_t *part, size_t n, uint64_t at,
		     uint64_t *kept, struct err *err)
{
	size_t from, page;
	int rc = 0;

	for (from = 0; !rc && from < n; from += page) {
		page = n - from < PAGE_BYTES ? n - from : PAGE_BYTES;
		if (is_zero(part + from, page))
			continue;
		rc = os_pwrite(file, part + from, page, at + from, err);
		*kept += page;
	}
	return rc;
}

static int fill_part(uint8_t *part, size_t *n, struct err *err)
{
	size_t got = 1;
	int rc = 0;

	for (*n = 0; !rc && got && *n < PART_BYTES; *n += got)
		rc = os_read_next(os_stdin(), part + *n, PART_BYTES - *n, &got, err);
	return rc;
}

/* What does not fit on the disk, or is over the limit, is read and dropped: the core is cut off. */
static int keep_pipe(struct os_file *file, uint64_t *size, struct err *err)
{
	uint8_t *part = malloc(PART_BYTES);
	uint64_t kept = 0;
	uint8_t last = 0;
	bool full = false;
	size_t n = 1;
	int rc = part ? 0 : err_memory(err, "for a core");

	for (*size = 0; !rc && n;) {
		rc = fill_part(part, &n, err);
		if (rc || full || !n)
			continue;
		full = kept > DUMP_PIPE_MAX_BYTES ||
		       keep_part(file, part, n, *size, &kept, NULL) != 0;
		if (!full) {
			*size += n;
			last = part[n - 1];
		}
	}
	if (!rc && *size)                    /* the file ends where the core does */
		rc = os_pwrite(file, &last, 1, *size - 1, err);
	free(part);
	return rc;
}

static int explain(const struct bytes *in, struct err *err)
{
	static const uint8_t packed[][4] = {{0x28, 0xb5, 0x2f, 0xfd}, {0x04, 0x22, 0x4d, 0x18},
					    {0xfd, '7', 'z', 'X'}};
	uint8_t head[4] = {0};
	size_t i;

	bytes_read(in, 0, head, sizeof(head), "its beginning", NULL);
	for (i = 0; i < sizeof(packed) / sizeof(*packed); i++)
		if (memcmp(head, packed[i], sizeof(head)) == 0)
			return err_set(err, ERR_FORMAT, "it is compressed: unpack it first, or "
				       "run 'coredumpctl dump PID | recorder stacks --core -'");
	return err_set(err, ERR_FORMAT, "it is neither a core dump of Linux nor a minidump of "
		       "Windows");
}

static int open_path(const char *path, struct dump_file *f, uint64_t *size, struct err *err)
{
	struct os_file_info info;
	int rc = os_open(path, OS_READ_PLAIN, &f->file, err);

	if (!rc)
		rc = os_file_info(f->file, &info, err);
	if (!rc) {
		*size = info.size_bytes;
		f->wall_ns = info.mtime_ns;
	}
	return rc;
}

int dump_file_open(const char *path, struct dump_file *out, struct err *err)
{
	struct dump_file f = {.wall_ns = os_wall_ns()};
	bool piped = strcmp(path, "-") == 0;
	struct bytes in = {0};
	uint64_t size = 0;
	int rc = piped ? os_temp(&f.file, err) : open_path(path, &f, &size, err);

	if (!rc && piped)
		rc = keep_pipe(f.file, &size, err);
	if (!rc) {
		in = bytes_of_file(f.file, size);
		rc = core_is(&in) ? core_read(&in, &f.dump, err)
		     : minidump_is(&in) ? minidump_read(&in, &f.dump, err) : explain(&in, err);
		if (rc)
			err_prefix(err, "%s", piped ? "standard input" : path);
	}
	if (rc)
		dump_file_close(&f);
	else
		*out = f;
	return rc;
}

void dump_file_close(struct dump_file *f)
{
	dump_free(f->dump);
	os_close(f->file);
	*f = (struct dump_file){0};
}
