/* The paths of files that are given by number, of this process and of others. */
#include "source/host/file_paths_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file with a page of content, open; real: its path from the root. */
static int make(const char *path, struct file_path *out, char real[PATH_MAX])
{
	int fd = open(path, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_non_null(realpath(path, real));
	*out = (struct file_path){.pid = (uint32_t)getpid(), .dev = st.st_dev, .ino = st.st_ino};
	return fd;
}

static void expect_deleted(struct file_path *file, const char *real)
{
	size_t n = strlen(real);

	file_paths_find(file, 1);
	assert_non_null(file->path);
	assert_memory_equal(file->path, real, n);
	assert_string_equal(file->path + n, " (deleted)");
	free(file->path);
	file->path = NULL;
}

TEST(a_file_is_found_that_a_process_has_open_or_maps)
{
	struct file_path files[3];
	char open_path[PATH_MAX], mapped_path[PATH_MAX];
	uint64_t begin_ns = os_now_ns();
	void *at;
	int fd, mapped;

	fd = make(tmp_path("open"), &files[0], open_path);
	mapped = make(tmp_path("mapped"), &files[1], mapped_path);
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, mapped, 0);
	close(mapped);
	files[2] = files[0];
	files[2].ino = UINT64_MAX - 1;
	file_paths_find(files, COUNT_OF(files));
	assert_string_equal(files[0].path, open_path);
	assert_string_equal(files[1].path, mapped_path);
	assert_null(files[2].path);
	/* It was made just now: what had its number before was another file. */
	assert_true(files[0].born_ns > begin_ns && files[0].seen_ns <= os_now_ns());
	free(files[0].path);
	free(files[1].path);
	munmap(at, 4096);
	close(fd);
}

TEST(a_file_without_a_name_says_so)
{
	struct file_path file;
	char path[PATH_MAX];
	int fd = make(tmp_path("gone"), &file, path);

	assert_int_equal(unlink(path), 0);
	expect_deleted(&file, path);
	close(fd);
	file_paths_find(&file, 1);
	assert_null(file.path);
}

TEST(a_process_that_is_gone_has_none)
{
	struct file_path file = {.pid = INT32_MAX, .dev = 1, .ino = 2};

	file_paths_find(&file, 1);
	assert_null(file.path);
}

/* The file of the layer has the number that the overlay shows, and another device. */
TEST(a_file_of_an_overlay_is_found_by_the_device_of_its_layer)
{
	static const char *const parts[] = {"", "/low", "/up", "/work", "/all"};
	char real[PATH_MAX], path[TMP_BYTES + 16], options[3 * TMP_BYTES + 64];
	const char *dir = tmp_path("overlay");
	struct file_path file;
	struct stat st;
	size_t i;
	int fd;

	for (i = 0; i < COUNT_OF(parts); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, parts[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	assert_non_null(realpath(dir, real));
	assert_int_equal(stat(dir, &st), 0);
	snprintf(options, sizeof(options), "lowerdir=%.*s/low,upperdir=%.*s/up,workdir=%.*s/work",
		 TMP_BYTES, real, TMP_BYTES, real, TMP_BYTES, real);
	if (mount("overlay", path, "overlay", 0, options) != 0) {
		puts("only root may mount an overlay");
		skip();
	}
	snprintf(path, sizeof(path), "%s/all/file", dir);
	fd = make(path, &file, real);
	file.dev = st.st_dev;
	/* Without a name it is not found by its number alone. */
	assert_int_equal(unlink(real), 0);
	expect_deleted(&file, real);
	close(fd);
	snprintf(path, sizeof(path), "%s/all", dir);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_found_that_a_process_has_open_or_maps),
		cmocka_unit_test(a_file_without_a_name_says_so),
		cmocka_unit_test(a_process_that_is_gone_has_none),
		cmocka_unit_test(a_file_of_an_overlay_is_found_by_the_device_of_its_layer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
