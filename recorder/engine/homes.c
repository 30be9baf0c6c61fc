#include "engine/homes.h"

#include "model/home.h"

#include <stdlib.h>
#include <string.h>

int homes_init(struct homes *h, struct err *err)
{
	h->lock = os_mutex_new();
	return h->lock ? 0 : err_memory(err, "for units and containers");
}

void homes_free(struct homes *h)
{
	uint32_t i;

	for (i = 0; i < h->n; i++)
		free(h->rows[i].labels);
	if (h->lock)
		os_mutex_free(h->lock);
	memset(h, 0, sizeof(*h));
}

static void put_labels(const char *text, struct buf *out)
{
	struct json j = {.out = out};
	struct home home;
	unsigned key;

	home_read(text, &home);
	for (key = HOME_CONTAINER; key < HOME_KEYS; key++)
		if (*home.of[key])
			json_key_str(&j, home_key_text((enum home_key)key), home.of[key]);
}

/* Merge thread, under the lock. */
static void free_idle_rows(struct homes *h, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < h->n; i++) {
		struct home_row *row = &h->rows[i];

		if (!row->labels || now_ns - row->last_ns < HOMES_IDLE_NS)
			continue;
		h->bytes -= strlen(row->labels);
		free(row->labels);
		*row = (struct home_row){.age = row->age + 1};
	}
}

/* returns  HOMES_MAX when there is no room */
static uint32_t add_row(struct homes *h, const char *labels, uint64_t now_ns)
{
	size_t n = strlen(labels);
	char *copy = NULL;
	uint32_t i;

	os_mutex_lock(h->lock);
	if (h->n == HOMES_MAX || h->bytes + n > HOMES_MAX_BYTES)
		free_idle_rows(h, now_ns);
	for (i = 0; i < h->n && h->rows[i].labels; i++)
		;
	if (i < HOMES_MAX && h->bytes + n <= HOMES_MAX_BYTES)
		copy = strdup(labels);
	if (copy) {
		h->n += i == h->n;
		h->bytes += n;
		h->rows[i].labels = copy;
	}
	os_mutex_unlock(h->lock);
	return copy ? i : HOMES_MAX;
}

static uint32_t find_row(struct homes *h, const char *labels, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < h->n; i++)
		if (h->rows[i].labels && strcmp(h->rows[i].labels, labels) == 0)
			return i;
	return add_row(h, labels, now_ns);
}

static uint32_t row_of(struct homes *h, struct process *process, uint64_t now_ns)
{
	const char *text = process ? process_home(process) : "";
	struct buf labels = {0};
	uint32_t row = HOMES_MAX;

	if (process && process->counted_home == text && process->home_row < h->n &&
	    h->rows[process->home_row].age == process->home_row_age)
		return process->home_row;
	put_labels(text, &labels);
	if (!labels.failed)
		row = find_row(h, buf_text(&labels), now_ns);
	buf_free(&labels);
	if (process && row < HOMES_MAX) {
		process->counted_home = text;
		process->home_row = row;
		process->home_row_age = h->rows[row].age;
	}
	return row;
}

void homes_add(struct homes *h, struct process *process, double weight_ns, uint64_t now_ns)
{
	_Atomic uint64_t *sum = &h->other_ns;
	uint32_t row;

	if (!h->lock || !(weight_ns > 0))
		return;
	row = row_of(h, process, now_ns);
	if (row < HOMES_MAX) {
		h->rows[row].last_ns = now_ns;
		sum = &h->rows[row].cpu_ns;
	}
	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) +
			      (uint64_t)weight_ns, memory_order_relaxed);
}

static void put_row(const char *labels, uint64_t cpu_ns, struct json *j)
{
	json_open(j, '{');
	if (*labels) {
		buf_puts(j->out, labels);
		j->comma = true;
	}
	json_key_num(j, "cpu_s", (double)cpu_ns / 1e9);
	json_close(j, '}');
}

void homes_put(struct homes *h, struct json *j)
{
	uint64_t other_ns = atomic_load_explicit(&h->other_ns, memory_order_relaxed);
	uint32_t i;

	if (!h->lock)
		return;
	os_mutex_lock(h->lock);
	for (i = 0; i < h->n; i++)
		if (h->rows[i].labels)
			put_row(h->rows[i].labels, atomic_load_explicit(&h->rows[i].cpu_ns,
									memory_order_relaxed), j);
	os_mutex_unlock(h->lock);
	if (other_ns)
		put_row("\"unit\":\"" HOMES_OTHER "\"", other_ns, j);
}
