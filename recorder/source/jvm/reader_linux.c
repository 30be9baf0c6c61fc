#include "source/jvm/reader.h"

#include "base/confined_linux.h"
#include "source/host/mapped_linux.h"

#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define MEMORY_MAX_BYTES ((uint64_t)64 << 20)
#define ANSWER_MAX_NS (5 * NS_PER_SEC)

struct answer {
	uint32_t nentries;
	struct hsperf_entry entries[HSPERF_ENTRIES_MAX];     /* as many as there are */
};

/* In both processes: the last file. */
struct jvm_reader {
	struct confined process;
	uint64_t image[HSPERF_MAX_BYTES / 8];
	struct answer answer;
	size_t got_bytes;                    /* of the answer */
	uint64_t end_ns;                     /* of the time that it may take */
	uint32_t nbytes;                     /* of the file */
};

static size_t answer_bytes(uint32_t nentries)
{
	return offsetof(struct answer, entries) + nentries * sizeof(struct hsperf_entry);
}

/* A request is the size of a file, which comes with it. */
int jvm_reader_serve(void)
{
	struct jvm_reader *r = calloc(1, sizeof(*r));
	uint32_t nbytes;
	bool goes_on = true;
	ssize_t got;
	int file;

	if (!r || !confined_begin("recorder-java", MEMORY_MAX_BYTES))
		return CONFINED_NOT;
	while (goes_on && confined_take(&nbytes, sizeof(nbytes), &file)) {
		got = nbytes <= HSPERF_MAX_BYTES ? pread(file, r->image, nbytes, 0) : 0;
		close(file);
		r->answer.nentries = got > 0 ? hsperf_entries(r->image, (size_t)got,
							      r->answer.entries) : 0;
		goes_on = confined_answer(&r->answer, answer_bytes(r->answer.nentries));
	}
	return 0;
}

int jvm_reader_new(struct jvm_reader **out, struct err *err)
{
	struct jvm_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return err_memory(err, "for performance data of Java programs");
	r->process = (struct confined){.word = JVM_READER_WORD, .reads = "performance data",
				       .from = "file", .max_ns = ANSWER_MAX_NS, .fd = -1};
	*out = r;
	return 0;
}

void jvm_reader_free(struct jvm_reader *r)
{
	if (r)
		confined_end(&r->process);
	free(r);
}

int jvm_reader_ask(struct jvm_reader *r, int fd, size_t nbytes, struct err *err)
{
	struct iovec part = {&r->nbytes, sizeof(r->nbytes)};

	r->nbytes = (uint32_t)nbytes & ~7u;
	r->got_bytes = 0;
	r->end_ns = os_now_ns() + ANSWER_MAX_NS;
	return confined_ask(&r->process, &part, 1, fd, err);
}

/* returns  1 when there is more to come */
static int receive(struct jvm_reader *r, uint64_t wait_ns, struct err *err)
{
	size_t needed = answer_bytes(0), got;
	int rc = 0;

	while (!rc && r->got_bytes < needed) {
		struct pollfd p = {.fd = r->process.fd, .events = POLLIN};

		if (poll(&p, 1, (int)(wait_ns / NS_PER_MS)) <= 0 && os_now_ns() < r->end_ns)
			return 1;
		rc = confined_receive_some(&r->process, (char *)&r->answer + r->got_bytes, 1,
					   needed - r->got_bytes, r->end_ns, &got, err);
		r->got_bytes += rc ? 0 : got;
		if (!rc && r->got_bytes >= answer_bytes(0)) {
			if (r->answer.nentries > HSPERF_ENTRIES_MAX)
				return confined_distrust(&r->process, err);
			needed = answer_bytes(r->answer.nentries);
		}
	}
	return rc;
}

int jvm_reader_take(struct jvm_reader *r, const struct mapped *map, uint64_t wait_ns,
		    struct hsperf_file *out, uint64_t *cpu_ns, struct err *err)
{
	int rc = receive(r, wait_ns, err);

	*cpu_ns = confined_spent_ns(&r->process);
	if (rc)
		return rc;
	*out = (struct hsperf_file){r->image, r->nbytes, r->answer.entries, r->answer.nentries};
	if (!hsperf_is_sound(out))
		return confined_distrust(&r->process, err);
	return out->nentries && mapped_read(map, r->image, 0, r->nbytes)
		       ? 0 : err_set(err, ERR_NOT_FOUND, "no performance data of a JVM");
}

void jvm_reader_cancel(struct jvm_reader *r)
{
	confined_end(&r->process);
}

void jvm_reader_add_usage(struct jvm_reader *r, uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	confined_add_usage(&r->process, cpu_ns, rss_bytes);
}
