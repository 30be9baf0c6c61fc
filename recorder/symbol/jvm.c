#include "symbol/jvm.h"

#include <string.h>

static const char prefix[] = "-XX:", option[] = "PreserveFramePointer";

/*
 * The option's last occurrence in the text as a word: after -XX:, or alone as in a file of flags.
 */
static void look_for(const char *text, size_t n, const char *before, bool *keeps)
{
	const size_t first = strlen(before), length = sizeof(option) - 1;
	size_t i;

	for (i = 0; i + first + 1 + length <= n; i++) {
		const char *sign = text + i + first;
		char after = i + first + 1 + length < n ? sign[1 + length] : '\0';

		if (memcmp(text + i, before, first) != 0 || memcmp(sign + 1, option, length) != 0)
			continue;
		if ((*sign == '+' || *sign == '-') && (!after || strchr(" \t\n\r\"'", after)))
			*keeps = *sign == '+';
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
			look_for(environment + at, bytes, prefix, keeps);
		at += bytes + 1;
	}
}

bool jvm_said_frame_pointers(const char *flags, size_t nflags, const char *arguments,
			     size_t narguments)
{
	bool keeps = false;

	look_for(flags, nflags, "", &keeps);
	look_for(arguments, narguments, prefix, &keeps);
	return keeps;
}

bool jvm_keeps_frame_pointers(const char *arguments, size_t narguments, const char *environment,
			      size_t nenvironment)
{
	bool keeps = false;

	look_in_variable(environment, nenvironment, "JAVA_TOOL_OPTIONS", &keeps);
	look_in_variable(environment, nenvironment, "JDK_JAVA_OPTIONS", &keeps);
	look_for(arguments, narguments, prefix, &keeps);
	look_in_variable(environment, nenvironment, "_JAVA_OPTIONS", &keeps);
	return keeps;
}
