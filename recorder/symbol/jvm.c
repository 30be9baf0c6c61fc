#include "symbol/jvm.h"

#include <string.h>

static const char option[] = "-XX:?PreserveFramePointer";

/* The last time that the option stands in the text, as a word. */
static void look(const char *text, size_t n, bool *keeps)
{
	const size_t length = sizeof(option) - 1;
	size_t i;

	for (i = 0; i + length <= n; i++) {
		char after = i + length < n ? text[i + length] : '\0';

		if (memcmp(text + i, option, 4) != 0 || memcmp(text + i + 5, option + 5, length - 5) != 0)
			continue;
		if ((text[i + 4] == '+' || text[i + 4] == '-') && (!after || strchr(" \t\n\r\"'", after)))
			*keeps = text[i + 4] == '+';
	}
}

static void look_in_variable(const char *environment, size_t n, const char *name, bool *keeps)
{
	size_t at = 0, length = strlen(name);

	while (at < n) {
		const char *end = memchr(environment + at, '\0', n - at);
		size_t bytes = end ? (size_t)(end - environment) - at : n - at;

		if (bytes > length && !memcmp(environment + at, name, length) &&
		    environment[at + length] == '=')
			look(environment + at, bytes, keeps);
		at += bytes + 1;
	}
}

bool jvm_keeps_frame_pointers(const char *arguments, size_t narguments, const char *environment,
			      size_t nenvironment)
{
	bool keeps = false;

	look_in_variable(environment, nenvironment, "JAVA_TOOL_OPTIONS", &keeps);
	look_in_variable(environment, nenvironment, "JDK_JAVA_OPTIONS", &keeps);
	look(arguments, narguments, &keeps);
	look_in_variable(environment, nenvironment, "_JAVA_OPTIONS", &keeps);
	return keeps;
}
