#include "source/process/exit_record.h"

#include "base/bytes.h"

#include <string.h>

#define CONNECTOR_PROC 1u                    /* CN_IDX_PROC, CN_VAL_PROC */

bool exit_record_parse(const void *bytes, size_t n, struct exit_record *out)
{
	const unsigned char *b = bytes;
	uint32_t length, what, status;

	memset(out, 0, sizeof(*out));
	if (n < 56)
		return false;
	length = le32(b);
	if (length > n || length < 56 || le32(b + 16) != CONNECTOR_PROC ||
	    le32(b + 20) != CONNECTOR_PROC)
		return false;
	what = le32(b + EXIT_RECORD_WHAT_AT);
	out->time_ns = le64(b + 44);
	if (what == EXIT_WHAT_ANSWER) {
		out->kind = EXIT_RECORD_ANSWER;
		out->error = le32(b + 52);
	} else if (what == EXIT_WHAT_EXIT && length >= 68) {
		status = le32(b + 60);
		out->kind = EXIT_RECORD_EXIT;
		out->tid = le32(b + EXIT_RECORD_TID_AT);
		out->pid = le32(b + EXIT_RECORD_PID_AT);
		out->parent = length >= 76 ? le32(b + 72) : 0;
		out->signal = status & 0x7f;
		out->core = (status & 0x80) != 0;
		out->code = (uint8_t)(status >> 8);
	}
	return true;
}
