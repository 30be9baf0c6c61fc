#include "symbol/symbol_open.h"

#include "base/table.h"
#include "model/home.h"
#include "model/process.h"
#include "symbol/otel.h"
#include "symbol/reader.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

const struct symbol_reader *const symbol_readers[] = {&elf_reader, &pe_reader, &ksymbol_reader,
						     &kallsyms_reader, &perfmap_reader, NULL};

/* Load /proc/PID/name, at most max bytes; what cannot be read stays empty. */
static bool load_proc(uint32_t pid, const char *name, size_t max, struct buf *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, name);
	return os_load(path, max, out, NULL) == 0 && out->len;
}

static const char deleted[] = " (deleted)";

/* /proc/PID/maps appends " (deleted)"; another file may be at the path by now. */
static size_t path_length(const char *path)
{
	size_t n = strlen(path), tail = sizeof(deleted) - 1;

	return n > tail && !strcmp(path + n - tail, deleted) ? n - tail : n;
}

/*
 * The root of the machine, where it is another than ours: for programs outside a container of ours
 * that have gone. It is that of the first process, and of kthreadd, which can be looked at where
 * the first process may not be. They are theirs in the machine's pid namespace only; in another
 * one, elf_file.c sees that the file is not the one that was mapped.
 */
static bool put_machine_root(struct buf *path)
{
	static const char *const roots[] = {"/proc/1/root", "/proc/2/root"};
	struct stat machine, own;
	size_t i = 0;

	while (i < 2 && stat(roots[i], &machine) != 0)
		i++;
	if (i == 2 || stat("/", &own) != 0 ||
	    (machine.st_dev == own.st_dev && machine.st_ino == own.st_ino))
		return false;
	buf_puts(path, roots[i]);
	return true;
}

/* In the places where gdb looks: GDB manual, "Debugging Information in Separate Files". */
static bool debug_path(const struct object_key *key, uint32_t pid, unsigned which, struct buf *path,
		       bool *same_root)
{
	unsigned i;

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

bool symbol_path(const struct object *object, uint32_t pid, bool debug, unsigned which,
		 struct buf *path, bool *same_root)
{
	const char *name = object->key.path;

	buf_reset(path);
	if (debug)
		return debug_path(&object->key, pid, which, path, same_root);
	*same_root = which == 0 || which == SYMBOL_PROGRAM;
	if (name[0] != '/' || (!pid && *same_root) ||
	    (which == SYMBOL_MACHINE && !put_machine_root(path)))
		return false;
	/* In the process's mount namespace and root; in ours, because the process may have gone. */
	if (which == 0)
		buf_printf(path, "/proc/%" PRIu32 "/root", pid);
	if (which == SYMBOL_PROGRAM)           /* a running program that was deleted */
		buf_printf(path, "/proc/%" PRIu32 "/exe", pid);
	else
		buf_put(path, name, path_length(name));
	return !path->failed;
}

bool symbol_link_path(const struct object *object, uint32_t pid, const char *name, unsigned which,
		      struct buf *path)
{
	static const char *const before[] = {"", "", "/usr/lib/debug"};
	static const char *const between[] = {"", ".debug/", ""};
	const char *of = object->key.path, *slash = strrchr(of, '/');

	buf_reset(path);
	if (of[0] != '/' || !slash || which >= SYMBOL_LINKS || (which < 3 && !pid))
		return false;
	if (which < 3)
		buf_printf(path, "/proc/%" PRIu32 "/root", pid);
	buf_puts(path, before[which % 3]);
	buf_put(path, of, (size_t)(slash + 1 - of));
	buf_puts(path, between[which % 3]);
	buf_puts(path, name);
	return !path->failed;
}

/* ---- file systems ---------------------------------------------------------------------------- */

#define PATH_MAX_BYTES 4096u
#define MOUNTS_MAX_BYTES ((size_t)4 << 20)       /* a host of 1,000 containers has 1 MB */

/*
 * How many bytes of the path a mount point covers, 0 = none; it ends at a blank, and blanks in it
 * are written \040.
 */
static size_t covered(const char *point, const char *path)
{
	unsigned octal = 0;
	size_t n = 0;

	for (; *point && *point != ' '; n++) {
		bool is_escaped = *point == '\\' && sscanf(point, "\\%3o", &octal) == 1;

		if (path[n] != (is_escaped ? (char)octal : *point))
			return 0;
		point += is_escaped ? 4 : 1;
	}
	return n == 1 || !path[n] || path[n] == '/' ? n : 0;
}

/* The last that covers most of the path; proc(5), mountinfo: ID parent major:minor root point. */
static uint64_t mounted_on(const char *mounts, const char *path)
{
	unsigned major, minor;
	uint64_t device = 0;
	size_t most = 0, n;
	int at;

	for (; mounts; mounts = (mounts = strchr(mounts, '\n')) ? mounts + 1 : NULL) {
		at = 0;
		if (sscanf(mounts, "%*u %*u %u:%u %*s %n", &major, &minor, &at) < 2 || !at)
			continue;
		n = covered(mounts + at, path);
		if (n && n >= most) {
			most = n;
			device = makedev(major, minor);
		}
	}
	return device;
}

/*
 * The kernel's records with a build id name no device; then the path tells. A perf map counts as
 * where its program is, which is looked at (symbol_process_identity()).
 */
uint64_t symbol_file_system(const struct object *object, uint32_t pid)
{
	const struct object_key *key = &object->key;
	char path[PATH_MAX_BYTES], link[64];
	struct buf text = {0};
	uint64_t device = 0;
	ssize_t n;

	if (key->kind == OBJECT_ELF && key->dev)
		return key->dev;
	snprintf(path, sizeof(path), "%s", key->kind == OBJECT_ELF ? key->path : "");
	if (key->kind == OBJECT_JIT) {
		pid = key->pid;
		snprintf(link, sizeof(link), "/proc/%" PRIu32 "/exe", pid);
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
	}
	if (path[0] == '/' && ((pid && load_proc(pid, "mountinfo", MOUNTS_MAX_BYTES, &text)) ||
			       load_proc(os_pid(), "mountinfo", MOUNTS_MAX_BYTES, &text)))
		device = mounted_on(buf_text(&text), path);
	buf_free(&text);
	return device;
}

/* ---- perf maps ------------------------------------------------------------------------------- */

#define CLOCK_SLACK_NS (2 * NS_PER_SEC)   /* ticks, coarse file times, an adjusted clock */
#define STAT_MAX_BYTES ((size_t)65536)

/* Its user, and its pid in its own namespace: proc(5), Uid (real, effective, ...) and NSpid. */
static bool read_status(uint32_t pid, uint32_t *uid, uint32_t *own_pid)
{
	struct buf text = {0};
	const char *line;
	unsigned long n;
	bool known = false;
	char *end;

	*own_pid = pid;
	if (load_proc(pid, "status", STAT_MAX_BYTES, &text) &&
	    (line = strstr(buf_text(&text), "\nUid:\t")) != NULL) {
		known = sscanf(line, "\nUid:\t%*u\t%" SCNu32, uid) == 1;
		line = strstr(line, "\nNSpid:");
		line = line ? line + strlen("\nNSpid:") : "";
		/* From the outermost namespace to its own. */
		for (; *line == '\t'; line = end) {
			n = strtoul(line + 1, &end, 10);
			if (end == line + 1)
				break;
			*own_pid = (uint32_t)n;
		}
	}
	buf_free(&text);
	return known;
}

/* false: some kernels write a backslash as two, and a line feed as \n, and others do not. */
static bool take_comm(const char *at, const char *end, char comm[16])
{
	size_t n = (size_t)(end - at), line = strcspn(at, "\n");

	if (memchr(at, '\\', n))
		return false;
	snprintf(comm, 16, "%.*s", (int)(line < n ? line : n), at);
	return true;
}

/*
 * When it started: proc(5), stat, field 22, in ticks since boot. 0 = no such process.
 *
 * comm     its short name, as symbol_comm() gives it; NULL: not asked for
 */
static uint64_t started_ticks(uint32_t pid, char comm[16])
{
	struct buf text = {0};
	const char *at = NULL, *name;
	uint64_t ticks = 0;
	unsigned field;

	if (load_proc(pid, "stat", STAT_MAX_BYTES, &text))
		at = strrchr(buf_text(&text), ')');
	name = at && comm ? strchr(buf_text(&text), '(') : NULL;
	if (name && name < at && !take_comm(name + 1, at, comm))
		symbol_comm(pid, comm);
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		ticks = strtoull(at, NULL, 10);
	buf_free(&text);
	return ticks;
}

/* How long it has run, if it started so many ticks after the machine; 0 = unknown. */
static uint64_t age_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);
	struct timespec boot;
	uint64_t up_ns;

	if (!ticks || hz <= 0 || clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
		return 0;
	up_ns = (uint64_t)boot.tv_sec * NS_PER_SEC + (uint64_t)boot.tv_nsec;
	return up_ns - ticks * (NS_PER_SEC / (uint64_t)hz);
}

/* When it started by the wall clock; 0 = unknown. */
static uint64_t started_wall_ns(uint32_t pid)
{
	uint64_t ns = age_ns(started_ticks(pid, NULL));

	return ns ? os_wall_ns() - ns : 0;
}

/* A program whose exe we may not look at is identified by its start alone. */
static uint64_t identity_of(uint32_t pid, uint64_t ticks)
{
	struct os_file_info exe = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/exe", pid);
	if (ticks)
		os_path_info(path, &exe, NULL);
	return ticks ? hash_pair(ticks, hash_pair(exe.dev, exe.ino)) | 1 : 0;
}

uint64_t symbol_process_identity(uint32_t pid)
{
	return identity_of(pid, started_ticks(pid, NULL));
}

bool symbol_process_now(uint32_t pid, struct symbol_process *out)
{
	uint64_t ticks, ns;

	*out = (struct symbol_process){.identity = 0};
	ticks = started_ticks(pid, out->comm);
	ns = age_ns(ticks);
	out->identity = identity_of(pid, ticks);
	out->start_ns = ns ? os_now_ns() - ns : 0;
	return ticks != 0;
}

static int check_perf_map(uint32_t pid, uint32_t uid, const char *path,
			  const struct os_file_info *info, struct err *err)
{
	if (info->uid != 0 && info->uid != uid)
		return err_set(err, ERR_ACCESS,
			       "%s belongs to user %u, not to the process's user %u", path,
			       (unsigned)info->uid, (unsigned)uid);
	if (info->mtime_ns + CLOCK_SLACK_NS < started_wall_ns(pid))
		return err_set(err, ERR_NOT_FOUND, "%s is older than the process", path);
	return 0;
}

int symbol_perf_map(uint32_t pid, struct os_file **out, struct err *err)
{
	struct os_file_info info;
	struct os_file *file = NULL;
	uint32_t uid, own_pid;
	char path[96];
	int rc;

	if (!pid || !read_status(pid, &uid, &own_pid))
		return err_set(err, ERR_NOT_FOUND, "there is no process %" PRIu32, pid);
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root/tmp/perf-%" PRIu32 ".map", pid,
		 own_pid);
	rc = os_open(path, OS_READ_NO_LINK, &file, err);
	/* "Not allowed to look" counts the same: nothing says that there is a map. */
	if (rc && !os_exists(path))
		return err_set(err, ERR_NOT_FOUND, "no perf map is visible at %s", path);
	if (!rc)
		rc = os_file_info(file, &info, err);
	if (!rc)
		rc = check_perf_map(pid, uid, path, &info, err);
	if (rc)
		os_close(file);
	else
		*out = file;
	return rc;
}

#define CGROUPS_MAX_BYTES ((size_t)65536)        /* 14 lines at most of some 200 bytes */
#define MAPS_MAX_BYTES ((size_t)16 << 20)        /* of the list of mappings; a JVM's takes 30 KB */

/* ---- what a process is called ---------------------------------------------------------------- */

void symbol_start_text(uint32_t pid, size_t max, struct buf *arguments, struct buf *environment)
{
	load_proc(pid, "cmdline", max, arguments);
	load_proc(pid, "environ", max, environment);
}

/* [start, end) of the first mapping whose line contains the text; false when there is none. */
static bool find_mapping(uint32_t pid, const char *text, uint64_t *start, uint64_t *end)
{
	struct buf maps = {0};
	const char *hit, *line;
	bool found = false;

	load_proc(pid, "maps", MAPS_MAX_BYTES, &maps);
	hit = strstr(buf_text(&maps), text);
	if (hit) {
		for (line = hit; line > maps.data && line[-1] != '\n'; line--)
			;
		found = sscanf(line, "%" SCNx64 "-%" SCNx64, start, end) == 2;
	}
	buf_free(&maps);
	return found && *start < *end;
}

/* returns  how many of n bytes of its memory could be read */
static size_t read_memory(uint32_t pid, uint64_t from, void *to, size_t n)
{
	struct iovec here = {to, n}, there = {(void *)(uintptr_t)from, n};
	ssize_t got = process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);

	return got > 0 ? (size_t)got : 0;
}

void symbol_jvm_data(uint32_t pid, size_t max, struct buf *out)
{
	uint64_t start, end;

	if (!find_mapping(pid, "/hsperfdata_", &start, &end) || end - start > max ||
	    !buf_reserve(out, (size_t)(end - start)))
		return;
	out->len += read_memory(pid, start, out->data + out->len, (size_t)(end - start));
}

void symbol_cgroup(uint32_t pid, struct buf *out)
{
	struct buf text = {0};

	if (load_proc(pid, "cgroup", CGROUPS_MAX_BYTES, &text))
		home_put_cgroup(buf_text(&text), out);
	buf_free(&text);
}

/* The same header before and after: the payload between was not being changed. */
void symbol_otel_context(uint32_t pid, size_t max, struct buf *out)
{
	uint8_t header[OTEL_HEADER_BYTES], again[OTEL_HEADER_BYTES];
	size_t n = 0, got, before = out->len;
	uint64_t start, end, at;

	if (!find_mapping(pid, ":OTEL_CTX", &start, &end) ||
	    read_memory(pid, start, header, sizeof(header)) != sizeof(header) ||
	    !otel_header(header, &at, &n) || n > max || !buf_reserve(out, n))
		return;
	got = read_memory(pid, at, out->data + out->len, n);
	if (got == n && read_memory(pid, start, again, sizeof(again)) == sizeof(again) &&
	    memcmp(header, again, sizeof(header)) == 0)
		out->len = before + n;
}

bool symbol_comm(uint32_t pid, char out[16])
{
	struct buf text = {0};
	bool known = load_proc(pid, "comm", 256, &text);

	snprintf(out, 16, "%.*s", (int)strcspn(buf_text(&text), "\n"), buf_text(&text));
	buf_free(&text);
	return known;
}
