#include "tests/support/nettrace_writer.h"

#define NAME_UNITS 1000u
#define EVENT_HEADER 80u
#define BLOCK_HEADER 20u

static void put(struct nettrace_writer *w, uint64_t value, unsigned n)
{
	for (; n; n--, value >>= 8)
		buf_putc(&w->bytes, (char)value);
}

static void zeroes(struct nettrace_writer *w, unsigned n)
{
	while (n--)
		buf_putc(&w->bytes, '\0');
}

static void begin_object(struct nettrace_writer *w, const char *name)
{
	buf_put(&w->bytes, "\5\5\1", 3);
	put(w, 4, 4);
	put(w, 4, 4);
	put(w, strlen(name), 4);
	buf_puts(&w->bytes, name);
	buf_putc(&w->bytes, 6);
}

static void begin_block(struct nettrace_writer *w, const char *name, uint32_t bytes)
{
	begin_object(w, name);
	put(w, bytes, 4);
	zeroes(w, (unsigned)(4 - (w->sent + w->bytes.len) % 4) % 4);
	put(w, BLOCK_HEADER, 2);
	zeroes(w, BLOCK_HEADER - 2);         /* long headers of events */
}

static void put_event(struct nettrace_writer *w, uint32_t number, uint32_t payload_bytes)
{
	put(w, EVENT_HEADER - 4, 4);
	put(w, number, 4);
	zeroes(w, EVENT_HEADER - 12);
	put(w, payload_bytes, 4);
}

void nettrace_write_head(struct nettrace_writer *w)
{
	buf_puts(&w->bytes, "Nettrace");
	put(w, 20, 4);
	buf_puts(&w->bytes, "!FastSerialization.1");
	begin_object(w, "Trace");
	zeroes(w, 24);
	put(w, 1000000000, 8);
	put(w, 8, 4);
	zeroes(w, 12);
	buf_putc(&w->bytes, 6);
}

void nettrace_write_kinds(struct nettrace_writer *w, unsigned kinds)
{
	uint32_t payload = 4 + 2 + 4 + 2 * (NAME_UNITS + 1) + 8 + 4 + 4 + 4, i;

	begin_block(w, "MetadataBlock", BLOCK_HEADER + kinds * (EVENT_HEADER + payload));
	while (kinds--) {
		put_event(w, 0, payload);
		put(w, ++w->number, 4);
		put(w, 0, 2);
		put(w, 1, 4);
		for (i = 0; i < NAME_UNITS; i++)
			put(w, 0x4e00, 2);           /* three bytes of UTF-8 */
		zeroes(w, 2 + 8 + 4 + 4 + 4);
	}
	buf_putc(&w->bytes, 6);
}

void nettrace_write_part(struct nettrace_writer *w, uint32_t bytes, uint32_t present)
{
	begin_block(w, "EventBlock", bytes);
	zeroes(w, present - BLOCK_HEADER);
}

void nettrace_write_event(struct nettrace_writer *w, uint32_t number)
{
	begin_block(w, "EventBlock", BLOCK_HEADER + EVENT_HEADER);
	put_event(w, number, 0);
	buf_putc(&w->bytes, 6);
}

void nettrace_writer_sent(struct nettrace_writer *w)
{
	w->sent += w->bytes.len;
	buf_reset(&w->bytes);
}
