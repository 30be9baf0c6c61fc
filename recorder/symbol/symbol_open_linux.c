#include "symbol/symbol_open.h"

#include "model/process.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

static const char deleted[] = " (deleted)";

/* /proc/PID/maps appends " (deleted)"; the path may have been filled again since. */
static size_t path_length(const char *path)
{
	size_t n = strlen(path), tail = sizeof(deleted) - 1;

	return n > tail && !strcmp(path + n - tail, deleted) ? n - tail : n;
}

bool symbol_path(const struct object *object, uint32_t pid, unsigned which, struct buf *path,
		 bool *same_root)
{
	const char *name = object->key.path;

	buf_reset(path);
	*same_root = which != 1;
	if (name[0] != '/' || (!pid && which != 1))
		return false;
	switch (which) {
	case 0:                                /* in the process's mount namespace and root */
		buf_printf(path, "/proc/%" PRIu32 "/root", pid);
		buf_put(path, name, path_length(name));
		break;
	case 1:                                /* in ours: the process may be gone */
		buf_put(path, name, path_length(name));
		break;
	case 2:                                /* a program that was deleted while it runs */
		buf_printf(path, "/proc/%" PRIu32 "/exe", pid);
		break;
	default:
		return false;
	}
	return !path->failed;
}

/* As gdb looks for it: GDB manual, "Debugging Information in Separate Files". */
bool symbol_debug_path(const struct object *object, uint32_t pid, unsigned which, struct buf *path,
		       bool *same_root)
{
	const struct object_key *key = &object->key;
	unsigned i;

	buf_reset(path);
	*same_root = which == 0;
	if (key->build_id_bytes < 2 || which > 1 || (which == 0 && !pid))
		return false;
	if (which == 0)
		buf_printf(path, "/proc/%" PRIu32 "/root", pid);
	buf_printf(path, "/usr/lib/debug/.build-id/%02x/", key->build_id[0]);
	for (i = 1; i < key->build_id_bytes; i++)
		buf_printf(path, "%02x", key->build_id[i]);
	buf_puts(path, ".debug");
	return !path->failed;
}

/* Its length is not told; the section headers are the last thing in it (vdso(7), linux-vdso.so). */
int symbol_vdso(struct bytes *out, struct err *err)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);

	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_CLASS] != ELFCLASS64)
		return err_set(err, ERR_UNSUPPORTED, "this process has no 64-bit vDSO");
	*out = bytes_of_memory(header, header->e_shoff +
				       (size_t)header->e_shnum * header->e_shentsize);
	return 0;
}

int symbol_cmdline(uint32_t pid, struct buf *out, struct err *err)
{
	char path[64], text[PROCESS_CMDLINE_MAX];
	struct os_file *file = NULL;
	size_t n = 0, i;
	int rc;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cmdline", pid);
	rc = os_open(path, OS_READ, &file, err);
	if (!rc)
		rc = os_pread(file, text, sizeof(text), 0, &n, err);
	os_close(file);
	while (n && !text[n - 1])
		n--;
	for (i = 0; i < n; i++) {
		if (!text[i])
			text[i] = ' ';
	}
	buf_put(out, text, rc ? 0 : n);
	return rc ? rc : buf_check(out, path, err);
}

bool symbol_comm(uint32_t pid, char out[16])
{
	struct buf text = {0};
	char path[64];
	bool known;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	known = os_load(path, 256, &text, NULL) == 0 && text.len;
	snprintf(out, 16, "%.*s", (int)strcspn(buf_text(&text), "\n"), buf_text(&text));
	buf_free(&text);
	return known;
}
