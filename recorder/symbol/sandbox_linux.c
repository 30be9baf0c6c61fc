#include "symbol/sandbox.h"

#include "base/confined_linux.h"
#include "symbol/demangle.h"
#include "symbol/perfmap.h"
#include "symbol/xz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- what goes over the socket: between two processes of one program ------------------------- */

enum asked { ASKED_INDEX, ASKED_NAMES, ASKED_PERFMAP };

struct request {
	uint32_t asked;                      /* an enum asked; a file's descriptor comes with it */
	uint32_t which;                      /* an enum sandbox_index */
	uint32_t name_bytes;                 /* of names, which follow, each with its NUL */
	uint64_t file_bytes;
};

/* Entries and kept strings follow. */
struct reply {
	int32_t code;                        /* an enum err_code */
	uint32_t nentries;
	uint64_t base;
	struct {
		uint64_t offset, size;
		uint64_t kept;               /* 0 or 1 */
	} strings[ELF_TABLES];
	char note[SANDBOX_NOTE_BYTES];
	char why[sizeof(((struct err *)0)->text)];
};

/* To a perf map: its entries, ranges and text follow. */
struct map_reply {
	int32_t code;
	uint32_t nentries, nranges, text_bytes;
	uint32_t full;                       /* 0 or 1 */
	char why[sizeof(((struct err *)0)->text)];
};

/* To names: comes as one message, so that its owner wakes once. */
struct names_reply {
	uint32_t nbytes;                     /* of the texts, which follow, each with its NUL */
};

struct sandbox {
	struct confined process;
};

/* ---- the process ----------------------------------------------------------------------------- */

/* Mapped: if the file becomes shorter, only this process ends. */
static int make_index(const struct request *r, int file, struct elf_index **out, char *note,
		      struct err *err)
{
	void *map = mmap(NULL, (size_t)r->file_bytes, PROT_READ, MAP_PRIVATE, file, 0);
	struct bytes in = bytes_of_memory(map, (size_t)r->file_bytes);
	struct elf_head head;
	int rc;

	if (map == MAP_FAILED)
		return err_os(err, "cannot map it");
	rc = r->which == SANDBOX_DOTNET ? 0 : elf_head_read(&in, &head, err);
	if (!rc)
		rc = sandbox_index_here(&in, &head, r->which, out, note, err);
	munmap(map, (size_t)r->file_bytes);
	return rc;
}

static bool answer_index(const struct request *r, int file)
{
	struct elf_index *index = NULL;
	struct reply reply = {0};
	struct err err = {0};
	bool sent;
	unsigned i;

	reply.code = make_index(r, file, &index, reply.note, &err);
	memcpy(reply.why, err.text, sizeof(reply.why));
	reply.nentries = index ? index->nentries : 0;
	reply.base = index ? index->base : 0;
	for (i = 0; index && i < ELF_TABLES; i++) {
		reply.strings[i].offset = index->strings[i].offset;
		reply.strings[i].size = index->strings[i].size;
		reply.strings[i].kept = index->strings[i].kept != NULL;
	}
	sent = confined_answer(&reply, sizeof(reply)) &&
	       (!index || confined_answer(index->entries,
				   index->nentries * sizeof(*index->entries)));
	for (i = 0; index && sent && i < ELF_TABLES; i++)
		sent = !index->strings[i].kept || confined_answer(index->strings[i].kept,
							   (size_t)index->strings[i].size);
	elf_index_free(index);
	return sent;
}

/* Read, not mapped: a runtime may begin its map anew at any time. */
static int make_perfmap(int file, uint64_t file_bytes, struct perfmap **out, struct err *err)
{
	size_t n = file_bytes < PERFMAP_MAX_BYTES ? (size_t)file_bytes : PERFMAP_MAX_BYTES;
	struct buf text = {0};
	char *to = buf_reserve(&text, n);
	ssize_t got = 1;
	int rc;

	while (to && text.len < n && got > 0) {
		got = pread(file, to + text.len, n - text.len, (off_t)text.len);
		buf_advance(&text, got > 0 ? (size_t)got : 0);
	}
	if (!to)
		rc = err_memory(err, "for a perf map");
	else
		rc = got < 0 ? err_os(err, "cannot read it") : perfmap_parse(&text, out, err);
	buf_free(&text);
	return rc;
}

static bool answer_perfmap(const struct request *r, int file)
{
	struct map_reply reply = {0};
	struct perfmap *map = NULL;
	struct err err = {0};
	bool sent;

	reply.code = make_perfmap(file, r->file_bytes, &map, &err);
	memcpy(reply.why, err.text, sizeof(reply.why));
	if (map) {
		reply.nentries = map->nentries;
		reply.nranges = map->nranges;
		reply.text_bytes = map->nentries ? (uint32_t)map->text.len : 0;
		reply.full = map->full;
	}
	sent = confined_answer(&reply, sizeof(reply)) &&
	       (!map || (confined_answer(map->entries,
				  map->nentries * sizeof(*map->entries)) &&
			 confined_answer(map->ranges,
				  map->nranges * sizeof(*map->ranges)) &&
			 confined_answer(map->text.data, reply.text_bytes)));
	perfmap_free(map);
	return sent;
}

static bool put_readable(const char *raw, struct buf *out)
{
	char *text = buf_reserve(out, FUNCTION_NAME_MAX + 1);

	if (!text)
		return false;
	if (!demangle(raw, text, FUNCTION_NAME_MAX + 1))
		*text = '\0';
	buf_advance(out, strlen(text) + 1);
	return true;
}

static bool answer_names(const struct request *r)
{
	struct names_reply reply = {.nbytes = 0};
	struct buf raw = {0}, answer = {0};
	char *names = r->name_bytes <= SANDBOX_NAMES_BYTES ? buf_reserve(&raw, r->name_bytes + 1)
							   : NULL;
	bool good = names && confined_take(names, r->name_bytes, NULL);
	size_t at;

	buf_put(&answer, &reply, sizeof(reply));
	if (good)
		names[r->name_bytes] = '\0';
	for (at = 0; good && at < r->name_bytes; at += strlen(names + at) + 1)
		good = put_readable(names + at, &answer);
	good = good && !answer.failed;
	if (good) {
		reply.nbytes = (uint32_t)(answer.len - sizeof(reply));
		memcpy(answer.data, &reply, sizeof(reply));
		good = confined_answer(answer.data, answer.len);
	}
	buf_free(&raw);
	buf_free(&answer);
	return good;
}

int sandbox_serve(void)
{
	struct request r;
	bool goes_on = true;
	int file;

	xz_load();
	if (!confined_begin("recorder-names", SANDBOX_MEMORY_MAX_BYTES))
		return CONFINED_NOT;
	while (goes_on && confined_take(&r, sizeof(r), &file)) {
		goes_on = r.asked == ASKED_NAMES     ? answer_names(&r)
			  : r.asked == ASKED_PERFMAP ? answer_perfmap(&r, file)
						     : answer_index(&r, file);
		if (file >= 0)
			close(file);
	}
	return 0;
}

/* ---- its owner ------------------------------------------------------------------------------- */

struct sandbox *sandbox_new(void)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (s)
		s->process = (struct confined){.word = SANDBOX_WORD, .reads = "symbols",
					       .from = "file", .max_ns = SANDBOX_MAX_NS, .fd = -1};
	return s;
}

void sandbox_free(struct sandbox *s)
{
	if (s)
		confined_end(&s->process);
	free(s);
}

/* names: of r->name_bytes, instead of a file. */
static int send_request(struct sandbox *s, const struct request *r, int file, const char *names,
			struct err *err)
{
	const struct iovec parts[2] = {{(void *)(uintptr_t)r, sizeof(*r)},
				       {(void *)(uintptr_t)names, r->name_bytes}};

	return confined_ask(&s->process, parts, names ? 2 : 1, file, err);
}

static int receive(struct sandbox *s, void *to, size_t n, uint64_t end_ns, struct err *err)
{
	return confined_receive(&s->process, to, n, end_ns, err);
}

/* ---- what it is asked ------------------------------------------------------------------------ */

static int receive_strings(struct sandbox *s, const struct reply *reply, uint64_t end_ns,
			   struct elf_index *index, struct err *err)
{
	int rc = 0;
	unsigned i;

	for (i = 0; i < ELF_TABLES && !rc; i++) {
		struct elf_strings *strings = &index->strings[i];

		strings->offset = reply->strings[i].offset;
		strings->size = reply->strings[i].size;
		if (!reply->strings[i].kept)
			continue;
		if (strings->size > ELF_STRINGS_MAX_BYTES)
			return confined_distrust(&s->process, err);
		strings->kept = calloc(1, (size_t)strings->size + 1);
		rc = strings->kept ? receive(s, strings->kept, (size_t)strings->size, end_ns, err)
				   : err_memory(err, "for its names");
	}
	return rc;
}

static int receive_index(struct sandbox *s, const struct reply *reply, uint64_t end_ns,
			 struct elf_index **out, struct err *err)
{
	struct elf_index *index = calloc(1, sizeof(*index));
	uint32_t n = reply->nentries;
	int rc = 0;

	if (index)
		index->entries = malloc((n ? n : 1) * sizeof(*index->entries));
	if (!index || !index->entries)
		rc = err_memory(err, "for its symbols");
	if (!rc)
		rc = receive(s, index->entries, n * sizeof(*index->entries), end_ns, err);
	if (!rc)
		rc = receive_strings(s, reply, end_ns, index, err);
	if (!rc) {
		index->nentries = n;
		index->base = reply->base;
		*out = index;
		return 0;
	}
	elf_index_free(index);
	return rc;
}

int sandbox_index(struct sandbox *s, const struct elf_file *file, enum sandbox_index which,
		  struct elf_index **out, char *note, struct err *err)
{
	struct request r = {.asked = ASKED_INDEX, .which = which,
			    .file_bytes = file->bytes.size};
	uint64_t end_ns = os_now_ns() + SANDBOX_MAX_NS;
	struct elf_index *index = NULL;
	struct reply reply;
	int rc;

	if (!s || !file->file)
		return sandbox_index_here(&file->bytes, &file->head, which, out, note, err);
	rc = send_request(s, &r, os_file_fd(file->file), NULL, err);
	if (!rc)
		rc = receive(s, &reply, sizeof(reply), end_ns, err);
	if (rc)
		return rc;
	reply.note[sizeof(reply.note) - 1] = reply.why[sizeof(reply.why) - 1] = '\0';
	if (reply.code > 0 || reply.code < ERR_STOPPED || reply.nentries > ELF_FUNCTIONS_MAX)
		return confined_distrust(&s->process, err);
	memcpy(note, reply.note, sizeof(reply.note));
	if (reply.code)
		return err_set(err, (enum err_code)reply.code, "%s", reply.why);
	rc = receive_index(s, &reply, end_ns, &index, err);
	if (rc) {
		confined_end(&s->process);   /* the next answer would begin in this one's middle */
		return rc;
	}
	if (!sandbox_index_is_sound(index)) {
		elf_index_free(index);
		return confined_distrust(&s->process, err);
	}
	*out = index;
	return 0;
}

/* Room for what follows; an empty block needs none. */
static void *block(size_t n)
{
	return malloc(n ? n : 1);
}

static int receive_perfmap(struct sandbox *s, const struct map_reply *reply, uint64_t end_ns,
			   struct perfmap *map, struct err *err)
{
	char *text;
	int rc = 0;

	map->text.max_bytes = reply->text_bytes;     /* no more room than that */
	text = buf_reserve(&map->text, reply->text_bytes);
	map->nentries = map->capacity = reply->nentries;
	map->nranges = reply->nranges;
	map->full = reply->full;
	map->entries = block(map->nentries * sizeof(*map->entries));
	map->ranges = block(map->nranges * sizeof(*map->ranges));
	if (!text || !map->entries || !map->ranges)
		rc = err_memory(err, "for a perf map");
	if (!rc)
		rc = receive(s, map->entries, map->nentries * sizeof(*map->entries), end_ns, err);
	if (!rc)
		rc = receive(s, map->ranges, map->nranges * sizeof(*map->ranges), end_ns, err);
	if (!rc)
		rc = receive(s, text, reply->text_bytes, end_ns, err);
	if (rc) {
		confined_end(&s->process);
		return rc;
	}
	buf_advance(&map->text, reply->text_bytes);
	return perfmap_is_sound(map) ? 0 : confined_distrust(&s->process, err);
}

int sandbox_perfmap(struct sandbox *s, struct os_file *file, uint64_t file_bytes,
		    struct perfmap **out, struct err *err)
{
	struct request r = {.asked = ASKED_PERFMAP, .file_bytes = file_bytes};
	uint64_t end_ns = os_now_ns() + SANDBOX_MAX_NS;
	struct map_reply reply;
	struct perfmap *map;
	int rc;

	if (!s)
		return make_perfmap(os_file_fd(file), file_bytes, out, err);
	rc = send_request(s, &r, os_file_fd(file), NULL, err);
	if (!rc)
		rc = receive(s, &reply, sizeof(reply), end_ns, err);
	if (rc)
		return rc;
	reply.why[sizeof(reply.why) - 1] = '\0';
	if (reply.code > 0 || reply.code < ERR_STOPPED || reply.nentries > PERFMAP_LINES_MAX ||
	    reply.nranges > 2 * reply.nentries || reply.text_bytes > PERFMAP_MAX_BYTES)
		return confined_distrust(&s->process, err);
	if (reply.code)
		return err_set(err, (enum err_code)reply.code, "%s", reply.why);
	map = calloc(1, sizeof(*map));
	if (!map) {
		confined_end(&s->process);
		return err_memory(err, "for a perf map");
	}
	rc = receive_perfmap(s, &reply, end_ns, map, err);
	if (rc)
		perfmap_free(map);
	else
		*out = map;
	return rc;
}

/* Are these n texts, none of them too long? */
static bool are_texts(const char *at, size_t nbytes, uint32_t n)
{
	const char *end = at + nbytes;
	size_t length;

	for (; n && at < end; at += length + 1, n--) {
		length = strnlen(at, (size_t)(end - at));
		if (length == (size_t)(end - at) || length > FUNCTION_NAME_MAX)
			return false;
	}
	return !n && at == end;
}

static int receive_names(struct sandbox *s, uint32_t n, struct buf *out)
{
	const size_t head = sizeof(struct names_reply), some = head + n * (size_t)100;
	uint64_t end_ns = os_now_ns() + SANDBOX_MAX_NS;
	struct names_reply reply;
	size_t got;
	char *to = buf_reserve(out, some);
	int rc = to ? confined_receive_some(&s->process, to, head, some, end_ns, &got, NULL)
		    : ERR_MEMORY;

	if (rc)
		return rc;
	memcpy(&reply, to, head);
	buf_advance(out, got);
	if (reply.nbytes > n * (size_t)(FUNCTION_NAME_MAX + 1) || got > head + reply.nbytes)
		return confined_distrust(&s->process, NULL);
	to = buf_reserve(out, head + reply.nbytes - got);
	if (!to)
		return ERR_MEMORY;
	rc = receive(s, to, head + reply.nbytes - got, end_ns, NULL);
	if (rc)
		return rc;
	buf_advance(out, head + reply.nbytes - got);
	memmove(out->data, out->data + head, reply.nbytes);
	out->len = reply.nbytes;
	return are_texts(out->data, out->len, n) ? 0 : confined_distrust(&s->process, NULL);
}

static int ask_names(struct sandbox *s, const char *raw, size_t nbytes, uint32_t n,
		     struct buf *out)
{
	const struct request r = {.asked = ASKED_NAMES, .name_bytes = (uint32_t)nbytes};
	int rc = send_request(s, &r, -1, raw, NULL);

	if (!rc)
		rc = receive_names(s, n, out);
	if (rc == ERR_MEMORY)
		confined_end(&s->process);
	if (rc)
		buf_reset(out);
	return rc;
}

void sandbox_demangle(struct sandbox *s, const struct buf *raw, uint32_t n, struct buf *out)
{
	const char *at = buf_text(raw), *end = at + raw->len;
	struct buf one = {0};

	if (ask_names(s, at, raw->len, n, out) == 0)
		return;
	/* One of them is bad. Each alone, the others are not. */
	for (; at < end; at += strlen(at) + 1) {
		buf_reset(&one);
		if (n > 1)
			ask_names(s, at, strlen(at) + 1, 1, &one);
		buf_puts(out, buf_text(&one));
		buf_put(out, "", 1);
	}
	buf_free(&one);
}

/* ---- for other threads ----------------------------------------------------------------------- */

bool sandbox_waits(const struct sandbox *s, uint64_t *progress)
{
	*progress = 0;
	return !s || confined_waits(&s->process, progress);
}

void sandbox_hurry(const struct sandbox *s)
{
	if (s)
		confined_hurry(&s->process);
}

void sandbox_add_usage(struct sandbox *s, uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	if (s)
		confined_add_usage(&s->process, cpu_ns, rss_bytes);
}
