/* Any bytes as a conf file, and as arguments, one a line. */
#include "options/config.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_arguments(char *text)
{
	char *argv[MOST_ARGUMENTS];
	struct options o;
	struct buf out = {0};
	int argc = 0;

	for (; *text && argc < MOST_ARGUMENTS; text += strlen(text) + 1) {
		argv[argc++] = text;
		text[strcspn(text, "\n")] = '\0';
	}
	options_init(&o);
	if (options_parse(&o, argc, argv, NULL) == 0)
		options_no_effect(&o, &out);
	buf_free(&out);
	options_free(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 2);
	struct options o;
	struct err err;

	if (!text)
		return 0;
	/* Two NULs: the first ends an argument, the second the list. */
	memcpy(text, data, size);
	text[size] = text[size + 1] = '\0';
	options_init(&o);
	config_parse("fuzz.conf", text, size, &o, &err);
	options_free(&o);
	as_arguments(text);
	free(text);
	return 0;
}
