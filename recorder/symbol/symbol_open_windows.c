/*
 * On Windows, ELF objects come from trace files only: they are looked for at their own path. Images
 * of Windows processes belong to the PE reader.
 */
#include "symbol/symbol_open.h"

#include "base/table.h"
#include "symbol/reader.h"

#include <string.h>

const struct symbol_reader *const symbol_readers[] = {&elf_reader, &pe_reader, &ksymbol_reader,
						     NULL};

bool symbol_path(const struct object *object, uint32_t pid, bool debug, unsigned which,
		 struct buf *path, bool *same_root)
{
	(void)pid;
	*same_root = false;
	buf_reset(path);
	buf_puts(path, object->key.path);
	return !debug && which == 0 && !path->failed;
}

bool symbol_link_path(const struct object *object, uint32_t pid, const char *name, unsigned which,
		      struct buf *path)
{
	(void)object;
	(void)pid;
	(void)name;
	(void)which;
	buf_reset(path);
	return false;
}

/* \\\\server\\share\\...: by server; a drive's letter says nothing about where its files are. */
uint64_t symbol_file_system(const struct object *object, uint32_t pid)
{
	const char *path = object->key.path;

	(void)pid;
	return strncmp(path, "\\\\", 2) ? 0 : hash_bytes(path, 2 + strcspn(path + 2, "\\"));
}

int symbol_vdso(struct bytes *out, struct err *err)
{
	(void)out;
	return err_set(err, ERR_UNSUPPORTED, "Windows processes have no vDSO");
}

int symbol_vdso32(struct buf *out, struct err *err)
{
	(void)out;
	return err_set(err, ERR_UNSUPPORTED, "Windows processes have no vDSO");
}

void symbol_start_text(uint32_t pid, size_t max, struct buf *arguments, struct buf *environment)
{
	(void)pid;
	(void)max;
	(void)arguments;
	(void)environment;
}

void symbol_jvm_data(uint32_t pid, size_t max, struct buf *out)
{
	(void)pid;
	(void)max;
	(void)out;
}

uint64_t symbol_process_identity(uint32_t pid)
{
	(void)pid;
	return 0;
}

bool symbol_process_now(uint32_t pid, struct symbol_process *out)
{
	(void)pid;
	(void)out;
	return false;
}

void symbol_cgroup(uint32_t pid, struct buf *out)
{
	(void)pid;
	(void)out;
}

void symbol_otel_context(uint32_t pid, size_t max, struct buf *out)
{
	(void)pid;
	(void)max;
	(void)out;
}

bool symbol_comm(uint32_t pid, char out[16])
{
	(void)pid;
	out[0] = '\0';
	return false;
}
