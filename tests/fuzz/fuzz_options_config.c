/*
 * Any bytes as a conf file, and as arguments, one a line, beside that file. Whatever is refused is
 * refused with a sentence; what is taken is the same when it is read again, as for reload.
 */
#include "options/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int said(int rc, const struct err *err)
{
	if (rc && (rc != err->code || !err->text[0] || strchr(err->text, '\n')))
		abort();
	return rc;
}

static void must_agree(const struct options *a, const struct options *b)
{
	struct buf differ = {0};

	options_needing_restart(a, b, &differ);
	if (differ.len || a->rules.n != b->rules.n || a->named_rules.n != b->named_rules.n)
		abort();
	buf_free(&differ);
}

/* What would need a restart if the file were empty is what the file sets. */
static void check_changes(const struct options *o)
{
	struct buf keys = {0};
	struct options none;
	char *key;

	options_init(&none);
	options_needing_restart(&none, o, &keys);
	for (key = keys.len ? strtok(keys.data, ", ") : NULL; key; key = strtok(NULL, ", "))
		if (options_origin(o, key) != FROM_CONF || !options_line(o, key))
			abort();
	buf_free(&keys);
	options_free(&none);
}

static void as_file(const char *path, const char *text, size_t size)
{
	struct err err = {0}, again = {0};
	struct options o, file;
	int rc;

	options_init(&o);
	options_init(&file);
	rc = said(config_parse("fuzz.conf", text, size, &o, &err), &err);
	if (said(config_load(path, &file, &again), &again) != rc)
		abort();
	must_agree(&o, &file);
	check_changes(&o);
	options_free(&file);
	options_free(&o);
}

static void reload(struct options *o, struct err *err)
{
	int rc = said(config_load_named(o, err), err);
	struct buf no_effect = {0};
	struct options again;

	if (said(config_again(o, &again, err), err) != rc)
		abort();
	must_agree(o, &again);
	options_no_effect(o, &no_effect);
	buf_free(&no_effect);
	options_free(&again);
}

static void as_arguments(char *text)
{
	char *argv[MOST_ARGUMENTS];
	struct err err = {0};
	struct options o;
	int argc = 0;

	for (; *text && argc < MOST_ARGUMENTS; text += strlen(text) + 1) {
		argv[argc++] = text;
		text[strcspn(text, "\n")] = '\0';
	}
	options_init(&o);
	if (said(options_parse(&o, argc, argv, &err), &err))
		options_at_option(&o, &err);
	else if (!o.config)                  /* no file of this machine is read */
		reload(&o, &err);
	options_free(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("conf", MFD_CLOEXEC);
	char *text = malloc(size + 2), path[40];

	if (!text || fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv("RECORDER_CONFIG", path, 1);
	/* Two NULs: the first ends an argument, the second the list. */
	memcpy(text, data, size);
	text[size] = text[size + 1] = '\0';
	as_file(path, text, size);
	as_arguments(text);
	free(text);
	close(fd);
	return 0;
}
