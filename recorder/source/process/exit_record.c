#include "source/process/exit_record.h"

#include <string.h>

#define CONNECTOR_PROC 1u                    /* CN_IDX_PROC, CN_VAL_PROC */

static uint32_t u32_at(const unsigned char *bytes, size_t at)
{
	uint32_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

static void take_exit(const unsigned char *b, struct exit_record *out)
{
	uint32_t status = u32_at(b, 60);

	out->kind = EXIT_RECORD_EXIT;
	out->tid = u32_at(b, 52);
	out->pid = u32_at(b, 56);
	out->signal = status & 0x7f;
	out->core = (status & 0x80) != 0;
	out->code = (uint8_t)(status >> 8);
}

bool exit_record_parse(const void *bytes, size_t n, struct exit_record *out)
{
	const unsigned char *b = bytes;
	uint32_t length, what;

	memset(out, 0, sizeof(*out));
	if (n < 56)
		return false;
	length = u32_at(b, 0);
	if (length > n || length < 56 || u32_at(b, 16) != CONNECTOR_PROC || u32_at(b, 20) != CONNECTOR_PROC)
		return false;
	what = u32_at(b, EXIT_RECORD_WHAT_AT);
	memcpy(&out->time_ns, b + 44, sizeof(out->time_ns));
	if (what == EXIT_WHAT_ANSWER) {
		out->kind = EXIT_RECORD_ANSWER;
		out->error = u32_at(b, 52);
	} else if (what == EXIT_WHAT_EXIT && length >= 68) {
		take_exit(b, out);
	}
	return true;
}
