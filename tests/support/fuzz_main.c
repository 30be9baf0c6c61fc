/*
 * Replay inputs through a fuzz target without a fuzzing engine, so that any compiler's sanitizers
 * can watch: `fuzz_base_json FILE|DIRECTORY...` feeds each file, and each file of a directory, to
 * LLVMFuzzerTestOneInput() and prints how many there were. The empty input always comes first.
 * Exit: 0 all were survived (a crash ends it otherwise), 1 an input could not be read.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_MAX_BYTES = 64 << 20, PATH_MAX_BYTES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long ninputs;

static int complain(const char *what, const char *path)
{
	fprintf(stderr, "cannot %s ", what);
	perror(path);
	return 1;
}

static void feed(const uint8_t *data, size_t size)
{
	/* A copy of exactly that size: reading one byte too far is an error that is seen. */
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	ninputs++;
}

static int feed_file(const char *path)
{
	static uint8_t data[INPUT_MAX_BYTES];
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file)
		return complain("open", path);
	size = fread(data, 1, sizeof(data), file);
	if (ferror(file)) {
		fclose(file);
		return complain("read", path);
	}
	fclose(file);
	/* Said before, so that the output of a crash ends with the file to blame. */
	printf("%s (%zu bytes)\n", path, size);
	fflush(stdout);
	feed(data, size);
	return 0;
}

static int feed_path(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int rc = 0;

	if (!directory)
		return feed_file(path);
	while ((entry = readdir(directory))) {
		char name[PATH_MAX_BYTES];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		rc |= feed_path(name);
	}
	closedir(directory);
	return rc;
}

int main(int argc, char **argv)
{
	int rc = 0;

	feed(NULL, 0);
	for (int i = 1; i < argc; i++)
		rc |= feed_path(argv[i]);
	printf("%lu inputs\n", ninputs);
	return rc;
}
