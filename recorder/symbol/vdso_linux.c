/* The vDSO: the kernel's own library in each process. See symbol_open.h. */
#include "symbol/symbol_open.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MAP_VDSO_32 = 0x2002,           /* arch_prctl(2): arch/x86/include/uapi/asm/prctl.h */
	PAGE = 4096,
	PAGES = 24,                     /* of its data, 4 to 8, then of the library, 2 */
	OWN_MAX = 8,                    /* mappings of a process's vDSO; 3 in Linux 6.18 */
	MAPS_BYTES = 4 << 20,
};

/* Where the child maps it: below 4 GB, where no program built as ours is has anything. */
static const uintptr_t at_address = 0xf0000000u;

/* Its length is not given; the section headers are its last part (vdso(7), linux-vdso.so). */
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

/* ---- of 32-bit processes --------------------------------------------------------------------- */

struct range {
	uintptr_t start, end;
};

static bool is_of_vdso(const char *line)
{
	return !strchr(line, '/') && (strstr(line, "[vdso") || strstr(line, "[vvar"));
}

/* The mappings that belong to our own vDSO: [vdso], [vvar], [vvar_vclock]. */
static size_t find_own(struct range own[OWN_MAX])
{
	struct buf maps = {0};
	size_t n = 0;
	char *line, *next;

	if (os_load("/proc/self/maps", MAPS_BYTES, &maps, NULL) == 0 && maps.len) {
		for (line = maps.data; line && *line && n < OWN_MAX; line = next) {
			next = strchr(line, '\n');
			if (next)
				*next++ = '\0';
			if (is_of_vdso(line) && sscanf(line, "%" SCNxPTR "-%" SCNxPTR,
						       &own[n].start, &own[n].end) == 2)
				n++;
		}
	}
	buf_free(&maps);
	return n;
}

/*
 * In the child: only system calls, because another thread may hold any lock. A process has one vDSO
 * at most, so its own goes first. What is before the library may be unreadable.
 */
static void send_vdso32(const struct range *own, size_t n, int to)
{
	static const uint8_t nothing[PAGE];
	uintptr_t at;
	size_t i;

	for (i = 0; i < n; i++)
		syscall(SYS_munmap, own[i].start, own[i].end - own[i].start);
	if (syscall(SYS_arch_prctl, MAP_VDSO_32, at_address) > 0) {
		for (i = 0; i < PAGES; i++) {
			at = at_address + i * PAGE;
			if (syscall(SYS_write, to, at, PAGE) != PAGE)
				syscall(SYS_write, to, nothing, PAGE);
		}
	}
	syscall(SYS_exit_group, 0);
}

/* The child's pages, or fewer. */
static void take_pages(struct buf *pages)
{
	struct range own[OWN_MAX];
	size_t n = find_own(own);
	int ends[2];
	pid_t child;
	ssize_t got;

	if (pipe2(ends, O_CLOEXEC))
		return;
	child = fork();
	if (child == 0)
		send_vdso32(own, n, ends[1]);
	close(ends[1]);
	while (child > 0 && pages->len < PAGES * PAGE && buf_reserve(pages, PAGE)) {
		got = read(ends[0], pages->data + pages->len, PAGE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		pages->len += (size_t)got;
	}
	close(ends[0]);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Copy the first library of these pages. */
static bool copy_library(const struct buf *pages, struct buf *out)
{
	Elf32_Ehdr header;
	size_t at, n;

	for (at = 0; at + PAGE <= pages->len; at += PAGE) {
		memcpy(&header, pages->data + at, sizeof(header));
		if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
		    header.e_ident[EI_CLASS] != ELFCLASS32)
			continue;
		n = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
		if (n > pages->len - at)
			return false;
		buf_put(out, pages->data + at, n);
		return !out->failed;
	}
	return false;
}

int symbol_vdso32(struct buf *out, struct err *err)
{
	struct buf pages = {0};
	bool copied;

	take_pages(&pages);
	copied = copy_library(&pages, out);
	buf_free(&pages);
	if (copied)
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "this kernel does not give its 32-bit vDSO to a "
		       "64-bit process (CONFIG_CHECKPOINT_RESTORE)");
}
