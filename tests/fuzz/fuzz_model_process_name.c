/*
 * Any bytes as what a process is called: executable, kernel's name, command line and what somebody
 * asks for, each up to a NUL. Names from the command line fit and have no control characters, the
 * label has the file's name, and a process answers to its own names.
 */
#include "model/process_name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

static void check_taken(const char *name)
{
	check(strnlen(name, PROCESS_CALLED_BYTES) < PROCESS_CALLED_BYTES);
	for (; *name; name++)
		check(!iscntrl((unsigned char)*name));
}

static char *take_text(const uint8_t **at, const uint8_t *end)
{
	size_t n = strnlen((const char *)*at, (size_t)(end - *at));
	char *text = strndup((const char *)*at, n);

	check(text != NULL);
	*at += n + (n < (size_t)(end - *at));
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data, *end = data + size;
	char *file = take_text(&at, end), *comm = take_text(&at, end);
	char *cmdline = take_text(&at, end), *who = take_text(&at, end);
	char called[PROCESS_CALLED_BYTES], script[PROCESS_CALLED_BYTES], label[PROCESS_LABEL_BYTES];
	struct process_names names = {file, comm, called, script};

	process_names_of_command(file, cmdline, called, script);
	check_taken(called);
	check_taken(script);
	check(process_names_typed(&names)[0] != '\0');
	check(strlen(process_names_label(&names, label)) < sizeof(label));
	check(!*file || strlen(file) > 64 || strstr(label, file));
	check(!*called || process_names_match(&names, called));
	check(!*script || process_names_match(&names, script));
	process_names_mean(&names, 7, who);
	process_unread_language(file);
	check(process_name_length(file) <= strlen(file));
	free(file);
	free(comm);
	free(cmdline);
	free(who);
	return 0;
}
