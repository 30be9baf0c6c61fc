/* Any bytes as each of the files of names, and as a .zip with one; then the lists are walked. */
#include "source/stackfile/scenario.h"
#include "source/stackfile/stack_list.h"
#include "source/stackfile/unzip.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sum;                     /* so that the compiler keeps every read */

static void check_frames(const struct stack_list *l)
{
	uint32_t i;

	for (i = 0; i < l->nframes; i++) {
		sum += strlen(l->frames[i].module);
		if (l->frames[i].function && strlen(l->frames[i].function) >= FUNCTION_NAME_MAX)
			abort();
	}
	/* A caller comes before those that it called, so no stack is a circle. */
	for (i = 0; i < l->nnodes; i++)
		if (l->nodes[i].frame >= l->nframes ||
		    (l->nodes[i].caller != STACK_LIST_NONE && l->nodes[i].caller >= i))
			abort();
}

static void check(const struct stack_list *l)
{
	uint32_t i;

	check_frames(l);
	for (i = 0; i < l->nsamples; i++) {
		const struct stack_list_sample *s = &l->samples[i];

		if (s->thread >= l->nthreads || !(s->weight >= 0) || s->stream >= STREAMS_MAX ||
		    s->quality >= QUALITIES ||
		    (s->node != STACK_LIST_NONE && s->node >= l->nnodes))
			abort();
		sum += strlen(l->threads[s->thread].process);
	}
}

static void parse_all(const char *text, size_t n)
{
	int (*const parsers[])(struct stack_list *, const char *, size_t, struct err *) = {
		stack_list_speedscope, stack_list_perfview, stack_list_perf_script,
		stack_list_folded, stack_list_perfview_json, stack_list_v8_profile,
		stack_list_trace_events, stack_list_heap_profile};
	struct err err;
	size_t i;

	for (i = 0; i < sizeof(parsers) / sizeof(*parsers); i++) {
		struct stack_list l = {0};

		parsers[i](&l, text, n, &err);
		check(&l);
		stack_list_thread_time(&l);
		check(&l);
		stack_list_free(&l);
	}
}

static void parse_set(const char *text, size_t n)
{
	struct scenario_list list = {0};
	struct buf regex = {0};
	struct err err;
	uint32_t i;

	if (!scenario_parse(text, n, &list, &err) && !list.n)
		abort();
	for (i = 0; i < list.n; i++) {
		if (list.items[i].files)
			scenario_regex(list.items[i].files, &regex);
		sum += list.items[i].name ? strlen(list.items[i].name) : 0;
	}
	scenario_list_free(&list);
	buf_free(&regex);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text = {.max_bytes = 1u << 20};
	struct err err;

	if (unzip_is_zip(data, size))
		text.failed = unzip_file(data, size, ".data.txt", "fuzz", &text, &err) &&
			      unzip_file(data, size, "", "fuzz", &text, &err);
	else if (unzip_is_gzip(data, size))
		text.failed = unzip_gzip(data, size, "fuzz", &text, &err) != 0;
	else
		buf_put(&text, data, size);
	if (!text.failed) {
		struct stack_list l = {0};

		stack_list_pprof(&l, buf_text(&text), text.len, &err);
		check(&l);
		stack_list_thread_time(&l);
		stack_list_limit(&l);
		stack_list_free(&l);
		stack_list_jfr(&l, buf_text(&text), text.len, &err);
		check(&l);
		stack_list_free(&l);
	}
	/* As the source does: a text has no NUL. */
	if (!text.failed && !(text.len && memchr(text.data, 0, text.len))) {
		parse_all(buf_text(&text), text.len);
		parse_set(buf_text(&text), text.len);
	}
	buf_free(&text);
	return 0;
}
