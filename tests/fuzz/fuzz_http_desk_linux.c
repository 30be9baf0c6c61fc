/*
 * Any bytes as a request: its first line is "METHOD PATH?NAME=VALUE&...", values also those of
 * headers, what follows the body. A thread answers as the recorder, of a GET with a body with that,
 * and the store has two incidents, one of them an alert's. Where the desk would start a program
 * this one is started, and does little: stand_in(). With "wait" in its body the request comes while
 * the desk ends, and is not waited for.
 */
#include "http/desk_linux.h"

#include "engine/control.h"
#include "tests/support/store_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* Before main(), with its arguments: glibc. An odd end of the last argument is one that fails. */
__attribute__((constructor)) static void stand_in(int argc, char **argv)
{
	const char *reason;

	if (argc < 3 || (strcmp(argv[1], "snapshot") && strcmp(argv[1], "export")))
		return;
	reason = argv[argc - 2];
	if (reason[strlen(reason) - 1] & 1) {
		fprintf(stderr, "recorder: nothing of this time is kept\n");
		_exit(3);
	}
	printf("{\"incident\":2}\n");
	fflush(stdout);
	_exit(0);
}

/* ---- a recorder, and what it has stored ------------------------------------------------------ */

static const char usual[] =
	"{\"health\":\"degraded\",\"flush\":1,\"flushed\":1,"
	"\"reasons\":[{\"reason\":\"losses\",\"text\":\"some\"}],"
	"\"rules\":[{\"rule\":\"r\",\"text\":\"<1>\",\"fired\":2}]}";
static const char *status = usual;           /* changes between requests only */

static void answer_calls(void *ctx)
{
	struct os_ipc *ipc = ctx;
	struct os_ipc_call *call;

	for (;;) {
		struct buf line = {0};

		if (!os_ipc_next(ipc, UINT64_MAX, &line, &call, NULL))
			os_ipc_answer(call, strstr(buf_text(&line), "snapshot")
						    ? "{\"text\":\"a snapshot is taken\"}"
						    : status);
		buf_free(&line);
	}
}

/* The path of the store; made once. Alerts add remarks to it. */
static const char *find_store(void)
{
	static struct lab lab;
	static struct os_thread *thread;
	struct incident_head head = lab_head(MS(300), MS(100), 0);
	struct segment *segment;
	struct os_ipc *ipc = NULL;
	struct store *s;
	struct buf control = {0};

	if (lab.path)
		return lab.path;
	s = lab_record(&lab, "desk.db");
	lab_simple(&lab, s, MS(100), 40);
	lab_sample(&lab, MS(250), 0, "abc");
	segment = lab_seal(&lab);
	head.rule = "manual";
	head.reason = "alert A [f1 since 2026-11-28T10:00:00Z]";
	lab_incident(s, &head, &segment, 1);
	segment_unref(segment);
	store_close(s);
	buf_printf(&control, "%s" CONTROL_SUFFIX, lab.path);
	must(!os_ipc_listen(buf_text(&control), &ipc, NULL));
	must(!os_thread_start("recorder", answer_calls, ipc, &thread, NULL));
	buf_free(&control);
	return lab.path;
}

/* ---- a request ------------------------------------------------------------------------------- */

struct query {
	const char *at, *end;                /* "NAME=VALUE", each with a NUL behind */
};

static const char *value_of(void *ctx, const char *name)
{
	const struct query *q = ctx;
	const char *at;
	size_t n = strlen(name);

	for (at = q->at; at < q->end; at += strlen(at) + 1)
		if (strncmp(at, name, n) == 0 && at[n] == '=')
			return at + n + 1;
	return NULL;
}

static void ask(const char *method, const char *path, struct query query,
		const struct buf *body)
{
	const struct http_config cfg = {.store_path = find_store()};
	struct request r = {.method = method, .path = path, .header = value_of,
			    .query = value_of, .ctx = &query, .body = body,
			    .open_only = *method == 'H'};
	struct answer answer = {0};
	struct desk desk = {0};

	must(!desk_open(&desk, &cfg, NULL));
	status = *method == 'G' && body->len ? buf_text(body) : usual;
	desk.ending = body->len && strstr(body->data, "wait");
	desk_answer(&desk, &r, &answer);
	must(answer.status >= 200 && answer.status <= 503 && answer.type);
	must(answer.has_file ? answer.status == 200 : answer.body.len > 0);
	answer_free(&answer);
	desk_close(&desk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = n ? memchr(data, '\n', n) : NULL;
	size_t len = end ? (size_t)(end - data) : n;
	char line[LINE_MAX_BYTES], *path, *at;
	struct query query = {0};
	struct buf body = {0};

	if (len >= sizeof(line))
		return 0;
	if (len)
		memcpy(line, data, len);
	line[len] = '\0';
	path = strchr(line, ' ');
	if (!path)
		return 0;
	*path++ = '\0';
	at = strchr(path, '?');
	if (at) {
		*at++ = '\0';
		query = (struct query){at, line + len};
		while ((at = strchr(at, '&')) != NULL)
			*at++ = '\0';
	}
	if (end)
		buf_put(&body, end + 1, n - len - 1);
	ask(line, path, query, &body);
	buf_free(&body);
	return 0;
}
