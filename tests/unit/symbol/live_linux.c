/* The symbol worker on real files: this program, its libraries, its vDSO, its kernel. */
#include "symbol/symbol.h"
#include "tests/support/symbol_world.h"
#include "tests/support/tmp.h"

#include "base/array.h"
#include "base/os.h"
#include "symbol/elf.h"
#include "symbol/elf_file.h"
#include "symbol/kallsyms.h"
#include "symbol/symbol_open.h"
#include "tests/support/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* Functions of this program, by pointer. */
__attribute__((noinline)) static int live_static(int x)
{
	return x * 3 + errno;
}

__attribute__((noinline)) int live_global(int x);

int live_global(int x)
{
	return live_static(x) + 1;
}

/* The mapping that holds an address, from /proc/self/maps: what a perf MMAP2 record would say. */
struct mapping {
	struct object_key key;
	uint64_t offset;
	char path[512];
};

static void mapping_at(const void *address, struct mapping *out)
{
	uintptr_t want = (uintptr_t)address;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024];

	memset(out, 0, sizeof(*out));
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset, ino;
		unsigned major, minor;
		char path[512] = "";

		if (sscanf(line,
			   "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64 " %511[^\n]",
			   &start, &end, &offset, &major, &minor, &ino, path) < 6 ||
		    want < start || want >= end)
			continue;
		strcpy(out->path, path);
		out->key = (struct object_key){.kind = OBJECT_ELF, .dev = makedev(major, minor),
					       .ino = ino, .path = out->path};
		out->offset = want - start + offset;
		break;
	}
	fclose(maps);
	assert_true(out->path[0]);
}

static struct frame *frame_of(struct symbol_world *w, const struct object_key *key, uint32_t pid,
			      uint64_t offset)
{
	struct frame_ref ref = {objects_get(w->frames, key, pid), offset, 0};
	struct frame *frame;
	bool fresh;

	assert_non_null(ref.object);
	frame = frame_get(w->frames, frames_intern(w->frames, &ref, &fresh));
	frame_ref(frame);
	return frame;
}

static const char *settle(struct symbol_world *w, struct frame *frame)
{
	const struct function *function;

	symbols_settle(w->symbols, &frame, 1, 20 * NS_PER_SEC);
	function = atomic_load(&frame->function);
	return function ? function->name : "";
}

/* A pointer to code as a pointer to data, which ISO C has no cast for. */
static const void *code(void (*function)(void))
{
	const void *address;

	memcpy(&address, &function, sizeof(address));
	return address;
}

#define CODE(f) ((const char *)code((void (*)(void))(f)))

TEST(worker_names_functions_of_this_program_through_proc_self)
{
	struct mapping m;
	struct symbol_world w;

	assert_int_equal(live_global(1) - live_static(1), 1);
	symbol_world_open(&w, NULL, NULL);
	mapping_at(CODE(live_static) + 1, &m);
	assert_string_equal(settle(&w, frame_of(&w, &m.key, os_pid(), m.offset)), "live_static");
	mapping_at(CODE(live_global), &m);
	assert_string_equal(settle(&w, frame_of(&w, &m.key, os_pid(), m.offset)), "live_global");
	/* The process is gone: the path in our own namespace, with device and inode. */
	m.key.ino_generation = 1;
	assert_string_equal(settle(&w, frame_of(&w, &m.key, 0, m.offset)), "live_global");
	m.key.ino_generation = 2;
	m.key.dev++;
	assert_string_equal(settle(&w, frame_of(&w, &m.key, 0, m.offset)), "");
	/* Through the process's root another device is believed (btrfs), another inode is not. */
	m.key.ino_generation = 3;
	assert_string_equal(settle(&w, frame_of(&w, &m.key, os_pid(), m.offset)), "live_global");
	m.key.ino++;
	assert_string_equal(settle(&w, frame_of(&w, &m.key, os_pid(), m.offset)), "");
	symbol_world_close(&w);
}

TEST(worker_names_the_c_library_as_the_dynamic_linker_does)
{
	static const char *const names[] = {"malloc", "getenv", "qsort", "printf", "strtoull",
					    "pthread_create", "fopen64"};
	unsigned i;
	struct symbol_world w;

	symbol_world_open(&w, NULL, NULL);
	for (i = 0; i < COUNT_OF(names); i++) {
		/* From libc itself: sanitizers put themselves before it. */
		void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
		void *address = dlsym(libc, names[i]);
		struct mapping m;
		const char *name;
		void *again;

		assert_non_null(address);
		mapping_at((char *)address + 2, &m);
		name = settle(&w, frame_of(&w, &m.key, os_pid(), m.offset));
		/* Several names may share the address; ours must be one of them. */
		again = dlsym(libc, name);
		if (again != address)
			fail_msg("%s was named %s", names[i], name);
		dlclose(libc);
	}
	symbol_world_close(&w);
}

TEST(elf_reads_the_build_id_that_readelf_prints)
{
	char command[600], want[200] = "", have[64] = "";
	struct os_file_info info;
	struct os_file *file = NULL;
	struct elf_head head;
	struct mapping m;
	struct bytes in;
	unsigned i;
	FILE *out;

	mapping_at(dlsym(RTLD_NEXT, "getenv"), &m);
	snprintf(command, sizeof(command),
		 "readelf -n %s 2>/dev/null | sed -n 's/.*Build ID: //p' | tr -d '\\n'", m.path);
	out = popen(command, "r");
	assert_non_null(out);
	if (!fgets(want, sizeof(want), out)) {
		pclose(out);
		print_message("readelf is not installed or finds no build id\n");
		skip();
	}
	pclose(out);
	assert_int_equal(os_open(m.path, OS_READ, &file, NULL), 0);
	assert_int_equal(os_file_info(file, &info, NULL), 0);
	in = bytes_of_file(file, info.size_bytes);
	assert_int_equal(elf_head_read(&in, &head, NULL), 0);
	os_close(file);
	for (i = 0; i < head.build_id_bytes; i++)
		snprintf(have + 2 * i, 3, "%02x", head.build_id[i]);
	assert_string_equal(have, want);
}

TEST(worker_names_the_vdso)
{
	struct object_key key = {.kind = OBJECT_ELF, .path = "[vdso]"};
	struct elf_index *index = NULL;
	struct elf_function f = {0};
	struct elf_head head;
	struct bytes in;
	struct symbol_world w;
	uint64_t offset, vaddr;
	char name[100];

	if (symbol_vdso(&in, NULL)) {
		print_message("there is no vDSO\n");
		skip();
	}
	assert_int_equal(elf_head_read(&in, &head, NULL), 0);
	assert_int_equal(elf_index_new(&in, &head, NULL, &index, NULL), 0);
	for (offset = 0; offset < in.size && !f.size; offset++) {
		if (elf_vaddr(&head, offset, &vaddr))
			elf_find(index, vaddr, &f);
	}
	assert_int_equal(elf_function_name(index, &in, &f, name, sizeof(name), NULL), 0);
	elf_index_free(index);
	symbol_world_open(&w, NULL, NULL);
	assert_string_equal(settle(&w, frame_of(&w, &key, os_pid(), offset)), name);
	symbol_world_close(&w);
}

/* Only a warning that somebody can heed is one: cache.c logs none for ERR_UNSUPPORTED. */
TEST(the_vdso_of_32_bit_programs_comes_from_the_kernel)
{
	const struct object vdso = {.key = {.kind = OBJECT_ELF, .path = "[vdso32]"}};
	struct elf_file file;
	int rc = elf_file_open(&vdso, os_pid(), false, &file, NULL);

	if (rc) {
		assert_int_equal(rc, ERR_UNSUPPORTED);
		return;
	}
	assert_false(file.head.is64);
	assert_int_equal(file.head.machine, ELF_386);
	assert_true(file.head.unwind.file_bytes);
	elf_file_close(&file);
}

static void copy_file(const char *from, const char *to)
{
	struct buf b = {0};
	struct os_file *file = NULL;

	assert_int_equal(os_load(from, 64 << 20, &b, NULL), 0);
	assert_int_equal(os_open(to, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, b.data, b.len, NULL), 0);
	os_close(file);
	buf_free(&b);
}

static bool runs(pid_t pid, const char *program)
{
	char link[64], exe[PATH_MAX] = "", want[PATH_MAX];

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	return readlink(link, exe, sizeof(exe) - 1) > 0 && realpath(program, want) &&
	       !strcmp(exe, want);
}

/* The child's work: in a root with nothing but /proc, is a dead process's program found? */
static int find_from_another_root(const char *root, const struct object_key *key, uint32_t dead)
{
	const struct object object = {.key = *key};
	struct elf_file file;

	if (chroot(root) != 0 || chdir("/") != 0)
		return 2;
	return elf_file_open(&object, dead, false, &file, NULL) ? 1 : 0;
}

TEST(a_recorder_in_a_container_finds_programs_of_the_machine_that_have_ended)
{
	const char *root = tmp_path("root"), *proc = tmp_path("root/proc");
	struct mapping m;
	int status = 0;
	pid_t dead, pid;

	mkdir(root, 0700);
	mkdir(proc, 0700);
	mapping_at(CODE(live_static), &m);
	dead = fork();
	if (dead == 0)
		_exit(0);
	waitpid(dead, NULL, 0);
	pid = fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWNS) != 0 ||
				      mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
				      mount("proc", proc, "proc", 0, NULL) != 0
			      ? 2
			      : find_from_another_root(root, &m.key, (uint32_t)dead));
	waitpid(pid, &status, 0);
	rmdir(proc);
	rmdir(root);
	if (WEXITSTATUS(status) == 2) {
		print_message("this user may not make a root of its own\n");
		skip();
	}
	assert_int_equal(status, 0);
}

TEST(worker_names_a_deleted_program_while_it_runs)
{
	const char *copy = tmp_path("deleted-program");
	char *const arguments[] = {(char *)"deleted-program", (char *)"--wait", NULL};
	char deleted[700];
	struct mapping m;
	struct os_file_info info;
	struct symbol_world w;
	pid_t pid;

	mapping_at(CODE(live_static), &m);
	copy_file(m.path, copy);
	chmod(copy, 0700);
	assert_int_equal(os_path_info(copy, &info, NULL), 0);
	pid = fork();
	if (pid == 0) {
		execv(copy, arguments);
		_exit(127);
	}
	while (!runs(pid, copy))
		os_sleep_ns(NS_PER_MS);
	unlink(copy);
	symbol_world_open(&w, NULL, NULL);
	m.key.ino = info.ino;
	m.key.dev = info.dev;
	snprintf(deleted, sizeof(deleted), "%s (deleted)", copy);
	m.key.path = deleted;
	assert_string_equal(settle(&w, frame_of(&w, &m.key, (uint32_t)pid, m.offset)),
			    "live_static");
	symbol_world_close(&w);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(worker_does_not_wait_for_a_pipe_planted_in_place_of_a_library)
{
	const char *path = tmp_path("pipe");
	struct object_key key = {.kind = OBJECT_ELF, .dev = 1, .ino = 1, .path = path};
	struct frame *frame;
	struct symbol_world w;
	uint64_t start_ns = os_now_ns();

	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	symbol_world_open(&w, NULL, NULL);
	frame = frame_of(&w, &key, 0, 1);
	assert_int_equal(symbols_settle(w.symbols, &frame, 1, 5 * NS_PER_SEC), 1);
	assert_true(os_now_ns() - start_ns < 5 * NS_PER_SEC);
	symbol_world_close(&w);
	unlink(path);
}

TEST(worker_reads_a_command_line_once)
{
	struct process *process;
	char *cmdline = NULL;
	struct symbol_world w;
	unsigned i;

	symbol_world_open(&w, NULL, NULL);
	process = process_add(w.processes, os_pid(), 1, 0, 0, "live_linux");
	symbols_process(w.symbols, process);
	symbols_begin(w.symbols);
	for (i = 0; i < 2000 && !(cmdline = atomic_load(&process->cmdline)); i++)
		os_sleep_ns(NS_PER_MS);
	assert_non_null(cmdline);
	assert_non_null(strstr(cmdline, "live_linux"));
	symbol_world_close(&w);
}

TEST(worker_leaves_a_process_that_has_called_exec_since)
{
	struct process *before, *now;
	struct symbol_world w;
	unsigned i;

	symbol_world_open(&w, NULL, NULL);
	before = process_add(w.processes, os_pid(), 1, 0, 0, "sh");
	now = process_add(w.processes, os_pid(), 1, 1, 0, "live_linux");
	symbols_process(w.symbols, before);
	symbols_process(w.symbols, now);                 /* asked later, so answered later */
	symbols_begin(w.symbols);
	for (i = 0; i < 2000 && !atomic_load(&now->cmdline); i++)
		os_sleep_ns(NS_PER_MS);
	assert_non_null(atomic_load(&now->cmdline));
	assert_null(atomic_load(&before->cmdline));
	symbol_world_close(&w);
}

TEST(worker_names_kernel_functions)
{
	struct object_key key = {.kind = OBJECT_KERNEL, .path = "[kernel]"};
	struct kernel_function f;
	struct kallsyms *k, *whole = NULL;
	struct buf text = {0};
	struct err err = {0};
	uint64_t base = 1;
	struct symbol_world w;
	int rc;

	rc = kallsyms_text_base(&base, &err);
	if (rc) {
		assert_true(base == 0);
		print_message("%s\n", err.text);
		skip();
	}
	k = kallsyms_new();
	assert_int_equal(kallsyms_finish(k, kallsyms_read(kallsyms_add, k, NULL, &err), &err), 0);
	assert_int_equal(os_load("/proc/kallsyms", KALLSYMS_MAX_BYTES, &text, NULL), 0);
	assert_int_equal(kallsyms_parse(text.data, text.len, &whole, NULL), 0);
	assert_int_equal(kallsyms_count(k), kallsyms_count(whole));
	kallsyms_free(whole);
	assert_true(kallsyms_base(k) == base);
	assert_true(kallsyms_find(k, base + 0x100000, &f));
	symbol_world_open(&w, NULL, NULL);
	assert_string_equal(settle(&w, frame_of(&w, &key, 0, 0x100000)), f.name);
	symbol_world_close(&w);
	kallsyms_free(k);
	buf_free(&text);
}

static int read_step(void *ctx)
{
	struct bytes *in = ctx;
	struct elf_index *index = NULL;
	struct elf_head head;
	int rc = elf_head_read(in, &head, NULL);

	if (!rc)
		rc = elf_index_new(in, &head, NULL, &index, NULL);
	elf_index_free(index);
	return rc;
}

TEST(elf_survives_a_real_file_cut_at_every_97th_byte)
{
	struct os_file *file = NULL;
	struct os_file_info info;
	unsigned good = 0;
	struct mapping m;
	struct buf b = {0};
	size_t n;

	mapping_at(CODE(elf_head_read), &m);
	assert_int_equal(os_open(m.path, OS_READ, &file, NULL), 0);
	assert_int_equal(os_file_info(file, &info, NULL), 0);
	os_close(file);
	assert_int_equal(os_load(m.path, 64 << 20, &b, NULL), 0);
	/* A program of more than 1 MB, as the sanitizers make it, is cut less often. */
	for (n = 0; n < b.len; n += b.len < (1 << 20) ? 97 : 97 * (b.len >> 20)) {
		struct bytes in = bytes_of_memory(b.data, n);

		good += !read_step(&in);
	}
	assert_int_equal(good, 0);             /* the section headers stand last */
	buf_free(&b);
}

static uint64_t file_system_of(enum object_kind kind, const char *path)
{
	const struct object object = {.key = {.kind = kind, .pid = os_pid(), .path = path}};

	return symbol_file_system(&object, os_pid());
}

TEST(a_path_tells_the_file_system_where_the_kernel_names_no_device)
{
	struct os_file_info proc;
	char exe[PATH_MAX] = "";

	assert_int_equal(os_path_info("/proc", &proc, NULL), 0);
	assert_true(file_system_of(OBJECT_ELF, "/proc/gone/lib.so") == proc.dev);
	assert_true(file_system_of(OBJECT_ELF, "/procedures") != proc.dev);
	assert_true(file_system_of(OBJECT_ELF, "/procedures") == file_system_of(OBJECT_ELF, "/x"));
	assert_true(file_system_of(OBJECT_ELF, "[vdso]") == 0);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_true(file_system_of(OBJECT_JIT, "[jit]") == file_system_of(OBJECT_ELF, exe));
}

/* The two files of /proc write it differently. */
TEST(a_short_name_is_the_same_from_both_files)
{
	static const char *const names[] = {"a\\b", "a) S (b", "ends\\", "two\nlines", ""};
	struct symbol_process now;
	char before[16], comm[16];
	size_t i;

	assert_int_equal(prctl(PR_GET_NAME, before), 0);
	for (i = 0; i < COUNT_OF(names); i++) {
		assert_int_equal(prctl(PR_SET_NAME, names[i]), 0);
		assert_true(symbol_comm(os_pid(), comm));
		assert_true(symbol_process_now(os_pid(), &now));
		assert_string_equal(now.comm, comm);
		assert_int_equal(now.identity, symbol_process_identity(os_pid()));
		assert_in_range(now.start_ns, 1, os_now_ns());
	}
	assert_int_equal(prctl(PR_SET_NAME, before), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_names_functions_of_this_program_through_proc_self),
		cmocka_unit_test(worker_names_the_c_library_as_the_dynamic_linker_does),
		cmocka_unit_test(elf_reads_the_build_id_that_readelf_prints),
		cmocka_unit_test(worker_names_the_vdso),
		cmocka_unit_test(the_vdso_of_32_bit_programs_comes_from_the_kernel),
		cmocka_unit_test(
			a_recorder_in_a_container_finds_programs_of_the_machine_that_have_ended),
		cmocka_unit_test(worker_names_a_deleted_program_while_it_runs),
		cmocka_unit_test(worker_does_not_wait_for_a_pipe_planted_in_place_of_a_library),
		cmocka_unit_test(worker_reads_a_command_line_once),
		cmocka_unit_test(worker_leaves_a_process_that_has_called_exec_since),
		cmocka_unit_test(a_short_name_is_the_same_from_both_files),
		cmocka_unit_test(worker_names_kernel_functions),
		cmocka_unit_test(
			a_path_tells_the_file_system_where_the_kernel_names_no_device),
		cmocka_unit_test(elf_survives_a_real_file_cut_at_every_97th_byte),
	};

	/* The program that worker_names_a_deleted_program_while_it_runs runs is this one. */
	if (argc > 1 && !strcmp(argv[1], "--wait")) {
		sleep(30);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
