#include "source/etw/render.h"

#include "base/bytes.h"
#include "base/utf8.h"
#include "source/etw/texts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BYTES_SHOWN 256u                     /* of a binary value, in hex */

/* ---- composing a text ------------------------------------------------------------------------ */

void etw_render_begin(struct etw_render *r)
{
	size_t room = ETW_RENDER_BYTES - r->used;

	r->begin = r->used;
	r->limit = r->used + (room < EVENT_MAX_TEXT ? room : EVENT_MAX_TEXT);
}

/* Put all bytes or none, so that no character is cut in two. One byte is kept for the NUL. */
static void put(struct etw_render *r, const char *bytes, size_t n)
{
	if (r->limit - r->used <= n) {
		r->cut = true;
		r->limit = r->used;          /* no more; the NUL still fits */
		return;
	}
	memcpy(r->text + r->used, bytes, n);
	r->used += n;
}

const char *etw_render_end(struct etw_render *r)
{
	if (r->used == ETW_RENDER_BYTES) {
		r->cut = true;
		return "";
	}
	r->text[r->used++] = '\0';
	return r->text + r->begin;
}

void etw_render_puts(struct etw_render *r, const char *text)
{
	put(r, text, strlen(text));
}

__attribute__((format(printf, 2, 3)))
static void put_format(struct etw_render *r, const char *format, ...)
{
	char text[64];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	etw_render_puts(r, text);
}

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/* Whether the character at `at` is a control character of two bytes, U+0080 to U+009F. */
static bool is_control_utf8(const char *at, size_t n)
{
	return (n == 1 && is_control((uint8_t)at[0])) ||
	       (n == 2 && (uint8_t)at[0] == 0xc2 && is_control((uint8_t)at[1]));
}

void etw_render_utf8(struct etw_render *r, const uint8_t *text, size_t nbytes)
{
	const char *at = (const char *)text, *end = at + nbytes;

	while (at < end && r->used < r->limit) {
		size_t n = utf8_char(at, end);

		if (!n)
			put(r, "\xef\xbf\xbd", 3);
		else if (is_control_utf8(at, n))
			put(r, " ", 1);
		else
			put(r, at, n);
		at += n ? n : 1;
	}
}

/* Whether four UTF-16 units are printable ASCII: from 0x20 to 0x7e. */
static bool are_printable(uint64_t units)
{
	return !(((units - 0x0020002000200020u) | units | (units + 0x0001000100010001u)) &
		 0xff80ff80ff80ff80u);
}

/* Put all groups of four that are; returns how many units these were. */
static size_t put_printable(struct etw_render *r, const uint8_t *text, size_t nunits)
{
	const size_t room = r->limit - r->used;
	char *to = r->text + r->used;
	size_t i = 0;

	while (nunits - i >= 4 && room - i > 4 && are_printable(le64(text + 2 * i))) {
		etw_put_four(le64(text + 2 * i), to + i);
		i += 4;
	}
	r->used += i;
	return i;
}

void etw_render_utf16(struct etw_render *r, const uint8_t *text, size_t nbytes)
{
	char out[4];

	for (size_t i = put_printable(r, text, nbytes / 2);
	     i < nbytes / 2 && r->used < r->limit;) {
		uint32_t c = le16(text + 2 * i);

		/* Nearly all of them. */
		if (c >= 0x20 && c < 0x7f && r->limit - r->used > 1) {
			r->text[r->used++] = (char)c;
			i++;
			continue;
		}
		c = utf16_next(text, nbytes / 2, &i);
		put(r, out, utf8_encode(is_control(c) ? ' ' : c, out));
	}
}

/* ---- one value as text ----------------------------------------------------------------------- */

void etw_guid_text(const uint8_t guid[16], char out[ETW_GUID_TEXT])
{
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	static const char digits[] = "0123456789abcdef";
	unsigned i;

	for (i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		*out++ = digits[guid[order[i]] >> 4];
		*out++ = digits[guid[order[i]] & 15];
	}
	*out = '\0';
}

static void put_sid(struct etw_render *r, const struct etw_value *value)
{
	const uint8_t *sid = value->bytes;
	uint64_t authority = 0;

	if (value->nbytes < 8)
		return;
	for (int i = 2; i < 8; i++)
		authority = authority << 8 | sid[i];
	put_format(r, "S-%u-%" PRIu64, sid[0], authority);
	for (uint32_t i = 8; i + 4 <= value->nbytes; i += 4)
		put_format(r, "-%" PRIu32, le32(sid + i));
}

/* The date of a day since 1970. Source: Howard Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms", civil_from_days. */
static void civil(int64_t days, int64_t *year, uint32_t *month, uint32_t *day)
{
	int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
	uint32_t doe = (uint32_t)(z - era * 146097);
	uint32_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint32_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

	*day = doy - (153 * mp + 2) / 5 + 1;
	*month = mp < 10 ? mp + 3 : mp - 9;
	*year = (int64_t)yoe + era * 400 + (*month <= 2);
}

/* 100 ns since 1601, UTC: 2020-07-29T00:07:03.3534120Z */
static void put_filetime(struct etw_render *r, uint64_t filetime)
{
	uint64_t seconds = filetime / 10000000, day_seconds = seconds % 86400;
	int64_t year;
	uint32_t month, day;

	civil((int64_t)(seconds / 86400) - 134774, &year, &month, &day);
	put_format(r, "%04" PRId64 "-%02u-%02uT%02u:%02u:%02u.%07uZ", year, month,
		   day, (unsigned)(day_seconds / 3600), (unsigned)(day_seconds / 60 % 60),
		   (unsigned)(day_seconds % 60), (unsigned)(filetime % 10000000));
}

/* Eight u16: year, month, weekday, day, hour, minute, second, ms; the time zone is unknown. */
static void put_systemtime(struct etw_render *r, const uint8_t *at)
{
	put_format(r, "%04u-%02u-%02uT%02u:%02u:%02u.%03u", le16(at), le16(at + 2),
		   le16(at + 6), le16(at + 8), le16(at + 10), le16(at + 12), le16(at + 14));
}

static void put_ip4(struct etw_render *r, const uint8_t *at)
{
	put_format(r, "%u.%u.%u.%u", at[0], at[1], at[2], at[3]);
}

/* RFC 5952: lower case, the longest run of two or more zero groups as "::", the first of equals. */
static void put_ip6(struct etw_render *r, const uint8_t *at)
{
	int best = -1, length = 1;

	for (int i = 0; i < 8; i++) {
		int n = 0;

		while (i + n < 8 && !at[2 * (i + n)] && !at[2 * (i + n) + 1])
			n++;
		if (n > length) {
			best = i;
			length = n;
		}
	}
	for (int i = 0; i < 8; i++) {
		if (i == best) {
			etw_render_puts(r, "::");
			i += length - 1;
			continue;
		}
		put_format(r, "%s%x", i && i != best + (best >= 0 ? length : 0) ? ":" : "",
			   (unsigned)at[2 * i] << 8 | at[2 * i + 1]);
	}
}

/*
 * SOCKADDR_IN, SOCKADDR_IN6: family u16 (2, 23), port big-endian, address at 4 or 8; false for
 * others.
 */
static bool put_socket(struct etw_render *r, const struct etw_value *value)
{
	const uint8_t *at = value->bytes;

	if (value->nbytes >= 8 && le16(at) == 2) {
		put_ip4(r, at + 4);
	} else if (value->nbytes >= 24 && le16(at) == 23) {
		etw_render_puts(r, "[");
		put_ip6(r, at + 8);
		etw_render_puts(r, "]");
	} else {
		return false;
	}
	put_format(r, ":%u", (unsigned)at[2] << 8 | at[3]);
	return true;
}

static void put_hex(struct etw_render *r, const struct etw_value *value)
{
	for (uint32_t i = 0; i < value->nbytes && i < BYTES_SHOWN; i++)
		put_format(r, "%02X", value->bytes[i]);
	if (value->nbytes > BYTES_SHOWN) {
		etw_render_puts(r, "...");
		r->cut = true;
	}
}

static void put_addresses(struct etw_render *r, const struct etw_value *value,
			  uint32_t pointer_bytes)
{
	for (uint64_t i = 0; i < value->u && r->used < r->limit; i++)
		put_format(r, "%s0x%" PRIx64, i ? "," : "[",
			   etw_value_address(value, pointer_bytes, i));
	etw_render_puts(r, value->u ? "]" : "[]");
}

static bool is_hex(uint8_t type)
{
	return type == ETW_X8 || type == ETW_X16 || type == ETW_X32 || type == ETW_X64 ||
	       type == ETW_POINTER || type == ETW_NAME_KEY;
}

static bool is_signed(uint8_t type)
{
	return type == ETW_I8 || type == ETW_I16 || type == ETW_I32 || type == ETW_I64;
}

static bool is_number(uint8_t type)
{
	return type <= ETW_SIZE || type == ETW_PORT || type == ETW_BITS;
}

static void put_number(struct etw_render *r, const struct etw_field *field,
		       const struct etw_value *value)
{
	if (is_hex(field->type))
		put_format(r, "0x%" PRIx64, value->u);
	else if (is_signed(field->type))
		put_format(r, "%" PRId64, (int64_t)value->u);
	else if (field->type == ETW_F32 || field->type == ETW_F64)
		put_format(r, "%.17g", etw_value_double(value));
	else
		put_format(r, "%" PRIu64, value->u);
}

void etw_render_value(struct etw_render *r, const struct etw_field *field,
		      const struct etw_value *value, uint32_t pointer_bytes)
{
	char guid[ETW_GUID_TEXT];

	switch (field->type) {
	case ETW_UTF16Z: case ETW_UTF16_FIXED: case ETW_UTF16_COUNTED:
		etw_render_utf16(r, value->bytes, value->nbytes);
		break;
	case ETW_UTF8Z: case ETW_UTF8_FIXED: case ETW_UTF8_COUNTED:
		etw_render_utf8(r, value->bytes, value->nbytes);
		break;
	case ETW_GUID:
		etw_guid_text(value->bytes, guid);
		etw_render_puts(r, guid);
		break;
	case ETW_SID: case ETW_WBEM_SID:
		put_sid(r, value);
		break;
	case ETW_FILETIME:
		put_filetime(r, value->u);
		break;
	case ETW_TIME_T:
		put_filetime(r, (value->u + 11644473600) * 10000000);
		break;
	case ETW_SYSTEMTIME:
		put_systemtime(r, value->bytes);
		break;
	case ETW_IP4:
		put_ip4(r, value->bytes);
		break;
	case ETW_IP6:
		put_ip6(r, value->bytes);
		break;
	case ETW_SOCKET: case ETW_SOCKET_COUNTED:
		if (put_socket(r, value))
			break;
		/* fall through */
	case ETW_BYTES: case ETW_BYTES_COUNTED:
		put_hex(r, value);
		break;
	case ETW_ADDRESSES:
		put_addresses(r, value, pointer_bytes);
		break;
	case ETW_BOOL8: case ETW_BOOL32: case ETW_BIT:
		etw_render_puts(r, value->u ? "True" : "False");
		break;
	default:
		put_number(r, field, value);
		break;
	}
}

/* ---- fields ---------------------------------------------------------------------------------- */

static struct event_field *add_field(struct etw_render *r, const char *name)
{
	struct event_field *field;

	if (r->nfields == EVENT_MAX_FIELDS) {
		r->cut = true;
		return NULL;
	}
	field = &r->fields[r->nfields++];
	field->name = name;
	return field;
}

void etw_render_composed(struct etw_render *r, const char *name, const char *text)
{
	struct event_field *field = add_field(r, name);

	if (field) {
		field->type = FIELD_TEXT;
		field->v.text = text;
	}
}

void etw_render_field(struct etw_render *r, const char *name, const struct etw_field *field,
		      const struct etw_value *value, uint32_t pointer_bytes)
{
	struct event_field *out;

	if (!etw_value_is(value))
		return;
	if (!is_number(field->type)) {
		etw_render_begin(r);
		etw_render_value(r, field, value, pointer_bytes);
		etw_render_composed(r, name, etw_render_end(r));
		return;
	}
	out = add_field(r, name);
	if (!out)
		return;
	if (is_hex(field->type))
		r->hex |= (uint64_t)1 << (r->nfields - 1);
	if (is_signed(field->type)) {
		out->type = FIELD_INT;
		out->v.i = (int64_t)value->u;
	} else if (field->type == ETW_F32 || field->type == ETW_F64) {
		out->type = FIELD_DOUBLE;
		out->v.d = etw_value_double(value);
	} else {
		out->type = FIELD_UINT;
		out->v.u = value->u;
	}
}
