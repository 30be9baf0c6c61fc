#include "base/err.h"

#include "base/os.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* A sentence that was cut may end in the middle of a character: remove that part. */
static void trim_partial_character(struct err *err)
{
	size_t n = strlen(err->text);
	size_t start = n;

	if (n + 1 < sizeof(err->text))
		return;
	while (start && n - start < 4 && ((unsigned char)err->text[start - 1] & 0xc0) == 0x80)
		start--;
	if (start && (unsigned char)err->text[start - 1] >= 0xc0)
		start--;
	if (start < n && !utf8_char(err->text + start, err->text + n))
		err->text[start] = '\0';
}

static int set_sentence(struct err *err, int code, const char *start, const char *format,
			va_list args)
{
	int used;

	if (!err)
		return code;
	err->code = code;
	used = snprintf(err->text, sizeof(err->text), "%s", start);
	vsnprintf(err->text + used, sizeof(err->text) - (size_t)used, format, args);
	trim_partial_character(err);
	return code;
}

int err_set(struct err *err, enum err_code code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_sentence(err, code, "", format, args);
	va_end(args);
	return code;
}

int err_memory(struct err *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_sentence(err, ERR_MEMORY, "out of memory ", format, args);
	va_end(args);
	return ERR_MEMORY;
}

/* Append ": " and more to the sentence. */
static void append_reason(struct err *err, const char *more)
{
	size_t used = strlen(err->text);

	snprintf(err->text + used, sizeof(err->text) - used, ": %s", more);
	trim_partial_character(err);
}

static int set_os(struct err *err, int os_error, const char *format, va_list args)
{
	char reason[160];

	if (err) {
		set_sentence(err, os_error_code(os_error), "", format, args);
		os_error_text(os_error, reason, sizeof(reason));
		append_reason(err, reason);
	}
	return os_error_code(os_error);
}

int err_os(struct err *err, const char *format, ...)
{
	int os_error = os_error_last();
	va_list args;
	int rc;

	va_start(args, format);
	rc = set_os(err, os_error, format, args);
	va_end(args);
	return rc;
}

int err_os_code(struct err *err, int os_error, const char *format, ...)
{
	va_list args;
	int rc;

	va_start(args, format);
	rc = set_os(err, os_error, format, args);
	va_end(args);
	return rc;
}

int err_prefix(struct err *err, const char *format, ...)
{
	struct err old;
	va_list args;

	if (!err)
		return ERR_IO;
	old = *err;
	va_start(args, format);
	set_sentence(err, old.code, "", format, args);
	va_end(args);
	append_reason(err, old.text);
	return err->code;
}
