/*
 * What symbol/lines.h finds at addresses, in the form of `addr2line -a -f -i`, to compare the two:
 *
 *	lines_at_linux FILE [--offsets] < hexadecimal addresses, ascending, one a line
 *
 * With --offsets they are file offsets, as frames have them; else addresses as in the file's symbol
 * table. For each: the address (0x, 16 digits), then two lines per function, innermost first: its
 * name or ??, and FILE:LINE (??:0 when unknown).
 */
#include "symbol/elf_file.h"
#include "symbol/lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1000000 };

struct addresses {
	uint64_t *asked, *offsets;
	uint32_t n;
};

static int read_head(const char *path, struct elf_head *head, struct err *err)
{
	struct os_file_info info;
	struct os_file *file = NULL;
	struct bytes bytes;
	int rc = os_open(path, OS_READ, &file, err);

	if (!rc)
		rc = os_file_info(file, &info, err);
	if (!rc) {
		bytes = bytes_of_file(file, info.size_bytes);
		rc = elf_head_read(&bytes, head, err);
	}
	os_close(file);
	return rc;
}

static int read_addresses(const struct elf_head *head, bool are_offsets, struct addresses *out,
			  struct err *err)
{
	char line[64];

	out->asked = calloc(MOST, sizeof(*out->asked));
	out->offsets = calloc(MOST, sizeof(*out->offsets));
	if (!out->asked || !out->offsets)
		return err_memory(err, "for this program");
	for (; out->n < MOST && fgets(line, sizeof(line), stdin); out->n++) {
		uint64_t v = strtoull(line, NULL, 16);

		out->offsets[out->n] = v;
		if (are_offsets ? !elf_vaddr(head, v, &out->asked[out->n])
				: !elf_offset(head, v, &out->offsets[out->n]))
			return err_set(err, ERR_USAGE, "%s is no address of the file", line);
		if (!are_offsets)
			out->asked[out->n] = v;
	}
	return 0;
}

static void print(const struct addresses *a, const struct lines *l)
{
	uint32_t i, k;

	for (i = 0; i < a->n; i++) {
		const struct incident_expansion *e = &l->of_offset[i];

		printf("0x%016" PRIx64 "\n", a->asked[i]);
		for (k = e->n; k-- > 0;) {
			const struct incident_line *line = &l->lines[e->first + k];

			printf("%s\n%s:%" PRIu32 "\n", line->function ? line->function : "??",
			       line->file ? line->file : "??", line->line);
		}
		if (!e->n)
			printf("??\n??:0\n");
	}
}

int main(int argc, char **argv)
{
	struct object object = {.key = {.kind = OBJECT_ELF, .path = argc > 1 ? argv[1] : ""}};
	bool are_offsets = argc > 2 && strcmp(argv[2], "--offsets") == 0;
	struct addresses a = {0};
	struct elf_head head;
	struct lines lines = {0};
	struct err err = {0};
	int rc = read_head(object.key.path, &head, &err);

	if (!rc) {
		object.key.build_id_bytes = head.build_id_bytes;
		memcpy(object.key.build_id, head.build_id, head.build_id_bytes);
		rc = read_addresses(&head, are_offsets, &a, &err);
	}
	if (!rc)
		rc = lines_read(&object, 0, NULL, a.offsets, a.n, UINT64_MAX, &lines, &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	else if (lines.state != LINES_FOUND)
		fprintf(stderr, "state %d: %s\n", (int)lines.state, lines.why);
	else
		print(&a, &lines);
	rc = rc || lines.state != LINES_FOUND;
	lines_free(&lines);
	free(a.asked);
	free(a.offsets);
	return rc;
}
