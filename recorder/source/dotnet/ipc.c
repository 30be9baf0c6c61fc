#include "source/dotnet/ipc.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 20u

static const char magic[14] = "DOTNET_IPC_V1";

enum { SET_TRACE = 2, SET_PROCESS = 4, SET_SERVER = 255 };
enum { TRACE_STOP = 1, TRACE_COLLECT = 3, PROCESS_INFO = 0, PROCESS_PERF_MAP = 5 };
#define SERVER_REFUSED 255
#define PERF_MAP_ONLY 3u                     /* no jitdump: it grows without limit */

/* ---- requests -------------------------------------------------------------------------------- */

static void put_text(struct buf *out, const char *text)
{
	size_t n = text ? strlen(text) + 1 : 0, i;

	buf_put_le(out, n, 4);
	for (i = 0; i < n; i++)
		buf_put_le(out, (unsigned char)text[i], 2);
}

static size_t begin_message(struct buf *out, unsigned set, unsigned command)
{
	size_t at = out->len;

	buf_put(out, magic, sizeof(magic));
	buf_put_le(out, 0, 2);
	buf_put_le(out, set, 1);
	buf_put_le(out, command, 1);
	buf_put_le(out, 0, 2);
	return at;
}

/* Fill in the message's length. */
static void end_message(struct buf *out, size_t at)
{
	size_t n = out->len - at;

	if (out->failed)
		return;
	if (n > UINT16_MAX) {
		out->failed = ERR_LIMIT;
		return;
	}
	out->data[at + 14] = (char)(n & 0xff);
	out->data[at + 15] = (char)(n >> 8);
}

void dotnet_ask_collect(struct buf *out, const struct dotnet_provider *providers, uint32_t n,
			uint32_t mbytes, bool rundown)
{
	size_t at = begin_message(out, SET_TRACE, TRACE_COLLECT);
	uint32_t i;

	buf_put_le(out, mbytes, 4);
	buf_put_le(out, 1, 4);
	buf_put_le(out, rundown, 1);
	buf_put_le(out, n, 4);
	for (i = 0; i < n; i++) {
		buf_put_le(out, providers[i].keywords, 8);
		buf_put_le(out, providers[i].level, 4);
		put_text(out, providers[i].name);
		put_text(out, providers[i].arguments);
	}
	end_message(out, at);
}

void dotnet_ask_stop(struct buf *out, uint64_t session)
{
	size_t at = begin_message(out, SET_TRACE, TRACE_STOP);

	buf_put_le(out, session, 8);
	end_message(out, at);
}

void dotnet_ask_who(struct buf *out)
{
	end_message(out, begin_message(out, SET_PROCESS, PROCESS_INFO));
}

void dotnet_ask_perf_map(struct buf *out)
{
	size_t at = begin_message(out, SET_PROCESS, PROCESS_PERF_MAP);

	buf_put_le(out, PERF_MAP_ONLY, 4);
	end_message(out, at);
}

/* ---- the answer ------------------------------------------------------------------------------ */

int dotnet_answer_head(const void *bytes, size_t n, bool *refused, struct err *err)
{
	const unsigned char *b = bytes;
	size_t length;

	if (memcmp(b, magic, n < sizeof(magic) ? n : sizeof(magic)) != 0)
		return err_set(err, ERR_FORMAT, "the peer is not a .NET program");
	if (n < HEAD_BYTES)
		return 0;
	length = le16(b + 14);
	if (length < HEAD_BYTES || b[16] != SET_SERVER)
		return err_set(err, ERR_FORMAT, "a .NET program's answer is malformed");
	*refused = b[17] == SERVER_REFUSED;
	return (int)length;
}

int dotnet_answer(const void *bytes, size_t n, struct dotnet_answer *out, struct err *err)
{
	const unsigned char *b = bytes;
	int length = dotnet_answer_head(bytes, n, &out->refused, err);

	if (length > (int)DOTNET_ANSWER_MAX_BYTES)
		return err_set(err, ERR_FORMAT, "a .NET program's answer is too long");
	if (length <= 0 || n < (size_t)length)
		return length < 0 ? length : 0;
	out->value = length >= (int)HEAD_BYTES + 8 ? le64(b + HEAD_BYTES) :
		     length >= (int)HEAD_BYTES + 4 ? le32(b + HEAD_BYTES) : 0;
	return length;
}

/* ---- the socket's name ----------------------------------------------------------------------- */

static bool take_number(const char **at, uint64_t max, uint64_t *out)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*out = strtoull(*at, &end, 10);
	*at = end;
	return *out <= max;
}

bool dotnet_socket_name(const char *name, uint32_t *pid, uint64_t *key)
{
	static const char prefix[] = "dotnet-diagnostic-";
	uint64_t number;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return false;
	name += sizeof(prefix) - 1;
	if (!take_number(&name, INT32_MAX, &number) || !number || *name++ != '-' ||
	    !take_number(&name, UINT64_MAX, key) || strcmp(name, "-socket") != 0)
		return false;
	*pid = (uint32_t)number;
	return true;
}
